"""`install()`: the public methods of ``mcp.ClientSession``."""

import functools
import inspect
from typing import Any

import mcp.types as types
from mcp import ClientSession
from mcp.client import stdio
from mcp.client.streamable_http import StreamableHTTPTransport

from playhead.adapters.mcp import over_http, recorded
from playhead.adapters.mcp.results import Results
from playhead.core.values import JSON
from playhead.engine import seam
from playhead.engine.calling import called_async, guarded, opened
from playhead.engine.patching import Activation, Patches
from playhead.errors import RecordingError

_START = "_create_platform_compatible_process"
"""A private name, by which the library starts every server that is a program."""
_SEND = "_handle_post_request"
"""A private name, by which the library sends every message over HTTP."""
_ASKED = {
    "call_tool": Results(types.CallToolResult),
    "read_resource": Results(types.ReadResourceResult),
    "get_prompt": Results(types.GetPromptResult),
}


def _hooks() -> dict[str, bool]:
    found = {f"ClientSession.{name}": name in vars(ClientSession) for name in (*_ASKED, "list_tools")}
    found[f"StreamableHTTPTransport.{_SEND}"] = _SEND in vars(StreamableHTTPTransport)
    return {**found, f"client.stdio.{_START}": callable(getattr(stdio, _START, None))}


def _wrap(patches: Patches) -> None:
    for name in _ASKED:
        patches.wrap(ClientSession, name, functools.partial(_asked, patches, name))
    for name in recorded.METHODS:
        asks = next((n for n in (f"send_{name}", name) if n in vars(ClientSession)), None)  # the second by the first
        if asks is not None:
            patches.wrap(ClientSession, asks, functools.partial(_listed, patches, name))
    patches.wrap(stdio, _START, functools.partial(_started, patches))
    patches.wrap(StreamableHTTPTransport, "__init__", functools.partial(over_http.made, patches))
    patches.wrap(StreamableHTTPTransport, _SEND, functools.partial(over_http.sent, patches))


def _asked(patches: Patches, name: str, original: Any) -> Any:
    """A request that does something in the world: a tool call, decided like any other."""
    signature = inspect.signature(original)

    @functools.wraps(original)
    async def asked(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not patches.active:
            return await original(self, *args, **kwargs)
        bound = signature.bind(self, *args, **kwargs).arguments
        tool, arguments = _call(name, bound)
        step = opened(tool, arguments, by="mcp", note=_about(self, tool))
        return await called_async(step, lambda: original(self, *args, **kwargs), _ASKED[name])

    return asked


def _started(patches: Patches, original: Any) -> Any:
    """The start of a server that is a program. In a replay in which nothing may go live, none is started."""

    @functools.wraps(original)
    async def started(command: str, args: Any, *more: Any, **named: Any) -> Any:
        if not patches.active:
            return await original(command, args, *more, **named)
        state = seam.replay_here()
        if state is not None and state.listings is not None:
            program = recorded.program_of(command, args)
            return recorded.Program(recorded.stand_in(state, program, told=command, verb="start"))
        recorded.PROGRAM.set(recorded.program_of(command, args))
        return await original(command, args, *more, **named)

    return started


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
                span.note(**recorded.about(active, self))
        if active is None or span is None:
            return await original(self, *args, **kwargs)
        stand_in: recorded.Answers | None = None
        with guarded(active, f"answering {name}"):
            stand_in = recorded.before(active, self, recorded.METHODS[name])
        try:
            with span.inside():
                result = _result(stand_in, name) if stand_in is not None else await original(self, *args, **kwargs)
        except BaseException as error:
            span.fail(error)
            raise
        with guarded(active, f"recording {name}"):
            raw = isinstance(result, dict)  # as the server said it
            span.returned(result if raw else result.model_dump(mode="json", by_alias=True, exclude_none=True))
        return result

    return listed


def _result(stand_in: recorded.Answers, name: str) -> Any:
    """The recorded result of a list, which a server that is connected already is not asked for."""
    reply: Any = stand_in.reply({"id": 0, "method": recorded.METHODS[name]})
    made: Any = getattr(types, "".join(word.title() for word in name.split("_")) + "Result")
    if "result" not in reply:
        raise RecordingError(reply["error"]["message"])
    return made.model_validate(reply["result"])


_activation = Activation("mcp", "adapter-mcp.md", hooks=_hooks, wrap=_wrap)
install, uninstall, is_installed = _activation.install, _activation.uninstall, _activation.is_installed
