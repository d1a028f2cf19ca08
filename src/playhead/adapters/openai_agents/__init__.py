"""OpenAI Agents: record and replay its agents.

`Runner` takes the place of the framework's own and is the explicit form; `install` sees every run of the process.
"""

from playhead.adapters.openai_agents import errors, starting
from playhead.adapters.openai_agents.activation import Runner, install, is_installed, uninstall

__all__ = ["Runner", "install", "is_installed", "uninstall"]

errors.register()
starting.register()
