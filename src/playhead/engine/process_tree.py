"""Whole process trees: how to keep hold of one, and how to end it.

What a process starts may leave it: a daemon in a session of its own, whose parent is gone. On Linux the processes that
we start adopt such orphans (they are *subreapers*), so whatever came from them is found below them. Where that chain is
broken, because one of them was killed, the environment variable `MARK`, which every replay's processes inherit, tells.
"""

import ctypes
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import psutil

MARK = "PLAYHEAD_TASK"
"""Environment variable that holds the task which a process works for."""

_GRACE_SECONDS = 3.0
_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36


def adopt_orphans() -> bool:
    """Makes this process the parent of what its descendants leave behind. Linux only."""
    return _prctl(_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """Has this process killed when its parent ends; ends it at once when that has happened already. Linux only."""
    if _prctl(_SET_PDEATHSIG, signal.SIGKILL) and os.getppid() != parent:
        os._exit(1)


def _prctl(option: int, value: int) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    return ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) == 0


def children() -> list[int]:
    """The children of this process, adopted ones too."""
    found: list[int] = []
    try:
        for task in Path("/proc/self/task").iterdir():
            with suppress(FileNotFoundError):  # the thread has ended since
                found += [int(pid) for pid in (task / "children").read_text("ascii").split()]
    except OSError:
        with suppress(psutil.Error):
            return [process.pid for process in psutil.Process().children()]
    return found


def tree(pid: int) -> list[psutil.Process]:
    """A process and everything below it, the leaves first."""
    try:
        root = psutil.Process(pid)
        return [*reversed(root.children(recursive=True)), root]
    except psutil.NoSuchProcess:
        return []


def memory_of(pid: int) -> int:
    """Bytes that a tree holds in memory."""
    total = 0
    for process in tree(pid):
        with suppress(psutil.Error):
            total += process.memory_info().rss
    return total


def signal_tree(pid: int, number: int) -> None:
    """Sends a signal to a process, everything below it, and its process group."""
    for process in tree(pid):
        with suppress(psutil.Error):
            process.send_signal(number)
    _signal_group(pid, number)


def _signal_group(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def end_group(pid: int) -> None:
    """Kills what is left of the process group of a process that has ended."""
    _signal_group(pid, signal.SIGKILL)


def kill_tree(pid: int, *, group_only: bool = False) -> None:
    """Ends a process, everything it started, and its process group, and waits for that: first asked, then forced."""
    found = [] if group_only else tree(pid)
    for process in found:
        with suppress(psutil.Error):
            process.terminate()
    _, alive = psutil.wait_procs(found, timeout=_GRACE_SECONDS)
    for process in alive:
        with suppress(psutil.Error):
            process.kill()
    end_group(pid)


def end_marked(value: str, *, mark: str = MARK) -> list[int]:
    """Kills every process whose environment says that it belongs to ``value``; gives their ids.

    It reads the environment of every process of this user, so it is for what was left behind, not for every day.
    """
    ended: list[int] = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get(mark) == value:
                for one in tree(process.pid):
                    with suppress(psutil.Error):
                        one.kill()
                ended.append(process.pid)
    return ended
