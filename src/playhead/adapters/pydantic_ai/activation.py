"""`install()`: every agent of the process is seen, without a change to its code."""

import functools
import threading
from typing import Any

from pydantic_ai import Agent

from playhead.adapters.pydantic_ai.capability import Playhead, check, is_present
from playhead.engine import seam
from playhead.engine.zero_code import sessions_wanted

_lock = threading.Lock()


def install() -> None:
    """Wraps the public `Agent.iter`, through which every way to run an agent goes.

    Does nothing to an agent that has the capability already; whether runs outside a session open one of their own is
    for `engine.zero_code` to say. Calling it again changes nothing.

    Raises:
        RecordingError: this version of the framework lacks a hook that recording takes.
    """
    with _lock:
        if not is_installed():
            check()
            Agent.iter = _wrapped(Agent.iter)


def uninstall() -> None:
    """Undoes `install`. Runs that have started keep what they have."""
    with _lock:
        if is_installed():
            Agent.iter = Agent.iter.__wrapped__  # pyright: ignore[reportFunctionMemberAccess]


def is_installed() -> bool:
    return getattr(Agent.iter, "__playhead__", False) is True


def _wrapped(original: Any) -> Any:
    def iter(self: Agent[Any, Any], *args: Any, **kwargs: Any) -> Any:
        if _wanted(self, kwargs):
            kwargs["capabilities"] = [*(kwargs.get("capabilities") or ()), Playhead()]
        return original(self, *args, **kwargs)

    wrapped: Any = functools.wraps(original)(iter)
    wrapped.__playhead__ = True
    return wrapped


def _wanted(agent: Agent[Any, Any], kwargs: dict[str, Any]) -> bool:
    if is_present(agent, kwargs.get("capabilities")):
        return False
    return seam.is_seen(wanted=sessions_wanted())
