"""Threads that the agent of a replay starts: they belong to the replay although nobody hands its context on.

A thread belongs by what it runs. One that runs one thing starts with the replay in its own context, and keeps it when
the replay is over. A worker of a pool runs what anybody gives it, so it belongs to nobody: each thing that it is given
carries where it comes from. Pools and loops that hand the context on themselves need nothing of this.
"""

import functools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any
from weakref import WeakSet

from playhead.engine.frames import leave
from playhead.engine.replaying import ReplayState

REPLAY: ContextVar[ReplayState | None] = ContextVar("playhead_replay", default=None)
OUTSIDE: ContextVar[bool] = ContextVar("playhead_outside_replays", default=False)
"""Whether this is certainly no part of a replay: work that a live session gave to a pool."""

POOLS = frozenset(
    {
        "concurrent.futures.thread", "concurrent.futures.process", "multiprocessing.pool", "loky.process_executor",
        "joblib.externals.loky.process_executor",
    }
)  # fmt: skip
"""Modules whose workers run what anybody gives them."""

_watching = threading.Event()
_owned: WeakSet[threading.Thread] = WeakSet()
_lock = threading.Lock()
_submitting: ContextVar[bool] = ContextVar("playhead_submitting", default=False)


def watch(replay_of_caller: Callable[[], ReplayState | None], is_live: Callable[[], bool]) -> None:
    """From now on new threads, and what is given to a pool, belong to the replay of whoever starts or gives them.

    Wraps `threading.Thread.start` and `ThreadPoolExecutor.submit` once per process, when its first replay begins.

    Args:
        is_live: whether the caller is inside a live session.
    """
    with _lock:
        if _watching.is_set():
            return
        _watching.set()
    start, submit = threading.Thread.start, ThreadPoolExecutor.submit

    @functools.wraps(start)
    def started(self: threading.Thread) -> None:
        state = None if _serves_others(self) else replay_of_caller()
        if state is not None:
            self.run = functools.partial(_run_as_part, self, self.run, state)
            _owned.add(self)
        start(self)

    @functools.wraps(submit)
    def submitted(self: ThreadPoolExecutor, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        state = replay_of_caller()
        if state is not None:
            fn = functools.partial(_within, REPLAY, state, fn)
        elif is_live():
            fn = functools.partial(_within, OUTSIDE, True, fn)
        token = _submitting.set(True)  # a worker may be started for it
        try:
            return submit(self, fn, *args, **kwargs)
        finally:
            leave(token)

    threading.Thread.start = started
    ThreadPoolExecutor.submit = submitted


def any_left() -> bool:
    """Whether a thread that the agent of some replay started lives on."""
    return any(thread.is_alive() for thread in list(_owned))


def _serves_others(thread: threading.Thread) -> bool:
    module = str(getattr(getattr(thread, "_target", None), "__module__", ""))
    return _submitting.get() or module in POOLS or module.startswith("playhead.")


def _run_as_part(thread: threading.Thread, run: Callable[[], None], state: ReplayState) -> None:
    vars(thread).pop("run", None)  # a thread that has ended keeps no replay
    REPLAY.set(state)
    run()


def _within(variable: ContextVar[Any], value: Any, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
    token = variable.set(value)
    try:
        return fn(*args, **kwargs)
    finally:
        leave(token)
