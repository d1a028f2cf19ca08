"""What adapters hold: the one module they import for recording and replay.

::

    with seam.session(agent="desk", inputs={"prompt": "..."}) as active:
        step = active.model_call("gpt", request=ModelRequest(...))
        answer = step.decide()                       # None: ask the model
        step.announce([Requested("c1", "search", '{"q": "x"}')])
        step.observe(ModelResult(message=...))
        call = active.tool_call("search", arguments='{"q": "x"}', call_id="c1")
        answer = call.decide()                       # None: run the live tool
        with call.inside():
            result = search("x")
        call.returned(result)
"""

from collections.abc import Sequence
from typing import Any

from playhead.core.canonical import from_stored
from playhead.core.values import JSON, Origin, Outcome
from playhead.engine.active import ActiveSession
from playhead.engine.boundary import SessionScope
from playhead.engine.context import current, is_seen, refuse_outside, replay_around, replay_here, replaying
from playhead.engine.failures import capture, rebuild
from playhead.engine.model_step import ModelRequest, ModelResult, ModelStep
from playhead.engine.recorder import Recorder
from playhead.engine.steps import AgentStep, SilentStep, SpanStep, Step, ToolStep
from playhead.engine.track import Requested, Slot
from playhead.errors import ReplayedToolError

__all__ = [
    "ActiveSession", "AgentStep", "ModelRequest", "ModelResult", "ModelStep", "Requested", "SessionScope",
    "SilentStep", "Slot", "SpanStep", "Step", "ToolStep", "capture", "current", "exception_of", "is_seen",
    "refuse_outside", "replay_around", "replay_here", "replaying", "session", "value_of",
]  # fmt: skip


def session(
    agent: str, *, inputs: Any = None, recorder: Recorder | None = None, name: str | None = None, version: Any = None,
    origin: Origin = Origin.LIVE, tags: Sequence[str] = (), metadata: dict[str, JSON] | None = None,
    not_replayable: Sequence[str] = (), history: Sequence[Any] = (), function: bool = False,
) -> SessionScope:  # fmt: skip
    """The boundary of a run, for ``with`` and ``async with``; inside a session a turn or an `AgentStep` of it.

    Args:
        inputs: everything needed to start again, as a Python value.
        version: what captures the agent version (`engine.version`), asked by the writer.
        history: messages that the run starts with, by which a next turn is known.
        function: the run is a function of the user, not a framework's.
    """
    return SessionScope(
        agent, inputs=inputs, recorder=recorder, name=name, version=version, origin=origin, tags=tags,
        metadata=metadata, not_replayable=not_replayable, history=history, function=function,
    )  # fmt: skip


def value_of(outcome: Outcome) -> Any:
    """A fresh Python value of an outcome."""
    return from_stored(outcome.value)


def exception_of(outcome: Outcome) -> Exception:
    """The exception that an outcome raises: the recorded one for an error, else one with the text of its value."""
    if outcome.error is not None:
        return rebuild(outcome.error)
    text = outcome.value if isinstance(outcome.value, str) else repr(outcome.value)
    return ReplayedToolError(text, original_class="ToolError")
