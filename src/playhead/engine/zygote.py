"""The zygote: a fresh interpreter that has imported one agent and forks for each replay of it.

It has one thread, so that forking is safe, and does nothing but wait: for orders, for its children and for what they
print. One child is forked ahead while there is nothing to do, and gets ready, so that an order finds it waiting.

The worker talks to it over a socket. An order is a socket of its own, handed over together with the descriptors that
the child needs; the order goes in, how the child ended comes out, and closing the socket ends the child. When the
worker dies every socket closes, and with them everything ends.
"""

import array
import json
import os
import resource
import selectors
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from playhead.engine import preloading
from playhead.engine.process_tree import adopt_orphans, children, die_with_parent, signal_tree
from playhead.engine.watching import Limits, Watched

UNSAFE = {
    "grpc": "grpc keeps threads of its own",
    "ray": "ray keeps connections of its own",
    "jax": "jax keeps threads of its own",
    "tensorflow": "tensorflow keeps threads of its own",
}
"""Libraries that do not survive a fork, loaded or not yet used."""

_AHEAD_AFTER = 0.01  # seconds without orders before a child is forked ahead
_LEARNERS = 3  # children that tell what they had to load

Order = dict[str, Any]
Run = Callable[[Order], int]
Begin = Callable[[bool], Run]
"""What a child does before it has its order; True when nobody waits for it yet. Gives what does the replay, and its
exit code."""


def unfit() -> str | None:
    """Why this process must not be forked; None when it may."""
    others = [t.name for t in threading.enumerate() if t is not threading.main_thread()]
    if others:
        return f"its import left threads running: {', '.join(sorted(others)[:5])}"
    with suppress(OSError):
        native = len(list(Path("/proc/self/task").iterdir())) - 1
        if native:
            return f"its import left {native} thread(s) of a library running"
    return next((why for name, why in UNSAFE.items() if name in sys.modules), None)


def send_json(to: socket.socket, value: Any, descriptors: Sequence[int] = ()) -> None:
    """One message: its length, its JSON text, and descriptors along with it."""
    data = json.dumps(value).encode()
    head = len(data).to_bytes(4, "big")
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
    to.sendmsg([head], rights)
    to.sendall(data)


def receive_json(source: socket.socket) -> tuple[Any, list[int]]:
    """The next message and its descriptors.

    Raises:
        EOFError: the other side is gone.
    """
    head, descriptors, _, _ = socket.recv_fds(source, 4, 8)
    data = head + _exactly(source, 4 - len(head))
    if len(data) < 4:
        raise EOFError
    return json.loads(_exactly(source, int.from_bytes(data, "big"))), descriptors


def _exactly(source: socket.socket, size: int) -> bytes:
    parts: list[bytes] = []
    while size > 0:
        part = source.recv(min(size, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


@dataclass(slots=True)
class _Child:
    """A forked process. ``line`` is our end of its socket; ``order`` the worker's socket once it has one."""

    pid: int
    line: socket.socket
    out: int
    err: int
    order: socket.socket | None = None
    watched: Watched | None = None
    descriptors: list[int] = field(default_factory=list[int])


class Zygote:
    """The loop. ``begin`` is called in each child."""

    def __init__(self, control: socket.socket, begin: Begin) -> None:
        self._control = control
        self._begin = begin
        self._selector = selectors.DefaultSelector()
        self._waiting: _Child | None = None
        self._working: dict[int, _Child] = {}
        self._learners = _LEARNERS
        self._unbuilt = preloading.unbuilt()
        self._last_order = 0.0
        self._wake_out, self._wake_in = os.pipe()
        for end in (self._wake_out, self._wake_in):
            os.set_blocking(end, False)

    def serve(self) -> None:
        """Serves until the worker is gone."""
        adopt_orphans()
        signal.set_wakeup_fd(self._wake_in, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _noted)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal; the worker decides
        self._selector.register(self._control, selectors.EVENT_READ, self._take_order)
        self._selector.register(self._wake_out, selectors.EVENT_READ, self._drain_wake)
        preloading.settle_memory()
        try:
            while self._control.fileno() >= 0:
                for key, _ in self._selector.select(self._due()):
                    key.data()
                self._reap()
                now = time.monotonic()
                for child in list(self._working.values()):
                    if child.watched is not None:
                        child.watched.check(now)
                if self._may_fork_ahead(now):
                    self._waiting = self._fork(ahead=True)
        finally:
            for child in children():
                signal_tree(child, signal.SIGKILL)

    def _due(self) -> float:
        now = time.monotonic()
        waits = [child.watched.due(now) for child in self._working.values() if child.watched is not None]
        if self._waiting is None and not self._working:
            waits.append(_AHEAD_AFTER)
        return min(waits, default=5.0)

    def _may_fork_ahead(self, now: float) -> bool:
        return self._waiting is None and not self._working and now - self._last_order >= _AHEAD_AFTER

    def _drain_wake(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._wake_out, 4096)

    # orders

    def _take_order(self) -> None:
        try:
            _, (descriptor, *more) = receive_json(self._control)
            order_socket = socket.socket(fileno=descriptor)
        except (EOFError, OSError, ValueError):
            self._selector.unregister(self._control)
            self._control.close()
            return
        try:
            order, _ = receive_json(order_socket)
        except (EOFError, OSError):
            order_socket.close()
            _close_all(more)
            return
        self._last_order = time.monotonic()
        self._start(order, order_socket, more)

    def _start(self, order: Order, order_socket: socket.socket, descriptors: list[int]) -> None:
        child = self._ready() or self._fork(ahead=False)
        child.order = order_socket
        child.watched = Watched(child.pid, child.out, child.err, Limits(**order["limits"]), time.monotonic())
        self._working[child.pid] = child
        with suppress(OSError):  # it has died; `_reap` tells
            send_json(child.line, order, descriptors)
        _close_all(descriptors)
        for descriptor in child.watched.descriptors:
            self._selector.register(descriptor, selectors.EVENT_READ, partial(self._read, child, descriptor))
        self._selector.register(order_socket, selectors.EVENT_READ, lambda: self._cancel(child))

    def _ready(self) -> _Child | None:
        """The child that was forked ahead, where it is ready by now; otherwise it is for a later order."""
        waiting = self._waiting
        if waiting is None:
            return None
        try:
            told = waiting.line.recv(1, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        if not told:
            return None  # it has died; `_reap` tells
        self._waiting = None
        return waiting

    def _read(self, child: _Child, descriptor: int) -> None:
        watched = child.watched
        if watched is not None and descriptor in watched.descriptors and not watched.read(descriptor):
            self._selector.unregister(descriptor)

    def _cancel(self, child: _Child) -> None:
        """The worker closed the socket of an order, or wrote to it: the child must end."""
        if child.order is not None:
            self._selector.unregister(child.order)
        if child.watched is not None:
            child.watched.end("canceled", time.monotonic())

    # children

    def _fork(self, *, ahead: bool) -> _Child:
        ours, theirs = socket.socketpair()
        out, out_in = os.pipe()
        err, err_in = os.pipe()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._become_child(parent, theirs, out_in, err_in, ahead)
        theirs.close()
        _close_all([out_in, err_in])
        return _Child(pid=pid, line=ours, out=out, err=err)

    def _become_child(self, parent: int, line: socket.socket, out: int, err: int, ahead: bool) -> None:
        code = 70
        loaded = list(sys.modules) if self._learners > 0 else None
        try:
            os.setsid()
            adopt_orphans()
            die_with_parent(parent)
            self._forget_the_zygote(line, out, err)
            run = self._begin(ahead)
            if ahead:
                line.send(b"1")
            order, descriptors = receive_json(line)
            code = _obey(order, descriptors, run)
            if loaded is not None:
                _tell_what_was_loaded(line, loaded, self._unbuilt)
        except EOFError:
            code = 0
        except BaseException:  # noqa: BLE001 - the last words of the process
            traceback.print_exc()
        finally:
            for stream in (sys.stdout, sys.stderr):
                with suppress(Exception):
                    stream.flush()
            os._exit(code)

    def _forget_the_zygote(self, line: socket.socket, out: int, err: int) -> None:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        self._selector.close()
        kept = line.fileno()
        for held in (self._wake_in, self._wake_out, out, err):
            os.close(held)
        for child in self._working.values():
            child.line.close()
            if child.order is not None:
                child.order.close()
            _close_all(child.watched.descriptors if child.watched is not None else [])
        self._control.close()
        assert kept == line.fileno()

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                break
            child = self._working.pop(pid, None)
            if child is not None:
                self._report(child, os.waitstatus_to_exitcode(status))
            elif self._waiting is not None and pid == self._waiting.pid:
                _close_all([self._waiting.out, self._waiting.err])
                self._waiting.line.close()
                self._waiting = None

    def _end_orphans(self) -> None:
        """Kills what children that have ended left behind: it is ours now, and nobody's."""
        known = {*self._working, *([self._waiting.pid] if self._waiting else [])}
        for _ in range(5):  # a dying process hands its own children over
            strangers = [pid for pid in children() if pid not in known]
            if not strangers:
                return
            for pid in strangers:
                signal_tree(pid, signal.SIGKILL)
                with suppress(ChildProcessError):
                    os.waitpid(pid, 0)

    def _report(self, child: _Child, code: int) -> None:
        self._end_orphans()
        assert child.watched is not None
        assert child.order is not None
        for descriptor in child.watched.descriptors:
            self._selector.unregister(descriptor)
        with suppress(KeyError, ValueError):
            self._selector.unregister(child.order)
        end = child.watched.close(code)
        with suppress(OSError):
            send_json(child.order, {**asdict(end), "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss})
        child.order.close()
        self._learn(child.line)

    def _learn(self, line: socket.socket) -> None:
        line.setblocking(False)
        try:
            found, _ = receive_json(line)
        except (EOFError, OSError):
            return
        finally:
            line.close()
        self._learners -= 1
        if found["modules"] or found["built"]:
            preloading.preload(found["modules"], found["built"])
            self._unbuilt = preloading.unbuilt()
            if unfit() is not None:  # a module that one child needed leaves threads: no more forks from here
                self._selector.unregister(self._control)
                self._control.close()
            preloading.settle_memory()


def _obey(order: Order, descriptors: list[int], run: Run) -> int:
    """In the child: takes on what the order says, and does the replay."""
    if descriptors:
        order["isolation"]["tunnel"] = descriptors[0]
    os.environ.update(order.pop("env"))  # beside what the import of the agent has set
    limit_memory(order["limits"].get("memory"))
    return run(order)


def _tell_what_was_loaded(line: socket.socket, before: Sequence[str], unbuilt: set[str]) -> None:
    found = {
        "modules": preloading.new_modules(before),
        "built": sorted(unbuilt - preloading.unbuilt()) if unbuilt else [],
    }
    with suppress(OSError):
        line.setblocking(False)
        send_json(line, found)


def limit_memory(most: int | None) -> None:
    """Lets an allocation fail that would take the process far beyond its limit, before the machine is out of memory."""
    if most is None:
        return
    with suppress(OSError, ValueError, IndexError):
        mapped = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (mapped + most, mapped + most))


def _noted(number: int, frame: object) -> None:
    """A handler, so that the signal reaches the wake-up descriptor."""


def _close_all(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        with suppress(OSError):
            os.close(descriptor)
