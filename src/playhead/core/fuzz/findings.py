"""Findings of a fuzz run: unique, confirmed, and as small as they can be made."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from playhead.core.fuzz.cases import Expectation, Family, FuzzCase, digest_of
from playhead.core.protocol.shape import is_list, is_object
from playhead.core.values import JSON

DIRECT_RUNS: Final = 2
"""Further identical runs that confirm a direct finding."""
MODEL_RUNS: Final = 5
MODEL_AGAIN: Final = 3
"""A finding of a model is confirmed by so many of `MODEL_RUNS` trials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong, however many cases showed it.

    Attributes:
        id: the same for the same tool, family, pointer, class and template, in any run.
        outcome: the class of the call (``crashed`` ...), or of what the model did (``loop`` ...).
        template: the error without what is particular to a call.
        text: the error of the first case that showed it.
        arguments: the smallest that still show it.
        cases: the cases that showed it; the first one is what confirms and replays it.
        seen: of ``runs`` further runs, those that showed it again.
    """

    id: str
    source: Literal["direct", "model"]
    tool: str
    family: Family
    pointer: str
    mutation: str
    outcome: str
    template: str = ""
    text: str = ""
    expectation: Expectation = "schema"
    arguments: JSON = None
    base: JSON = None
    cases: tuple[str, ...] = ()
    confirmed: bool = False
    seen: int = 0
    runs: int = 0
    shrunk: bool = False
    run: str = ""
    model: str | None = None
    entry_point: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A case and what came of it."""

    case: FuzzCase
    outcome: str
    template: str = ""
    text: str = ""


def grouped(shown: Iterable[Shown]) -> list[list[Shown]]:
    """What was shown, by finding, in the order in which each was first seen."""
    groups: dict[str, list[Shown]] = {}
    for one in shown:
        groups.setdefault(finding_id(one), []).append(one)
    return list(groups.values())


def finding_id(one: Shown) -> str:
    """Names a finding by what makes it one."""
    case = one.case
    return digest_of([case.tool, case.family, case.pointer, one.outcome, one.template])[:12]


def false_discovery_rate(findings: Sequence[Finding]) -> float | None:
    """The share of findings that further runs did not confirm; None where there is none."""
    return sum(not one.confirmed for one in findings) / len(findings) if findings else None


# --- smaller --------------------------------------------------------------------------------------------------------


def shrunk(value: JSON, still: Callable[[JSON], bool], *, tries: int = 60) -> JSON:
    """The smallest value, found by taking parts away, that ``still`` holds for.

    Args:
        still: asked of smaller values, at most ``tries`` times.
    """
    left = tries
    best = value
    again = True
    while again and left > 0:
        again = False
        for smaller in _smaller(best):
            if left <= 0:
                break
            left -= 1
            if still(smaller):
                best, again = smaller, True
                break
    return best


def _smaller(value: JSON) -> Iterable[JSON]:
    """Values with a part of this one, the largest parts taken away first."""
    if is_object(value):
        for name in value:
            yield {other: inner for other, inner in value.items() if other != name}
        for name, inner in value.items():
            yield from ({**value, name: less} for less in _smaller(inner))
    elif is_list(value):
        yield from _fewer(value)
    elif isinstance(value, str):
        half = len(value) // 2
        if half:
            yield from (value[:half], value[half:])
        if len(value) == 1 and value != "a":
            yield "a"
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _nearer_zero(value)


def _fewer(value: list[JSON]) -> Iterable[JSON]:
    half = len(value) // 2
    if half:
        yield from (value[:half], value[half:])
    if value:
        yield []
    if len(value) <= 8:
        yield from ([*value[:place], *value[place + 1 :]] for place in range(len(value)) if len(value) > 1)
        for place, inner in enumerate(value):
            yield from ([*value[:place], less, *value[place + 1 :]] for less in _smaller(inner))


def _nearer_zero(value: int | float) -> Iterable[JSON]:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        yield int(value)
    if abs(value) > 1:
        yield from (0, 1)
        for divisor in (1000, 10, 2):
            if abs(value) >= divisor and int(value / divisor) not in (0, value):
                yield int(value / divisor)
