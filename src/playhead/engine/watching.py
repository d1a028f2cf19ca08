"""Watches one process and all that it starts: keeps the end of what it prints, and ends it when a limit is passed.

Nothing here blocks or waits; whoever owns the process calls `read` when there is something to read and `check` every
now and then. A zygote does so for its children, a worker for programs that it starts itself.
"""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from playhead.engine.process_tree import end_group, memory_of, signal_tree

KEPT_OUTPUT = 8 * 1024
MOST_OUTPUT = 64 * 1024 * 1024
_GRACE = 1.0  # seconds between the request to end and the kill
_MEMORY_INTERVAL = 0.1

Reason: TypeAlias = Literal["timeout", "memory", "output", "canceled", "released", "lost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Seconds, bytes in memory and bytes of output; None is no limit."""

    timeout: float | None = None
    memory: int | None = None
    output: int | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How a process ended: its exit code (a negative one is a signal), and why we ended it, if we did.

    ``stdout`` and ``stderr`` are the last 8 KiB of each. ``vanished``: nobody knows; whoever watched it died too.
    """

    code: int
    reason: Reason | None = None
    stdout: str = ""
    stderr: str = ""
    vanished: bool = False
    started: Literal["fork", "process"] = "process"
    guard: str | None = None  # the level around a program

    def last_words(self, limits: Limits) -> str:
        """One line on why a process died, for the error of its replay."""
        if self.reason is not None:
            return _REASONS[self.reason](limits)
        if self.vanished:
            return "the process that it was forked from died"
        how = f"signal {_signal_name(-self.code)}" if self.code < 0 else f"exit code {self.code}"
        lines = [line for line in (self.stderr or self.stdout).strip().splitlines() if line.strip()]
        return f"it ended with {how}" + (f"; its last line: {lines[-1][:300]}" if lines else "")


_REASONS: dict[str, Callable[[Limits], str]] = {
    "timeout": lambda limits: f"it ran out of time ({limits.timeout:g} s) and was ended",
    "memory": lambda limits: f"it held more than {limits.memory:,} bytes of memory and was ended",
    "output": lambda limits: f"it printed more than {limits.output or MOST_OUTPUT:,} bytes and was ended",
    "canceled": lambda _: "it was canceled",
    "released": lambda _: "its worker was asked to stop",
    "lost": lambda _: "its worker had lost the task",
}


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


class _Stream:
    """The last part of what a stream carried."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self.kept = b""

    def text(self) -> str:
        return self.kept[-KEPT_OUTPUT:].decode("utf-8", "replace")


class Watched:
    """A process that is being watched.

    Args:
        pid: the leader of a process group of its own.
        out: what it prints, as descriptors to read; ``err`` as well. Closed by `close`.
        now: seconds that only go forward.
    """

    def __init__(self, pid: int, out: int, err: int, limits: Limits, now: float) -> None:
        self.pid = pid
        self.reason: Reason | None = None
        self._streams = {"stdout": _Stream(out), "stderr": _Stream(err)}
        self._open = {out: self._streams["stdout"], err: self._streams["stderr"]}
        self._limits = limits
        self._printed = 0
        self._deadline = None if limits.timeout is None else now + limits.timeout
        self._next_look = now + _MEMORY_INTERVAL
        self._kill_at: float | None = None

    @property
    def descriptors(self) -> list[int]:
        """Streams that may still carry something."""
        return list(self._open)

    def read(self, descriptor: int) -> bool:
        """Takes what a stream carries; False when it has ended."""
        stream = self._open.get(descriptor)
        if stream is None:
            return False
        try:
            data = os.read(descriptor, 1 << 16)
        except BlockingIOError:
            return True
        except OSError:
            data = b""
        if not data:
            del self._open[descriptor]
            os.close(descriptor)
            return False
        self._printed += len(data)
        stream.kept = (stream.kept + data)[-2 * KEPT_OUTPUT :]
        return True

    def check(self, now: float) -> None:
        """Looks at the limits, and forces what was asked to end and did not."""
        if self._kill_at is not None:
            if now >= self._kill_at:
                signal_tree(self.pid, signal.SIGKILL)
            return
        if self._deadline is not None and now >= self._deadline:
            self.end("timeout", now)
        elif self._printed > (self._limits.output or MOST_OUTPUT):
            self.end("output", now)
        elif self._limits.memory is not None and now >= self._next_look:
            self._next_look = now + _MEMORY_INTERVAL
            if memory_of(self.pid) > self._limits.memory:
                self.end("memory", now)

    def end(self, reason: Reason, now: float) -> None:
        """Asks the tree to end; `check` kills it a moment later. The first reason counts."""
        if self._kill_at is not None:
            return
        self.reason = reason
        gentle = reason not in ("memory", "output")
        self._kill_at = now + (_GRACE if gentle else 0.0)
        signal_tree(self.pid, signal.SIGTERM if gentle else signal.SIGKILL)

    def due(self, now: float) -> float:
        """Seconds until `check` has something to do."""
        if self._kill_at is not None:
            return max(0.0, min(self._kill_at - now, 0.05))
        waits = [0.5]
        if self._deadline is not None:
            waits.append(self._deadline - now)
        if self._limits.memory is not None:
            waits.append(self._next_look - now)
        return max(0.0, min(waits))

    def close(self, code: int) -> Exit:
        """After the process has ended: ends what is left of its group, reads what is left of its output."""
        end_group(self.pid)
        for descriptor in list(self._open):
            for _ in range(64):  # a survivor may hold the stream open and fill it for ever
                before = self._printed
                if not self.read(descriptor) or self._printed == before:
                    break
            if descriptor in self._open:
                del self._open[descriptor]
                with suppress(OSError):
                    os.close(descriptor)
        return Exit(
            code=code,
            reason=self.reason,
            stdout=self._streams["stdout"].text(),
            stderr=self._streams["stderr"].text(),
        )


def last_changed(path: str) -> int:
    """When a file was last changed, ns; -1 for one that is not there."""
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - many of them, each time
    except OSError:
        return -1
