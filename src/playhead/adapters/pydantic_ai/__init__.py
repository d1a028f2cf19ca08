"""PydanticAI: record and replay its agents.

``Agent(..., capabilities=[Playhead()])`` is the explicit form; `install` sees every agent of the process.
"""

from playhead.adapters.pydantic_ai import errors, starting
from playhead.adapters.pydantic_ai.activation import install, is_installed, uninstall
from playhead.adapters.pydantic_ai.capability import Playhead

__all__ = ["Playhead", "install", "is_installed", "uninstall"]

errors.register()
starting.register()
