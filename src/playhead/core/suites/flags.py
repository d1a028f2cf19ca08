"""What happened in a trial beside its scores: circles, and effects that were had twice."""

from collections.abc import Sequence

from playhead.core.effects import COUNTED, Effects, doubles, effect_of
from playhead.core.loops import loops
from playhead.core.values import Node

LOOP = "loop"
DOUBLE = "double_side_effect"


def conduct_flags(
    calls: Sequence[Node], effects: Effects, *, repeat_ok: int = 1, endless: bool = False
) -> tuple[str, ...]:
    """The flags of a trial's tool calls, in order.

    Args:
        calls: tool calls in start order.
        repeat_ok: so many equal effects were asked for.
        endless: the trial came to its bound while it was still calling.
    """
    found: list[str] = []
    if endless or loops(calls, skip=lambda node: effect_of(node, effects).bookkeeping):
        found.append(LOOP)
    if any(double.kind in COUNTED for double in doubles(calls, effects, repeat_ok=repeat_ok)):
        found.append(DOUBLE)
    return tuple(found)
