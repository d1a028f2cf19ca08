"""Calls that wait for a person, what the person says, and calls that a time limit cut.

The pause is the call's first attempt. A refusal is its second; the tool itself runs, when a person agreed, through its
gate. What the model is shown for a refused or a cut call stands in the next request.
"""

from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

from agents.exceptions import ToolTimeoutError

from playhead.adapters.openai_agents import codec
from playhead.core.canonical import to_stored
from playhead.core.protocol.shape import is_object
from playhead.core.values import JSON, Outcome, OutcomeKind
from playhead.engine import seam

_waiting: WeakKeyDictionary[seam.ActiveSession, dict[str, tuple[str, Any]]] = WeakKeyDictionary()
"""Calls that wait for a person, by session and call id: the tool and its arguments."""


def _call(item: Any) -> tuple[str | None, str, Any]:
    raw: Any = item.raw_item

    def held(name: str) -> Any:
        return raw.get(name) if is_object(raw) else getattr(raw, name, None)

    return held("call_id"), item.qualified_name or str(held("name")), held("arguments")


def paused(run: Any, interruptions: Iterable[Any]) -> None:
    """Records the pause of each call; those that an inner run has recorded already are left alone."""
    active: seam.ActiveSession | None = run.active
    if active is None:
        return
    waiting = _waiting.setdefault(active, {})
    for item in interruptions:
        call_id, tool, arguments = _call(item)
        if call_id is None or call_id in waiting:
            continue
        waiting[call_id] = (tool, arguments)
        step = active.tool_call(tool, arguments=arguments, call_id=call_id)
        step.decide()
        step.observe(Outcome(kind=OutcomeKind.INTERRUPT, value=to_stored({"reason": "approval", "metadata": None})))


def any_waits(active: seam.ActiveSession) -> bool:
    return bool(_waiting.get(active))


def agreed(active: seam.ActiveSession, call_id: str | None) -> None:
    """A waiting call goes on."""
    _waiting.get(active, {}).pop(call_id or "", None)


def read_outputs(run: Any, outputs: dict[str, JSON]) -> None:
    """Records refusals, and the texts of calls that a time limit cut, from what the next request shows."""
    active: seam.ActiveSession | None = run.active
    if active is None:
        return
    waiting = _waiting.get(active, {})
    for call_id in [known for known in waiting if known in outputs]:
        tool, arguments = waiting.pop(call_id)
        outcome = Outcome(kind=OutcomeKind.RESULT_ERROR, value=outputs[call_id])
        active.refused(tool, outcome, arguments=arguments, call_id=call_id)
    for call_id in [known for known in run.cut if known in outputs]:
        run.cut.pop(call_id).observe(Outcome(kind=OutcomeKind.RESULT_ERROR, value=outputs[call_id]))


def end_cut(step: Any, error: BaseException | None) -> None:
    """Ends the step of a call that was cancelled, when nothing was shown to the model for it."""
    if isinstance(error, ToolTimeoutError) and error.tool_name in (step.tool, step.tool.rpartition(".")[2]):
        told = Outcome(kind=OutcomeKind.ERROR, error=seam.capture(error), native=codec.native({"above": True}))
        step.observe(told)
    else:
        step.cancel()


def paused_at(interruptions: Iterable[Any]) -> tuple[str, frozenset[Any]]:
    """By what a run that goes on after a pause is known to follow the one that paused."""
    return "paused", frozenset(_call(item)[0] for item in interruptions)


def answers(state: Any) -> dict[str, Any]:
    """What the person said, as the inputs of the run that goes on: by call id, None where nothing was said yet."""
    context = getattr(state, "_context", None)
    said: dict[str, Any] = {}
    for item in state.get_interruptions():
        call_id, _, _ = _call(item)
        if call_id is not None:
            said[call_id] = None if context is None else _answer(context, item, call_id)
    return {"prompt": None, "approvals": said}


def _answer(context: Any, item: Any, call_id: str) -> bool | None:
    try:
        return context.get_approval_status(
            item.tool_name, call_id, tool_namespace=item.tool_namespace, existing_pending=item
        )
    except Exception:  # noqa: BLE001 - another version asks for other things; the run itself knows the answer
        return None
