"""CrewAI: tool calls through the framework's own hooks, runs of crews; model calls are seen on the wire.

The hooks know no id of a call and give text: equal calls that run at once are told apart by the order of their arrival.
"""

from playhead.adapters.crewai.activation import install, is_installed, uninstall
from playhead.adapters.crewai.starting import register

register()

__all__ = ["install", "is_installed", "uninstall"]
