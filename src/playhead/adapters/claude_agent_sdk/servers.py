"""SDK MCP servers as plain values, from which every query gets a server of its own."""

from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from claude_agent_sdk import McpSdkServerConfig, SdkMcpTool, create_sdk_mcp_server

from playhead.core.protocol.shape import is_object
from playhead.errors import RefusedError

_CALL_ID = "claudecode/toolUseId"
_METHOD = "tools/call"

Around = Callable[[str, str | None, dict[str, Any], Callable[[Any], Awaitable[Any]]], Awaitable[Any]]
"""``around(identity, call id, arguments, handler)``: what runs in place of a handler."""

_call_id: ContextVar[str | None] = ContextVar("playhead_claude_call", default=None)


@dataclass(frozen=True, slots=True)
class ReplayableSdkMcpServer:
    """An in-process MCP server whose tools a replay can answer. Made by `replayable_sdk_mcp_server`."""

    name: str
    tools: tuple[SdkMcpTool[Any], ...]
    version: str = "1.0.0"

    @property
    def identities(self) -> tuple[str, ...]:
        """The names under which Claude knows the tools."""
        return tuple(f"mcp__{self.name}__{tool.name}" for tool in self.tools)


def replayable_sdk_mcp_server(
    *, name: str, tools: Sequence[SdkMcpTool[Any]], version: str = "1.0.0"
) -> ReplayableSdkMcpServer:
    """Defines a server. Nothing runs; pass it to every query that may use its tools.

    Raises:
        ValueError: the name is empty, or two tools have one name.
    """
    if not name or not name.strip():
        raise ValueError("name: an SDK MCP server needs a name that is not empty")
    names = [tool.name for tool in tools]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise ValueError(f"tools: server {name!r} has more than one tool called {', '.join(map(repr, twice))}")
    return ReplayableSdkMcpServer(name=name, tools=tuple(tools), version=version)


def check_servers(servers: Sequence[ReplayableSdkMcpServer], mcp_servers: Any) -> None:
    """Refuses servers that cannot be added to a query's own.

    Raises:
        RefusedError: a name is empty or comes twice, or the query's servers are not a mapping.
    """
    names = [server.name for server in servers]
    twice = sorted({n for n in names if names.count(n) > 1})
    reasons = [f"replayable_servers: server name {n!r} comes more than once" for n in twice]
    reasons += ["replayable_servers: a server has an empty name" for n in names if not n.strip()]
    if servers and not is_object(mcp_servers):
        reasons.append(
            f"options.mcp_servers is {mcp_servers!r}; replayable servers can only be added to a mapping: "
            "pass mcp_servers={} or a dict"
        )
    elif servers:
        taken = sorted(n for n in set(names) if n in mcp_servers)
        reasons += [f"replayable_servers: options.mcp_servers has a server {n!r} already" for n in taken]
    if reasons:
        raise RefusedError(reasons[0], reasons=reasons)


def built(server: ReplayableSdkMcpServer, around: Around) -> McpSdkServerConfig:
    """A new server of the definition, with ``around`` in place of each handler."""
    tools = [
        replace(tool, handler=_wrapped(identity, tool.handler, around))
        for identity, tool in zip(server.identities, server.tools, strict=True)
    ]
    made = create_sdk_mcp_server(server.name, server.version, tools)
    _tell_call_ids(made["instance"])
    return made


def _wrapped(identity: str, handler: Any, around: Around) -> Any:
    async def handle(arguments: dict[str, Any]) -> Any:
        return await around(identity, _call_id.get(), arguments, handler)

    return handle


def _tell_call_ids(instance: Any) -> None:
    """Lets handlers know which call they answer, where the installed ``mcp`` can say; the program sends the id."""
    find = getattr(instance, "get_request_handler", None)
    entry = find(_METHOD) if find is not None else None
    if entry is None:
        return

    async def handle(context: Any, params: Any) -> Any:
        token = _call_id.set(_sent_id(params))
        try:
            return await entry.handler(context, params)
        finally:
            _call_id.reset(token)

    instance.add_request_handler(_METHOD, entry.params_type, handle)


def _sent_id(params: Any) -> str | None:
    meta = getattr(params, "meta", None)
    if meta is not None and not is_object(meta):
        meta = getattr(meta, "model_extra", None)
    found = meta.get(_CALL_ID) if is_object(meta) else None
    return found if isinstance(found, str) else None
