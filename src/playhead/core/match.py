"""The one meaning of "equal" on stored JSON: exact and subset matching, differences, near misses.

Two values are equal when their canonical texts are: members in any order, 1 and 1.0 one number, true no number,
an integer beyond +-(2^53-1) equal to its tagged form and to no double, a surrogate pair and its character one string.
Typed values (``{"$datetime": ...}``) are atoms: equal or not, never a subset. Everything here walks with a stack of
its own, so depth never ends in a RecursionError.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from playhead.core.jcs import TAGS
from playhead.core.json_text import has_surrogate, joined
from playhead.core.protocol.shape import is_list, is_object
from playhead.core.values import JSON

_SAFE = 2**53 - 1
MatchMode: TypeAlias = Literal["exact", "subset"]


class Absent(Enum):
    """Stands for a member or item that one side does not have."""

    ABSENT = "(absent)"

    def __repr__(self) -> str:
        return self.value


ABSENT: Final = Absent.ABSENT


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where two values differ. ``pointer`` is a JSON pointer; a side without the place is `ABSENT`."""

    pointer: str
    left: JSON | Absent
    right: JSON | Absent


def equal(left: JSON, right: JSON) -> bool:
    """Whether the two have the same canonical text."""
    return next(_walk(left, right, subset=False), None) is None


def matches(pattern: JSON, value: JSON, mode: MatchMode = "exact") -> bool:
    """Whether ``value`` fits ``pattern``.

    ``subset``: every member that the pattern gives is there and equal, at every depth of objects; lists are compared
    item by item and whole.
    """
    return next(_walk(pattern, value, subset=mode == "subset"), None) is None


def differences(left: JSON, right: JSON, *, limit: int | None = None) -> list[Difference]:
    """Every place where the two differ, objects by sorted member name, lists by index; at most ``limit``."""
    found: list[Difference] = []
    for steps, a, b in _walk(left, right, subset=False):
        if limit is not None and len(found) >= limit:
            break
        found.append(Difference(_pointer(steps), a, b))
    return found


def pattern_differences(pattern: JSON, value: JSON, mode: MatchMode = "exact") -> list[Difference]:
    """Where ``value`` does not fit ``pattern``: empty exactly when `matches`."""
    return [Difference(_pointer(steps), a, b) for steps, a, b in _walk(pattern, value, subset=mode == "subset")]


def count_differences(left: JSON, right: JSON, stop_at: int) -> int:
    """How many places differ, counting no further than ``stop_at``."""
    count = 0
    for _ in _walk(left, right, subset=False):
        count += 1
        if count >= stop_at:
            break
    return count


class Candidate(NamedTuple):
    """Something recorded that an asked value is held against, in recorded order."""

    value: JSON
    claimed: bool


class Near(NamedTuple):
    """The ``place`` of a candidate, and how many places of its value ``differ``."""

    place: int
    differ: int


def nearest(asked: JSON, candidates: Sequence[Candidate], *, limit: int = 3) -> list[Near]:
    """The candidates to show for ``asked``: unclaimed before claimed, then fewest differences, then recorded order."""
    best: list[tuple[bool, int, int]] = []
    for place, candidate in enumerate(candidates):
        if len(best) == limit and candidate.claimed and not best[-1][0]:
            continue
        worst = best[-1][1] if len(best) == limit and best[-1][0] == candidate.claimed else 1_000_000
        best.append((candidate.claimed, count_differences(candidate.value, asked, worst), place))
        best.sort()
        del best[limit:]
    return [Near(place, differ) for _, differ, place in best]


# --- the walk -------------------------------------------------------------------------------------------------------

_Side: TypeAlias = Any  # JSON, or ABSENT
_Steps: TypeAlias = "tuple[_Steps, str | int] | None"  # reversed path as a linked list, made into text only when shown


def _walk(left: JSON, right: JSON, *, subset: bool) -> Iterator[tuple[_Steps, _Side, _Side]]:
    stack: list[tuple[_Steps, _Side, _Side]] = [(None, left, right)]
    while stack:
        steps, a, b = stack.pop()
        if a is b:
            continue
        if is_object(a) and is_object(b):
            a, b, typed = _untagged(a, b)
            if not typed:
                stack.extend(_members(steps, a, b, subset=subset))
            elif not _same_tag(a, b):
                yield steps, a, b
        elif is_list(a) and is_list(b):
            if subset:  # items are equal or not: a pattern does not reach into lists
                yield from ((_joined(steps, s), x, y) for s, x, y in _walk(a, b, subset=False))
            else:
                stack.extend(_items(steps, a, b))
        elif not _same_scalar(a, b):
            yield steps, a, b


def _members(steps: _Steps, a: dict[str, Any], b: dict[str, Any], *, subset: bool) -> list[tuple[_Steps, _Side, _Side]]:
    if a.keys() != b.keys() and any(has_surrogate(name) for name in (*a, *b)):
        a = {joined(k): v for k, v in a.items()}
        b = {joined(k): v for k, v in b.items()}
    names = a.keys() if subset else a.keys() | b.keys()
    return [((steps, name), a.get(name, ABSENT), b.get(name, ABSENT)) for name in sorted(names, reverse=True)]


def _items(steps: _Steps, a: list[Any], b: list[Any]) -> list[tuple[_Steps, _Side, _Side]]:
    pairs: list[tuple[_Steps, _Side, _Side]] = []
    for i in range(max(len(a), len(b)) - 1, -1, -1):
        pairs.append(((steps, i), a[i] if i < len(a) else ABSENT, b[i] if i < len(b) else ABSENT))
    return pairs


def _untagged(a: dict[str, Any], b: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], bool]:
    """The members to compare, and whether one of the two is a typed value, which is an atom.

    Two records of one class are compared by their fields; user data with an escaped name by its real name.
    """
    left, right = _only_name(a), _only_name(b)
    if left == right == "$object" and _is_record(a) and _is_record(b) and a[left][0] == b[right][0]:
        return a[left][1], b[right][1], False
    if left in TAGS or right in TAGS:
        return a, b, True
    return _unescaped(a, left), _unescaped(b, right), False


def _only_name(value: dict[str, Any]) -> str:
    return next(iter(value)) if len(value) == 1 else ""


def _unescaped(value: dict[str, Any], name: str) -> dict[str, Any]:
    return {name[1:]: value[name]} if name.startswith("$$") else value


def _is_record(value: dict[str, Any]) -> bool:
    form = value["$object"]
    return is_list(form) and len(form) == 2 and isinstance(form[1], dict)


def _same_tag(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return a.keys() == b.keys() and equal([*a.values()], [*b.values()])


def _same_scalar(a: _Side, b: _Side) -> bool:
    if isinstance(a, str) and isinstance(b, str):
        return a == b or ((has_surrogate(a) or has_surrogate(b)) and joined(a) == joined(b))
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, int | float) and isinstance(b, int | float):
        return _same_number(a, b)
    return _same_big(a, b) or _same_big(b, a)


def _same_number(a: float, b: float) -> bool:
    if type(a) is type(b):
        return a == b
    whole = a if isinstance(a, int) else b
    return -_SAFE <= whole <= _SAFE and a == b


def _same_big(number: _Side, tag: _Side) -> bool:
    if not isinstance(number, int) or -_SAFE <= number <= _SAFE or not is_object(tag):
        return False
    digits = tag.get("$int")
    # Text is compared, not int(digits): converting thousands of digits is slow and limited.
    return len(tag) == 1 and isinstance(digits, str) and len(digits) <= 4301 and digits == str(number)


def _joined(outer: _Steps, inner: _Steps) -> _Steps:
    steps: list[str | int] = []
    while inner is not None:
        inner, step = inner
        steps.append(step)
    for step in reversed(steps):
        outer = (outer, step)
    return outer


def _pointer(steps: _Steps) -> str:
    parts: list[str] = []
    while steps is not None:
        steps, step = steps
        parts.append("/" + str(step).replace("~", "~0").replace("/", "~1"))
    return "".join(reversed(parts))
