"""Calls that pause for a person, or that somebody else executes, and what comes back of them.

The pause is the call's first attempt. A refusal and a result from outside are its second; the tool itself runs, when a
person agreed, through the tool seam.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, ToolFailed
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, RunContext, ToolDenied

from playhead.adapters.pydantic_ai import codec, messages, tools
from playhead.adapters.pydantic_ai.run import Run
from playhead.core.canonical import to_stored
from playhead.core.values import Outcome, OutcomeKind


def paused(run: Run, ctx: RunContext[Any], requests: DeferredToolRequests) -> None:
    """Records the pauses that no tool raised: tools that need approval, or run elsewhere, by their declaration."""
    active = run.active
    if active is None:
        return
    for call, error in _pauses(requests):
        if call.tool_call_id in run.paused:
            continue
        tools.announce_early(run, ctx, call)
        step = active.tool_call(call.tool_name, arguments=call.args, call_id=call.tool_call_id)
        step.decide()
        step.observe(tools.interrupt(error))
    run.paused.clear()


def _pauses(requests: DeferredToolRequests) -> Iterator[tuple[ToolCallPart, ApprovalRequired | CallDeferred]]:
    metadata: dict[str, Any] = getattr(requests, "metadata", None) or {}
    for call in requests.approvals:
        yield call, ApprovalRequired(metadata.get(call.tool_call_id))
    for call in requests.calls:
        yield call, CallDeferred(metadata.get(call.tool_call_id))


def resumed(run: Run, ctx: RunContext[Any], results: DeferredToolResults) -> DeferredToolResults:
    """Records refusals and results from outside; in a replay a recorded result takes the place of the one given."""
    active = run.active
    if active is None:
        return results
    calls = {part.tool_call_id: part for part in _calls(ctx)}
    for call_id, verdict in results.approvals.items():
        refusal = _refusal(verdict)
        if refusal is not None and call_id in calls:
            call, encoded = calls[call_id], codec.encode_result(refusal)
            outcome = Outcome(kind=OutcomeKind.RESULT_ERROR, value=encoded.value, native=encoded.native)
            active.refused(call.tool_name, outcome, arguments=call.args, call_id=call_id)
    given: dict[str, Any] = dict(results.calls)
    for call_id, value in results.calls.items():
        if call_id in calls:
            given[call_id] = _from_outside(run, ctx, calls[call_id], value)
    return replace(results, calls=given)


def _calls(ctx: RunContext[Any]) -> list[ToolCallPart]:
    return [
        part
        for message in ctx.messages
        if isinstance(message, ModelResponse)
        for part in message.parts
        if isinstance(part, ToolCallPart)
    ]


def _refusal(verdict: Any) -> ToolDenied | None:
    if verdict is False:
        return ToolDenied()
    return verdict if isinstance(verdict, ToolDenied) else None


def _from_outside(run: Run, ctx: RunContext[Any], call: ToolCallPart, value: Any) -> Any:
    active = run.active
    assert active is not None
    step = active.tool_call(call.tool_name, arguments=call.args, call_id=call.tool_call_id)
    answer = step.decide()
    if answer is None:
        step.observe(_outcome(value))
        return value
    step.observe(answer)
    try:
        return tools.give(run, ctx, call, answer)
    except (ModelRetry, ToolFailed) as signal:
        return signal


def _outcome(value: Any) -> Outcome:
    if isinstance(value, ModelRetry):
        return Outcome(kind=OutcomeKind.RETRY, value=value.message)
    if isinstance(value, ToolFailed):
        return Outcome(kind=OutcomeKind.RESULT_ERROR, value=to_stored(messages.plain(value.message)))
    encoded = codec.encode_result(value)
    return Outcome(kind=OutcomeKind.VALUE, value=encoded.value, native=encoded.native)
