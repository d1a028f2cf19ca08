"""Tools that middleware answers without running them."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_tool_call
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

import playhead
from playhead.core.values import FidelityKind
from playhead.engine.recorder import Recorder
from playhead.store.memory import MemoryStore
from playhead.store.ports import SessionQuery

LIVE: list[str] = []


class Fake(BaseChatModel):
    """Asks for both tools, then says what it saw."""

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: Sequence[Any], stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        calls: Any = [{"name": name, "args": {"order": "1"}, "id": name} for name in ("charge", "lookup")]
        said = AIMessage(content="", tool_calls=calls)
        if isinstance(messages[-1], ToolMessage):
            said = AIMessage(content=str([m.content for m in messages if isinstance(m, ToolMessage)]))
        return ChatResult(generations=[ChatGeneration(message=said)])


@tool
def charge(order: str) -> str:
    """Charges an order."""
    LIVE.append("charge")
    return f"charged {order}"


@tool
def lookup(order: str) -> str:
    """Looks up an order."""
    LIVE.append("lookup")
    return f"order {order}"


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    LIVE.clear()
    made = Recorder(MemoryStore(), interval=0.001)
    playhead.install(sessions=False)
    yield made
    playhead.uninstall()
    made.close()


def recorded(recorder: Recorder, cached: dict[str, str]) -> Any:
    @wrap_tool_call
    def from_cache(request: Any, handler: Any) -> Any:
        name = request.tool_call["name"]
        if name in cached:
            return ToolMessage(cached[name], tool_call_id=request.tool_call["id"])
        return handler(request)

    graph: Any = create_agent(Fake(), [charge, lookup], middleware=[from_cache])

    @playhead.agent("desk", recorder=recorder)
    def desk(prompt: str) -> str:
        return graph.invoke({"messages": [("user", prompt)]})["messages"][-1].content

    desk("hello")
    recorder.flush()
    return desk


def replayed(recorder: Recorder, agent: Any) -> playhead.ReplayResult:
    LIVE.clear()
    last = recorder.store.sessions.find(SessionQuery()).items[0]
    return playhead.replay(
        last.id, agent=agent, store=recorder.store, recorder=recorder, model_policy={"type": "history"}
    )


def test_a_tool_that_middleware_answers_from_its_cache_replays(recorder: Recorder) -> None:
    desk = recorded(recorder, {"lookup": "order 1, as ever"})
    assert LIVE == ["charge"]

    result = replayed(recorder, desk)

    assert (result.fidelity.kind, result.output, LIVE) == (
        FidelityKind.FAITHFUL,
        "['charged 1', 'order 1, as ever']",
        [],
    )


def test_another_answer_of_the_cache_is_not_taken_for_the_recorded_one(recorder: Recorder) -> None:
    cached = {"lookup": "order 1, as ever"}
    desk = recorded(recorder, cached)
    cached["lookup"] = "order 1, of today"

    result = replayed(recorder, desk)

    assert result.fidelity.kind is FidelityKind.DIVERGED
    assert result.error is not None
    assert "'lookup'" in result.error.message
    assert LIVE == []


def test_where_the_cache_is_cold_the_recording_answers(recorder: Recorder) -> None:
    cached = {"charge": "charged 1, as ever"}
    desk = recorded(recorder, cached)
    cached.clear()

    result = replayed(recorder, desk)

    assert (result.output, LIVE) == ("['charged 1, as ever', 'order 1']", [])
