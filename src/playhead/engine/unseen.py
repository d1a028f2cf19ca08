"""Whether the wire has seen a request for what a client library was asked: a look before, and one after."""

import functools
import inspect
import logging
from collections.abc import Callable
from typing import Any
from weakref import finalize

from playhead.core.values import NodeKind
from playhead.engine import seam
from playhead.engine.frames import FRAME
from playhead.engine.patching import Patches
from playhead.errors import RecordingError, ReplayStop

log = logging.getLogger("playhead")
_warned: set[str] = set()


def watched(
    patches: Patches, original: Any, *, by: str, told: Callable[..., str], answered: Callable[..., bool] | None = None
) -> Any:
    """A function of a client library, plain or async, that says so when no request of it was seen.

    It warns once for each text, and stops a replay. Some streams send their request when they are first read: they
    are looked at once they are done with.

    Args:
        by: the adapter that asks.
        told: what is said, from the arguments of the call.
        answered: whether nobody had to be asked, from the result and the arguments.
    """

    def after(look: _Look, result: Any, args: Any, kwargs: Any) -> Any:
        if look.active is None or (answered is not None and answered(result, *args, **kwargs)):
            return result
        text = told(*args, **kwargs)
        if kwargs.get("stream") or inspect.isgenerator(result) or inspect.isasyncgen(result):
            finalize(result, look.tell, text).atexit = False
        elif stop := look.tell(text):
            raise stop
        return result

    if inspect.iscoroutinefunction(original):

        @functools.wraps(original)
        async def watched_async(*args: Any, **kwargs: Any) -> Any:
            look = _Look(patches, by)
            return after(look, await original(*args, **kwargs), args, kwargs)

        return watched_async

    @functools.wraps(original)
    def watched(*args: Any, **kwargs: Any) -> Any:
        look = _Look(patches, by)
        result = original(*args, **kwargs)
        # an asynchronous entry may call this one, and awaits what it gives
        return result if inspect.isawaitable(result) else after(look, result, args, kwargs)

    return watched


class _Look:
    """How many model calls the session had before a request."""

    __slots__ = ("_before", "active")

    def __init__(self, patches: Patches, by: str) -> None:
        self.active = seam.current() if patches.active and not isinstance(FRAME.get(), seam.ModelStep) else None
        if self.active is not None:
            self.active.met(by)
        self._before = self._seen()

    def _seen(self) -> int:
        return 0 if self.active is None else self.active.calls_seen[NodeKind.MODEL_CALL]

    def tell(self, text: str) -> ReplayStop | None:
        """Warns, where a request came without a model call; in a replay gives the stop."""
        if self.active is None or self._seen() > self._before:
            return None
        if self.active.replay is not None:
            return self.active.replay.stop(
                RecordingError(text, hint="the adapter's page under docs/ names what is seen")
            )
        if text not in _warned:
            _warned.add(text)
            log.warning("playhead: %s", text)
        return None
