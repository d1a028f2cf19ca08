"""`install()`: the public methods of ``mcp.ClientSession``."""

import functools
import inspect
import threading
from typing import Any

import mcp.types as types
from mcp import ClientSession

from playhead.adapters.mcp.results import Results
from playhead.core.values import JSON
from playhead.engine import seam
from playhead.engine.calling import Patches, called_async, guarded, opened, require

PAGE = "adapter-mcp.md"
_ASKED = {
    "call_tool": Results(types.CallToolResult),
    "read_resource": Results(types.ReadResourceResult),
    "get_prompt": Results(types.GetPromptResult),
}
_LISTED = (
    "initialize", "discover", "list_tools", "list_resources", "list_resource_templates", "list_prompts", "complete",
)  # fmt: skip

_lock = threading.Lock()
_state: dict[str, Patches] = {}


def install() -> None:
    """Sees every client session while a session of ours is open. Calling it again changes nothing.

    Raises:
        RecordingError: this version of the library has not the methods that it takes.
    """
    with _lock:
        if "patches" in _state:
            return
        require("mcp", PAGE, {f"ClientSession.{n}": n in vars(ClientSession) for n in (*_ASKED, "list_tools")})
        patches = _state["patches"] = Patches()
        for name in _ASKED:
            patches.replace(ClientSession, name, functools.partial(_asked, patches, name))
        for name in _LISTED:
            if name in vars(ClientSession):
                patches.replace(ClientSession, name, functools.partial(_listed, patches, name))


def uninstall() -> None:
    """Undoes `install`."""
    with _lock:
        patches = _state.pop("patches", None)
        if patches is not None:
            patches.undo()


def is_installed() -> bool:
    return "patches" in _state


def _asked(patches: Patches, name: str, original: Any) -> Any:
    """A request that does something in the world: a tool call, decided like any other."""
    signature = inspect.signature(original)

    @functools.wraps(original)
    async def asked(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not patches.active:
            return await original(self, *args, **kwargs)
        bound = signature.bind(self, *args, **kwargs).arguments
        tool, arguments = _call(name, bound)
        step = opened(tool, arguments, note=_about(self, tool))
        return await called_async(step, lambda: original(self, *args, **kwargs), _ASKED[name])

    return asked


def _call(name: str, bound: dict[str, Any]) -> tuple[str, Any]:
    """Name and arguments of the call. Tools go by their own name, as the model saw it."""
    if name == "call_tool":
        return str(bound.get("name")), dict(bound.get("arguments") or {})
    if name == "get_prompt":
        return "prompts/get", {"name": bound.get("name"), "arguments": dict(bound.get("arguments") or {})}
    return "resources/read", {"uri": str(bound.get("uri"))}


def _about(session: Any, tool: str) -> dict[str, JSON]:
    """Attributes of a call: the tool's bare name, and the server's, where the library has kept the handshake."""
    name = getattr(getattr(session, "server_info", None), "name", None)
    return {"bare_tool": tool, **({"server": name} if isinstance(name, str) else {})}


def _listed(patches: Patches, name: str, original: Any) -> Any:
    """A handshake or a listing: a span."""

    @functools.wraps(original)
    async def listed(self: Any, *args: Any, **kwargs: Any) -> Any:
        active = seam.current() if patches.active else None
        span: seam.SpanStep | None = None
        if active is not None:
            with guarded(active, f"recording {name}"):
                span = active.span(f"mcp {name}", [str(a) for a in args])
        if active is None or span is None:
            return await original(self, *args, **kwargs)
        try:
            with span.inside():
                result = await original(self, *args, **kwargs)
        except BaseException as error:
            span.fail(error)
            raise
        with guarded(active, f"recording {name}"):
            span.returned(result.model_dump(mode="json", by_alias=True, exclude_none=True))
        return result

    return listed
