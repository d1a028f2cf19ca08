"""The boundary of a run: opens a session, or becomes a turn or a sub-agent of the one around it, and closes it.

At the root the boundary looks at the latch of a replay, never at the exception that arrives: task groups wrap it, and
agents swallow it. Further in, a latched stop is raised again so that it reaches the root.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextvars import Token
from types import TracebackType
from typing import Any

from playhead.core.canonical import to_stored
from playhead.core.values import JSON, NodeKind, Origin, SessionStatus
from playhead.engine.active import ActiveSession, OpenTurn
from playhead.engine.context import current, register, session_begins, unregister
from playhead.engine.frames import FRAME, leave
from playhead.engine.recorder import Recorder
from playhead.engine.replaying import RecordingEnded, ReplayState
from playhead.engine.snapshot import Snapshot, freeze, freeze_stored, thaw
from playhead.engine.steps import AgentStep
from playhead.errors import ReplayStop

log = logging.getLogger("playhead")
_warned: set[str] = set()
_unseen: set[str] = set()
_GONE = (GeneratorExit, KeyboardInterrupt, asyncio.CancelledError)


class SessionScope:
    """A context manager, sync and async, around one run. ``with`` gives the `ActiveSession`, None if recording failed.

    After the block's work set ``output`` (any Python value) and, for a framework run, ``messages`` (its history), from
    which a later run is known to be the next turn.
    """

    def __init__(
        self, agent: str, *, inputs: Any = None, snapshot: Snapshot | None = None, recorder: Recorder | None = None,
        name: str | None = None, version: Any = None, origin: Origin = Origin.LIVE, tags: Sequence[str] = (),
        metadata: dict[str, JSON] | None = None, not_replayable: Sequence[str] = (), history: Sequence[Any] = (),
        function: bool = False,
    ) -> None:  # fmt: skip
        self.agent = agent
        self.active: ActiveSession | None = None
        self.output: Any = None
        self.messages: Sequence[Any] = ()
        self.asks_models = False  # set by adapters whose runs always ask a model: one that is not seen is warned of
        self.root = False
        self._inputs = snapshot if snapshot is not None else freeze(inputs)
        self._recorder = recorder
        self._history = history
        self._function = function
        self._step: AgentStep | None = None
        self._turn_starts: int | None = None
        self._token: Token[Any] | None = None
        self._models_before = 0
        self._options: dict[str, Any] = {
            "name": name, "version": version, "origin": origin, "tags": tags, "metadata": metadata,
            "not_replayable": not_replayable,
        }  # fmt: skip

    # opening

    def open(self) -> ActiveSession | None:
        """Opens the session (or step) without entering it; `entered` and `close` do the rest."""
        state = session_begins(self.agent)
        try:
            self._open(state)
        except Exception as error:
            if state is not None:
                raise state.stop(_wrapped(error)) from error
            _warn_once(self.agent, error)
        if self.active is not None:
            self._models_before = self.active.calls_seen[NodeKind.MODEL_CALL]
        return self.active

    def _open(self, state: ReplayState | None) -> None:
        around = current() if FRAME.get() is not None else None
        if around is not None:
            self._join(around)
            return
        recorder = self._recorder
        if recorder is None:
            from playhead.engine.project import default_recorder

            recorder = default_recorder()
        options = dict(self._options)
        inputs = self._inputs
        if state is not None and state.baseline is not None:
            inputs = ("stored", state.baseline.inputs)
            options["not_replayable"] = state.baseline.not_replayable
        active = ActiveSession(recorder.ids(), self.agent, recorder, replay=state, inputs=inputs, **options)
        active.run_count = 0 if self._function else 1
        if state is not None:
            active.adoptable = not state.sessions
            state.sessions.append(active.session_id)
        register(active)
        self.active, self.root = active, True
        recorder.push(active)

    def _join(self, around: ActiveSession) -> None:
        self.active = around
        frame = FRAME.get()
        if around.adoptable and frame is around:
            around.adoptable = False
            around.run_count = 0 if self._function else 1
            return
        if self._function or frame is not around or not _next_turn(around, self._history):
            self._step = around.agent_call(self.agent, None)
            self._step.inputs = self._inputs
        else:
            self._turn_starts = around.next_seq()
        around.run_count += not self._function

    def add_inputs(self, **more: Any) -> None:
        """Adds inputs (plain data) that were not known when the run began. A replay keeps those of its baseline."""
        known = thaw(self._inputs)
        self._inputs = freeze_stored({**(known if isinstance(known, dict) else {}), **to_stored(more)})
        if self._step is not None:
            self._step.inputs = self._inputs
        elif self.root and self.active is not None and self.active.replay is None:
            self.active.inputs, self.active.inputs_changed = self._inputs, True

    def tells_turns(self) -> bool:
        """Whether the turns of this run, of which there may be many, are the session's; it then adds them itself."""
        theirs = self.root or self._turn_starts is not None
        self._turn_starts = None
        return theirs

    # entering

    def enter(self) -> Token[Any] | None:
        """Makes the run current in this context; give the token to `engine.frames.leave`."""
        if self.active is None:
            return None
        return FRAME.set(self._step or self.active)

    def __enter__(self) -> ActiveSession | None:
        self.open()
        self._token = self.enter()
        return self.active

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:  # fmt: skip
        leave(self._token)
        self.close(error)

    async def __aenter__(self) -> ActiveSession | None:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:  # fmt: skip
        self.__exit__(kind, error, at)

    # closing

    def close(self, error: BaseException | None = None) -> None:
        """Closes what was opened.

        Raises:
            MissError: (or another `PlayheadError`) a stop was latched in this replay and this is its root.
            ReplayStop: a stop was latched, and this is not the root; or the recording ended here.
        """
        active = self.active
        if active is None:
            return
        latch = active.replay.latch if active.replay is not None else None
        try:
            self._close(active, error, latch)
        except Exception as problem:
            if active.replay is not None:
                raise active.replay.stop(_wrapped(problem)) from problem
            active.recorder.count("errors", problem)
        if latch is not None:
            _leave_latched(latch, self.root, error)

    def _close(self, active: ActiveSession, error: BaseException | None, latch: ReplayStop | None) -> None:
        if self.asks_models and error is None and latch is None:
            self._warn_of_unseen_models(active)
        if self.messages:
            active.runs.append(self.messages[-1])
        if self._step is not None:
            if error is None and latch is None:
                self._step.returned(self.output)
            else:
                self._step.fail(latch or error or GeneratorExit())
        elif self._turn_starts is not None:
            active.turns.append(OpenTurn(self._inputs, freeze(self.output), self._turn_starts, active.next_seq()))
        if self.root:
            if isinstance(latch, RecordingEnded):
                active.output = ("stored", latch.ended.output)
            try:
                active.finish(_ending(error, latch), output=self.output, error=_failure(error, latch))
            finally:
                unregister(active)
            if active.replay is not None and active.replay.on_end is not None:
                active.replay.on_end(active)

    def _warn_of_unseen_models(self, active: ActiveSession) -> None:
        """A run that came to its end without a model call: a hook of its adapter is out of order."""
        if active.calls_seen[NodeKind.MODEL_CALL] == self._models_before and self.agent not in _unseen:
            _unseen.add(self.agent)
            log.warning(
                "playhead: a run of %r ended and no model call of it was seen. Session %s holds none: the framework "
                "asks its models in a way that this version of playhead does not know",
                self.agent, active.session_id,
            )  # fmt: skip


def _warn_once(agent: str, error: Exception) -> None:
    if str(error) not in _warned:
        _warned.add(str(error))
        log.warning("playhead: cannot record %r, the run goes on: %s: %s", agent, type(error).__name__, error)


def _leave_latched(latch: ReplayStop, root: bool, error: BaseException | None) -> None:
    if root and not isinstance(latch, RecordingEnded):
        raise latch.error from error
    if error is not latch:
        raise latch from error


def _wrapped(error: Exception) -> Any:
    from playhead.errors import PlayheadError, RecordingError

    if isinstance(error, PlayheadError):
        return error
    return RecordingError(f"playhead failed at the boundary of a run: {type(error).__name__}: {error}")


def _next_turn(active: ActiveSession, history: Sequence[Any]) -> bool:
    """Whether a framework run directly in a session is its first turn, or starts from an earlier turn's messages."""
    if active.run_count == 0:
        return True
    return any(_same(last, message) for message in reversed(history) for last in active.runs)


def _same(one: Any, other: Any) -> bool:
    try:
        return one is other or bool(one == other)
    except Exception:  # noqa: BLE001 - comparing foreign objects
        return False


def _failure(error: BaseException | None, latch: ReplayStop | None) -> BaseException | None:
    if latch is not None:
        return None if isinstance(latch, RecordingEnded) else latch.error
    return None if isinstance(error, _GONE) else error


def _ending(error: BaseException | None, latch: ReplayStop | None) -> SessionStatus:
    if isinstance(latch, RecordingEnded):
        return latch.ended.status
    if latch is not None:
        return SessionStatus.FAILED
    if error is None or (isinstance(error, SystemExit) and not error.code):
        return SessionStatus.COMPLETED
    return SessionStatus.ABANDONED if isinstance(error, _GONE) else SessionStatus.FAILED
