"""Makes the cases of a tool from its schema and recorded arguments.

The same input gives the same cases, byte for byte.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, NamedTuple

from playhead.core.argument_schema import argument_errors
from playhead.core.fuzz.cases import Expectation, Family, FuzzCase, digest_of
from playhead.core.fuzz.near_misses import against_declared, against_meaning
from playhead.core.fuzz.places import Place, drop, made_arguments, places, put
from playhead.core.match import equal
from playhead.core.protocol.shape import is_list, is_object
from playhead.core.suites.suite import ToolSchema
from playhead.core.values import JSON

LONG_TEXT: Final = 100_000
MANY_ITEMS: Final = 10_000
_TELLING: Final = frozenset({"large_number", "enum_synonym", "date_impossible", "near_miss_id", "left_out", "null"})
"""Changes that show something most often: they go before others of their place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """Valid arguments of a tool, and the recorded call that they are from."""

    arguments: JSON
    source: str | None = None
    round: int = 0
    result: JSON = None


class _Candidate(NamedTuple):
    mutation: str
    pointer: str
    expectation: Expectation
    arguments: JSON
    base: Base


class _Distinct(NamedTuple):
    """A candidate with the digest of its arguments."""

    made: _Candidate
    digest: str


def bases(tool: ToolSchema, recorded: Iterable[Base]) -> list[Base]:
    """The recorded arguments that are valid, each once; else arguments made from the schema."""
    found: list[Base] = []
    for one in recorded:
        if not argument_errors(tool.parameters, one.arguments) and not any(
            equal(one.arguments, known.arguments) for known in found
        ):
            found.append(one)
    if found:
        return found
    made = made_arguments(tool.parameters)
    return [Base(arguments=made)] if made is not None else []


def tool_cases(
    tool: ToolSchema, families: Sequence[Family], recorded: Sequence[Base] = (), *, per_tool: int, seed: int
) -> list[FuzzCase]:
    """The cases of one tool: of each family at most ``per_tool``, spread over places and mutations."""
    starts = bases(tool, recorded)
    makers = {"type_confusion": _type_confusion, "constraint": _constraint, "oversized": _oversized}
    found: list[FuzzCase] = []
    for family in families:
        if family in makers:
            candidates = _once(made for base in starts[:3] for made in makers[family](tool, base, starts))
            chosen = _spread(candidates, per_tool, f"{seed}:{tool.name}:{family}")
            found += [_case(tool, family, one) for one in chosen]
    return found


def _case(tool: ToolSchema, family: Family, one: _Distinct) -> FuzzCase:
    made, base = one.made, one.made.base
    identity = [tool.name, family, made.mutation, made.pointer, one.digest, base.source, base.round]
    return FuzzCase(
        id=f"{family}-{tool.name}-{digest_of(identity)[:8]}", tool=tool.name, family=family, mutation=made.mutation,
        pointer=made.pointer, expectation=made.expectation, arguments=made.arguments, base=base.arguments,
        source=base.source, round=base.round,
    )  # fmt: skip


def _once(candidates: Iterable[_Candidate]) -> list[_Distinct]:
    """Each call once, however often it can be made."""
    kept: dict[str, _Distinct] = {}
    for one in candidates:
        digest = digest_of(one.arguments)
        kept.setdefault(digest, _Distinct(one, digest))
    return list(kept.values())


def _spread(candidates: Sequence[_Distinct], most: int, seed: str) -> list[_Distinct]:
    """At most so many: each time from the place and kind of change that are used least; what breaks a declared rule
    goes first, then what tells most; the rest is drawn by digest."""
    rank = {
        one.digest: sha256(f"{seed}:{one.made.mutation}:{one.made.pointer}:{one.digest}".encode()).digest()
        for one in candidates
    }
    at, kind = Counter[str](), Counter[str]()

    def order(one: _Distinct) -> tuple[int, bool, bool, int, bytes]:
        made = one.made
        declared, telling = made.expectation == "schema", made.mutation in _TELLING
        return at[made.pointer], not declared, not telling, kind[made.mutation], rank[one.digest]

    left: list[_Distinct] = list(candidates)
    chosen: list[_Distinct] = []
    while left and len(chosen) < most:
        best = min(left, key=order)
        left = [one for one in left if one is not best]
        chosen.append(best)
        at[best.made.pointer] += 1
        kind[best.made.mutation] += 1
    return chosen


def _made(tool: ToolSchema, base: Base, place: Place, mutation: str, value: JSON) -> Iterator[_Candidate]:
    """A candidate with another value at a place; none where that is no change."""
    if equal(value, place.value):
        return
    arguments = put(base.arguments, place.steps, value)
    fails = bool(argument_errors(tool.parameters, arguments))
    yield _Candidate(mutation, place.pointer, "schema" if fails else "semantic", arguments, base)


# --- families -------------------------------------------------------------------------------------------------------


def _type_confusion(tool: ToolSchema, base: Base, starts: Sequence[Base]) -> Iterator[_Candidate]:
    for place in places(tool.parameters, base.arguments):
        for mutation, value in _other_types(place):
            yield from (c for c in _made(tool, base, place, mutation, value) if c.expectation == "schema")
        if place.required:
            arguments = drop(base.arguments, place.steps)
            if argument_errors(tool.parameters, arguments):
                yield _Candidate("left_out", place.pointer, "schema", arguments, base)


def _other_types(place: Place) -> Iterator[tuple[str, JSON]]:
    """Values of other types than the declared one. What the schema permits all the same is left out later."""
    value = place.value
    match place.kind:
        case "integer" | "number":
            yield "number_as_text", str(value)
            yield "number_as_word", "many"
            yield "number_in_list", [value]
            yield "number_as_fraction", 1.5
        case "boolean":
            yield "boolean_as_text", "true"
            yield "boolean_as_number", 1
        case "array":
            yield "scalar_for_list", value[0] if is_list(value) and value else "text"
            yield "list_as_text", json.dumps(value)
            yield "object_for_list", {"items": value}
        case "object":
            yield "object_as_text", json.dumps(value)
            yield "object_in_list", [value]
            yield "text_for_object", "text"
        case "string":
            yield "list_for_text", [value]
            yield "object_for_text", {"value": value}
            yield "number_for_text", 12345
            yield "boolean_for_text", True
        case _:
            pass
    yield "null", None


def _constraint(tool: ToolSchema, base: Base, starts: Sequence[Base]) -> Iterator[_Candidate]:
    recorded = [start.arguments for start in starts]
    for place in places(tool.parameters, base.arguments):
        for mutation, value in against_declared(place):
            yield from (c for c in _made(tool, base, place, mutation, value) if c.expectation == "schema")
        others = [found for arguments in recorded for found in _at(arguments, place.steps)]
        for mutation, value in against_meaning(place, others):
            made = _made(tool, base, place, mutation, value)
            yield from (c for c in made if not any(equal(c.arguments, known) for known in recorded))


def _at(arguments: JSON, steps: Sequence[str | int]) -> list[JSON]:
    value = arguments
    for step in steps:
        if is_object(value) and step in value:
            value = value[str(step)]
        elif is_list(value) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return []
    return [value]


def _oversized(tool: ToolSchema, base: Base, starts: Sequence[Base]) -> Iterator[_Candidate]:
    if base is not starts[0]:
        return
    for place in places(tool.parameters, base.arguments):
        if place.kind == "string" and isinstance(place.value, str):
            text = place.value or "a"
            long = (text * (LONG_TEXT // len(text) + 1))[:LONG_TEXT]
            yield from _made(tool, base, place, "long_text", long)
        if place.kind == "array" and is_list(place.value) and place.value:
            many = (place.value * (MANY_ITEMS // len(place.value) + 1))[:MANY_ITEMS]
            yield from _made(tool, base, place, "many_items", many)
