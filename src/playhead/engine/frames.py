"""Where a thread or task is inside a session: one context variable.

A frame is an `ActiveSession` (directly inside the run) or the step whose body is running. Both have ``active``, the
session. Threads and tasks that were started without a copy of the context have no frame; `engine.context` then falls
back on the only session of the process.
"""

from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any

FRAME: ContextVar[Any] = ContextVar("playhead_frame", default=None)


class Inside:
    """Enters a frame for the length of a ``with`` block. Reusable one after the other, not nested."""

    __slots__ = ("_frame", "_token")

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self._token: Token[Any] | None = None

    def __enter__(self) -> None:
        self._token = FRAME.set(self._frame)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        leave(self._token)
        self._token = None


def leave(token: Token[Any] | None) -> None:
    """Undoes a `set`; harmless where another context does it (a generator that was finalized elsewhere)."""
    if token is None:
        return
    try:
        token.var.reset(token)
    except ValueError:
        return
