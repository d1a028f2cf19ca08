"""Calls tools in a process of their own, whatever they do to it. A call that takes too long is killed from here."""

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psutil

from playhead.core.fuzz.direct import Told
from playhead.core.values import JSON
from playhead.engine.process_tree import MARK, end_group, end_marked, tree
from playhead.errors import EntryPointError, UsageError

SECONDS: Final = 5.0
MEMORY: Final = 512 * 1024 * 1024
MOST_PROCESSES: Final = 50
_START_SECONDS: Final = 120.0
_END_SECONDS: Final = 10.0
_LOOK: Final = 0.05
_MOST_LINE: Final = 4 * 1024 * 1024


class UnknownToolError(Exception):
    """The factory has no such tool."""


@dataclass(slots=True)
class DirectTools:
    """The tools of a factory (``module:name``), each call in a fork of a process that is started when needed.

    Args:
        seconds: of each call.
        memory: bytes that a call may take beyond what its process has.
        folder: where the process starts; the module is found there.
    """

    entry_point: str
    seconds: float = SECONDS
    memory: int = MEMORY
    folder: Path = field(default_factory=Path.cwd)
    environment: Mapping[str, str] | None = None
    started: int = 0
    _process: "subprocess.Popen[bytes] | None" = None
    _answers: int = -1
    _buffer: bytes = b""

    def names(self) -> list[str]:
        """
        Raises:
            EntryPointError: the factory cannot be imported, or does not give its tools.
        """
        found = self._ask({"list": True}, self.seconds + _START_SECONDS)
        answer: dict[str, Any] = found.get("answer") or {}
        if answer.get("kind") != "names":
            raise EntryPointError(
                f"{self.entry_point} gives no tools: {_words(found)}",
                hint="a factory gives a dict of functions by name, a list of functions, or an object with methods",
            )
        return list(answer["names"])

    def call(self, tool: str, arguments: JSON) -> Told:
        """
        Raises:
            UnknownToolError: the factory has no such tool.
            EntryPointError: it cannot be imported.
        """
        found = self._ask({"tool": tool, "arguments": arguments}, self.seconds)
        if "hung" in found:
            return Told(kind="hung", text=str(found["hung"]))
        if "ended" in found:
            return Told(kind="ended", text=str(found["ended"]))
        answer: dict[str, Any] = found["answer"]
        if answer.get("kind") == "missing":
            raise UnknownToolError(tool)
        if answer.get("kind") not in ("value", "error", "raised"):
            return Told(kind="ended", text="it wrote where results go")
        return Told(
            kind=answer["kind"], text=str(answer.get("text", "")), classes=tuple(answer.get("classes", ())),
            own=bool(answer.get("own")), binding=bool(answer.get("binding")),
        )  # fmt: skip

    def close(self) -> None:
        """Ends the process and everything below it. May be called twice."""
        process, self._process = self._process, None
        if process is None:
            return
        _kill(process.pid)
        end_marked(self._mark)
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()
        process.wait()
        os.close(self._answers)
        self._answers, self._buffer = -1, b""

    def __enter__(self) -> "DirectTools":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # the process

    @property
    def _mark(self) -> str:
        return f"fuzz-{os.getpid()}-{id(self)}"

    def _ask(self, order: dict[str, Any], seconds: float) -> dict[str, Any]:
        if self._process is None:
            self._start()
        process = self._process
        assert process is not None
        assert process.stdin is not None
        deadline = time.monotonic() + seconds
        if not self._write(process, json.dumps(order).encode() + b"\n", deadline):
            self.close()
            return {"ended": "its process ended while it was given its arguments"}
        first = self._line(deadline)
        found = self._line(deadline) if "pid" in first else first
        if "hung" in found or "many" in found:
            self._end_fork(first.get("pid"))
        if "gone" in found:
            self.close()
        return found

    def _end_fork(self, pid: Any) -> None:
        """Kills the fork of a call with everything below it; the process as well where it does not go on then."""
        if isinstance(pid, int) and self._process is not None:
            _kill(pid)
            said = self._line(time.monotonic() + _END_SECONDS, most=None)
            if ("ended" in said or "answer" in said) and "gone" not in said and len(tree(self._process.pid)) == 1:
                return
        self.close()

    def _write(self, process: "subprocess.Popen[bytes]", data: bytes, deadline: float) -> bool:
        assert process.stdin is not None
        descriptor = process.stdin.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_WRITE)
            while data and time.monotonic() < deadline:
                if selector.select(_LOOK):
                    try:
                        data = data[os.write(descriptor, data[:65536]) :]
                    except BlockingIOError:
                        continue
                    except OSError:
                        return False
        return not data

    def _line(self, deadline: float, *, most: int | None = MOST_PROCESSES) -> dict[str, Any]:
        """The next answer; ``hung`` when none comes in time, ``ended`` when none can come, ``many`` when it is not
        waited for any longer because more than ``most`` processes run."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._answers, selectors.EVENT_READ)
            looked = time.monotonic()
            while b"\n" not in self._buffer:
                now = time.monotonic()
                if now >= deadline:
                    return {"hung": f"no result after {self.seconds:g} s"}
                if selector.select(min(_LOOK, deadline - now)):
                    data = os.read(self._answers, 65536)
                    self._buffer += data
                    if not data or len(self._buffer) > _MOST_LINE:
                        return {"ended": "the process that calls the tool was ended by it", "gone": True}
                elif most is not None and now - looked > 2 * _LOOK:
                    looked = now
                    if self._process is not None and len(tree(self._process.pid)) > most:
                        return {"ended": f"it started more than {most} processes", "many": True}
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            return json.loads(line)
        except ValueError:
            return {"ended": "it wrote where results go", "gone": True}

    def _start(self) -> None:
        mine, theirs = os.pipe()
        environment = dict(self.environment if self.environment is not None else os.environ)
        arguments = [str(theirs), self.entry_point, str(self.folder), str(self.memory), str(os.getpid())]
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "playhead.cli.fuzz_child", *arguments],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder,
                env={**environment, MARK: self._mark}, pass_fds=(theirs,), start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(theirs)
        assert self._process.stdin is not None
        os.set_blocking(self._process.stdin.fileno(), False)
        self._answers, self._buffer = mine, b""
        self.started += 1
        found = self._line(time.monotonic() + _START_SECONDS)
        if not found.get("ready"):
            self.close()
            raise EntryPointError(
                f"{self.entry_point} cannot be used: {_words(found)}",
                hint="name it as module:factory, or file.py:factory",
            )


def _words(found: Mapping[str, Any]) -> str:
    answer: Any = found.get("answer") or {}
    said = [found.get("failure"), found.get("ended"), found.get("hung"), answer.get("text")]
    return next((str(text) for text in said if text), "nothing is known of why")


def _kill(pid: int) -> None:
    """Kills a process and everything below it: all are stopped first, so that none starts another meanwhile."""
    for _ in range(20):
        found = tree(pid)
        for process in found:
            with suppress(psutil.Error):
                process.send_signal(signal.SIGSTOP)
        if len(tree(pid)) == len(found):
            break
    for process in tree(pid):
        group = process.pid
        with suppress(psutil.Error):
            process.kill()
        end_group(group)


def check_seconds(seconds: float) -> float:
    """
    Raises:
        UsageError: no time that a call can have.
    """
    if not 0 < seconds <= 600:
        raise UsageError(f"a call cannot have {seconds:g} seconds", hint="between 0 and 600; 5 is the default")
    return seconds
