"""Plain functions: `agent` and `session` are boundaries of runs, `tool` and `gate` put a function behind the seam."""

from playhead.adapters.functions.runs import Session, agent, session
from playhead.adapters.functions.tools import gate, tool

__all__ = ["Session", "agent", "gate", "session", "tool"]
