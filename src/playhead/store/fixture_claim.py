"""One process at a time moves files into a set: a claim is a file that is there whole or not at all."""

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import psutil

from playhead.core.protocol.shape import is_object
from playhead.core.values import JSON
from playhead.errors import FixtureBusyError

_NAME = ".claim"
_WAIT = 30.0
_PAUSE = 0.05


@contextmanager
def claimed(place: Path, *, wait: float = _WAIT, sleep: Callable[[float], None] = time.sleep) -> Generator[None]:
    """Holds the claim of a folder for the block; the claim of a process of this host that has ended is taken over.

    Raises:
        FixtureBusyError: another process kept it for as long as ``wait`` seconds.
    """
    path = place / _NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    mine = {"host": socket.gethostname(), "pid": os.getpid(), "at": _started(os.getpid())}
    fresh = path.with_name(f"{_NAME}.{os.getpid()}.{threading.get_ident()}")
    fresh.write_text(json.dumps(mine))
    left = wait
    try:
        while not _linked(fresh, path):
            if _is_abandoned(path):
                path.unlink(missing_ok=True)
            elif left <= 0:
                raise FixtureBusyError(f"{place} is being written by {_owner(path)}", hint="wait for it, or end it")
            else:
                left -= _PAUSE
                sleep(_PAUSE)
    finally:
        fresh.unlink(missing_ok=True)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _linked(fresh: Path, path: Path) -> bool:
    try:
        os.link(fresh, path)
    except FileExistsError:
        return False
    return True


def _started(pid: int) -> float | None:
    """When a process began, which tells it from a later one of the same number."""
    try:
        return psutil.Process(pid).create_time()
    except psutil.Error:
        return None


def _is_abandoned(path: Path) -> bool:
    """Whether the process of a claim has ended; one of another host, or one not readable yet, has not."""
    claim = _read(path)
    if claim is None or claim.get("host") != socket.gethostname():
        return False
    started = _started(int(claim.get("pid", 0)))
    return started is None or abs(started - float(claim.get("at") or started)) > 1


def _read(path: Path) -> dict[str, JSON] | None:
    try:
        claim = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return claim if is_object(claim) else None


def _owner(path: Path) -> str:
    claim = _read(path) or {}
    return f"process {claim.get('pid', 'unknown')} on {claim.get('host', 'an unknown host')}"
