"""smolagents: tools, managed agents and runs; model calls are seen on the wire.

`install()` wraps the calling of tools and the public entries of agents. The tool that gives the final answer is none.
"""

from playhead.adapters.smolagents.activation import install, is_installed, uninstall
from playhead.adapters.smolagents.starting import register

register()

__all__ = ["install", "is_installed", "uninstall"]
