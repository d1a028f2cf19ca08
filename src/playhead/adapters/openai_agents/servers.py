"""MCP servers: whether a tool's answer is an error, which the framework hands on to the model like any other."""

import functools
from contextvars import ContextVar
from typing import Any

from agents.mcp import MCPServerStdio


class Around:
    """The call whose tool is running here, told of what its result does not show.

    Attributes:
        paused: an agent inside waits for a person.
        failed: an MCP server answered with an error.
    """

    __slots__ = ("failed", "paused")

    def __init__(self) -> None:
        self.paused = False
        self.failed = False


AROUND: ContextVar[Around | None] = ContextVar("playhead_openai_agents_around", default=None)


def owner() -> Any:
    """The class of the framework from which its servers have ``call_tool``."""
    return next(kind for kind in MCPServerStdio.__mro__ if "call_tool" in vars(kind))


def wrap() -> Any:
    """Wraps ``call_tool``, and gives what it was."""
    kind = owner()
    original: Any = kind.call_tool

    @functools.wraps(original)
    async def call_tool(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = await original(self, *args, **kwargs)
        around = AROUND.get()
        if around is not None and (getattr(result, "is_error" if hasattr(result, "is_error") else "isError", None)):
            around.failed = True
        return result

    kind.call_tool = call_tool
    return original


def unwrap(original: Any) -> None:
    owner().call_tool = original
