"""LangChain and LangGraph: record and replay agents, compiled graphs, chat models and tools.

`install` sees every graph, model and tool of the process; ``create_agent(..., middleware=[PlayheadMiddleware()])`` is
the explicit form. Only the parts of the framework that are imported are touched.
"""

from typing import TYPE_CHECKING, Any

from playhead.adapters.langgraph.activation import install, is_installed, uninstall

if TYPE_CHECKING:
    from playhead.adapters.langgraph.middleware import PlayheadMiddleware

__all__ = ["PlayheadMiddleware", "install", "is_installed", "uninstall"]


def __getattr__(name: str) -> Any:
    if name != "PlayheadMiddleware":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from playhead.adapters.langgraph import middleware  # imports langchain, which `install` alone must not do

    return middleware.PlayheadMiddleware
