"""The tool seam: a tool's own body (`_run`, `_arun`) is where a call is decided.

Everything of the framework around it happens as ever, in a replay too: argument validation, callbacks, error handlers,
the making of messages. What arrives at `run` (call id, arguments, config) is kept for the body, which does not see it.
"""

import sys
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools.base import BaseTool, ToolException
from pydantic import ValidationError

from playhead.adapters.langgraph import channel, codec, giving, inputs, objects, twins
from playhead.adapters.langgraph.about import about, arguments
from playhead.adapters.langgraph.guard import trouble
from playhead.core.canonical import NoKeyError, to_stored
from playhead.core.values import JSON, Outcome, OutcomeKind
from playhead.engine import seam
from playhead.engine.guards import UNCHECKED, checked, checked_async
from playhead.errors import RecordingError


@dataclass(slots=True)
class Arrival:
    """One call as `run` got it. ``entered`` once the tool's body was reached."""

    tool: BaseTool
    call_id: str | None
    given: Any
    config: Any
    entered: bool = False
    beside: channel.Beside = field(default_factory=channel.Beside)


_ARRIVAL: ContextVar[Arrival | None] = ContextVar("playhead_langgraph_call", default=None)


def seen(tool: BaseTool) -> BaseTool:
    """The tool as it runs inside a session."""
    return twins.twin(tool, _METHODS)


# --- around run -----------------------------------------------------------------------------------------------------


def arrive(tool: BaseTool, live: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`BaseTool.run` of a twin."""
    arrival, args = _arrived(tool, args, kwargs)
    token = _ARRIVAL.set(arrival)
    try:
        result = live(*args, **kwargs)
    except Exception as error:
        _ended(arrival, error)
        raise
    finally:
        _ARRIVAL.reset(token)
    _ended(arrival, result)
    return result


async def arrive_async(
    tool: BaseTool, live: Callable[..., Awaitable[Any]], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """`BaseTool.arun` of a twin."""
    arrival, args = _arrived(tool, args, kwargs)
    token = _ARRIVAL.set(arrival)
    try:
        result = await live(*args, **kwargs)
    except Exception as error:
        _ended(arrival, error)
        raise
    finally:
        _ARRIVAL.reset(token)
    _ended(arrival, result)
    return result


def _arrived(tool: BaseTool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Arrival, tuple[Any, ...]]:
    config = kwargs.get("config")
    arrival = Arrival(tool, kwargs.get("tool_call_id"), args[0] if args else kwargs.get("tool_input"), config)
    if channel.sender(config) is not None:
        beside = arrival.beside
        arrival.config = kwargs["config"] = channel.watched(kwargs["config"], beside.writes, beside.chunks)
        arrival.given = channel.watched_arguments(arrival.given, beside.chunks)
        if args:
            args = (arrival.given, *args[1:])
    return arrival, args


def _ended(arrival: Arrival, ending: Any) -> None:
    """Records a call that ended before the tool's body: its arguments were refused."""
    if arrival.entered:
        return
    if not isinstance(ending, Exception) and not (isinstance(ending, ToolMessage) and ending.status == "error"):
        return
    try:
        active = seam.current()
        if active is not None:
            given = arguments(active, arrival.tool, arrival.call_id, arrival.given)
            outcome = Outcome(kind=OutcomeKind.INVALID_ARGS, value=_problems(ending))
            active.refused(arrival.tool.name, outcome, arguments=given, call_id=arrival.call_id)
    except Exception as error:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
        trouble(error, "recording refused arguments")


def _problems(ending: Any) -> JSON:
    if isinstance(ending, ValidationError):
        return to_stored(ending.errors(include_url=False, include_context=False, include_input=False))
    return str(ending.content) if isinstance(ending, ToolMessage) else str(ending)


# --- the body -------------------------------------------------------------------------------------------------------


class _Call:
    """One attempt of a call, from inside the tool's body; nothing happens where the body was called past `run`."""

    def __init__(self, tool: BaseTool) -> None:
        self.tool = tool
        self.step: Any = None
        arrival = _ARRIVAL.get()
        if arrival is None or arrival.tool is not tool or arrival.entered:
            return
        arrival.entered = True
        self.arrival = arrival
        active = seam.current()
        if active is None:
            seam.refuse_outside(tool.name)
            return
        try:
            self._open(active, arrival)
        except Exception as error:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
            trouble(error, f"opening a call of tool {tool.name!r}")

    def _open(self, active: seam.ActiveSession, arrival: Arrival) -> None:
        known = about(self.tool)
        given = arguments(active, self.tool, arrival.call_id, arrival.given)
        self.step = active.tool_call(
            self.tool.name, arguments=given, call_id=arrival.call_id, effect=known.effect, **known.attributes
        )

    def give(self, answer: Outcome) -> Any:
        self.step.observe(answer)
        try:
            arrival = self.arrival
            return giving.give(self.tool, answer, arrival.call_id, arrival.config, inputs.messages_given(arrival.given))
        except Exception as error:
            if not _meant(answer, error):
                trouble(error, f"giving a recorded outcome to tool {self.tool.name!r}")
            raise

    def shown(self, result: Any) -> Any:
        """What of a result the model sees: for guards."""
        given: Any = result
        if isinstance(result, ToolMessage):
            return UNCHECKED if result.status == "error" else result.content
        if self.tool.response_format == "content_and_artifact":
            return given[0] if type(given) is tuple and given else UNCHECKED  # pyright: ignore[reportUnknownVariableType]
        return result if codec.is_plain(result) else UNCHECKED  # a command to the graph, an object

    def returned(self, result: Any) -> None:
        arrival = self.arrival
        try:
            if not arrival.beside.anything and codec.is_plain(result):
                self.step.returned(result)
            else:
                given = inputs.messages_given(arrival.given)
                self.step.observe(codec.encode_result(self.tool, result, arrival.call_id, arrival.beside, given))
        except NoKeyError:
            self.step.returned(result)  # the recorder says which part has no stored form, and why
        except Exception as error:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
            self.step.cancel()
            trouble(error, f"reading a result of tool {self.tool.name!r}")

    def failed(self, error: BaseException) -> None:
        try:
            signal = self._signal(error)
        except Exception as problem:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
            self.step.cancel()
            trouble(problem, f"reading an error of tool {self.tool.name!r}")
            return
        if signal is not None:
            self.step.observe(signal)
        elif _named(error, "GraphBubbleUp"):
            self.step.cancel(error)  # a command to a graph further out: no outcome of this call
        else:
            self.step.fail(error)

    def _signal(self, error: BaseException) -> Outcome | None:
        if _named(error, "GraphInterrupt"):
            raised: Any = error.args[0] if error.args else ()
            values = [objects.encode(one.value) for one in raised]
            return Outcome(kind=OutcomeKind.INTERRUPT, value=values[0] if len(values) == 1 else values)
        if isinstance(error, ToolException) and self.tool.handle_tool_error:
            text = error.args[0] if error.args else "Tool execution error"
            return codec.outcome(OutcomeKind.RESULT_ERROR, to_stored(text), {"raised": True})
        return None


def _meant(answer: Outcome, error: Exception) -> bool:
    """Whether an error is what the outcome gives, not a mistake in giving it."""
    if answer.kind is OutcomeKind.INTERRUPT:
        return _named(error, "GraphBubbleUp")
    if answer.kind in (OutcomeKind.RETRY, OutcomeKind.RESULT_ERROR):
        return isinstance(error, ToolException)
    return answer.kind is not OutcomeKind.VALUE and not isinstance(error, RecordingError)


def _named(error: BaseException, name: str) -> bool:
    """Whether an error is of a class of `langgraph.errors`, which is not imported for somebody who does not use it."""
    module = sys.modules.get("langgraph.errors")
    return module is not None and isinstance(error, getattr(module, name))


def _run(own: Callable[..., Any]) -> Callable[..., Any]:
    def run(self: BaseTool, *args: Any, **kwargs: Any) -> Any:
        call = _Call(self)
        if call.step is None:
            return own(self, *args, **kwargs)
        answer = call.step.decide()
        if answer is not None:
            return call.give(answer)
        try:
            with call.step.inside():
                result = own(self, *args, **kwargs)
                result, instead = checked(call.step, result, lambda: own(self, *args, **kwargs), call.shown)
        except BaseException as error:
            call.failed(error)
            raise
        if instead is not None:
            return call.give(instead)
        call.returned(result)
        return result

    return run


def _arun(own: Callable[..., Any]) -> Callable[..., Any]:
    async def arun(self: BaseTool, *args: Any, **kwargs: Any) -> Any:
        call = _Call(self)
        if call.step is None:
            return await own(self, *args, **kwargs)
        answer = await call.step.decide_async()
        if answer is not None:
            return call.give(answer)
        try:
            with call.step.inside():
                result = await own(self, *args, **kwargs)
                result, instead = await checked_async(call.step, result, lambda: own(self, *args, **kwargs), call.shown)
        except BaseException as error:
            call.failed(error)
            raise
        if instead is not None:
            return call.give(instead)
        call.returned(result)
        return result

    return arun


def _arriving(own: Callable[..., Any]) -> Callable[..., Any]:
    def run(self: BaseTool, *args: Any, **kwargs: Any) -> Any:
        return arrive(self, partial(own, self), args, kwargs)

    return run


def _arriving_async(own: Callable[..., Any]) -> Callable[..., Any]:
    async def arun(self: BaseTool, *args: Any, **kwargs: Any) -> Any:
        return await arrive_async(self, partial(own, self), args, kwargs)

    return arun


_METHODS = twins.Methods(
    root=BaseTool, always={"run": _arriving, "arun": _arriving_async, "_run": _run}, own={"_arun": _arun}
)
