"""Claude Agent SDK: record and replay its queries.

``PlayheadClaudeRunner().query(prompt=...)`` yields the SDK's own messages; ``replayable_sdk_mcp_server`` defines
in-process tools that a replay can answer.
"""

from playhead.adapters.claude_agent_sdk.activation import install, is_installed, uninstall
from playhead.adapters.claude_agent_sdk.client import PlayheadClaudeClient
from playhead.adapters.claude_agent_sdk.runner import PlayheadClaudeRunner
from playhead.adapters.claude_agent_sdk.servers import ReplayableSdkMcpServer, replayable_sdk_mcp_server

__all__ = [
    "PlayheadClaudeClient", "PlayheadClaudeRunner", "ReplayableSdkMcpServer", "install", "is_installed",
    "replayable_sdk_mcp_server", "uninstall",
]  # fmt: skip
