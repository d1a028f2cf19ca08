"""Stand-ins for external MCP servers in a replay, so that none is started: same tools, handlers that must not run."""

from dataclasses import replace
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, SdkMcpTool, create_sdk_mcp_server

from playhead.adapters.claude_agent_sdk.run import Run
from playhead.core.policy import HistoryConfig, PassthroughConfig, StaticConfig, ToolConfig
from playhead.core.protocol.shape import is_object, obj
from playhead.engine.replaying import ReplayState
from playhead.errors import RecordingError, ReplayStop

_ANY: dict[str, Any] = {"type": "object", "properties": {}}


def stubbed(options: ClaudeAgentOptions, run: Run) -> ClaudeAgentOptions:
    """A copy in which each external server whose tools may not run live is a stand-in."""
    state = run.replay
    servers: Any = options.mcp_servers
    if state is None or not is_object(servers):
        return options
    made = {
        name: config if _is_own(config) or _may_be_live(state, name) else _stand_in(name, state, run)
        for name, config in servers.items()
    }
    return replace(options, mcp_servers=made)


def _is_own(config: Any) -> bool:
    return is_object(config) and config.get("type") == "sdk"


def _may_be_live(state: ReplayState, server: str) -> bool:
    prefix = f"mcp__{server}__"
    configs: list[ToolConfig] = [state.policy.default]
    configs += [config for tool, config in state.policy.tools.items() if tool.startswith(prefix)]
    return any(map(_live, configs))


def _live(config: Any) -> bool:
    if isinstance(config, PassthroughConfig):
        return True
    if isinstance(config, StaticConfig | HistoryConfig):
        return config.on_miss == "passthrough"
    return _live(config.then) if getattr(config, "then", None) is not None else False


def _stand_in(server: str, state: ReplayState, run: Run) -> Any:
    prefix = f"mcp__{server}__"
    recorded = obj(state.baseline.metadata.get("mcp_tools")) if state.baseline is not None else {}
    names = [n for n in dict.fromkeys((*recorded, *state.parameters)) if n.startswith(prefix)]
    return create_sdk_mcp_server(server, "1.0.0", [_tool(n, prefix, obj(recorded.get(n)), state, run) for n in names])


def _tool(name: str, prefix: str, recorded: dict[str, Any], state: ReplayState, run: Run) -> SdkMcpTool[Any]:
    async def enter(_arguments: Any) -> dict[str, Any]:
        try:
            raise state.stop(RecordingError(f"tool {name!r} was entered in a replay that may not run it"))
        except ReplayStop:
            run.halt()
            return {"content": [], "is_error": True}

    schema = recorded.get("input_schema") or state.parameters.get(name) or _ANY
    return SdkMcpTool(
        name=name.removeprefix(prefix),
        description=str(recorded.get("description") or ""),
        input_schema=schema,
        handler=enter,
    )
