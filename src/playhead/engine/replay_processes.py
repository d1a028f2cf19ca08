"""Processes that the agent of a replay starts: no tape is there to answer, so neither agents nor tools run in them.

A process with a running replay keeps a file that is named after it. What descends from it finds the file by its
ancestors (where there is ``/proc``), or by the environment variable that it inherits; it stops what the policies do
not let run live, and says in the file what it was refused and what it ran. The replay reads that when it is settled.

A file names the process, not the replay: workers that outlive one replay are asked about the next one, or run as ever.
"""

import atexit
import json
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, cast

from playhead.core.policy import ToolPolicy
from playhead.core.values import LedgerRow
from playhead.engine.clock import SYSTEM_CLOCK
from playhead.engine.replay_threads import POOLS
from playhead.engine.replaying import ReplayState
from playhead.errors import RecordingError, ReplayStop

VARIABLE = "PLAYHEAD_INSIDE_REPLAY"
_INHERITED = os.environ.get(VARIABLE)
_COARSE = 1_000_000_000  # nanoseconds
_LONGEST = 300  # characters of what is told; short lines are appended whole
_MOST_BYTES = 256 * 1024  # of a file: an agent that never stops asking fills no disk
_OLD_SECONDS, _SWEEP_SECONDS = 24 * 3600, 600

_lock = threading.Lock()
_running: list[ReplayState] = []


class Told(NamedTuple):
    """What a process said: ``by`` as in the ledger, ``stopped``, ``live``, or ``blocked`` for a connection."""

    by: str
    tool: str | None
    detail: str


# the process of the replay


def enter(state: ReplayState) -> None:
    """Lets every process that is started from now on know of the replay.

    Raises:
        RecordingError: there is no place to say so.
    """
    with _lock:
        path = _own_path()
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            _own(path.parent)
            if not _running:
                _sweep(path.parent)
                path.unlink(missing_ok=True)  # of an earlier process by this number
                atexit.unregister(_remove)
                atexit.register(_remove, path, os.getpid())  # for replays that last as long as their process
            _append(path, {"on": id(state), "live": _live(state.policy)}, create=True)
        except OSError as error:
            raise RecordingError(
                f"cannot write {str(path)!r}, by which processes of the agent know that this is a replay: {error}",
                hint="make the folder for temporary files writable",
            ) from error
        _running.append(state)
        os.environ[VARIABLE] = os.pathsep.join(filter(None, [str(path), _INHERITED]))


def leave(state: ReplayState) -> None:
    """The replay is over."""
    with _lock, suppress(ValueError, OSError):
        _running.remove(state)
        if _running:
            _append(_own_path(), {"off": id(state)})
            return
        if _INHERITED is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = _INHERITED
        _own_path().unlink()


def listen(state: ReplayState) -> None:
    """Puts what the processes of a replay said so far into its ledger; what one was refused fails the replay."""
    for row in _heard(state):
        if row not in state.ledger:
            state.note(row)
            if row.by == "stopped":
                state.stop(RecordingError(str(row.detail), hint="a replay answers calls of its own process only"))


def end_process() -> None:
    """At the end of a process that exists for a replay: what the agent left running ends, then the file goes."""
    from playhead.engine.process_tree import children, signal_tree  # stands on psutil, which is slow to load

    for child in children():
        signal_tree(child, signal.SIGKILL)
    with suppress(OSError):
        _own_path().unlink()


def _heard(state: ReplayState) -> list[LedgerRow]:
    lines = list(_lines(_own_path()))
    begun = next((n for n, line in enumerate(lines) if line.get("on") == id(state)), len(lines))
    told = dict.fromkeys(Told(*line["told"]) for line in lines[begun:] if "told" in line)
    return [
        LedgerRow(kind="egress" if one.by == "blocked" else "tool", by=cast("Any", one.by), tool=one.tool,
                  detail=one.detail)
        for one in told
    ]  # fmt: skip


def _remove(path: Path, pid: int) -> None:
    if os.getpid() == pid:
        path.unlink(missing_ok=True)


def _live(policy: ToolPolicy) -> dict[str, Any]:
    return {
        "default": policy.default.type == "passthrough",
        "tools": {name: config.type == "passthrough" for name, config in policy.tools.items()},
    }


def _sweep(folder: Path) -> None:
    """Removes what killed replays left behind, now and then: it looks at every file."""
    newest, swept = folder.stat().st_mtime, folder / ".swept"
    with suppress(OSError):
        if newest - swept.stat().st_mtime < _SWEEP_SECONDS:
            return
    swept.touch(0o600)
    for path in folder.iterdir():
        with suppress(OSError):
            gone = not Path("/proc", path.name.partition("-")[0]).exists()
            if gone and newest - path.stat().st_mtime > _OLD_SECONDS:
                path.unlink()


# a process of its agent


def refuse(what: str, tool: str | None = None) -> bool:
    """Stops ``what`` in a process that the agent of a replay started; gives whether a replay lets it run live.

    Raises:
        ReplayStop: this is one, and the tool must not run live.
    """
    place = _Place.now()
    if place is not None and [place] == _empty:
        return False
    found = [(path, live) for path in _above() if (live := _live_at(path))]
    if not found:
        if _INHERITED is not None and not _of_multiprocessing():
            raise _stop(f"{what} in a process that the agent of a replay started, which is over")
        if place is not None and place.is_settled():
            _empty[:] = [place]
        return False
    if tool is not None and all(each["tools"].get(tool, each["default"]) for _, live in found for each in live):
        told = Told("live", tool, f"in another process, {os.getpid()}")
    else:
        told = Told("stopped", tool, f"{what} in a process that the agent of a replay started"[:_LONGEST])
    for path, _ in found:
        tell(path, told)
    if told.by == "stopped":
        raise _stop(f"{told.detail}, where nothing can answer it")
    return True


class _Place(NamedTuple):
    """Where files of replays above would be found: who looks, and when a file last came or went, in nanoseconds.

    Calls outside any session ask each time whether a replay began above; mostly none did, and nothing came or went
    since the last look. Where the environment names a file there is no short way.
    """

    pid: int
    parent: int
    changed: int

    @classmethod
    def now(cls) -> "_Place | None":
        if _INHERITED is not None or VARIABLE in os.environ:
            return None
        try:
            changed = os.stat(_folder_of(_user())).st_mtime_ns  # noqa: PTH116 - asked at every call
        except OSError:
            changed = 0
        return cls(os.getpid(), os.getppid(), changed)

    def is_settled(self) -> bool:
        """Whether a file that comes from now on is sure to change the time: clocks of file systems are coarse."""
        return SYSTEM_CLOCK.now() - self.changed > _COARSE


_empty: list[_Place] = []
"""The place as it was when nothing was found there."""


def tell_above(told: Told) -> None:
    """Lets the replays of the processes above know."""
    for path in _above():
        tell(path, told)


def serves_others() -> bool:
    """Whether this forked process is a pool's and runs what anybody gives it, whatever it was inside of when forked."""
    process: Any = getattr(sys.modules.get("multiprocessing.process"), "_current_process", None)
    return str(getattr(getattr(process, "_target", None), "__module__", "")) in POOLS


def tell(path: Path, told: Told) -> None:
    """Appends to the file of a replay's process, where it still exists."""
    with suppress(OSError):
        if path.stat().st_size < _MOST_BYTES:
            _append(path, {"told": told})


def _stop(message: str) -> ReplayStop:
    return ReplayStop(RecordingError(message, hint="let the tool run live with a passthrough policy, or not at all"))


def _of_multiprocessing() -> bool:
    return getattr(sys.modules.get("multiprocessing.process"), "_parent_process", None) is not None


def _above() -> list[Path]:
    """Files that this process may descend from."""
    folder = _folder()
    found = [folder / name for name in _ancestors(os.getpid(), os.getppid())] if folder.is_dir() else []
    named = os.environ.get(VARIABLE) or _INHERITED or ""
    found += [Path(name) for name in named.split(os.pathsep) if name]
    return [path for path in dict.fromkeys(found) if path != folder / _own_name(os.getpid())]


def _live_at(path: Path) -> list[dict[str, Any]]:
    """What may run live in each replay that runs in a process."""
    running: dict[int, dict[str, Any]] = {}
    for line in _lines(path):
        if "on" in line:
            running[line["on"]] = line["live"]
        elif "off" in line:
            running.pop(line["off"], None)
    return list(running.values())


# the file of a process


def _folder() -> Path:
    """Found alike by processes whose environment says something else about temporary files."""
    return _folder_of(_user())


def _user() -> int:
    return os.geteuid() if hasattr(os, "geteuid") else 0


@lru_cache(maxsize=4)
def _folder_of(user: int) -> Path:
    place = "/tmp" if sys.platform.startswith("linux") and os.access("/tmp", os.W_OK) else tempfile.gettempdir()
    return Path(place) / f"playhead-replays-{user}"


def _own_path() -> Path:
    return _folder() / _own_name(os.getpid())


@lru_cache(maxsize=4)
def _own_name(pid: int) -> str:
    return _name(pid)[0]


@lru_cache(maxsize=4)
def _ancestors(pid: int, parent: int) -> Sequence[str]:
    found: list[str] = []
    while parent > 1 and len(found) < 100:
        name, parent = _name(parent)
        found.append(name)
    return found


def _name(pid: int) -> tuple[str, int]:
    """A name that no other process ever has (its number and when it started), and its parent."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return f"{pid}-0", 0
    return f"{pid}-{fields[19]}", int(fields[1])


def _append(path: Path, line: dict[str, Any], *, create: bool = False) -> None:
    flags = os.O_WRONLY | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | (os.O_CREAT if create else 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        os.write(descriptor, json.dumps(line).encode() + b"\n")
    finally:
        os.close(descriptor)


def _own(folder: Path) -> None:
    """Raises OSError where the folder is somebody else's: anybody may have made it before us."""
    if hasattr(os, "geteuid") and (folder.is_symlink() or folder.stat().st_uid != os.geteuid()):
        raise PermissionError(f"{folder} belongs to somebody else")


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        text = path.read_text("utf-8")
    except OSError:
        return
    for line in text.splitlines():
        with suppress(ValueError):
            yield json.loads(line)


def _after_fork_in_child() -> None:
    """The replays go on in the parent."""
    global _lock
    _lock = threading.Lock()
    _running.clear()


os.register_at_fork(after_in_child=_after_fork_in_child)
