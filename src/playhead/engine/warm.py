"""The worker's side of zygotes: one per agent version and environment, started when first needed, replaced when used
up, grown or outdated."""

import hashlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import IO, Any

from playhead.core.values import RunSpec
from playhead.engine.child import Control, Launch
from playhead.engine.process_tree import MARK, end_marked, signal_tree
from playhead.engine.watching import Exit, last_changed
from playhead.engine.zygote import receive_json, send_json

MOST_RUNS = 500
MOST_GROWTH = 256 * 1024  # KiB that a zygote may grow
_START_TIME = 120.0
_STEP = 0.05


class UnfitError(Exception):
    """The agent cannot be run from a zygote, for the reason in the text."""


@dataclass(slots=True)
class _Zygote:
    """A started zygote. ``using`` counts orders; a retired one is ended when the last of them is done."""

    process: "subprocess.Popen[bytes]"
    control: socket.socket
    errors: IO[bytes]
    mark: str
    files: dict[str, int] = field(default_factory=dict[str, int])
    rss: int = 0
    runs: int = 0
    using: int = 0
    retired: bool = False
    sending: threading.Lock = field(default_factory=threading.Lock)

    def is_outdated(self) -> bool:
        """Whether a file that it has imported or read is another one now."""
        return any(last_changed(path) != stamp for path, stamp in self.files.items())

    def end(self) -> None:
        """Ends the zygote and whatever still runs below it."""
        self.control.close()
        try:
            self.process.wait(2.0)
        except subprocess.TimeoutExpired:
            signal_tree(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.errors.close()


class Zygotes:
    """All zygotes of a worker. Safe for its threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._starting: dict[str, threading.Lock] = {}
        self._known: dict[str, _Zygote] = {}
        self._unfit: dict[str, str] = {}

    def run(self, launched: Launch, control: Control) -> Exit:
        """Runs an order in a forked child and waits for its end.

        Raises:
            UnfitError: this agent has to run in fresh processes.
        """
        key = _key(launched.spec, launched.env)
        for _ in range(3):
            zygote = self._taken(key, launched)
            try:
                end = _order(zygote, launched, control)
            finally:
                self._given_back(key, zygote)
            if end is not None:
                return end
        return Exit(code=0, vanished=True, started="fork")

    def close(self) -> None:
        with self._lock:
            zygotes, self._known = list(self._known.values()), {}
        for zygote in zygotes:
            zygote.end()

    def _taken(self, key: str, launched: Launch) -> _Zygote:
        with self._lock:
            starting = self._starting.setdefault(key, threading.Lock())
        with starting:  # others that need the same zygote wait for it
            with self._lock:
                known = self._known.get(key)
                why = self._unfit.get(key)
            if known is not None and (known.process.poll() is not None or known.is_outdated()):
                self._retire(key, known)
                known = why = None
            if why is not None:
                raise UnfitError(why)
            if known is None:
                known = self._start(key, launched)
            with self._lock:
                known.using += 1
                known.runs += 1
                return known

    def _start(self, key: str, launched: Launch) -> _Zygote:
        try:
            zygote = _started(launched)
        except UnfitError as error:
            with self._lock:
                self._unfit[key] = str(error)
            raise
        with self._lock:
            self._known[key] = zygote
        return zygote

    def _retire(self, key: str, zygote: _Zygote) -> None:
        with self._lock:
            if self._known.get(key) is zygote:
                del self._known[key]
            zygote.retired = True
            unused = zygote.using == 0
        if unused:
            zygote.end()

    def _given_back(self, key: str, zygote: _Zygote) -> None:
        with self._lock:
            zygote.using -= 1
            last = zygote.retired and zygote.using == 0
        if last:
            zygote.end()
        elif zygote.runs >= MOST_RUNS or zygote.process.poll() is not None:
            self._retire(key, zygote)


def _key(spec: RunSpec, env: dict[str, str]) -> str:
    """What two replays must have in common to be forked from one process: all that an import can see."""
    text = json.dumps([spec.entry_point, spec.working_dir, sorted(env.items())])
    return hashlib.sha256(text.encode()).hexdigest()


def _started(launched: Launch) -> _Zygote:
    ours, theirs = socket.socketpair()
    errors = tempfile.TemporaryFile()  # noqa: SIM115 - kept with the zygote
    mark = f"zygote:{os.getpid()}:{time.monotonic_ns()}"
    order = {name: launched.order[name] for name in ("entry_point", "working_dir", "project", "store_url")}
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "playhead.cli.zygote", str(theirs.fileno()), json.dumps(order)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, cwd=launched.spec.working_dir or None,
            env={**launched.env, MARK: mark}, start_new_session=True, pass_fds=(theirs.fileno(),),
        )  # fmt: skip
    except OSError as error:
        ours.close()
        errors.close()
        raise UnfitError(f"its process cannot be started: {error}") from error
    finally:
        theirs.close()
    zygote = _Zygote(process=process, control=ours, errors=errors, mark=mark)
    ours.settimeout(_START_TIME)
    try:
        ready, _ = receive_json(ours)
    except (EOFError, OSError):
        zygote.process.kill()
        zygote.end()
        raise UnfitError("its import ended or held up the process") from None
    ours.settimeout(None)
    if ready.get("unfit"):
        zygote.end()
        raise UnfitError(ready["unfit"])
    zygote.files = ready["files"]
    return zygote


def _order(zygote: _Zygote, launched: Launch, control: Control) -> Exit | None:
    """One replay. None when the zygote ended before it took the order."""
    ours, theirs = socket.socketpair()
    with ours:
        order = {
            **launched.order,
            "env": {MARK: launched.task_id},
            "limits": launched.limits.as_json(),
        }
        try:
            with zygote.sending, theirs:
                sender = threading.Thread(target=_send, args=(ours, order), daemon=True)
                sender.start()  # an order may be larger than the socket holds before somebody reads
                send_json(zygote.control, {}, (theirs.fileno(), *launched.isolation.descriptors))
        except OSError:
            return None
        end = _answer(ours, control)
        sender.join(1.0)
    if end is None:  # it died with our child
        end_marked(zygote.mark)
        end_marked(launched.task_id)
        return Exit(code=0, vanished=True, started="fork", reason=control.reason)
    rss = end.pop("rss")
    zygote.rss = zygote.rss or rss
    if rss > zygote.rss + MOST_GROWTH:
        zygote.runs = MOST_RUNS
    told = replace(Exit(**end), started="fork")
    return replace(told, reason=control.reason) if told.reason == "canceled" else told


def _send(to: socket.socket, order: dict[str, Any]) -> None:
    with suppress(OSError):
        send_json(to, order)


def _answer(source: socket.socket, control: Control) -> dict[str, Any] | None:
    told = False
    while True:
        readable, _, _ = select.select([source], [], [], _STEP)
        if readable:
            try:
                return receive_json(source)[0]
            except (EOFError, OSError):
                return None
        if control.reason is not None and not told:
            told = True
            with suppress(OSError):
                source.shutdown(socket.SHUT_WR)  # the zygote ends the child and then answers
