"""The explicit form: a middleware of `create_agent` and deep agents. It changes nothing outside its agent.

The model and the tools of a request are replaced by their twins for the length of the request, so every other
middleware works as ever, before and after this one.
"""

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest
from langchain.agents.middleware.types import ToolCallRequest

from playhead.adapters.langgraph import models, tools
from playhead.adapters.langgraph.guard import trouble
from playhead.adapters.langgraph.scope import RUNNING, Running
from playhead.engine import seam
from playhead.engine.patching import require, unknown_parameters


class PlayheadMiddleware(AgentMiddleware[Any, Any, Any]):
    """Records an agent's model and tool calls, and answers them from recordings in a replay.

    ``create_agent(model, tools, middleware=[PlayheadMiddleware()])``, run inside a session
    (`playhead.session`, `@playhead.agent`). Beside `playhead.install()` it does nothing twice.
    """

    tools = ()

    def __init__(self) -> None:
        super().__init__()
        check()

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        with _running(request):
            return handler(_with_model(request))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        with _running(request):
            return await handler(_with_model(request))

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return handler(_with_tool(request))

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        return await handler(_with_tool(request))


def check() -> None:
    """Looks for every hook.

    Raises:
        RecordingError: this version of the framework would not call one, so nothing would be recorded.
    """
    found: dict[str, Any] = {}
    for name in ("wrap_model_call", "awrap_model_call", "wrap_tool_call", "awrap_tool_call"):
        hook = getattr(AgentMiddleware, name, None)
        found[f"AgentMiddleware.{name}"] = hook is not None
        unknown = unknown_parameters(hook, getattr(PlayheadMiddleware, name))
        found |= {f"AgentMiddleware.{name} without {parameter!r}": False for parameter in unknown}
    found |= {f"{cls.__name__}.override": hasattr(cls, "override") for cls in (ModelRequest, ToolCallRequest)}
    require("langchain", "adapter-langgraph.md", found)


def _with_model(request: Any) -> Any:
    if seam.current() is None:
        return request
    try:
        return request.override(model=models.seen(request.model))
    except Exception as error:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
        trouble(error, "wrapping a model")
        return request


def _with_tool(request: Any) -> Any:
    if request.tool is None:
        return request
    if seam.current() is None:
        seam.refuse_outside(request.tool.name)
        return request
    try:
        return request.override(tool=tools.seen(request.tool))
    except Exception as error:  # noqa: BLE001 - outside a replay nothing of ours may reach the agent
        trouble(error, "wrapping a tool")
        return request


@contextmanager
def _running(request: Any) -> Generator[None]:
    """Says which tools the agent can run, where it has output tools beside them."""
    if getattr(request, "response_format", None) is None:
        yield
        return
    names = frozenset(str(tool.name) for tool in request.tools if hasattr(tool, "name"))
    token = RUNNING.set(replace(RUNNING.get() or Running(), executable=names))
    try:
        yield
    finally:
        RUNNING.reset(token)
