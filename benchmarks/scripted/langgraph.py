"""LangGraph: an agent of `create_agent` with a chat model of its interface."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from benchmarks.scripted import TEXT, TOOLS, Run, Shape, in_session, lookup_async
from playhead.adapters import langgraph as adapter
from playhead.engine.recorder import Recorder

DISTRIBUTION = "langgraph"
MODELS = True


class Scripted(BaseChatModel):
    shape: Any
    model_name: str = "scripted"

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        asked: Any = [
            {"name": tool, "args": arguments, "id": key, "type": "tool_call"}
            for key, tool, arguments in self.shape.asks(sum(message.type == "ai" for message in messages))
        ]
        message = AIMessage(content="" if asked else "done", tool_calls=asked)
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return self._generate(messages, stop, run_manager, **kwargs)


def parts(shape: Shape) -> dict[str, Any]:
    """What `create_agent` is given."""
    offered = [StructuredTool.from_function(coroutine=lookup_async, name=f"tool_{n}") for n in range(TOOLS)]
    return {"model": Scripted(shape=shape), "tools": offered, "system_prompt": TEXT}


def runs(shape: Shape, graph: Any) -> Run:
    given = {"messages": [{"role": "user", "content": "go"}]}
    return lambda: asyncio.run(graph.ainvoke(given, {"recursion_limit": 10 * shape.model_calls}))


def bare(shape: Shape) -> Run:
    return runs(shape, create_agent(**parts(shape)))


@contextmanager
def recorded(shape: Shape, recorder: Recorder) -> Iterator[Run]:
    plain = runs(shape, create_agent(**parts(shape)))

    adapter.install()
    try:
        yield in_session(recorder, plain)
    finally:
        adapter.uninstall()
