# pyright: reportMissingImports=false
"""`install()`: the functions that clients of google-genai call by themselves; and whether the wire saw what models were
asked.

Two private names, both looked for when they are wrapped: ``_extra_utils.get_function_map``, from which models and chats
take the function for a call, and ``BaseApiClient._use_aiohttp``, which chooses the library that sends.
"""

import functools
from typing import Any

from google.genai import _api_client, _extra_utils, chats, models

from playhead.core.canonical import to_stored
from playhead.core.values import Outcome, OutcomeKind
from playhead.engine import seam
from playhead.engine.binding import lowered
from playhead.engine.calling import Shape, gated
from playhead.engine.patching import Activation, Patches
from playhead.engine.unseen import watched


class _Results(Shape):
    """The client only writes a result into the next request: records are kept as the plain objects that it writes."""

    def outcome(self, result: Any) -> Outcome | None:
        return Outcome(kind=OutcomeKind.VALUE, value=to_stored(result, lower=lowered))


_RESULTS = _Results()


_CLIENT: Any = getattr(_api_client, "BaseApiClient", None)


def _hooks() -> dict[str, bool]:
    return {
        "_extra_utils.get_function_map": callable(getattr(_extra_utils, "get_function_map", None)),
        "models._extra_utils": getattr(models, "_extra_utils", None) is _extra_utils,
        "chats._extra_utils": getattr(chats, "_extra_utils", _extra_utils) is _extra_utils,
        "Models.generate_content": hasattr(models.Models, "generate_content"),
        "AsyncModels.generate_content": hasattr(models.AsyncModels, "generate_content"),
        "BaseApiClient._use_aiohttp": "_use_aiohttp" in getattr(_CLIENT, "__dict__", {}),
    }


def _wrap(patches: Patches) -> None:
    for owner in (models.Models, models.AsyncModels):
        for name in ("generate_content", "generate_content_stream"):
            patches.wrap(owner, name, functools.partial(watched, patches, by="google_genai", told=_told))
    patches.wrap(_extra_utils, "get_function_map", functools.partial(_mapped, patches))
    patches.wrap(_CLIENT, "_use_aiohttp", functools.partial(_sending, patches))


def _told(*args: Any, **kwargs: Any) -> str:
    model = str(kwargs.get("model"))
    return f"google-genai asked {model!r} in a way that the wire does not see: the model call is not in the recording"


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
    return gated(function, name, _RESULTS, by="google_genai") if callable(function) else function


def _sending(patches: Patches, original: Any) -> Any:
    @functools.wraps(original)
    def _use_aiohttp(self: Any) -> bool:
        return bool(original(self)) and not (patches.active and seam.current() is not None)

    return _use_aiohttp


_activation = Activation("google-genai", "adapter-google-genai.md", hooks=_hooks, wrap=_wrap)
install, uninstall, is_installed = _activation.install, _activation.uninstall, _activation.is_installed
