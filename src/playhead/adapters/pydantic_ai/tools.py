"""The tool seam: decide, run or serve, observe."""

from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import ValidationError
from pydantic_ai.exceptions import (
    ApprovalRequired,
    CallDeferred,
    ModelRetry,
    SkipToolExecution,
    ToolFailed,
    ToolFailedError,
    ToolRetryError,
)
from pydantic_ai.messages import ToolCallPart, ToolReturn
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_core import InitErrorDetails, PydanticCustomError

from playhead.adapters.pydantic_ai import codec, messages
from playhead.adapters.pydantic_ai.run import Run, last_response
from playhead.core.canonical import to_stored
from playhead.core.protocol.shape import is_list, is_object, obj
from playhead.core.values import JSON, Effect, Outcome, OutcomeKind
from playhead.engine import seam
from playhead.engine.guards import checked_async

Handler = Callable[[dict[str, Any]], Awaitable[Any]]


async def execute(
    run: Run, ctx: RunContext[Any], call: ToolCallPart, definition: ToolDefinition, args: dict[str, Any], live: Handler
) -> Any:
    """`wrap_tool_execute`: what the recording gives, or what the live tool does."""
    active = run.active
    if active is None:
        if run.replay is not None:
            run.replay.check()
        return await live(args)
    announce_early(run, ctx, call)
    effect, attributes = _about(run, ctx, definition)
    step = active.tool_call(call.tool_name, arguments=call.args, call_id=call.tool_call_id, effect=effect, **attributes)
    answer = await step.decide_async()
    if answer is not None:
        step.observe(answer)
        _note_pause(run, call, answer)
        if answer.kind is OutcomeKind.VALUE:
            ctx.usage.tool_calls += 1  # the framework counts calls where they run, and has limits of them
        return give(run, ctx, call, answer)
    try:
        with step.inside():
            result = await live(args)
            result, instead = await checked_async(step, result, lambda: live(args), _shown)
    except BaseException as error:
        _observe_error(run, call, step, error)
        raise
    if instead is not None:
        step.observe(instead)
        return give(run, ctx, call, instead)
    _observe_result(run, step, result)
    return result


def _shown(result: Any) -> Any:
    """What of a result the model sees."""
    return result.return_value if isinstance(result, ToolReturn) else result


def announce_early(run: Run, ctx: RunContext[Any], call: ToolCallPart) -> None:
    """Announces the calls of a response whose stream the framework has not closed yet, though its tools run already.

    All of them where the response stands in the history, else the one that is here.
    """
    turn = run.turn
    if turn is not None and turn.step is not None and not turn.announced:
        response = last_response(ctx)
        if response is not None and any(getattr(p, "tool_call_id", None) == call.tool_call_id for p in response.parts):
            turn.announce(response)
        else:
            turn.announce_early(call)


def _about(run: Run, ctx: RunContext[Any], definition: ToolDefinition) -> tuple[Effect, dict[str, JSON]]:
    """What the tool says of its effect, and which server has it under which name."""
    try:
        return _effect(definition), _server(ctx, definition)
    except Exception as error:  # noqa: BLE001 - toolsets are the user's
        run.trouble(error, "reading a tool definition")
        return Effect.UNKNOWN, {}


def _effect(definition: ToolDefinition) -> Effect:
    hints: Any = (definition.metadata or {}).get("annotations") or {}
    if hints.get("readOnlyHint"):
        return Effect.READ
    if hints.get("destructiveHint"):
        return Effect.DESTRUCTIVE
    return Effect.WRITE if hints.get("readOnlyHint") is False else Effect.UNKNOWN


def _server(ctx: RunContext[Any], definition: ToolDefinition) -> dict[str, JSON]:
    toolset = getattr(find_tool(ctx, definition.name), "toolset", None)
    while (inner := getattr(toolset, "wrapped", None)) is not None:
        toolset = inner
    if not type(toolset).__module__.endswith(".mcp"):
        return {}
    prefix = getattr(toolset, "tool_prefix", None)
    bare = definition.name.removeprefix(f"{prefix}_") if prefix else definition.name
    name = getattr(toolset, "id", None) or getattr(toolset, "label", None)
    return {"server": str(name) if name else type(toolset).__name__, "bare_tool": bare}


def find_tool(ctx: RunContext[Any], name: str) -> Any:
    """The tool of that name as its own toolset made it."""
    known: dict[str, Any] = getattr(getattr(ctx, "tool_manager", None), "tools", None) or {}
    tool = known.get(name)
    while (inner := getattr(tool, "source_tool", None)) is not None:
        tool = inner
    return tool


# --- what was seen --------------------------------------------------------------------------------------------------


def _observe_result(run: Run, step: Any, result: Any) -> None:
    if codec.is_plain(result):
        step.returned(result)
        return
    try:
        encoded = codec.encode_result(result)
    except Exception:  # noqa: BLE001 - no stored form of ours: the recorder says which, and why
        step.returned(result)
        return
    step.observe(Outcome(kind=OutcomeKind.VALUE, value=encoded.value, native=encoded.native))


def _observe_error(run: Run, call: ToolCallPart, step: Any, error: BaseException) -> None:
    if isinstance(error, SkipToolExecution):
        _observe_result(run, step, error.result)
        return
    outcome = None
    try:
        outcome = _signal(error)
    except Exception as problem:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
        step.cancel()
        run.trouble(problem, "reading a tool's error")
        return
    if outcome is None:
        step.fail(error)
        return
    step.observe(outcome)
    _note_pause(run, call, outcome)


def _note_pause(run: Run, call: ToolCallPart, outcome: Outcome) -> None:
    """Remembers a call that paused inside its tool, so that the pause is not recorded again when the run ends."""
    if outcome.kind is OutcomeKind.INTERRUPT:
        run.paused.add(call.tool_call_id)


def rejected(run: Run, ctx: RunContext[Any], call: ToolCallPart, error: ValidationError | ModelRetry) -> None:
    """Records a call whose arguments the framework refused, so that no tool ran."""
    active = run.active
    if active is None:
        return
    try:
        announce_early(run, ctx, call)
        shown = (
            error.message if isinstance(error, ModelRetry) else error.errors(include_url=False, include_context=False)
        )
        outcome = _outcome(OutcomeKind.INVALID_ARGS, shown)
        active.refused(call.tool_name, outcome, arguments=call.args, call_id=call.tool_call_id)
    except Exception as problem:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
        run.trouble(problem, "recording refused arguments")


def _signal(error: BaseException) -> Outcome | None:
    """The outcome of a signal of the framework; None for an error of the tool's own."""
    if isinstance(error, ToolRetryError):
        return _outcome(OutcomeKind.RETRY, error.tool_retry.content)
    if isinstance(error, ToolFailedError):
        return _outcome(OutcomeKind.RESULT_ERROR, error.tool_failed.content)
    if isinstance(error, ModelRetry):
        return _outcome(OutcomeKind.RETRY, error.message)
    if isinstance(error, ToolFailed):
        return _outcome(OutcomeKind.RESULT_ERROR, error.message)
    if isinstance(error, ApprovalRequired | CallDeferred):
        return interrupt(error)
    return None


def _outcome(kind: OutcomeKind, content: Any) -> Outcome:
    return Outcome(kind=kind, value=to_stored(messages.plain(content)))


def interrupt(error: ApprovalRequired | CallDeferred) -> Outcome:
    """The pause of a call, for a person or for somebody else to execute."""
    reason = "approval" if isinstance(error, ApprovalRequired) else getattr(error, "kind", "external")
    return Outcome(kind=OutcomeKind.INTERRUPT, value=to_stored({"reason": reason, "metadata": error.metadata}))


# --- what is given --------------------------------------------------------------------------------------------------


def give(run: Run, ctx: RunContext[Any], call: ToolCallPart, answer: Outcome) -> Any:
    """Hands an outcome to the framework, in its own shape.

    Raises:
        Exception: whatever the framework takes for this kind of outcome.
    """
    try:
        value, error = _in_shape(ctx, call, answer)
    except Exception as problem:
        run.trouble(problem, f"giving a recorded outcome to tool {call.tool_name!r}")
        raise
    if error is not None:
        raise error
    return value


def _in_shape(ctx: RunContext[Any], call: ToolCallPart, answer: Outcome) -> tuple[Any, Exception | None]:
    match answer.kind:
        case OutcomeKind.VALUE:
            typed = answer.native is not None
            annotation = codec.return_annotation(find_tool(ctx, call.tool_name)) if typed else None
            return codec.decode_result(answer, annotation), None
        case OutcomeKind.ERROR:
            return None, seam.exception_of(answer)
        case OutcomeKind.RETRY:
            return None, ModelRetry(_text(answer))
        case OutcomeKind.RESULT_ERROR:
            if answer.native is not None:
                return codec.decode_result(answer), None
            return None, ToolFailed(seam.value_of(answer))
        case OutcomeKind.INVALID_ARGS:
            return None, _invalid(call, _text(answer))
        case OutcomeKind.INTERRUPT:
            return None, _pause(answer)


def _text(answer: Outcome) -> str:
    value = seam.value_of(answer)
    if is_list(value):
        return "; ".join(str(v.get("msg", v)) if is_object(v) else str(v) for v in value)
    return value if isinstance(value, str) else str(value)


def _invalid(call: ToolCallPart, text: str) -> ValidationError:
    problem = InitErrorDetails(type=PydanticCustomError("invalid_arguments", "{text}", {"text": text}), input=call.args)
    return ValidationError.from_exception_data(call.tool_name, [problem])


def _pause(answer: Outcome) -> Exception:
    payload = obj(seam.value_of(answer))
    metadata = payload.get("metadata")
    if payload.get("reason") == "question":
        return CallDeferred(metadata, kind="question")
    return CallDeferred(metadata) if payload.get("reason") == "external" else ApprovalRequired(metadata)
