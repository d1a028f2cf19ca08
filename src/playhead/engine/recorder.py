"""The recorder: takes steps from the agent's threads and writes them from one of its own.

Threads append to a queue and go on. The writer looks at it by timer while there is work and sleeps otherwise, so a
call costs the agent no wake-up. Encoding happens under one lock in queue order, by the writer; only when the queue
stays full for the allowed wait does the agent's thread encode the oldest part itself, into the spool. What the store
refuses goes to the spool too, which is sent before anything new is stored.
"""

import atexit
import hashlib
import logging
import os
import sys
import threading
import weakref
from collections import Counter, deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from playhead.core.redaction.redact import Redactor
from playhead.core.values import JSON, SessionStatus
from playhead.engine.clock import SYSTEM_CLOCK, SYSTEM_IDS, Clock, IdSource
from playhead.engine.delivery import Delivery
from playhead.engine.encoding import Encoder
from playhead.engine.owner import own_name
from playhead.engine.queueing import Flush, Pipeline
from playhead.store.ports import Store

log = logging.getLogger("playhead")

_LINGER = 50  # timer rounds without work before the writer sleeps
_CHUNK, _BIG_CHUNK = 64, 1024  # queue items encoded at a time
_BACKLOG = 2000  # with more items waiting the writer no longer steps aside for other threads


class Recorder:
    """Records sessions into a store. Safe to use from every thread; an exception of its own never reaches the agent.

    Args:
        size_limit: values whose JSON text is larger are stored as a mark; None stores everything.
        queue_size: steps that may wait; ``queue_bytes`` bounds what large values among them hold.
        redactor: configured secrets; ``seen``: further values to take out wherever they turn up.
        wait: seconds an agent's thread waits for room before it spills to the spool.
        interval: seconds between two looks at the queue.
        spool: folder for the spool.
    """

    def __init__(
        self, store: Store, clock: Clock = SYSTEM_CLOCK, ids: IdSource = SYSTEM_IDS, *,
        redactor: Redactor | None = None, seen: Mapping[str, str] | None = None, size_limit: int | None = None,
        queue_size: int = 10_000, queue_bytes: int = 256 * 1024 * 1024, wait: float = 0.05, interval: float = 0.02,
        spool: Path | None = None, project: str = "default",
    ) -> None:  # fmt: skip
        self.store = store
        self.clock = clock
        self.ids = ids
        self.secrets = redactor or Redactor()
        self.seen = dict(seen or {})
        self.counters: Counter[str] = Counter()
        self._queue: deque[Any] = deque()
        self._size = queue_size
        self._bytes_limit = queue_bytes
        self._bytes = 0
        self._wait = wait
        self._interval = interval
        label = hashlib.sha256(store.url.encode()).hexdigest()[:12]
        encoder = Encoder(size_limit=size_limit, owner=own_name(), project=project)
        self._delivery = Delivery(store, spool, label, f"{os.getpid()}-{ids()}", self.count)
        self._pipeline = Pipeline(encoder, self._delivery, self.count)
        self._lock = threading.Lock()  # held by whoever encodes
        self._start_lock = threading.Lock()
        self._wake = threading.Event()
        self._room = threading.Event()
        self._awake = False
        self._waiting = 0  # threads that wait for a flush
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._closed = False
        self._foreign = False  # in a forked child
        self._warned: set[str] = set()
        _recorders.add(self)

    @property
    def key_secrets(self) -> Redactor:
        """What takes configured secrets out of keys."""
        return self.secrets

    def redact(self, stored: JSON) -> JSON:
        """A stored form without secrets, for what is written beside sessions."""
        return self.secrets.redact(stored).value

    # the agent's side

    def push(self, item: Any) -> None:
        """Hands over a session, step or slot, again when it has ended. Returns at once unless the queue is full."""
        queue = self._queue
        queue.append(item)
        if not self._awake:
            self._wake_writer()
        if len(queue) > self._size or self._bytes > self._bytes_limit:
            self._make_room()

    def push_heavy(self, item: Any, size: int) -> None:
        """`push` for a step that holds a large value."""
        self._bytes += size
        item.heavy = size
        self.push(item)

    def count(self, what: str, error: BaseException | None = None) -> None:
        """Counts an event; the first of each kind that has an error or is a trouble is logged."""
        self.counters[what] += 1
        if what not in self._warned and (error is not None or what in _TROUBLE):
            self._warned.add(what)
            log.warning(
                "playhead: %s", _TROUBLE.get(what, what) if error is None else f"{_TROUBLE.get(what, what)}: {error}"
            )

    def _wake_writer(self) -> None:
        if self._foreign or self._closed:
            self._queue.clear()
            self.count("detached" if self._foreign else "late")
            return
        self._awake = True
        if self._thread is None:
            self._start()
        self._wake.set()

    def _start(self) -> None:
        with self._start_lock:
            if self._thread is None:
                self._stopping = False
                thread = threading.Thread(target=self._run, name="playhead-writer", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # the process ends (Python 3.12), or may have no more threads
                    self._awake = False
                    self.count("unaided")
                    return
                self._thread = thread
                _finish_before_pool_exit(self)

    def _write_unaided(self) -> None:
        """What the writer would do, where none could be started."""
        with self._start_lock:
            if self._thread is None:
                self._drain()

    def _make_room(self) -> None:
        """Waits for the writer, at most the allowed time; then moves the oldest part of the queue to the spool."""
        if threading.current_thread() is self._thread:
            return
        self._room.clear()
        self._wake.set()
        self.count("waited")
        if self._room.wait(self._wait) or not self._lock.acquire(timeout=self._wait):
            return
        try:
            self.count("spilled")
            items = self._take(_CHUNK)
            self._queue.extend(item for item in items if isinstance(item, Flush))
            self._delivery.spill(self._pipeline.encode([item for item in items if not isinstance(item, Flush)]))
        except Exception as error:  # noqa: BLE001 - nothing of ours reaches the agent
            self.count("errors", error)
        finally:
            self._lock.release()

    def flush(self, timeout: float | None = 10.0) -> bool:
        """Waits until everything handed over before is in the store; False when it is not (spooled, or no time)."""
        if self._foreign or threading.current_thread() is self._thread:
            return False
        if self._closed:
            return not self._queue and not self._delivery.spooled
        mark = Flush()
        self._waiting += 1
        try:
            self._queue.append(mark)
            self._wake_writer()
            if self._thread is None:
                self._write_unaided()
            return mark.done.wait(timeout) and mark.stored
        finally:
            self._waiting -= 1

    def close(self, timeout: float = 10.0) -> bool:
        """Flushes and stops the writer. The store stays open; it belongs to whoever opened it."""
        if self._closed or self._foreign:
            return self._closed
        stored = self.flush(timeout) if self._thread is not None or self._queue else True
        self._stop(timeout)
        self._closed = True
        with self._lock:
            self._delivery.close()
        _recorders.discard(self)
        return stored

    def _stop(self, timeout: float) -> None:
        thread = self._thread
        if thread is None:
            return
        self._stopping = True
        self._wake.set()
        thread.join(timeout)
        if thread.is_alive():  # stuck in the store
            self._stopping = False
        else:
            self._thread, self._awake = None, False

    # the writer's side

    def _run(self) -> None:
        idle = 0
        while not self._stopping:
            if idle >= _LINGER and not self._pipeline.busy:
                self._sleep()
                idle = 0
            hurry = self._wake.wait(self._interval)
            if hurry:
                self._wake.clear()
            idle = 0 if self._drain() else idle + 1

    def _sleep(self) -> None:
        """Until there is work. Whoever appends after `_awake` is cleared sees it and sets the event."""
        self._awake = False
        if not self._queue:
            self._wake.wait()
        self._awake = True

    def _drain(self) -> int:
        """Everything that is in the queue now, in chunks; gives the number of items."""
        done = 0
        while self._queue:
            with self._lock:
                polite = len(self._queue) < _BACKLOG and not self._waiting
                items = self._take(_CHUNK if polite else _BIG_CHUNK)
                try:
                    ready = self._pipeline.encode(items, polite=polite)
                except Exception as error:  # noqa: BLE001 - the writer must live
                    self.count("errors", error)
                    continue
            self._deliver(ready)
            done += len(items)
            self._room.set()
        if not done:
            self._deliver(self._pipeline.tick(self.clock.now()))
        return done

    def _deliver(self, ready: Any) -> None:
        try:
            self._delivery.deliver(ready)
        except Exception as error:  # noqa: BLE001 - the writer must live
            self.count("errors", error)

    def _take(self, count: int) -> list[Any]:
        items: list[Any] = []
        try:
            while len(items) < count:
                item = self._queue.popleft()
                items.append(item)
                self._bytes -= getattr(item, "heavy", 0)
        except IndexError:
            pass
        return items

    # fork

    def before_fork(self) -> None:
        """Writes what waits and ends the writer, so that a forked child inherits no thread in the middle of things."""
        if self._thread is not None and threading.current_thread() is not self._thread:
            self.flush(1.0)
            self._stop(1.0)

    def after_fork_in_child(self) -> None:
        self._foreign = True
        self._queue.clear()
        self._delivery.forget()
        self._thread, self._awake = None, False


_TROUBLE = {
    "spilled": "the store is slower than the agent; steps go to the spool file and are stored later",
    "store": "cannot write to the store; the run goes on, and what it records goes to the spool file",
    "lost": "cannot write to the store nor to a spool file; this run is not recorded",
    "errors": "an error while recording; the run goes on",
    "detached": "a forked child does not record into its parent's session",
}

_recorders: "weakref.WeakSet[Recorder]" = weakref.WeakSet()
_kept_from_parent: list[Recorder] = []


def _before_fork() -> None:
    for recorder in list(_recorders):
        recorder.before_fork()


def _after_fork_in_child() -> None:
    for recorder in list(_recorders):
        recorder.after_fork_in_child()
        _kept_from_parent.append(recorder)  # closing the parent's connections from here would disturb them
    _recorders.clear()


def close_all(timeout: float = 10.0) -> None:
    """At the end of the process: closes open sessions as abandoned and writes everything."""
    context: Any = sys.modules.get("playhead.engine.context")  # where it was never loaded no session was open
    if context is not None:
        for active in context.open_sessions():
            active.finish(SessionStatus.ABANDONED)
            context.unregister(active)
    for recorder in list(_recorders):
        recorder.close(timeout)


def _finish_before_pool_exit(recorder: Recorder) -> None:
    """Children of multiprocessing leave without `atexit`; its own finalizers are what they run."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.Finalize(None, close_all, exitpriority=0)


atexit.register(close_all)
os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)
