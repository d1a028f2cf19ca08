"""The LangGraph adapter against the scenarios that every adapter runs."""

import asyncio
import functools
import inspect
import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ToolRetryMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import StructuredTool, ToolException
from langchain_core.tools.base import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from pydantic import BaseModel, Field, PrivateAttr

from playhead.adapters import langgraph as adapter
from playhead.adapters import mcp as mcp_adapter
from playhead.engine.capabilities import measured
from playhead.testing.conformance.adapter import (
    AdapterHarness,
    Call,
    Entry,
    NotApplicable,
    Refused,
    Retry,
    Scenario,
    Spec,
    check,
    scenarios,
    started,
)


class Scripted(BaseChatModel):
    """The scripted model of a spec, and what it was asked."""

    model_name: str = "scripted"
    temperature: float | None = None
    top_p: float | None = None
    spec: Any = None
    usage: Any = None
    breaks: Any = None
    asked: list[bytes] = Field(default_factory=list)
    _names: Any = PrivateAttr(default_factory=itertools.count)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def ask(self, messages: list[BaseMessage], stop: Any, kwargs: dict[str, Any]) -> AIMessage:
        if self.model_name == self.spec.model:
            settings = {"temperature": self.temperature, "top_p": self.top_p, "stop": stop, **kwargs}
            self.asked.append(json.dumps([[_fixed(m) for m in messages], settings], sort_keys=True).encode())
        last = max(n for n, m in enumerate(messages) if isinstance(m, HumanMessage))
        turn = sum(isinstance(m, AIMessage) for m in messages[last:])
        if turn < len(self.spec.turns):
            return AIMessage(
                content="", tool_calls=[self.call(c, turn, n) for n, c in enumerate(self.spec.turns[turn])]
            )
        results = [m.content for m in messages if isinstance(m, ToolMessage)]
        return AIMessage(content=self.spec.says(results) if self.spec.says else f"saw {results}")

    def call(self, call: Call, turn: int, index: int) -> Any:
        made = call.id if call.id is not None else f"made-{turn}-{index}"
        return {"name": call.tool, "args": call.arguments or {}, "id": made, "type": "tool_call"}

    def answer(self, messages: list[BaseMessage], stop: Any, kwargs: dict[str, Any]) -> AIMessage:
        said = self.ask(messages, stop, kwargs)
        said.usage_metadata = self.usage
        return said

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.answer(messages, stop, kwargs))])

    async def _astream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        if self.breaks is not None:
            yield ChatGenerationChunk(message=AIMessageChunk(content=self.breaks[0]))
            raise self.breaks[1]
        said = self.answer(messages, stop, kwargs)
        pieces = [json.dumps(call["args"]) for call in said.tool_calls]
        for index, (call, args) in enumerate(zip(said.tool_calls, pieces, strict=True)):
            for name, text, made in ((call["name"], args[:3], call["id"]), (None, args[3:], None)):
                chunk: Any = {"name": name, "args": text, "id": made, "index": index, "type": "tool_call_chunk"}
                yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[chunk]))
        for word in [] if pieces else str(said.content).split(" "):
            yield ChatGenerationChunk(message=AIMessageChunk(content=word if word == "saw" else f" {word}"))


class Thinking(Scripted):
    """A model that never answers."""

    asks: Any = None

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        self.asks()
        await asyncio.Event().wait()
        raise AssertionError("answered")


def _fixed(message: BaseMessage) -> Any:
    """A message without the ids that differ from run to run."""
    dumped = message.model_dump(mode="json")
    return {name: value for name, value in dumped.items() if name not in ("id", "response_metadata")}


def as_tool(body: Callable[..., Any]) -> BaseTool:
    """A tool body as a tool of the framework, with the framework's signals."""
    if isinstance(body, BaseTool):
        return body
    given: dict[str, Any] = {"name": body.__name__, "description": body.__doc__ or body.__name__}
    if inspect.iscoroutinefunction(body):

        @functools.wraps(body)
        async def awaited(**kwargs: Any) -> Any:
            try:
                return await body(**kwargs)
            except Refused as signal:
                raise ToolException(str(signal)) from None

        return StructuredTool.from_function(coroutine=awaited, handle_tool_error=True, **given)

    @functools.wraps(body)
    def plain(**kwargs: Any) -> Any:
        try:
            return body(**kwargs)
        except Refused as signal:
            raise ToolException(str(signal)) from None
        except Retry:
            raise NotApplicable("LangChain has no signal by which a tool asks the model to try again") from None

    return StructuredTool.from_function(plain, handle_tool_error=True, **given)


class LangGraphHarness(AdapterHarness):
    name = "langgraph"
    distribution = "langgraph"
    entries: Sequence[Entry] = ("sync", "async", "stream", "events", "iter")
    other_model = "another"

    def __init__(self) -> None:
        self.models: dict[int, Scripted] = {}
        self.specs: dict[int, Spec] = {}
        self.last: dict[int, Any] = {}
        self.kept: list[Any] = []

    def start(self) -> None:
        adapter.install()
        mcp_adapter.install()  # as `playhead.install()` does

    def stop(self) -> None:
        adapter.uninstall()
        mcp_adapter.uninstall()

    def build(self, spec: Spec, *, model: Scripted | None = None, **more: Any) -> Any:
        if any(isinstance(call.arguments, str) for turn in spec.turns for call in turn):
            raise NotApplicable("an agent of LangChain ends its run where a model's arguments are no JSON")
        model = model or Scripted(model_name=spec.model, spec=spec, **spec.settings)
        tools = [as_tool(tool) for tool in spec.tools]
        if any("approval" in (tool.tags or ()) for tool in tools):
            more["checkpointer"] = InMemorySaver()
        agent = create_agent(model, tools, system_prompt=spec.system, name=spec.name, **more)
        self.models[id(agent)], self.specs[id(agent)] = model, spec
        self.kept.append(agent)
        return agent

    def run_sync(self, agent: Any, prompt: str) -> str:
        return self._keep(agent, agent.invoke(_asking(prompt), {"max_concurrency": 1}))

    async def run(self, agent: Any, prompt: str, *, entry: Entry = "async", history: Any = None) -> str:
        given = _asking(prompt, history)
        if entry == "async":
            return self._keep(agent, await agent.ainvoke(given))
        state: Any = None
        if entry == "events":
            async for event in agent.astream_events(given, version="v2"):
                if event["event"] == "on_chain_end" and not event["parent_ids"]:
                    state = event["data"]["output"]
            return self._keep(agent, state)
        modes = ["messages", "values"] if entry == "stream" else ["updates", "values"]
        async for mode, chunk in agent.astream(given, stream_mode=modes):
            state = chunk if mode == "values" else state
        return self._keep(agent, state)

    def _keep(self, agent: Any, state: Any) -> str:
        self.last[id(agent)] = state["messages"]
        return str(state["messages"][-1].content)

    def requests(self, agent: Any) -> list[bytes]:
        return self.models[id(agent)].asked

    def history(self, agent: Any) -> Any:
        return self.last[id(agent)]

    def activate(self) -> None:
        adapter.install()

    def deactivate(self) -> None:
        adapter.uninstall()

    def explicit(self, agent: Any) -> Any:
        return self.build(
            self.specs[id(agent)], model=self.models[id(agent)], middleware=[adapter.PlayheadMiddleware()]
        )

    def agent_tool(self, name: str, child: Any) -> Any:
        async def ask(q: str) -> str:
            return str((await child.ainvoke(_asking(q)))["messages"][-1].content)

        return StructuredTool.from_function(coroutine=ask, name=name, description="Asks another agent.")

    def timed_tool(self, body: Callable[..., Any], seconds: float) -> Any:
        raise NotApplicable("the framework has no timeout of a tool")

    def retrying(self, spec: Spec, times: int) -> Any:
        again = ToolRetryMiddleware(max_retries=times - 1, initial_delay=0.0, jitter=False)
        return self.build(spec, middleware=[again])

    def handoff(self, spec: Spec, to: Any) -> Any:
        raise NotApplicable("a handoff is a tool that gives a command")

    def deferred_tool(self, name: str) -> Any:
        def elsewhere(q: str) -> Any:
            return interrupt({"tool": name})

        return StructuredTool.from_function(elsewhere, name=name, description=name, tags=["approval"])

    async def run_deferred(self, agent: Any, prompt: str, result: Callable[[str], Any]) -> str:
        return await self.run_with_approval(agent, prompt, result)

    def approval_tool(self, body: Callable[..., Any]) -> Any:
        def asking(**kwargs: Any) -> Any:
            if not interrupt({"tool": body.__name__, "args": kwargs}):
                raise ToolException("a person refused")
            return body(**kwargs)

        return StructuredTool.from_function(
            functools.wraps(body)(asking), name=body.__name__, description=body.__name__, handle_tool_error=True,
            tags=["approval"],
        )  # fmt: skip

    async def run_with_approval(self, agent: Any, prompt: str, answer: Callable[[str], bool]) -> str:
        config: Any = {"configurable": {"thread_id": "1"}}
        state = await agent.ainvoke(_asking(prompt), config)
        while state.get("__interrupt__"):
            asked = state["__interrupt__"][0].value
            state = await agent.ainvoke(Command(resume=answer(asked["tool"])), config)
        return str(state["messages"][-1].content)

    def structured(self, spec: Spec) -> Any:
        class Answer(BaseModel):
            n: int

        asking = Spec(turns=[[Call("Answer", {"n": 1})]], model=spec.model, name=spec.name)
        model = Scripted(model_name=spec.model, spec=asking)
        return self.build(spec, model=model, response_format=ToolStrategy(Answer))

    def with_mcp(self, spec: Spec, command: Sequence[str]) -> Any:
        tools = asyncio.run(_mcp_tools(command))
        return self.build(Spec(turns=spec.turns, tools=cast("Any", tools)))

    def with_usage(self, spec: Spec, usage: Mapping[str, int]) -> Any:
        read, write = usage["input_cache_read"], usage["input_cache_write"]
        given, said = usage["input_uncached"] + read + write, usage["output_visible"] + usage["output_reasoning"]
        reported = {
            "input_tokens": given, "output_tokens": said, "total_tokens": given + said,
            "input_token_details": {"cache_read": read, "cache_creation": write},
            "output_token_details": {"reasoning": usage["output_reasoning"]},
        }  # fmt: skip
        return self.build(spec, model=Scripted(model_name=spec.model, spec=spec, usage=reported))

    def breaking_stream(self, spec: Spec, after: str, error: Exception) -> Any:
        return self.build(spec, model=Scripted(model_name=spec.model, spec=spec, breaks=(after, error)))

    def thinking(self, spec: Spec, asked: Callable[[], Any]) -> Any:
        return self.build(spec, model=Thinking(model_name=spec.model, spec=spec, asks=asked))

    async def stop_early(self, agent: Any, prompt: str) -> None:
        stream = agent.astream(_asking(prompt), stream_mode="messages")
        async for _ in stream:
            break
        await stream.aclose()


def _asking(prompt: str, history: Any = None) -> Any:
    return {"messages": [*(history or ()), {"role": "user", "content": prompt}]}


async def _mcp_tools(command: Sequence[str]) -> list[BaseTool]:
    """The tools of an MCP server, each call in a connection of its own."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    server = StdioServerParameters(command=command[0], args=list(command[1:]))

    def made(listed: Any) -> BaseTool:
        async def call(**arguments: Any) -> Any:
            async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
                await session.initialize()
                result: Any = await session.call_tool(listed.name, arguments)
            text = "".join(block.text for block in result.content)
            if getattr(result, "is_error", False):
                raise ToolException(text)
            return text

        return StructuredTool(
            name=listed.name, description=listed.description or listed.name, args_schema=listed.input_schema,
            coroutine=call, handle_tool_error=True,
        )  # fmt: skip

    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        return [made(tool) for tool in (await session.list_tools()).tools]


@pytest.fixture
def harness() -> Iterator[AdapterHarness]:
    with started(LangGraphHarness()) as made:
        yield made


@pytest.mark.parametrize("scenario", scenarios(), ids=lambda s: s.id)
def test_scenario(harness: AdapterHarness, scenario: Scenario) -> None:
    found = check(harness, scenario, measured().adapters[harness.name].found)
    if found.verdict == "not_applicable":
        pytest.skip(found.reason)
