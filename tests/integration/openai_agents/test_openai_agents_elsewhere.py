"""OpenAI Agents beside others: recordings of other adapters and of the wire, tracing, agents started anew."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call
from agents.tracing import set_trace_processors
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from openai import AsyncOpenAI
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

import playhead
from playhead.adapters import openai_agents as adapter
from playhead.core.policy import HistoryModel
from playhead.core.values import NodeKind
from playhead.engine.project import use_recorder
from playhead.errors import RefusedError
from playhead.store.ports import SessionQuery
from playhead.testing.conformance.bench import Bench
from playhead.testing.servers import Call, ModelServer, Reply


@pytest.fixture
def bench() -> Iterator[Bench]:
    set_tracing_disabled(True)
    playhead.install(sessions=False)
    made = Bench()
    before = use_recorder(made.recorder)
    yield made
    made.close()
    use_recorder(before)
    playhead.uninstall()


LIVE: list[Any] = []


def price(item: str) -> dict[str, Any]:
    """The price of an item."""
    LIVE.append(item)
    return {"item": item, "cents": 100 + len(LIVE)}


def in_openai_agents(prompt: str) -> str:
    steps = [
        [function_call("price", {"item": "tea"}, call_id="a"), function_call("price", {"item": "tea"}, call_id="b")],
        [assistant_message("done")],
    ]
    agent = Agent(name="desk", model=ScriptedModel(steps), tools=[function_tool(price)])
    return str(asyncio.run(Runner.run(agent, prompt)).final_output)


def in_pydantic_ai(prompt: str) -> str:
    def answer(messages: list[ModelMessage], info: Any) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart("price", {"item": "tea"}, tool_call_id=i) for i in ("x", "y")])

    agent = PydanticAgent(FunctionModel(answer, model_name="scripted"), tools=[price], name="desk")
    return asyncio.run(agent.run(prompt)).output


def in_langchain(prompt: str) -> str:
    class Scripted(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            return self

    calls: Any = [{"name": "price", "args": {"item": "tea"}, "id": i} for i in ("m", "n")]
    model = Scripted(messages=iter([AIMessage(content="", tool_calls=calls), AIMessage(content="done")]))
    state = create_agent(model, [price]).invoke({"messages": [{"role": "user", "content": prompt}]})
    return str(state["messages"][-1].content)


@pytest.mark.parametrize(
    ("recorded", "replayed"),
    [
        (in_pydantic_ai, in_openai_agents),
        (in_openai_agents, in_pydantic_ai),
        (in_langchain, in_openai_agents),
        (in_openai_agents, in_langchain),
    ],
)
def test_a_session_of_one_framework_replays_through_another(bench: Bench, recorded: Any, replayed: Any) -> None:
    LIVE.clear()
    baseline = bench.record(recorded, {"prompt": "go"})
    LIVE.clear()
    result = bench.replay(baseline, replayed)

    assert LIVE == []
    assert result.by == ["served", "served"]
    assert result.faithful, (result.replay.fidelity, result.message)
    assert [n.outcome.value for n in result.calls if n.outcome] == [
        n.outcome.value for n in baseline.calls if n.outcome
    ]


def test_inputs_of_one_frameworks_agent_start_the_others(bench: Bench) -> None:
    def answer(messages: list[ModelMessage], info: Any) -> ModelResponse:
        return ModelResponse(parts=[TextPart("hello")])

    async def turns() -> None:
        other = PydanticAgent(FunctionModel(answer, model_name="scripted"), name="desk")
        first = await other.run("hi")
        async with playhead.session("desk", inputs={"prompt": "and?"}):
            pass
        await other.run("and?", message_history=first.all_messages())

    playhead.install()
    asyncio.run(turns())
    bench.recorder.flush()
    found = [s for s in bench.store.sessions.find(SessionQuery()).items if "message_history" in (s.inputs or {})]
    model = ScriptedModel([[assistant_message("well")]])
    result = bench.replay(bench.read(found[0].id), Agent(name="desk", model=model))

    assert result.session.output == "well"
    assert model.last_call is not None
    asked = [(item["role"], item["content"]) for item in model.last_call.input]
    assert [role for role, _ in asked] == ["user", "assistant", "user"]
    assert asked[-1][1] == "and?"


# --- over the wire --------------------------------------------------------------------------------------------------


def plan(step: int, body: dict[str, Any]) -> Reply:
    shown = body.get("input", body.get("messages"))
    if isinstance(shown, list) and any("call_id" in i or i.get("role") == "tool" for i in shown):
        return Reply("done")
    return Reply(calls=[Call("price", {"item": "tea"}, id="c1")])


@pytest.fixture(params=["responses", "chat"])
def over_the_wire(request: pytest.FixtureRequest) -> Iterator[tuple[Any, Any]]:
    """A run with the framework's own model class against a loopback server, and the server."""
    with ModelServer(plan) as server:

        async def run(prompt: str, streamed: bool) -> str:
            async with AsyncOpenAI(api_key="k", base_url=server.openai_url, max_retries=0) as client:
                kind: Any = OpenAIResponsesModel if request.param == "responses" else OpenAIChatCompletionsModel
                agent = Agent(name="desk", model=kind("gpt-test", client), tools=[function_tool(price)])
                if not streamed:
                    return str((await Runner.run(agent, prompt)).final_output)
                result = Runner.run_streamed(agent, prompt)
                async for _ in result.stream_events():
                    pass
                return str(result.final_output)

        yield lambda prompt, streamed: asyncio.run(run(prompt, streamed)), server


@pytest.mark.parametrize("streamed", [False, True])
def test_a_call_that_the_wire_sees_too_is_one_node(bench: Bench, over_the_wire: Any, streamed: bool) -> None:
    run, server = over_the_wire
    LIVE.clear()
    baseline = bench.record(lambda prompt: run(prompt, streamed), {"prompt": "go"})
    assert baseline.error is None, baseline.error
    assert [n.kind for n in baseline.nodes] == [NodeKind.MODEL_CALL, NodeKind.TOOL_CALL, NodeKind.MODEL_CALL]
    assert all(n.model and n.model.requested == "gpt-test" for n in baseline.model_calls)
    assert all(n.model and n.model.usage for n in baseline.model_calls)
    LIVE.clear()
    asked = len(server.requests)
    result = bench.replay(baseline, lambda prompt: run(prompt, streamed), model_policy=HistoryModel())

    assert LIVE == []
    assert len(server.requests) == asked, "the server was asked"
    assert result.faithful, (result.replay.fidelity, result.message)


@pytest.mark.parametrize("streamed", [False, True])
def test_the_server_is_asked_the_same_with_and_without_us(bench: Bench, over_the_wire: Any, streamed: bool) -> None:
    run, server = over_the_wire
    LIVE.clear()
    adapter.uninstall()
    run("go", streamed)
    adapter.install()
    plain = [r.body for r in server.requests]
    LIVE.clear()
    bench.record(lambda prompt: run(prompt, streamed), {"prompt": "go"})

    assert [r.body for r in server.requests[len(plain) :]] == plain


def test_a_session_that_only_the_wire_saw_replays_through_the_adapter_and_back(
    bench: Bench, over_the_wire: Any
) -> None:
    run, _ = over_the_wire
    LIVE.clear()
    adapter.uninstall()
    wire_only = bench.record(lambda prompt: run(prompt, False), {"prompt": "go"})
    adapter.install()
    LIVE.clear()
    with pytest.raises(RefusedError, match="ran without being seen"):
        bench.replay(wire_only, lambda prompt: run(prompt, False))
    result = bench.replay(wire_only, lambda prompt: run(prompt, False), force=True)

    assert LIVE == []
    assert result.by == ["served"]
    assert result.session.output == wire_only.session.output


# --- tracing --------------------------------------------------------------------------------------------------------


class Processor:
    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_trace_start(self, trace: Any) -> None:
        self.seen.append(f"trace {trace.name}")

    def on_trace_end(self, trace: Any) -> None:
        self.seen.append("trace end")

    def on_span_start(self, span: Any) -> None:
        self.seen.append(f"start {span.span_data.type}")

    def on_span_end(self, span: Any) -> None:
        self.seen.append(f"end {span.span_data.type} {span.error}")

    def shutdown(self) -> None: ...

    def force_flush(self) -> None: ...


def test_tracing_sees_what_it_sees_without_us(bench: Bench) -> None:
    processor = Processor()
    set_tracing_disabled(False)
    set_trace_processors([processor])  # type: ignore[list-item]
    try:
        adapter.uninstall()
        in_openai_agents("go")
        plain, processor.seen = processor.seen, []
        adapter.install()
        baseline = bench.record(in_openai_agents, {"prompt": "go"})
        recorded, processor.seen = processor.seen, []
        bench.replay(baseline, in_openai_agents)
        replayed = processor.seen
    finally:
        set_trace_processors([])
        set_tracing_disabled(True)

    assert plain
    assert recorded == plain
    assert replayed == plain


# --- agents started anew --------------------------------------------------------------------------------------------


def delete(path: str) -> str:
    LIVE.append(path)
    return "deleted"


def deleting() -> Agent[Any]:
    steps = [[function_call("delete", {"path": "x"}, call_id="d")], [assistant_message("gone")]]
    return Agent(name="desk", model=ScriptedModel(steps), tools=[function_tool(delete, needs_approval=True)])


@pytest.mark.parametrize("agreed", [True, False])
def test_an_agent_that_paused_is_started_and_answered_as_the_person_did(bench: Bench, agreed: bool) -> None:
    async def live(turns: list[Any]) -> str:
        agent = deleting()
        paused = await Runner.run(agent, turns[0]["prompt"])
        state = paused.to_state()
        for item in state.get_interruptions():
            (state.approve if agreed else state.reject)(item)
        return str((await Runner.run(agent, state)).final_output)

    LIVE.clear()
    turns = [{"prompt": "go"}, {"prompt": None, "approvals": {"d": agreed}}]
    baseline = bench.record(lambda turns: asyncio.run(live(turns)), {"turns": turns})
    assert [turn.input for turn in baseline.session.turns] == turns
    assert len(LIVE) == agreed
    LIVE.clear()
    result = bench.replay(baseline, deleting())

    assert LIVE == []
    assert result.faithful, (result.replay.fidelity, result.message)


def test_a_run_that_goes_on_from_a_pause_says_why_it_cannot_start_alone(bench: Bench) -> None:
    async def live() -> None:
        runner, agent = adapter.Runner(recorder=bench.recorder), deleting()
        paused = await runner.run(agent, "go")
        await runner.run(agent, paused.to_state())

    asyncio.run(live())
    bench.recorder.flush()
    found = bench.store.sessions.find(SessionQuery()).items

    assert sorted(len(session.not_replayable) for session in found) == [0, 1]
    assert "paused" in str([session.not_replayable for session in found])
