"""One run of an agent: its boundary, and what its hooks share."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any
from weakref import WeakKeyDictionary

from pydantic_ai.messages import ModelResponse
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import RunContext

from playhead.adapters.pydantic_ai import codec
from playhead.adapters.pydantic_ai.messages import ToolForms
from playhead.core.canonical import NoKeyError, to_stored
from playhead.engine import seam
from playhead.engine.frames import FRAME, leave
from playhead.engine.recorder import Recorder
from playhead.engine.replaying import RecordingEnded, ReplayState
from playhead.engine.running import version_of
from playhead.errors import PlayheadError, RecordingError

log = logging.getLogger("playhead")

_root_agents: WeakKeyDictionary[seam.ActiveSession, Any] = WeakKeyDictionary()
"""The agent that ran first, directly in a session."""


class Run:
    """State of one run. ``turn`` is the model request under way."""

    def __init__(self, agent: str | None, recorder: Recorder | None) -> None:
        self.agent = agent
        self.recorder = recorder
        self.scope: seam.SessionScope | None = None
        self.turn: Any = None
        self.tool_forms = ToolForms()
        self.last: tuple[Any, Any] = (None, None)  # the newest response, and its normal form
        self.paused: set[str] = set()  # ids of calls that paused inside their tool
        self.cut: Any = None  # the turn of a stream that was cancelled, for a reason that the run tells later
        self.is_root = False
        self.begun = False
        self._failure: BaseException | None = None

    @property
    def active(self) -> seam.ActiveSession | None:
        """The session that the run is recorded in; None when it is not."""
        active = self.scope.active if self.scope is not None else None
        return None if active is None or active.closed or active.detached else active

    @property
    def replay(self) -> ReplayState | None:
        """The replay that the run belongs to, also after its session has ended."""
        active = self.scope.active if self.scope is not None else None
        return active.replay if active is not None else None

    # --- boundary ---

    async def within(
        self, ctx: RunContext[Any], handler: Callable[[], Awaitable[AgentRunResult[Any]]]
    ) -> AgentRunResult[Any]:
        """The run inside its session, turn or agent call."""
        self.begun = True
        try:
            scope = self.scope = self._opened(ctx)
        except Exception as error:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
            self.trouble(error, "opening a run")
            return await handler()
        token = scope.enter()
        try:
            result = await handler()
        except BaseException as error:
            leave(token)
            if self.cut is not None:
                self.cut.failed(error)
            scope.close(self._failure or error)
            raise
        leave(token)
        try:
            scope.output, scope.messages = result.output, result.all_messages()
        except Exception as error:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
            self.trouble(error, "reading the result of a run")
        scope.close()
        return result

    def _opened(self, ctx: RunContext[Any]) -> seam.SessionScope:
        direct = (frame := FRAME.get()) is None or isinstance(frame, seam.ActiveSession)
        inputs, refused = self._inputs(ctx)
        name = self.agent or getattr(ctx.agent, "name", None) or "agent"
        scope = seam.session(
            name,
            inputs=inputs,
            recorder=self.recorder,
            version=None if ctx.agent is None else version_of(ctx.agent, "pydantic_ai"),
            not_replayable=refused,
            history=list(ctx.messages),
        )
        scope.asks_models = True
        active = scope.open()
        if active is not None and direct:
            self.is_root = _root_agents.setdefault(active, ctx.agent) is ctx.agent
        return scope

    def _inputs(self, ctx: RunContext[Any]) -> tuple[dict[str, Any], list[str]]:
        """Everything needed to start again, and the names of what has no stored form."""
        inputs: dict[str, Any] = {}
        refused: list[str] = []
        for name, make in (
            ("prompt", lambda: codec.encode_prompt(ctx.prompt)),
            ("message_history", lambda: codec.encode_history(ctx.messages) if ctx.messages else None),
            ("deps", lambda: ctx.deps if to_stored(ctx.deps) is not None else None),
        ):
            try:
                value = make()
            except NoKeyError as error:
                refused.append(f"{name}: {error}")
            except Exception as error:  # noqa: BLE001 - inputs of the user, serialised by the framework
                refused.append(f"{name}: {type(error).__name__}: {error}")
            else:
                if value is not None or name == "prompt":
                    inputs[name] = value
        return inputs, refused

    def add_inputs(self, results: Any) -> None:
        """Adds deferred tool results, which the framework shows only after the run has begun, to the run's inputs."""
        if self.scope is not None:
            self.scope.add_inputs(deferred_tool_results=codec.encode_deferred(results))

    def failed(self, error: BaseException) -> BaseException:
        """What leaves the run in place of ``error``: the latched stop where there is one."""
        latch = self.replay.latch if self.replay is not None else None
        if latch is None or self.scope is None:
            return error
        self._failure = self._failure or error
        return latch.error if self.scope.root and not isinstance(latch, RecordingEnded) else latch

    # --- guards ---

    def trouble(self, error: Exception, doing: str) -> None:
        """A mistake of ours: counted outside a replay, a stop inside one.

        Raises:
            ReplayStop: in a replay.
        """
        state = self.replay or seam.replay_here()
        if state is not None:
            wrapped = error if isinstance(error, PlayheadError) else RecordingError(
                f"playhead failed while {doing}: {type(error).__name__}: {error}"
            )  # fmt: skip
            raise state.stop(wrapped) from error
        active = self.scope.active if self.scope is not None else None
        if active is not None:
            active.recorder.count("errors", error)
        else:
            log.warning("playhead failed while %s", doing, exc_info=error)


_told: set[str] = set()


def check_begun(run: Run | None) -> None:
    """For hooks inside a run: one that the framework began without telling us is warned of, as nothing records it.

    Raises:
        ReplayStop: in a replay, which such a run would leave.
    """
    if run is not None and run.begun:
        return
    hook = "for_run" if run is None else "wrap_run"
    problem = f"pydantic-ai did not call {hook} before the first step of a run"
    state = seam.replay_here()
    if state is not None:
        raise state.stop(RecordingError(problem, hint="use a version that docs/adapter-pydantic-ai.md names"))
    if hook not in _told:
        _told.add(hook)
        log.warning("playhead: %s: it is not recorded. Use a version that docs/adapter-pydantic-ai.md names", problem)


def last_response(ctx: RunContext[Any]) -> ModelResponse | None:
    """The newest response of the run's history."""
    return next((message for message in reversed(ctx.messages) if isinstance(message, ModelResponse)), None)
