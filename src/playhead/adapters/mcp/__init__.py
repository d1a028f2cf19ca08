"""MCP client sessions: calls of tools, reads of resources and prompts behind the seam; handshakes as spans.

`install()` wraps the public methods of ``mcp.ClientSession``, under ``mcp.Client`` and whatever else is built on it.
Inside a framework's own tool seam the same call stays silent.
"""

from playhead.adapters.mcp.activation import install, is_installed, uninstall

__all__ = ["install", "is_installed", "uninstall"]
