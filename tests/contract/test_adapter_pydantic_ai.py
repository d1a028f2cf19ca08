"""The PydanticAI adapter against the scenarios that every adapter runs."""

import asyncio
import functools
import inspect
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ModelRetry
from pydantic_ai.exceptions import CallDeferred, ToolFailed
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.tools import Tool
from pydantic_ai.usage import RequestUsage

from playhead.adapters import mcp as mcp_adapter
from playhead.adapters import pydantic_ai as adapter
from playhead.engine.capabilities import measured
from playhead.testing.conformance.adapter import (
    AdapterHarness,
    Entry,
    NotApplicable,
    Refused,
    Retry,
    Scenario,
    Spec,
    check,
    measure,
    scenarios,
    started,
)

_VOLATILE = ("timestamp", "run_id", "conversation_id")


class Script:
    """The scripted model of a spec, and what it was asked."""

    def __init__(self, spec: Spec, usage: RequestUsage | None = None) -> None:
        self.spec = spec
        self.usage = usage
        self.asked: list[bytes] = []

    def model(self) -> FunctionModel:
        return FunctionModel(self.answer, stream_function=self.stream, model_name=self.spec.model)

    def ask(self, messages: list[ModelMessage], info: AgentInfo) -> tuple[list[Any], str]:
        """Keeps the request; gives the calls or the text that come next."""
        dumped = ModelMessagesTypeAdapter.dump_python(messages, mode="json")
        tools = [(t.name, t.description, t.parameters_json_schema) for t in info.function_tools]
        settings = {k: v for k, v in (info.model_settings or {}).items() if v is not None}
        self.asked.append(json.dumps([_fixed(dumped), tools, settings, info.instructions]).encode())
        turn = sum(isinstance(m, ModelResponse) for m in messages) - self.before(messages)
        if turn < len(self.spec.turns):
            return list(self.spec.turns[turn]), ""
        results = [p.content for m in messages for p in m.parts if isinstance(p, ToolReturnPart)]
        return [], self.spec.says(results) if self.spec.says else f"saw {results}"

    def before(self, messages: list[ModelMessage]) -> int:
        """Responses of earlier runs."""
        runs = [m.run_id for m in messages if m.run_id is not None]
        calls = any(p.part_kind == "tool-return" for p in messages[-1].parts)
        return 0 if calls else sum(isinstance(m, ModelResponse) and m.run_id != runs[-1] for m in messages)

    def answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        calls, text = self.ask(messages, info)
        parts: list[Any] = [
            ToolCallPart(c.tool, c.arguments, **({"tool_call_id": c.id} if c.id is not None else {})) for c in calls
        ]
        made = ModelResponse(parts=parts or [TextPart(text)])
        return made if self.usage is None else replace(made, usage=self.usage)

    async def stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        calls, text = self.ask(messages, info)
        for index, c in enumerate(calls):
            args = c.arguments if isinstance(c.arguments, str) else json.dumps(c.arguments or {})
            made = c.id or f"made-{len(messages)}-{index}"
            yield {index: DeltaToolCall(name=c.tool, json_args=args, tool_call_id=made)}
        if calls:
            return
        for word in text.split(" "):
            yield word if word == text.split(" ")[0] else f" {word}"


def _fixed(value: Any) -> Any:
    """Without times and ids that differ from run to run."""
    if isinstance(value, dict):
        return {
            k: "id" if k == "tool_call_id" and str(v).startswith("pyd_ai_") else _fixed(v)
            for k, v in value.items()
            if k not in _VOLATILE
        }
    return [_fixed(v) for v in value] if isinstance(value, list) else value


def signalling(body: Callable[..., Any]) -> Callable[..., Any]:
    """A tool body whose signals are the framework's."""
    if inspect.iscoroutinefunction(body):

        @functools.wraps(body)
        async def tool(**kwargs: Any) -> Any:
            try:
                return await body(**kwargs)
            except Retry as signal:
                raise ModelRetry(str(signal)) from None
            except Refused as signal:
                raise ToolFailed(str(signal)) from None

        return tool

    @functools.wraps(body)
    def plain(**kwargs: Any) -> Any:
        try:
            return body(**kwargs)
        except Retry as signal:
            raise ModelRetry(str(signal)) from None
        except Refused as signal:
            raise ToolFailed(str(signal)) from None

    return plain


class PydanticAIHarness(AdapterHarness):
    name = "pydantic_ai"
    distribution = "pydantic-ai-slim"
    entries: Sequence[Entry] = ("sync", "async", "stream", "events", "iter")
    other_model = "test"

    def __init__(self) -> None:
        self.scripts: dict[int, Script] = {}
        self.last: dict[int, Any] = {}
        self.kept: list[Any] = []

    def start(self) -> None:
        adapter.install()
        mcp_adapter.install()  # as `playhead.install()` does

    def stop(self) -> None:
        adapter.uninstall()
        mcp_adapter.uninstall()

    def build(self, spec: Spec, **more: Any) -> Agent[Any, Any]:
        script = more.pop("script", None) or Script(spec)
        tools = [t if isinstance(t, Tool) else Tool(signalling(t), max_retries=spec.retries) for t in spec.tools]
        agent: Agent[Any, Any] = Agent(
            script.model(),
            name=spec.name,
            instructions=spec.system,
            tools=tools,
            model_settings=cast("Any", dict(spec.settings) or None),
            retries=spec.retries,
            **more,
        )
        self.scripts[id(agent)] = script
        self.kept.append(agent)
        return agent

    def run_sync(self, agent: Any, prompt: str) -> str:
        return str(self._keep(agent, _in_own_loop(lambda: agent.run_sync(prompt))).output)

    async def run(self, agent: Any, prompt: str, *, entry: Entry = "async", history: Any = None) -> str:
        if entry == "stream":
            async with agent.run_stream(prompt, message_history=history) as stream:
                return str(await stream.get_output())
        if entry == "events":
            async with agent.run_stream_events(prompt, message_history=history) as events:
                found = [event async for event in events]
            return str(self._keep(agent, found[-1].result).output)
        if entry == "iter":
            async with agent.iter(prompt, message_history=history) as run:
                async for _ in run:
                    pass
            return str(self._keep(agent, run.result).output)
        return str(self._keep(agent, await agent.run(prompt, message_history=history)).output)

    def _keep(self, agent: Any, result: Any) -> Any:
        self.last[id(agent)] = result.all_messages()
        return result

    def requests(self, agent: Any) -> list[bytes]:
        return self.scripts[id(agent)].asked

    def history(self, agent: Any) -> Any:
        return self.last[id(agent)]

    def activate(self) -> None:
        adapter.install()

    def deactivate(self) -> None:
        adapter.uninstall()

    def explicit(self, agent: Any) -> Any:
        made = Agent(self.scripts[id(agent)].model(), toolsets=agent.toolsets, capabilities=[adapter.Playhead()])
        self.scripts[id(made)] = self.scripts[id(agent)]
        self.kept.append(made)
        return made

    def agent_tool(self, name: str, child: Any) -> Any:
        async def ask(q: str) -> str:
            return str((await child.run(q)).output)

        return Tool(ask, name=name)

    def timed_tool(self, body: Callable[..., Any], seconds: float) -> Any:
        return Tool(signalling(body), timeout=seconds)

    def retrying(self, spec: Spec, times: int) -> Any:
        raise NotApplicable("the framework asks the model again, it does not run a tool again by itself")

    def handoff(self, spec: Spec, to: Any) -> Any:
        raise NotApplicable("the framework has no handoffs: the program runs the next agent")

    def deferred_tool(self, name: str) -> Any:
        def elsewhere(q: str) -> str:
            raise CallDeferred

        return Tool(elsewhere, name=name)

    async def run_deferred(self, agent: Any, prompt: str, result: Callable[[str], Any]) -> str:
        output_type: Any = [str, DeferredToolRequests]
        ended = await agent.run(prompt, output_type=output_type)
        while isinstance(ended.output, DeferredToolRequests):
            ended = await agent.run(
                message_history=ended.all_messages(),
                deferred_tool_results=DeferredToolResults(
                    calls={call.tool_call_id: result(call.tool_name) for call in ended.output.calls}
                ),
                output_type=output_type,
            )
        return str(ended.output)

    def approval_tool(self, body: Callable[..., Any]) -> Any:
        return Tool(signalling(body), requires_approval=True)

    async def run_with_approval(self, agent: Any, prompt: str, answer: Callable[[str], bool]) -> str:
        output_type: Any = [str, DeferredToolRequests]
        result = await agent.run(prompt, output_type=output_type)
        while isinstance(result.output, DeferredToolRequests):
            verdicts: Any = {call.tool_call_id: answer(call.tool_name) for call in result.output.approvals}
            result = await agent.run(
                message_history=result.all_messages(),
                deferred_tool_results=DeferredToolResults(approvals=verdicts),
                output_type=output_type,
            )
        return str(result.output)

    def structured(self, spec: Spec) -> Any:
        class Answer(BaseModel):
            n: int

        def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, {"n": 1}, tool_call_id="o")])

        return Agent(FunctionModel(answer, model_name=spec.model), output_type=Answer, name=spec.name)

    def with_mcp(self, spec: Spec, command: Sequence[str]) -> Any:
        from fastmcp.client.transports import StdioTransport
        from pydantic_ai.mcp import MCPToolset

        toolset = MCPToolset(StdioTransport(command=command[0], args=list(command[1:])), init_timeout=60)
        return self.build(spec, toolsets=[toolset])

    def with_usage(self, spec: Spec, usage: Mapping[str, int]) -> Any:
        reported = RequestUsage(
            input_tokens=usage["input_uncached"] + usage["input_cache_read"] + usage["input_cache_write"],
            cache_read_tokens=usage["input_cache_read"],
            cache_write_tokens=usage["input_cache_write"],
            output_tokens=usage["output_visible"] + usage["output_reasoning"],
            output_reasoning_tokens=usage["output_reasoning"],
        )
        return self.build(spec, script=Script(spec, reported))

    def breaking_stream(self, spec: Spec, after: str, error: Exception) -> Any:
        async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
            yield after
            raise error

        return Agent(FunctionModel(stream_function=stream, model_name=spec.model), name=spec.name)

    def thinking(self, spec: Spec, asked: Callable[[], Any]) -> Any:
        async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            asked()
            await asyncio.Event().wait()
            raise AssertionError("answered")

        return Agent(FunctionModel(answer, model_name=spec.model), name=spec.name)

    async def stop_early(self, agent: Any, prompt: str) -> None:
        async with agent.run_stream(prompt) as stream:
            async for _ in stream.stream_text(delta=True, debounce_by=None):
                break


def _in_own_loop(run: Callable[[], Any]) -> Any:
    """`run_sync` leaves the loop that it makes open, so it is given one."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return run()
    finally:
        loop.close()
        asyncio.set_event_loop(None)


@pytest.fixture
def harness() -> Iterator[AdapterHarness]:
    with started(PydanticAIHarness()) as made:
        yield made


@pytest.mark.parametrize("scenario", scenarios(), ids=lambda s: s.id)
def test_scenario(harness: AdapterHarness, scenario: Scenario) -> None:
    found = check(harness, scenario, measured().adapters[harness.name].found)
    if found.verdict == "not_applicable":
        pytest.skip(found.reason)


class Forgetful(PydanticAIHarness):
    """An adapter that records nothing."""

    def build(self, spec: Spec, **more: Any) -> Agent[Any, Any]:
        adapter.uninstall()
        return super().build(spec, **more)


def test_an_adapter_that_does_nothing_is_found_out() -> None:
    measured = measure(Forgetful(), only=["S2", "S10", "S14", "S15", "S18"])

    assert measured["scenarios"]["S2"] == "unsupported"
    assert measured["tool_policies"] is False
    assert measured["model_history"] is False
    assert measured["overrides"]["system_prompt"] is False
