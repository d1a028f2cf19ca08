"""What a label says of one argument: a value, equal by canonical JSON, or a matcher object.

``{"$any_of": [...]}``, ``{"$optional": true}`` (may be absent; with ``$any_of`` for when it is there),
``{"$any": true}``, ``{"$pattern": "^POL-"}`` (RE2 search), ``{"$as": "money", "$value": ...}`` (compared as a named
fact is), ``{"$each": [...]}`` (a list in any order). Objects and lists may hold matchers at any depth.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from playhead.core.byte_patterns import searched
from playhead.core.evaluation import as_text
from playhead.core.facts.named import Fact, find, plain_text
from playhead.core.json_text import pointer
from playhead.core.match import ABSENT, equal
from playhead.core.protocol.shape import is_list, is_object
from playhead.core.values import JSON

MATCHERS: Final = frozenset({"$any_of", "$optional", "$any", "$pattern", "$as", "$value", "$each"})
_VARIANTS = 200

Reason: TypeAlias = Literal["missing_value", "wrong_value", "extra_value"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """One argument that is not as the label says. ``pointer`` counts from the arguments."""

    reason: Reason
    pointer: str
    expected: JSON = None
    seen: JSON = None


def is_matcher(value: JSON) -> bool:
    """Whether an object is a matcher and not a value."""
    return is_object(value) and bool(value) and MATCHERS.issuperset(value)


def optional(expected: JSON) -> bool:
    """Whether the label lets an argument be absent."""
    return is_matcher(expected) and bool(expected.get("$optional"))


def mismatches(expected: Mapping[str, JSON], seen: JSON, *, extra: Literal["allow", "forbid"]) -> list[Mismatch]:
    """Where a call's arguments are not what the label names. ``extra``: what of arguments that it does not name."""
    given = seen if is_object(seen) and not ({"$invalid", "$deep"} & seen.keys()) else {}
    found = list(_members(expected, given, ()))
    if extra == "forbid":
        others = [name for name in given if name not in expected]
        found += [Mismatch(reason="extra_value", pointer=pointer([n]), seen=given[n]) for n in others]
    return found


def _members(expected: Mapping[str, JSON], given: Mapping[str, JSON], at: tuple[Any, ...]) -> Iterator[Mismatch]:
    for name, wanted in expected.items():
        if name in given:
            yield from _differs(wanted, given[name], (*at, name))
        elif not optional(wanted):
            yield Mismatch(reason="missing_value", pointer=pointer([*at, name]), expected=wanted)


def _differs(expected: JSON, seen: JSON, at: tuple[Any, ...]) -> Iterator[Mismatch]:
    if is_matcher(expected):
        if not _fits_matcher(expected, seen):
            yield Mismatch(reason="wrong_value", pointer=pointer(at), expected=expected, seen=seen)
        return
    if not _holds_matcher(expected):
        if not equal(expected, seen):
            yield Mismatch(reason="wrong_value", pointer=pointer(at), expected=expected, seen=seen)
        return
    if is_object(expected) and is_object(seen):
        yield from _members(expected, seen, at)
        for name in seen:
            if name not in expected:
                yield Mismatch(reason="wrong_value", pointer=pointer([*at, name]), seen=seen[name])
    elif is_list(expected) and is_list(seen) and len(expected) == len(seen):
        for place, (one, other) in enumerate(zip(expected, seen, strict=True)):
            yield from _differs(one, other, (*at, place))
    else:
        yield Mismatch(reason="wrong_value", pointer=pointer(at), expected=expected, seen=seen)


def fits(expected: JSON, seen: JSON) -> bool:
    """Whether one value is what the label says."""
    return next(_differs(expected, seen, ()), None) is None


def _holds_matcher(value: JSON) -> bool:
    if is_object(value):
        return is_matcher(value) or any(map(_holds_matcher, value.values()))
    return is_list(value) and any(map(_holds_matcher, value))


def _fits_matcher(matcher: Mapping[str, JSON], seen: JSON) -> bool:
    if "$any_of" in matcher and not any(fits(one, seen) for one in matcher["$any_of"]):
        return False
    if "$pattern" in matcher and not (isinstance(seen, str) and searched(str(matcher["$pattern"]), seen)):
        return False
    if "$as" in matcher and not same_as(str(matcher["$as"]), matcher.get("$value"), seen):
        return False
    return "$each" not in matcher or (is_list(seen) and _pairs_up(matcher["$each"], seen))


def same_as(kind: str, expected: JSON, seen: JSON) -> bool:
    """Whether two values are one, however each is spelled: as texts, numbers, money, dates or ids."""
    if isinstance(seen, bool) or is_object(seen) or is_list(seen) or seen is None:
        return False
    if kind == "text":
        return isinstance(seen, str) and plain_text(str(expected)) == plain_text(seen)
    try:
        fact = Fact.model_validate({"name": "argument", "as": kind, "value": expected})
    except ValueError:
        return equal(expected, seen)
    found = find(fact, as_text(seen))
    return found.found and not found.others


def _pairs_up(expected: Sequence[JSON], seen: Sequence[JSON]) -> bool:
    """Whether each item fits another of the expected ones."""
    if len(expected) != len(seen):
        return False
    fitting = [[i for i, one in enumerate(expected) if fits(one, item)] for item in seen]
    return matching(fitting) == len(seen)


def matching(fitting: Sequence[Sequence[int]]) -> int:
    """The size of the largest pairing, where ``fitting`` names for each on the left those on the right that fit."""
    taken: dict[int, int] = {}

    def place(left: int, tried: set[int]) -> bool:
        for right in fitting[left]:
            if right in tried:
                continue
            tried.add(right)
            if right not in taken or place(taken[right], tried):
                taken[right] = left
                return True
        return False

    return sum(place(left, set()) for left in range(len(fitting)))


# --- values that a label accepts ------------------------------------------------------------------------------------


def variants(expected: JSON) -> list[JSON]:
    """Values that fit: every alternative of each matcher once, the first of the others beside it; none of patterns.

    A value that may be absent is there in all of them.
    """
    return [value for value in _variants(expected) if value is not ABSENT][:_VARIANTS]


def first_variant(arguments: Mapping[str, JSON], *, with_optional: bool = False) -> dict[str, JSON]:
    """Arguments that fit: the first acceptable value of each, those that may be absent left out."""
    chosen = {n: variants(e) for n, e in arguments.items() if with_optional or not optional(e)}
    return {name: values[0] for name, values in chosen.items() if values}


def _variants(expected: JSON) -> list[Any]:
    if is_matcher(expected):
        return _matcher_variants(expected)
    if is_object(expected):
        names = list(expected)
        made = _combined([[ABSENT, *_variants(v)] if optional(v) else _variants(v) for v in expected.values()])
        return [{n: v for n, v in zip(names, one, strict=True) if v is not ABSENT} for one in made]
    return _combined([_variants(item) for item in expected]) if is_list(expected) else [expected]


def _matcher_variants(matcher: Mapping[str, JSON]) -> list[Any]:
    if "$any_of" in matcher:
        return [value for one in matcher["$any_of"] for value in _variants(one)]
    if "$value" in matcher:
        return [matcher["$value"]]
    return _combined([_variants(item) for item in matcher["$each"]]) if "$each" in matcher else []


def _combined(choices: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The first of each, then each other choice once with the first of the rest."""
    if any(not values for values in choices):
        return []
    first = [values[0] for values in choices]
    made = [first]
    for place, values in enumerate(choices):
        made += [[*first[:place], value, *first[place + 1 :]] for value in values[1:]]
        if len(made) > _VARIANTS:
            break
    return made


def compatible(left: JSON, right: JSON) -> bool:
    """Whether some value fits both; two patterns, or what accepts anything, are taken to."""
    ours, theirs = variants(left), variants(right)
    if not ours or not theirs:
        return not (ours or theirs) or any(fits(left if theirs else right, v) for v in ours or theirs)
    return any(fits(right, value) for value in ours) or any(fits(left, value) for value in theirs)
