"""Waiting until somebody has written to a store, without asking all the time.

A write of any process to the file that is looked at ends the wait (inotify; Linux only). The notice comes with the
write, which may be a moment before it can be read: who finds nothing new looks again soon.
"""

import ctypes
import os
import select
import sys
import threading
import weakref
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_IN_MODIFY = 0x2
_FLAGS = os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0)


class Notices:
    """What one waiter waits with; for one thread, but `wake`, which may be called from anywhere.

    Args:
        path: the file that every write goes to. Without one, or where the system tells nothing, only `wake` and the
            time end a wait.

    Attributes:
        tells: whether writes are told of. Otherwise who waits has to look often.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._woken = threading.Event()
        self._watch = None if path is None else _watch(path)
        self._pipe = os.pipe() if self._watch is not None else None
        if self._pipe is not None:
            for end in self._pipe:
                os.set_blocking(end, False)
            weakref.finalize(self, _close_all, self._pipe)  # not before: somebody may wake it at any moment
        self.tells = self._watch is not None

    def wait(self, seconds: float) -> bool:
        """Returns when something may have been written, when it was woken, or after a time; whether before that."""
        if self._watch is None or self._pipe is None:
            told = self._woken.wait(seconds)
        else:
            ready, _, _ = select.select([self._watch, self._pipe[0]], [], [], seconds)
            told = bool(ready)
            for descriptor in ready:
                with suppress(BlockingIOError):
                    os.read(descriptor, 1 << 16)
        self._woken.clear()
        return told

    def wake(self) -> None:
        """Ends the wait; one that has not begun yet too. Signal handlers may call it."""
        self._woken.set()
        if self._pipe is not None:
            with suppress(BlockingIOError):
                os.write(self._pipe[1], b"1")

    def close(self) -> None:
        """No more waiting; `wake` may still be called."""
        watch, self._watch = self._watch, None
        if watch is not None:
            os.close(watch)


def _close_all(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _watch(path: Path) -> int | None:
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor: int = libc.inotify_init1(_FLAGS)
    if descriptor < 0:
        return None
    if libc.inotify_add_watch(descriptor, os.fsencode(path), _IN_MODIFY) < 0:
        os.close(descriptor)
        return None
    return descriptor
