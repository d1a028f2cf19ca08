"""Chat models: a real client, streams, overrides, the explicit form, sessions that other adapters recorded."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRequest
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from playhead.adapters import langgraph as adapter
from playhead.adapters import wire
from playhead.adapters.pydantic_ai import Playhead
from playhead.core.policy import HistoryModel, ReplayOverride
from playhead.core.values import NodeKind, ReplayStatus
from playhead.testing.conformance.bench import Bench
from playhead.testing.servers import Call, ModelServer, Reply


def ask(text: str = "go") -> Any:
    return {"messages": [{"role": "user", "content": text}]}


def weather_agent(server: ModelServer, live: list[str], **more: Any) -> Any:
    @tool
    def weather(city: str) -> dict[str, Any]:
        """The weather in a city."""
        live.append(city)
        return {"city": city, "rain": True}

    settings = {"temperature": 0.5, "model": "small", **more.pop("model", {})}
    model = ChatOpenAI(base_url=server.openai_url, api_key="none", max_retries=0, **settings)  # pyright: ignore
    return create_agent(model, [weather], system_prompt="be brief", **more)


def plan(step: int, body: dict[str, Any]) -> Reply:
    answered = any(m["role"] == "tool" for m in body["messages"])
    return Reply("It rains in Oslo.") if answered else Reply(calls=[Call("weather", {"city": "Oslo"}, id="c1")])


@pytest.fixture
def bench() -> Iterator[Bench]:
    adapter.install()
    wire.install()
    made = Bench()
    yield made
    made.close()
    wire.uninstall()
    adapter.uninstall()


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(plan) as running:
        yield running


def text(state: Any) -> str:
    return str(state["messages"][-1].content)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_real_client_is_recorded_once_and_replays_without_its_server(
    bench: Bench, server: ModelServer, streamed: bool
) -> None:
    live: list[str] = []

    def run(prompt: str) -> str:
        agent = weather_agent(server, live)
        if not streamed:
            return text(agent.invoke(ask(prompt)))
        pieces = [c.content for c, _ in agent.stream(ask(prompt), stream_mode="messages") if c.type == "AIMessageChunk"]
        return "|".join(piece for piece in pieces if piece)

    baseline = bench.record(run, {"prompt": "go"})
    assert baseline.error is None, baseline.error
    first = baseline.model_calls[0]
    assert first.model is not None
    assert (first.model.requested, first.model.provider, first.model.streamed) == ("small", "openai", streamed)
    assert first.inputs["params"] == {"temperature": 0.5}
    assert [m["role"] for m in first.inputs["messages"]] == ["system", "user"]
    assert first.inputs["tools"][0]["name"] == "weather"
    assert first.model.usage is not None
    assert len(baseline.model_calls) == 2, "the model seam and the wire both recorded"
    asked = len(server.requests)
    result = bench.replay(baseline, run, model_policy=HistoryModel())
    assert len(server.requests) == asked, "the server was asked"
    assert result.faithful, f"{result.replay.fidelity} {result.message}"
    assert result.session.output == baseline.output
    assert live == ["Oslo"]


def test_requests_are_the_same_bytes_with_and_without_recording(bench: Bench, server: ModelServer) -> None:
    def run(prompt: str) -> str:
        return text(weather_agent(server, []).invoke(ask(prompt)))

    run("go")
    bench.record(run, {"prompt": "go"})
    bodies = [json.loads(r.raw) for r in server.requests]
    assert bodies[:2] == bodies[2:]


def test_each_override_changes_what_the_server_is_asked(bench: Bench, server: ModelServer) -> None:
    def run(prompt: str) -> str:
        return text(weather_agent(server, []).invoke(ask(prompt)))

    baseline = bench.record(run, {"prompt": "go"})
    overrides: list[tuple[Any, dict[str, Any]]] = [
        (ReplayOverride(model="large"), {"model": "large"}),
        (ReplayOverride(model={"openai:small": "openai:other"}), {"model": "other"}),
        (ReplayOverride(model_params={"temperature": None, "max_tokens": 9}), {"max_completion_tokens": 9}),
        (ReplayOverride(system_prompt="be long"), {}),
        (ReplayOverride(prompt="else"), {}),
    ]
    for override, expected in overrides:
        server.requests.clear()
        result = bench.replay(baseline, run, override=override)
        assert result.replay.status is ReplayStatus.COMPLETED, result.message
        bodies = [r.body for r in server.requests]
        assert len(bodies) == 2
        for body in bodies:
            assert {name: body.get(name) for name in expected} == expected
            assert ("temperature" in body) is (override.model_params is None)
            assert body["messages"][0]["content"] == (override.system_prompt or "be brief")
            assert body["messages"][1]["content"] == (override.prompt or "go")


def test_a_model_called_by_itself_is_recorded_however_it_is_called(bench: Bench) -> None:
    def run(prompt: str) -> str:
        said: list[str] = []
        model = GenericFakeChatModel(messages=iter([AIMessage(content=f"answer {n}") for n in range(6)]))
        said.append(str(model.invoke(prompt).content))
        said.append("".join(str(chunk.content) for chunk in model.stream(prompt)))
        said += [str(m.content) for m in model.batch([prompt], {"max_concurrency": 1})]

        async def awaited() -> None:
            said.append(str((await model.ainvoke(prompt)).content))
            said.append("".join([str(chunk.content) async for chunk in model.astream(prompt)]))
            event: Any
            async for event in model.astream_events(prompt, version="v2"):
                if event["event"] == "on_chat_model_end":
                    said.append(str(event["data"]["output"].content))

        asyncio.run(awaited())
        return str(said)

    baseline = bench.record(run, {"prompt": "go"})
    assert baseline.output == str([f"answer {n}" for n in range(6)])
    assert len(baseline.model_calls) == 6
    result = bench.replay(baseline, run, model_policy=HistoryModel(), tool_policy={"default": {"type": "passthrough"}})
    assert result.session.output == baseline.output, result.message


class TwoWays(GenericFakeChatModel):
    """Its awaited form goes through the other, as those of many providers do."""

    model_name: str = "one"

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        return self._generate(messages, stop=stop, **kwargs)


def test_one_request_is_one_call_where_a_models_methods_call_each_other(bench: Bench) -> None:
    def run(prompt: str) -> str:
        model = TwoWays(messages=iter([AIMessage(content="hello")]))
        return str(asyncio.run(model.ainvoke(prompt)).content)

    baseline = bench.record(run, {"prompt": "go"})
    assert len(baseline.model_calls) == 1
    chain = ReplayOverride(model={"one": "two", "two": "three"})
    result = bench.replay(baseline, run, override=chain)
    assert [n.model.requested for n in result.model_calls if n.model] == ["two"], result.message


def test_every_stream_mode_gives_the_same_again(bench: Bench, server: ModelServer) -> None:
    def run(prompt: str) -> str:
        agent = weather_agent(server, [])
        seen: list[Any] = []
        for mode, chunk in agent.stream(ask(prompt), stream_mode=["updates", "messages", "values", "custom"]):
            piece = chunk[0].content if mode == "messages" else sorted(chunk)
            seen.append((mode, piece))
        return str(seen)

    baseline = bench.record(run, {"prompt": "go"})
    result = bench.replay(baseline, run, model_policy=HistoryModel())
    assert result.faithful, f"{result.replay.fidelity} {result.message}"


# --- the explicit form ----------------------------------------------------------------------------------------------


class Watching(AgentMiddleware[Any, Any, Any]):
    """A user's middleware: sees each request and call, and checks that objects are of their own classes."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def wrap_model_call(self, request: ModelRequest[Any], handler: Any) -> Any:
        assert isinstance(request.model, ChatOpenAI)
        self.seen.append("model")
        return handler(request)

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        self.seen.append(request.tool.name)
        return handler(request)


@pytest.mark.parametrize("first", [True, False])
def test_the_middleware_alone_does_everything_beside_other_middleware(server: ModelServer, first: bool) -> None:
    bench, live = Bench(), list[str]()
    other = Watching()

    def run(prompt: str) -> str:
        both: list[Any] = [adapter.PlayheadMiddleware(), other]
        return text(weather_agent(server, live, middleware=both if first else both[::-1]).invoke(ask(prompt)))

    try:
        assert not adapter.is_installed()
        baseline = bench.record(run, {"prompt": "go"})
        assert [n.name for n in baseline.nodes] == ["small", "weather", "small"]
        result = bench.replay(baseline, run, model_policy=HistoryModel())
        assert result.faithful, f"{result.replay.fidelity} {result.message}"
        forked = bench.replay(baseline, run, override=ReplayOverride(system_prompt="be long"))
        assert forked.replay.status is ReplayStatus.COMPLETED, forked.message
    finally:
        bench.close()
    assert live == ["Oslo"]
    assert other.seen == ["model", "weather", "model"] * 3


class Answer(BaseModel):
    city: str


@pytest.mark.parametrize("explicit", [True, False])
@pytest.mark.parametrize("strategy", [ToolStrategy, ProviderStrategy])
def test_a_structured_answer_is_no_tool_call(explicit: bool, strategy: Any) -> None:
    def structured(step: int, body: dict[str, Any]) -> Reply:
        if not any(m["role"] == "tool" for m in body["messages"]):
            return Reply(calls=[Call("weather", {"city": "Oslo"})])
        if strategy is ToolStrategy:
            return Reply(calls=[Call("Answer", {"city": "Oslo"})])
        return Reply('{"city": "Oslo"}')

    if not explicit:
        adapter.install()
    bench = Bench()
    try:
        with ModelServer(structured) as server:

            def run(prompt: str) -> str:
                more: Any = {"middleware": [adapter.PlayheadMiddleware()]} if explicit else {}
                agent = weather_agent(server, [], response_format=strategy(Answer), **more)
                return str(agent.invoke(ask(prompt))["structured_response"])

            baseline = bench.record(run, {"prompt": "go"})
            assert baseline.error is None, baseline.error
            assert [n.name for n in baseline.calls] == ["weather"]
            for model in (None, HistoryModel()):
                result = bench.replay(baseline, run, model_policy=model)
                assert result.faithful, f"{result.replay.fidelity} {result.message}"
    finally:
        bench.close()
        adapter.uninstall()


# --- sessions of other adapters -------------------------------------------------------------------------------------


def test_what_another_adapter_recorded_is_served_from_its_json_values(bench: Bench, server: ModelServer) -> None:
    live: list[str] = []

    def weather(city: str) -> dict[str, Any]:
        """The weather in a city."""
        live.append(city)
        return {"city": city, "rain": True}

    def answer(messages: Any, info: Any) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart("weather", {"city": "Oslo"}, tool_call_id="x1")])
        return ModelResponse(parts=[TextPart("It rains in Oslo.")])

    def replayed(prompt: str) -> str:
        return text(weather_agent(server, live).invoke(ask(prompt)))

    async def in_a_loop(prompt: str) -> str:
        agent = Agent(FunctionModel(answer, model_name="small"), tools=[weather], capabilities=[Playhead()])
        return (await agent.run(prompt)).output

    baseline = bench.record(lambda prompt: asyncio.run(in_a_loop(prompt)), {"prompt": "go"})
    assert live == ["Oslo"]
    result = bench.replay(baseline, replayed)
    assert live == ["Oslo"], "the live tool was entered"
    assert result.by == ["served"], result.message
    assert result.session.output == baseline.session.output
    last = server.requests[-1].body["messages"][-1]
    assert json.loads(last["content"]) == {"city": "Oslo", "rain": True}
    assert not [n for n in result.nodes if n.kind is NodeKind.SPAN]
