"""Which session a call belongs to: the context variable, else the only open session of the process.

With two or more open sessions and no context none is guessed: outside a replay nothing is recorded and a warning says
so once, in a replay everything stops. A forked child never continues its parent's sessions. What the agent of a replay
starts belongs to it, see `replay_threads` and `replay_processes`.
"""

import logging
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module

from playhead.core.values import LedgerRow
from playhead.engine import replay_processes, replay_threads
from playhead.engine.active import ActiveSession
from playhead.engine.frames import FRAME, leave
from playhead.engine.replay_threads import OUTSIDE, REPLAY
from playhead.engine.replaying import ReplayState
from playhead.errors import EntryPointError, RecordingError, ReplayStop

log = logging.getLogger("playhead")

_IMPORT: ContextVar["_Import | None"] = ContextVar("playhead_import", default=None)


class _Open:
    """Open sessions and running replays of this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.sessions: dict[str, ActiveSession] = {}
        self.replays: list[ReplayState] = []
        self.warned = False


_open = _Open()


def current() -> ActiveSession | None:
    """The session that a call made here belongs to, None when it is not recorded.

    Raises:
        ReplayStop: in a replay, when it is not clear which session that is.
    """
    frame = FRAME.get()
    if frame is None:
        return _only()
    active: ActiveSession = frame.active
    if active.closed or active.detached:
        return _gone(active)
    return active


def _only() -> ActiveSession | None:
    state = _own_replay()
    if state is not None and state.over:
        state.check()
    sessions = _open.sessions
    if not sessions:
        return None
    found = list(sessions.values())
    if state is not None:
        found = [active for active in found if active.replay is state]
    else:
        found = [active for active in found if not _is_apart(active.replay)]
    if not found:
        return None
    if len(found) == 1:
        return found[0]
    states = {id(a.replay): a.replay for a in found if a.replay is not None}
    for state in states.values():
        state.refuse(
            RecordingError(
                f"a call came from a thread without context while {len(found)} sessions are open",
                hint="start the thread with contextvars.copy_context().run",
            )
        )
    for state in states.values():
        state.check()
    if not _open.warned:
        _open.warned = True
        log.warning(
            "a call came from a thread without context while %d sessions are open; such calls are not recorded. "
            "Start the thread with contextvars.copy_context().run",
            len(found),
        )
    return None


def _gone(active: ActiveSession) -> ActiveSession | None:
    """A call inside a session that is over, or that belongs to the parent process."""
    active.recorder.count("detached" if active.detached else "late")
    state = active.replay
    if state is None:
        return None
    if active.detached:
        if replay_processes.serves_others():
            return None
        replay_processes.refuse("a call was made")
    where = "in a forked child of the replay" if active.detached else "after the session had ended"
    raise state.refuse(RecordingError(f"a call was made {where}, where nothing can answer it"))


def register(active: ActiveSession) -> None:
    with _open.lock:
        _open.sessions[active.session_id] = active


def unregister(active: ActiveSession) -> None:
    with _open.lock:
        _open.sessions.pop(active.session_id, None)


def open_sessions() -> list[ActiveSession]:
    """Sessions that are open in this process."""
    return list(_open.sessions.values())


# replays


@contextmanager
def replaying(state: ReplayState, *, to_the_end: bool = False) -> Generator[ReplayState]:
    """Makes every session that is opened inside part of a replay: by context, else when this replay is the only one.

    Args:
        to_the_end: the process exists for this replay: nothing that is left of the agent afterwards may run.

    Raises:
        RecordingError: processes that the agent starts could not know that this is a replay.
    """
    refuse_while_importing("a replay was started")
    replay_threads.watch(_replay_of_caller, _in_live_session)
    replay_processes.enter(state)
    token = REPLAY.set(state)
    outer = FRAME.set(None)  # an inline replay is no part of a session around it
    with _open.lock:
        _open.replays.append(state)
    try:
        yield state
    finally:
        replay_processes.listen(state)
        state.over = True
        if not to_the_end:
            with _open.lock:
                _open.replays.remove(state)
            replay_processes.leave(state)
        leave(outer)
        leave(token)


def _own_replay() -> ReplayState | None:
    """The replay that the calling context says it is part of.

    A thread that outlives its replay may serve the next one: while one runs, it is asked for like any other thread.
    """
    state = REPLAY.get()
    if state is None:
        return None
    if state.detached and replay_processes.serves_others():
        return None
    return None if state.over and any(not other.over for other in _open.replays) else state


def replay_around() -> ReplayState | None:
    """The replay that the caller is part of, asked without a stop: for what is only read or kept differently in one."""
    frame = FRAME.get()
    if frame is not None:
        state: ReplayState | None = frame.active.replay
        return state
    return _replay_of_caller()


def _is_apart(state: ReplayState | None) -> bool:
    """Whether the caller, who has no context, certainly is no part of a replay: work of a live session in a pool,
    and the main thread when the replay runs in another (loops hand contexts on, so nothing of an agent arrives there).
    """
    if state is None:
        return False
    main = threading.main_thread().ident
    return OUTSIDE.get() or (threading.get_ident() == main and state.thread != main and not state.over)


def _replay_of_caller() -> ReplayState | None:
    own = _own_replay()
    return own if own is not None else next((state for state in list(_open.replays) if belongs_to(state)), None)


def _in_live_session() -> bool:
    frame = FRAME.get()
    return frame is not None and frame.active.replay is None and not frame.active.closed


def replay_here() -> ReplayState | None:
    """The replay that a session opened here belongs to.

    Raises:
        ReplayStop: several replays run, and the context does not say which.
    """
    state = _own_replay()
    if state is not None:
        if state.over:
            state.check()
        return state
    if "PLAYHEAD_ORDER" in os.environ:  # this process was started to be a replay
        import_module("playhead.engine.commanded").begin()  # which stands on this module
    running = [state for state in _open.replays if not _is_apart(state)]
    if len(running) > 1:
        for one in running:
            one.refuse(RecordingError("a session was opened in a thread without context while several replays run"))
        running[0].check()
    return running[0] if running else None


def belongs_to(state: ReplayState) -> bool:
    """Whether the calling context is part of a replay; a thread without context is when no other can be meant."""
    here = _own_replay()
    if here is not None or _is_apart(state):
        return here is state
    return threading.get_ident() not in state.other_threads and _open.replays == [state]


def is_seen(*, wanted: bool) -> bool:
    """Whether a framework's run is ours to record: inside a session, or where such runs are ``wanted`` as sessions.

    Raises:
        ReplayStop: it is not, and would run live in a replay.
    """
    if wanted or current() is not None:
        return True
    refuse_outside(None)
    return False


def session_begins(agent: str) -> ReplayState | None:
    """The replay that a session opened here belongs to.

    Raises:
        ReplayStop: it must not be opened here, or a stop is latched.
    """
    what = f"agent {agent!r} was run"
    refuse_while_importing(what)
    state = replay_here()
    if state is None or state.detached:
        replay_processes.refuse(what)
    if state is None:
        return None
    if state.detached:
        raise state.refuse(RecordingError(f"{what} in a forked child of the replay, where nothing can answer it"))
    state.check()
    return state


def refuse_outside(tool: str | None) -> None:
    """Called for what belongs to no session: in a replay it stops, unless it is a tool that may run live.

    Args:
        tool: the tool's name, None for a run of a framework's agent.

    Raises:
        ReplayStop: nothing could answer the call, and live it must not run.
    """
    what = "an agent was run" if tool is None else f"tool {tool!r} was called"
    refuse_while_importing(what)
    state = replay_here()
    if state is None or state.detached:
        allowed = replay_processes.refuse(what, tool)
        if state is None or allowed:
            return
    elif tool is not None and state.policy.config_for(tool).type == "passthrough":
        state.note(LedgerRow(kind="tool", by="live", tool=tool, detail="outside the session of the replay"))
        return
    raise state.refuse(
        RecordingError(
            f"{what} outside the session of the replay",
            hint="open the session before tools are called, or let the tool run live with a passthrough policy",
        ),
        tool,
    )


# imports


class _Import:
    """An entry point that is being imported, and the first thing of the agent that ran meanwhile."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.latch: ReplayStop | None = None


@contextmanager
def importing(module: str) -> Generator[None]:
    """Keeps agents and tools from running while the module of an entry point is imported for a replay.

    No replay is there yet to answer them: they would run for real, and be recorded as if somebody had meant it.

    Raises:
        EntryPointError: something of the agent ran, also when the module swallowed that.
    """
    mark = _Import(module)
    token = _IMPORT.set(mark)
    try:
        yield
    except BaseException:
        if mark.latch is not None:
            raise mark.latch.error from None
        raise
    finally:
        _IMPORT.reset(token)
    if mark.latch is not None:
        raise mark.latch.error


def refuse_while_importing(what: str) -> None:
    """Stops ``what`` when the module of an entry point is being imported here.

    Raises:
        ReplayStop: it is.
    """
    mark = _IMPORT.get()
    if mark is None:
        return
    if mark.latch is None:
        mark.latch = ReplayStop(
            EntryPointError(
                f"{what} while {mark.module!r} was imported for a replay, before anything could answer it",
                hint='put what the file runs by itself under `if __name__ == "__main__":`',
            )
        )
    raise mark.latch


# fork


def _after_fork_in_child() -> None:
    """The child has its own registry; sessions of the parent stay readable but are never written from here."""
    global _open
    sessions, replays = _open.sessions, _open.replays
    for active in sessions.values():
        active.detached = True
    _open = _Open()
    # a worker that forks for a replay is inside no session yet: its replay goes on in the child
    _open.replays = [state for state in replays if not state.sessions]
    for state in replays:
        state.detached = bool(state.sessions)
        state.thread = threading.get_ident()


os.register_at_fork(after_in_child=_after_fork_in_child)
