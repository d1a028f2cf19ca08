"""Guards inside frameworks: each hands its model the correction, and so does a replay, without a live call."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from agents import Agent as OpenAIAgent
from agents import Runner, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool as langchain_tool
from langgraph.prebuilt import ToolNode
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import playhead
from playhead.adapters import langgraph as langgraph_adapter
from playhead.adapters import openai_agents as openai_adapter
from playhead.core.values import OutcomeKind
from playhead.engine import calling, seam
from playhead.testing.conformance.bench import Bench

Search = Callable[[str], Any]
Build = Callable[[Search], Callable[[str], Any]]
LIVE: list[str] = []


def searching(results: Sequence[Any]) -> Search:
    """A tool that gives one result after the other."""
    left = list(results)

    def search(q: str) -> Any:
        """Searches."""
        LIVE.append(q)
        return left.pop(0)

    return search


def pydantic_ai(search: Search) -> Callable[[str], Any]:
    def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if any(isinstance(m, ModelResponse) for m in messages):
            last: list[Any] = list(messages[-1].parts)
            shown = [p.content for p in last if p.part_kind in ("tool-return", "retry-prompt")]
            return ModelResponse(parts=[TextPart(f"saw {shown}")])
        return ModelResponse(parts=[ToolCallPart("search", {"q": "x"}, tool_call_id="c1")])

    def run(prompt: str) -> Any:
        agent = Agent(FunctionModel(reply, model_name="scripted"), tools=[search])
        return agent.run_sync(prompt).output

    return run


def openai_agents(search: Search) -> Callable[[str], Any]:
    def run(prompt: str) -> Any:
        model = ScriptedModel([[function_call("search", {"q": "x"}, call_id="c1")], [assistant_message("done")]])
        agent = OpenAIAgent(name="a", model=model, tools=[function_tool(search)])
        result = asyncio.run(Runner.run(agent, prompt))
        return [item.output for item in result.new_items if item.type == "tool_call_output_item"]

    return run


class Fake(BaseChatModel):
    @property
    def _llm_type(self) -> str:
        return "fake"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        call: Any = {"name": "search", "args": {"q": "x"}, "id": "c1", "type": "tool_call"}
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content="", tool_calls=[call]))])


def langgraph(search: Search) -> Callable[[str], Any]:
    def run(prompt: str) -> Any:
        from langgraph.graph import MessagesState, StateGraph

        graph: Any = StateGraph(MessagesState)
        graph.add_node("model", lambda state: {"messages": [Fake().invoke(state["messages"])]})
        graph.add_node("tools", ToolNode([langchain_tool(search)]))
        graph.set_entry_point("model")
        graph.add_edge("model", "tools")
        state = graph.compile().invoke({"messages": [{"role": "user", "content": prompt}]})
        return [[m.content, m.status] for m in state["messages"] if m.type == "tool"]

    return run


def one_choke_point(search: Search) -> Callable[[str], Any]:
    """What the thin adapters share."""

    def run(prompt: str) -> Any:
        active = seam.current()
        assert active is not None
        step: Any = active.tool_call("search", arguments={"q": "x"})
        try:
            return calling.called(step, lambda: search("x"))
        except playhead.ReplayedToolError as error:
            return f"told {error}"

    return run


FRAMEWORKS: dict[str, Build] = {
    "pydantic_ai": pydantic_ai, "openai_agents": openai_agents, "langgraph": langgraph, "thin": one_choke_point,
}  # fmt: skip


@pytest.fixture
def bench() -> Iterator[Bench]:
    LIVE.clear()
    set_tracing_disabled(True)
    playhead.install(sessions=False)
    langgraph_adapter.install()
    openai_adapter.install()
    made = Bench()
    yield made
    made.close()
    openai_adapter.uninstall()
    langgraph_adapter.uninstall()
    playhead.uninstall()


@pytest.mark.parametrize("build", FRAMEWORKS.values(), ids=FRAMEWORKS)
def test_the_model_is_handed_a_text_in_place_of_an_empty_result(bench: Bench, build: Build):
    run = build(searching(["", "R-1"]))
    with playhead.guards({"search": {"not_empty": True, "message": "Nothing: use another word."}}):
        baseline = bench.record(run, {"prompt": "go"})
    assert baseline.error is None, baseline.error
    assert "Nothing: use another word." in str(baseline.output)
    (call,) = baseline.calls
    assert call.outcome is not None
    assert call.outcome.kind is OutcomeKind.RESULT_ERROR
    guard: Any = call.attributes["guard"]
    assert (guard["fault"], guard["action"], guard["withheld"]) == ("empty", "message", "")
    assert LIVE == ["x"]
    result = bench.replay(baseline, run)
    assert (LIVE, result.by, result.faithful) == (["x"], ["served"], True), result.message
    assert result.output == baseline.output


@pytest.mark.parametrize("build", FRAMEWORKS.values(), ids=FRAMEWORKS)
def test_a_reading_tool_is_called_once_more_and_the_model_sees_the_second_result(bench: Bench, build: Build):
    run = build(searching(["", "R-1"]))
    with playhead.guards({"search": {"not_empty": True, "action": "retry"}}, effects={"search": "read"}):
        baseline = bench.record(run, {"prompt": "go"})
    assert baseline.error is None, baseline.error
    assert "R-1" in str(baseline.output)
    (call,) = baseline.calls
    guard: Any = call.attributes["guard"]
    assert (guard["action"], guard["attempts"]) == ("retry", 2)
    assert LIVE == ["x", "x"]
    result = bench.replay(baseline, run)
    assert (LIVE, result.by, result.faithful) == (["x", "x"], ["served"], True), result.message
