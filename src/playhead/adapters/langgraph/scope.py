"""What the hooks of one run share: whether it is the root agent's, and which tools its graph can run."""

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from playhead.core.values import NodeKind
from playhead.engine.frames import FRAME


@dataclass(frozen=True, slots=True)
class Running:
    """A run under way.

    ``executable`` names the tools of its graph, None where it gives no structured answer; ``answers`` keeps the last
    answer of its model, which is all that a stream shows of its end.
    """

    root: bool | None = None
    executable: frozenset[str] | None = None
    answers: dict[str, Any] = field(default_factory=dict[str, Any])


RUNNING: ContextVar[Running | None] = ContextVar("playhead_langgraph_run", default=None)


def executable() -> frozenset[str] | None:
    """The names of the tools that the graph around can run; None: any. Others that a model calls are output tools."""
    running = RUNNING.get()
    return running.executable if running is not None else None


def remember(answer: Any) -> None:
    """Keeps a model's answer as the last of the run around."""
    running = RUNNING.get()
    if running is not None:
        running.answers["last"] = answer


def is_root() -> bool:
    """Whether a model call made here is the root agent's."""
    running = RUNNING.get()
    if running is not None and running.root is not None:
        return running.root
    frame = FRAME.get()
    while frame is not None:
        if getattr(frame, "kind", None) not in (None, NodeKind.SPAN):
            return False
        frame = getattr(frame, "parent", None)
    return True
