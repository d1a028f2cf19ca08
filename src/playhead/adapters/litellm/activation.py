# pyright: basic, reportMissingImports=false
"""`install()`: looks after each completion whether the wire has seen a request for it."""

import functools
import sys
from typing import Any

import litellm
from litellm.llms.custom_httpx import http_handler

from playhead.engine.patching import Activation, Patches
from playhead.engine.unseen import watched

_NAMES = ("completion", "acompletion", "responses", "aresponses")


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
            watching = functools.partial(watched, patches, by="litellm", told=_told, answered=_made_here)
            patches.wrap(litellm, name, watching)


def _sends_through_httpx() -> bool:
    """Whether the handlers of requests are made on a library whose clients the wire wraps."""
    return any(getattr(http_handler, name, None) is sys.modules.get(name, http_handler) for name in ("httpx", "httpx2"))


def _told(*args: Any, **kwargs: Any) -> str:
    model = str(kwargs.get("model") or next(iter(args), "?"))
    return f"LiteLLM asked {model!r} in a form that the wire does not know: the model call is not in the recording"


def _made_here(result: Any, *args: Any, **kwargs: Any) -> bool:
    """Whether no provider was asked: a cache answered, or the caller gave the answer."""
    hidden: Any = getattr(result, "_hidden_params", None) or {}
    return bool(kwargs.get("mock_response")) or bool(hidden.get("cache_hit"))


_activation = Activation("litellm", "adapter-litellm.md", hooks=_hooks, wrap=_wrap)
install, uninstall, is_installed = _activation.install, _activation.uninstall, _activation.is_installed
