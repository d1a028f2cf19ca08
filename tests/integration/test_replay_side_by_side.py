"""Agents, branches and tools that run at once: in another order than recorded, and nothing has changed."""

import asyncio
import operator
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import START, StateGraph
from langgraph.types import Send
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import playhead
from playhead.core.policy import HistoryModel
from playhead.testing.conformance.bench import Bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    playhead.install(sessions=False)
    made = Bench()
    yield made
    made.close()
    playhead.uninstall()


def test_agents_that_run_at_once_are_faithful_in_any_order(bench: Bench) -> None:
    second = asyncio.Event()

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turn, prompt = len(messages) // 2, str(messages[0].parts[0])
        if "slow" in prompt and not turn:
            await second.wait()
        elif "quick" in prompt and turn:
            second.set()
        return ModelResponse(parts=[TextPart("done") if turn else ToolCallPart("look", {}, tool_call_id="c")])

    agent = Agent(FunctionModel(answer), name="helper")

    @agent.tool_plain
    async def look() -> str:
        return "seen"

    async def at_once(prompt: str) -> list[str]:
        ran = await asyncio.gather(agent.run(f"slow {prompt}"), agent.run(f"quick {prompt}"))
        return [one.output for one in ran]

    def both(prompt: str) -> list[str]:
        return asyncio.run(at_once(prompt))

    baseline = bench.record(both, {"prompt": "go"})
    asked = [str(n.inputs["messages"][0]) for n in baseline.nodes if n.model is not None and n.inputs is not None]
    assert ["quick" in text for text in asked] == [False, True, True, False]
    result = bench.replay(baseline, both, model_policy=HistoryModel())
    again = [str(n.inputs["messages"][0]) for n in result.nodes if n.model is not None and n.inputs is not None]
    assert ["quick" in text for text in again] == [False, True, False, True]
    assert result.faithful, result.replay.fidelity


def test_agents_at_once_that_ask_the_same_get_each_its_own_answer(bench: Bench) -> None:
    """Only the conversation tells whose call it is: the tool gave something else each time."""
    second = asyncio.Event()
    given = iter(range(100))

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turn, prompt = len(messages) // 2, str(messages[0].parts[0])
        if "slow" in prompt and not turn and not second.is_set():
            await second.wait()
        elif "quick" in prompt and turn:
            second.set()
        last: Any = messages[-1].parts[0]
        return ModelResponse(parts=[TextPart(last.content) if turn else ToolCallPart("look", {}, tool_call_id="c")])

    agent = Agent(FunctionModel(answer), name="helper")

    @agent.tool_plain
    async def look() -> str:
        return f"seen {next(given)}"

    async def at_once(prompt: str) -> list[str]:
        ran = await asyncio.gather(agent.run(f"slow {prompt}"), agent.run(f"quick {prompt}"))
        return [one.output for one in ran]

    def both(prompt: str) -> list[str]:
        return asyncio.run(at_once(prompt))

    baseline = bench.record(both, {"prompt": "go"})
    assert baseline.output == ["seen 1", "seen 0"]
    for model in (HistoryModel(), None):
        result = bench.replay(baseline, both, model_policy=model)
        assert (result.output, result.faithful) == (baseline.output, True), result.replay.fidelity
    assert next(given) == 2


class Topics(TypedDict):
    topics: list[str]
    found: Annotated[list[str], operator.add]


class Writer(BaseChatModel):
    """All topics are asked at once; the first is answered after the second has had both of its answers."""

    begun: Any
    done: Any

    @property
    def _llm_type(self) -> str:
        return "writer"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        text = str(messages[-1].content)
        if not text.endswith("!"):
            self.begun.wait(30)
        if text == "slow":
            self.done.wait(30)
        elif text == "quick!":
            self.done.set()
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=f"{text}!"))])


def test_branches_of_a_graph_are_faithful_in_any_order(bench: Bench) -> None:
    model = Writer(begun=threading.Barrier(3), done=threading.Event())

    def work(state: Any) -> Any:
        first = model.invoke(state["topic"]).content
        return {"found": [model.invoke(first).content]}

    graph: Any = StateGraph(Topics)
    graph.add_node("work", work)
    graph.add_conditional_edges(START, lambda s: [Send("work", {"topic": t}) for t in s["topics"]], ["work"])  # pyright: ignore
    made = graph.compile()

    def run(topics: list[str]) -> list[str]:
        return made.invoke({"topics": topics, "found": []})["found"]

    baseline = bench.record(run, {"topics": ["slow", "quick", "last"]})
    assert baseline.output == ["slow!!", "quick!!", "last!!"]
    for _ in range(3):
        result = bench.replay(baseline, run, model_policy=HistoryModel())
        assert result.faithful, result.replay.fidelity


def test_tools_that_plain_code_runs_at_once_are_faithful_in_any_order(bench: Bench) -> None:
    order = ["a", "b"]
    may = {"a": threading.Event(), "b": threading.Event()}

    @playhead.tool
    def check(name: str) -> str:
        may[name].wait(30)  # both have begun
        return name

    def run(prompt: str) -> list[str]:
        with ThreadPoolExecutor(2) as pool:
            begun = [pool.submit(copy_context().run, check, name) for name in order]
            for event in may.values():
                event.set()
            return sorted(one.result() for one in begun)

    baseline = bench.record(run, {"prompt": "go"})
    for event in may.values():
        event.clear()
    order.reverse()
    result = bench.replay(baseline, run)
    assert [n.call.arguments for n in result.calls if n.call] == [{"name": "b"}, {"name": "a"}]
    assert result.faithful, result.replay.fidelity
