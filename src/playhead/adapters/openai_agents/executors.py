"""Tools that are no functions: shells, editors of files and tools with an input of text, gated at what runs them.

A computer cannot be: one request of the model is many calls of it. A replay that may meet one and may not let it run is
refused, and stopped where the model asks for one all the same.
"""

import inspect
from collections.abc import Callable
from typing import Any, cast

from agents import (
    ApplyPatchResult,
    ApplyPatchTool,
    CustomTool,
    LocalShellTool,
    ShellCallOutcome,
    ShellCommandOutput,
    ShellResult,
    ShellTool,
)

from playhead.adapters.openai_agents import approvals, codec, messages
from playhead.adapters.openai_agents.run import Run
from playhead.core.canonical import from_stored, to_stored
from playhead.core.protocol.shape import is_object
from playhead.core.values import Outcome, OutcomeKind
from playhead.engine import seam
from playhead.errors import RecordingError

UNGATED = {"computer_call": "computer"}
"""Item of a response that asks for such a tool -> the tool's name in policies."""
_REASON = "one request of the model is many calls of a computer, which playhead cannot answer from a recording"


def gated(run: Run, tool: Any) -> Any:
    """A copy of the tool with a gate before its executor; the tool itself where there is nothing to gate."""
    if isinstance(tool, CustomTool):
        return _copy(tool, on_invoke_tool=_gate(run, tool.name, tool.on_invoke_tool, _of_custom))
    if isinstance(tool, ShellTool | LocalShellTool) and tool.executor is not None:
        return _copy(tool, executor=_gate(run, tool.name, tool.executor, _of_shell))
    if isinstance(tool, ApplyPatchTool):
        return _copy(tool, editor=_Editor(run, tool.name, tool.editor))
    return tool


class _Editor:
    """An editor of files whose three operations are gated."""

    def __init__(self, run: Run, name: str, live: Any) -> None:
        self._live = live
        for operation in ("create_file", "update_file", "delete_file"):
            setattr(self, operation, _gate(run, name, getattr(live, operation), _of_patch))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_live"], name)


def _copy(tool: Any, **changed: Any) -> Any:
    made: Any = object.__new__(cast("Any", type(tool)))
    made.__dict__.update(vars(tool), **changed)
    return made


def _of_custom(args: tuple[Any, ...]) -> tuple[str | None, Any]:
    context, text = args
    return getattr(context, "tool_call_id", None), {"input": text}


def _of_shell(args: tuple[Any, ...]) -> tuple[str | None, Any]:
    data: Any = args[0].data
    action = {name: value for name, value in messages.plain(data.action).items() if value is not None}
    return getattr(data, "call_id", None), action


def _of_patch(args: tuple[Any, ...]) -> tuple[str | None, Any]:
    """The editor is not told which call it answers: the arguments say so."""
    told: Any = args[0]
    found = {name: getattr(told, name, None) for name in ("type", "path", "diff", "move_to")}
    return None, {name: value for name, value in found.items() if value is not None}


def _gate(run: Run, name: str, live: Callable[..., Any], read: Callable[[Any], tuple[str | None, Any]]) -> Any:
    async def execute(*args: Any) -> Any:
        active = run.active
        if active is None:
            if run.replay is not None:
                run.replay.check()
            return await _awaited(live(*args))
        try:
            call_id, arguments = read(args)
            approvals.agreed(active, call_id)
            with run.inside():
                step: Any = active.tool_call(name, arguments=arguments, call_id=call_id)
            answer = await step.decide_async()
        except Exception as error:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
            run.trouble(error, f"opening a call of tool {name!r}")
            return await _awaited(live(*args))
        if answer is not None:
            step.observe(answer)
            return _given(answer)
        try:
            with step.inside():
                result = await _awaited(live(*args))
        except BaseException as error:
            step.fail(error)
            raise
        _observe(run, step, result)
        return result

    return execute


async def _awaited(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result


def _observe(run: Run, step: Any, result: Any) -> None:
    try:
        if isinstance(result, ShellResult):
            value = to_stored(messages.plain(result))
            step.observe(Outcome(kind=OutcomeKind.VALUE, value=value, native=codec.native({"shell": True})))
        elif isinstance(result, ApplyPatchResult):
            value = {"status": result.status, "output": result.output}
            step.observe(Outcome(kind=OutcomeKind.VALUE, value=value, native=codec.native({"patch": True})))
        else:
            step.returned(result)
    except Exception as error:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
        step.cancel()
        run.trouble(error, "reading the result of an executor")


def _given(answer: Outcome) -> Any:
    if answer.kind is not OutcomeKind.VALUE:
        if answer.kind in (OutcomeKind.RETRY, OutcomeKind.RESULT_ERROR):
            return codec.text_of(answer)
        raise seam.exception_of(answer)
    value: Any = from_stored(answer.value)
    if is_object(value) and "output" in value and codec.has("shell", answer.native):
        return _shell_result(value)
    if is_object(value) and codec.has("patch", answer.native):
        return ApplyPatchResult(**value)
    return value


def _shell_result(value: dict[str, Any]) -> ShellResult:
    made: list[dict[str, Any]] = [{**each, "outcome": ShellCallOutcome(**each["outcome"])} for each in value["output"]]
    whole: dict[str, Any] = {**value, "output": [ShellCommandOutput(**each) for each in made]}
    return ShellResult(**whole)


def stop_ungated(run: Run, items: list[Any]) -> None:
    """Stops a replay whose model asks for what only the live tool could answer; a recording keeps that it did.

    Raises:
        RecordingError: in a replay, when the tool may not run live.
    """
    state = run.replay
    for item in items:
        tool = UNGATED.get(str(item.get("type")))
        if tool is None:
            continue
        if state is None:
            if run.active is not None:
                run.active.metadata.setdefault("unanswerable", {})[tool] = _REASON
        elif state.policy.config_for(tool).type != "passthrough":
            raise RecordingError(
                f"the model asks for tool {tool!r}: {_REASON}",
                hint=f"let it run live: a passthrough policy for {tool!r}",
            )
