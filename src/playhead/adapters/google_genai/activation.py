# pyright: reportMissingImports=false
"""`install()`: the functions that clients of google-genai call by themselves.

Two private names, both looked for when they are wrapped: ``_extra_utils.get_function_map``, from which models and chats
take the function for a call, and ``BaseApiClient._use_aiohttp``, which chooses the library that sends.
"""

import functools
import threading
from typing import Any

from google.genai import _api_client, _extra_utils, chats, models

from playhead.core.canonical import to_stored
from playhead.core.values import Outcome, OutcomeKind
from playhead.engine import seam
from playhead.engine.binding import lowered
from playhead.engine.calling import Patches, Shape, gated, require

_lock = threading.Lock()
_state: dict[str, Patches] = {}


class _Results(Shape):
    """The client only writes a result into the next request: records are kept as the plain objects that it writes."""

    def outcome(self, result: Any) -> Outcome | None:
        return Outcome(kind=OutcomeKind.VALUE, value=to_stored(result, lower=lowered))


_RESULTS = _Results()


def install() -> None:
    """Sees every client while a session of ours is open. Calling it again changes nothing.

    Raises:
        RecordingError: this version of the library has not the hooks that it takes.
    """
    with _lock:
        if "patches" in _state:
            return
        client: Any = getattr(_api_client, "BaseApiClient", None)
        found = {
            "_extra_utils.get_function_map": callable(getattr(_extra_utils, "get_function_map", None)),
            "models._extra_utils": getattr(models, "_extra_utils", None) is _extra_utils,
            "chats._extra_utils": getattr(chats, "_extra_utils", _extra_utils) is _extra_utils,
            "BaseApiClient._use_aiohttp": "_use_aiohttp" in getattr(client, "__dict__", {}),
        }
        require("google-genai", "adapter-google-genai.md", found)
        patches = _state["patches"] = Patches()
        patches.replace(_extra_utils, "get_function_map", functools.partial(_mapped, patches))
        patches.replace(client, "_use_aiohttp", functools.partial(_sending, patches))


def uninstall() -> None:
    """Undoes `install`."""
    with _lock:
        patches = _state.pop("patches", None)
        if patches is not None:
            patches.undo()


def is_installed() -> bool:
    return "patches" in _state


def _mapped(patches: Patches, original: Any) -> Any:
    @functools.wraps(original)
    def get_function_map(*args: Any, **kwargs: Any) -> Any:
        found = original(*args, **kwargs)
        if not patches.active or (seam.current() is None and seam.replay_here() is None):
            return found
        return {name: _gate(function, name) for name, function in found.items()}

    return get_function_map


def _gate(function: Any, name: str) -> Any:
    """A tool of an MCP server is left as it is: its session has a seam of its own."""
    return gated(function, name, _RESULTS) if callable(function) else function


def _sending(patches: Patches, original: Any) -> Any:
    @functools.wraps(original)
    def _use_aiohttp(self: Any) -> bool:
        return bool(original(self)) and not (patches.active and seam.current() is not None)

    return _use_aiohttp
