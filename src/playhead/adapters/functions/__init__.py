"""Plain functions: `agent` and `session` are boundaries of runs; `tool`, `gate` and `op` stand at the seam."""

from playhead.adapters.functions.ops import OpGroup, op
from playhead.adapters.functions.runs import Session, agent, session
from playhead.adapters.functions.tools import gate, tool

__all__ = ["OpGroup", "Session", "agent", "gate", "op", "session", "tool"]
