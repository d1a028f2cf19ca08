# pyright: basic, reportMissingImports=false
"""`install()`: looks after each completion whether the wire has seen a request for it."""

import functools
import inspect
import logging
import sys
from typing import Any
from weakref import finalize

import litellm
from litellm.llms.custom_httpx import http_handler

from playhead.core.values import NodeKind
from playhead.engine import seam
from playhead.engine.frames import FRAME
from playhead.engine.patching import Activation, Patches
from playhead.errors import RecordingError, ReplayStop

log = logging.getLogger("playhead")
_NAMES = ("completion", "acompletion", "responses", "aresponses")
_warned: set[str] = set()


def _hooks() -> dict[str, bool]:
    handler: Any = getattr(http_handler, "HTTPHandler", None)
    return {
        "completion": callable(getattr(litellm, "completion", None)),
        "acompletion": callable(getattr(litellm, "acompletion", None)),
        "HTTPHandler": handler is not None and hasattr(http_handler, "AsyncHTTPHandler"),
        "HTTPHandler on httpx": _sends_through_httpx(),
    }


def _wrap(patches: Patches) -> None:
    for name in _NAMES:
        if name in vars(litellm):
            patches.wrap(litellm, name, functools.partial(_watched, patches))


def _sends_through_httpx() -> bool:
    """Whether the handlers of requests are made on a library whose clients the wire wraps."""
    return any(getattr(http_handler, name, None) is sys.modules.get(name, http_handler) for name in ("httpx", "httpx2"))


def _watched(patches: Patches, original: Any) -> Any:
    if inspect.iscoroutinefunction(original):

        @functools.wraps(original)
        async def watched_async(*args: Any, **kwargs: Any) -> Any:
            look = _Look(patches)
            result = await original(*args, **kwargs)
            return look.after(result, args, kwargs)

        return watched_async

    @functools.wraps(original)
    def watched(*args: Any, **kwargs: Any) -> Any:
        look = _Look(patches)
        result = original(*args, **kwargs)
        # the asynchronous entry calls this one, and awaits what it gives
        return result if inspect.isawaitable(result) else look.after(result, args, kwargs)

    return watched


class _Look:
    """How many model calls the session had before a completion."""

    __slots__ = ("_active", "_before")

    def __init__(self, patches: Patches) -> None:
        self._active = seam.current() if patches.active and not isinstance(FRAME.get(), seam.ModelStep) else None
        if self._active is not None:
            self._active.met("litellm")
        self._before = self._seen()

    def _seen(self) -> int:
        return 0 if self._active is None else self._active.calls_seen[NodeKind.MODEL_CALL]

    def after(self, result: Any, args: Any, kwargs: Any) -> Any:
        """Gives the result back, and says so when it came without a request that the wire has seen.

        Some streams send their request when they are first read: those are looked at once they are done with.

        Raises:
            ReplayStop: in a replay.
        """
        if self._active is None or _made_here(result, kwargs):
            return result
        model = str(kwargs.get("model") or next(iter(args), "?"))
        if kwargs.get("stream"):
            finalize(result, self._tell, model).atexit = False
        elif stop := self._tell(model):
            raise stop
        return result

    def _tell(self, model: str) -> ReplayStop | None:
        active = self._active
        if active is None or self._seen() > self._before:
            return None
        told = f"LiteLLM asked {model!r} in a form that the wire does not know: the model call is not in the recording"
        if active.replay is not None:
            return active.replay.stop(RecordingError(told, hint="docs/adapter-litellm.md names what is seen"))
        if model not in _warned:
            _warned.add(model)
            log.warning("playhead: %s", told)
        return None


def _made_here(result: Any, kwargs: Any) -> bool:
    """Whether no provider was asked: a cache answered, or the caller gave the answer."""
    hidden: Any = getattr(result, "_hidden_params", None) or {}
    return bool(kwargs.get("mock_response")) or bool(hidden.get("cache_hit"))


_activation = Activation("litellm", "adapter-litellm.md", hooks=_hooks, wrap=_wrap)
install, uninstall, is_installed = _activation.install, _activation.uninstall, _activation.is_installed
