"""Results that are far larger than what was recorded: many rows, or more text than a model can hold."""

from typing import Any, Final

from playhead.core.canonical import NoKeyError, canonical_stored
from playhead.core.protocol.shape import is_list, is_object
from playhead.core.values import JSON

ROWS: Final = 800
OVER_CONTEXT: Final = 1.5
CHARACTERS_PER_TOKEN: Final = 4


def rows(result: JSON, count: int = ROWS) -> JSON:
    """The result with its longest list grown to ``count`` rows; a result without a list becomes one of its copies."""
    steps = _longest_list(result)
    if steps is None:
        if isinstance(result, str):
            lines = result.splitlines() or [""]
            return "\n".join(lines[n % len(lines)] for n in range(max(count, len(lines))))
        return [result] * count
    return _replaced(result, steps, count)


def over_context(result: JSON, tokens: int) -> JSON:
    """The result grown to 1.5 times a context of so many tokens."""
    wanted = int(tokens * OVER_CONTEXT * CHARACTERS_PER_TOKEN)
    one, two = (_size(rows(result, count)) for count in (100, 200))
    per_row = max(1, (two - one) // 100)
    return rows(result, max(ROWS, wanted // per_row + 1))


def _size(value: JSON) -> int:
    try:
        return len(value) if isinstance(value, str) else len(canonical_stored(value))
    except NoKeyError:
        return len(repr(value))


def _longest_list(value: JSON) -> tuple[str | int, ...] | None:
    """The way to the longest list that holds something."""
    found: list[tuple[int, tuple[str | int, ...]]] = []

    def look(inner: JSON, at: tuple[str | int, ...]) -> None:
        if is_list(inner) and inner:
            found.append((len(inner), at))
        elif is_object(inner) and len(at) < 20:
            for name, below in inner.items():
                look(below, (*at, name))

    look(value, ())
    return max(found, key=lambda one: one[0])[1] if found else None


def _replaced(value: JSON, steps: tuple[str | int, ...], count: int) -> JSON:
    if not steps:
        held: list[JSON] = value
        return [held[n % len(held)] for n in range(max(count, len(held)))]
    name: Any = steps[0]
    return {**value, name: _replaced(value[name], steps[1:], count)}
