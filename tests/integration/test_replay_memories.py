"""A replay leaves what a program keeps between runs as it is: threads, conversations, caches."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypedDict

import pytest
from agents import Agent, Runner, SQLiteSession, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message
from langchain_core.caches import InMemoryCache as ModelCache
from langchain_core.globals import set_llm_cache
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.base import BaseStore, GetOp
from langgraph.store.memory import InMemoryStore
from langgraph.types import CachePolicy

import playhead
from playhead.core.values import FidelityKind
from playhead.engine.recorder import Recorder
from playhead.store.memory import MemoryStore
from playhead.store.ports import SessionQuery

LIVE: list[str] = []


class Desk:
    """Records an agent and replays what was recorded."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.recorder = Recorder(self.store, interval=0.001)

    def record(self, function: Callable[[str], Any]) -> Callable[[str], Any]:
        agent = playhead.agent("desk", recorder=self.recorder)(function)
        agent("hello")
        return agent

    def replay(self, agent: Any, **options: Any) -> playhead.ReplayResult:
        self.recorder.flush()
        LIVE.clear()
        last = self.store.sessions.find(SessionQuery()).items[0]
        options.setdefault("model_policy", {"type": "history"})
        return playhead.replay(last.id, agent=agent, store=self.store, recorder=self.recorder, **options)


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    playhead.install(sessions=False)
    yield made
    playhead.uninstall()
    made.recorder.close()


class Elsewhere(BaseStore):
    """A store that is no store in memory, as one in a database."""

    def __init__(self) -> None:
        self.inner = InMemoryStore()
        self.asked = 0

    def batch(self, ops: Any) -> Any:
        self.asked += any(isinstance(op, GetOp) for op in ops)
        return self.inner.batch(ops)

    async def abatch(self, ops: Any) -> Any:
        return self.batch(ops)


class Fake(BaseChatModel):
    """Says how many messages it was shown."""

    @property
    def _llm_type(self) -> str:
        return "fake"

    def _generate(self, messages: Sequence[Any], stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        LIVE.append("model")
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=f"saw {len(messages)}"))])


@playhead.tool
def charge(order: str) -> str:
    LIVE.append("charge")
    return f"charged {order}"


def test_a_thread_of_a_checkpointer_does_not_grow_by_a_replay(desk: Desk) -> None:
    def answer(state: Any) -> Any:
        return {"messages": [Fake().invoke(state["messages"])]}

    built = StateGraph(MessagesState).add_node(answer).add_edge(START, "answer")
    graph: Any = built.compile(checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "user-42"}}

    def agent(prompt: str) -> Any:
        for said in (prompt, "and then?"):
            graph.invoke({"messages": [("user", said)]}, thread)
        graph.update_state(thread, {"messages": [("assistant", "closed")]})
        return [m.content for m in graph.get_state(thread).values["messages"]]

    handle = desk.record(agent)
    before = list(graph.get_state_history(thread))

    result = desk.replay(handle)

    assert (result.fidelity.kind, LIVE) == (FidelityKind.FAITHFUL, [])
    assert list(graph.get_state_history(thread)) == before


def test_a_fork_leaves_nothing_in_a_cache_that_a_live_run_reads(desk: Desk) -> None:
    class State(TypedDict):
        order: str
        said: str

    def pay(state: State) -> dict[str, str]:
        return {"said": charge(state["order"])}

    def graph_with(cache: Any) -> Any:
        built = StateGraph(State).add_node("pay", pay, cache_policy=CachePolicy())
        return built.add_edge(START, "pay").compile(cache=cache)

    cache: Any = InMemoryCache()
    graph = graph_with(cache)

    def agent(prompt: str) -> Any:
        return graph.invoke({"order": prompt})["said"]

    handle = desk.record(agent)
    assert desk.replay(handle).fidelity.kind is FidelityKind.FAITHFUL  # it does not read it either
    cache.clear()
    forked = desk.replay(handle, tool_policy={"tools": {"charge": {"type": "static", "cases": [{"result": "no"}]}}})

    assert forked.output == "no"
    assert graph.invoke({"order": "hello"})["said"] == "charged hello"


@pytest.mark.parametrize("kind", [InMemoryStore, Elsewhere])
def test_what_a_node_or_tool_keeps_in_a_store_is_not_kept_by_a_replay(desk: Desk, kind: Any) -> None:
    kept: Any = kind()
    kept.put(("users",), "ann", {"visits": 0})

    class State(TypedDict):
        order: str
        said: str

    def count(state: State, *, store: BaseStore) -> dict[str, str]:
        known = store.get(("users",), "ann")
        store.put(("users",), "ann", {"visits": known.value["visits"] + 1 if known else 1})
        return {"said": charge(state["order"])}

    graph: Any = StateGraph(State).add_node("count", count).add_edge(START, "count").compile(store=kept)

    def agent(prompt: str) -> Any:
        return graph.invoke({"order": prompt})["said"]

    handle = desk.record(agent)
    for _ in range(2):
        assert desk.replay(handle).fidelity.kind is FidelityKind.FAITHFUL
    assert kept.get(("users",), "ann").value == {"visits": 1}
    assert kind is InMemoryStore or kept.asked == 2  # by the recorded run and the line above
    graph.invoke({"order": "again"})
    assert kept.get(("users",), "ann").value == {"visits": 2}


def test_a_cache_of_models_is_neither_read_nor_written_by_a_replay(desk: Desk) -> None:
    cache = ModelCache()
    set_llm_cache(cache)
    try:
        handle = desk.record(lambda prompt: [Fake().invoke(prompt).content for _ in range(2)])
        assert LIVE.count("model") == 1
        kept = dict(cache._cache)

        result = desk.replay(handle)

        assert (result.fidelity.kind, result.output, LIVE) == (FidelityKind.FAITHFUL, ["saw 1", "saw 1"], [])
        cache.clear()
        desk.replay(handle)
        assert kept
        assert not cache._cache
    finally:
        set_llm_cache(None)
        LIVE.clear()


def test_a_conversation_in_a_file_is_neither_read_nor_written_by_a_replay(desk: Desk, tmp_path: Path) -> None:
    set_tracing_disabled(True)
    model = ScriptedModel([[assistant_message("earlier")], [assistant_message("one")], [assistant_message("two")]])
    agent = Agent(name="desk", model=model)
    file = tmp_path / "memory.db"

    async def ask(*prompts: str) -> list[str]:
        said: list[str] = []
        for prompt in prompts:
            memory = SQLiteSession("user-42", file)  # a new one for each request, as servers do
            said.append((await Runner.run(agent, prompt, session=memory)).final_output)
            memory.close()
        return said

    def rows() -> list[Any]:
        with sqlite3.connect(file) as connection:
            return connection.execute("select id, message_data from agent_messages order by id").fetchall()

    asyncio.run(ask("before"))
    handle = desk.record(lambda prompt: asyncio.run(ask(prompt, "more")))
    before = rows()

    result = desk.replay(handle)

    assert (result.fidelity.kind, result.output) == (FidelityKind.FAITHFUL, ["one", "two"])
    assert rows() == before
    assert len(before) == 6
