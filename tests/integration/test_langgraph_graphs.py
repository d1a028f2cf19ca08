"""Compiled graphs, tool nodes, direct tool calls, deep agents and interrupts, recorded and replayed."""

import asyncio
import operator
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, TypedDict

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, ToolRetryMiddleware
from langchain_core.documents import Document
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import InjectedToolCallId, tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import InjectedState, ToolNode, ToolRuntime, tools_condition
from langgraph.types import Command, Send, interrupt
from pydantic import BaseModel

from playhead.adapters import langgraph as adapter
from playhead.core.policy import HistoryModel
from playhead.core.values import NodeKind, OutcomeKind, ReplayStatus, SessionStatus
from playhead.engine import project
from playhead.engine.zero_code import want_sessions
from playhead.store.ports import SessionQuery
from playhead.testing.conformance.bench import Bench


class Fake(BaseChatModel):
    """Answers with the next scripted message, by the number of answers in the request."""

    script: list[AIMessage]

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(t) for t in tools], **kwargs)

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        turn = sum(isinstance(m, AIMessage) for m in messages)
        message = self.script[turn] if turn < len(self.script) else AIMessage(content="done")
        return ChatResult(generations=[ChatGeneration(message=message.model_copy(deep=True))])


def calling(*calls: tuple[str, dict[str, Any]]) -> AIMessage:
    made: Any = [
        {"name": name, "args": args, "id": f"c{n}", "type": "tool_call"} for n, (name, args) in enumerate(calls)
    ]
    return AIMessage(content="", tool_calls=made)


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    notes: Annotated[list[Any], operator.add]


def graph_of(script: list[AIMessage], tools: list[Any], **node: Any) -> Any:
    """The usual loop of a model and a tool node, without `create_agent`."""
    model = Fake(script=script).bind_tools(tools)
    graph: Any = StateGraph(State)
    graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode(tools, **node))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile()


def ask(text: str = "go") -> Any:
    return {"messages": [{"role": "user", "content": text}]}


@pytest.fixture
def bench() -> Iterator[Bench]:
    adapter.install()
    made = Bench()
    yield made
    made.close()
    adapter.uninstall()


def faithful(bench: Bench, baseline: Any, run: Any, live: list[Any]) -> Any:
    """Replays unchanged, under a live and a recorded model, and checks that nothing live ran."""
    assert baseline.error is None, baseline.error
    before, result = list(live), None
    for model in (None, HistoryModel()):
        result = bench.replay(baseline, run, model_policy=model)
        assert live == before, "a live tool was entered"
        assert result.faithful, f"{result.replay.fidelity} {result.message}"
        assert result.session.output == baseline.session.output
    return result


def seen(state: Any) -> list[Any]:
    """A state's messages without what differs from run to run."""
    return [(m.type, m.content, getattr(m, "status", None), getattr(m, "artifact", None)) for m in state["messages"]]


def test_state_and_runtime_that_the_graph_injects_are_no_arguments(bench: Bench) -> None:
    live: list[str] = []

    @tool
    def look(
        q: str, state: Annotated[dict, InjectedState], runtime: ToolRuntime,
        call_id: Annotated[str, InjectedToolCallId], limit: int = 5,
    ) -> str:  # fmt: skip
        """Looks."""
        live.append(q)
        return f"{q} {len(state['messages'])} {runtime.tool_call_id} {call_id} {limit}"

    def run(prompt: str) -> Any:
        state = graph_of([calling(("look", {"q": "x"}))], [look]).invoke(ask(prompt))
        return seen(state)

    baseline = bench.record(run, {"prompt": "go"})
    assert [(n.call.arguments, n.outcome.value) for n in baseline.calls] == [({"q": "x"}, "x 2 c0 c0 5")]
    faithful(bench, baseline, run, live)


def test_commands_messages_artifacts_and_nothing_come_back_as_they_were(bench: Bench) -> None:
    live: list[str] = []

    @tool
    def note(text: str, call_id: Annotated[str, InjectedToolCallId]) -> Command:
        """Notes."""
        live.append("note")
        message = ToolMessage(f"noted {text}", tool_call_id=call_id)
        return Command(update={"notes": [("pair", {1: text})], "messages": [message]})

    @tool(response_format="content_and_artifact")
    def chart(n: int) -> tuple[str, Any]:
        """Charts."""
        live.append("chart")
        return f"chart {n}", {"points": (1, n), "source": Document(page_content="d", metadata={"n": n})}

    @tool
    def nothing() -> None:
        """Gives nothing."""
        live.append("nothing")

    @tool
    def refuse(call_id: Annotated[str, InjectedToolCallId]) -> ToolMessage:
        """Says no."""
        live.append("refuse")
        return ToolMessage("no", tool_call_id=call_id, status="error", artifact=[1])

    states: list[Any] = []
    script = [calling(("note", {"text": "a"}), ("chart", {"n": 3}), ("nothing", {}), ("refuse", {}))]

    def run(prompt: str) -> Any:
        states.append(graph_of(script, [note, chart, nothing, refuse]).invoke(ask(prompt)))
        return len(states[-1]["messages"])

    baseline = bench.record(run, {"prompt": "go"})
    kinds = {n.name: (n.outcome.kind, n.outcome.value) for n in baseline.calls if n.outcome}
    assert kinds == {
        "note": (OutcomeKind.VALUE, "noted a"), "chart": (OutcomeKind.VALUE, "chart 3"),
        "nothing": (OutcomeKind.VALUE, None), "refuse": (OutcomeKind.RESULT_ERROR, "no"),
    }  # fmt: skip
    faithful(bench, baseline, run, live)
    assert states[0]["notes"] == [("pair", {1: "a"})]
    for state in states[1:]:
        assert state["notes"] == states[0]["notes"]
        assert seen(state) == seen(states[0])


def test_a_tool_without_a_model_gives_its_bare_value(bench: Bench) -> None:
    live: list[Any] = []

    class Row(BaseModel):
        id: int

    @tool
    def rows(n: int) -> list[Row]:
        """Rows."""
        live.append(n)
        return [Row(id=n)]

    @tool
    def pair(n: int) -> tuple[int, str]:
        """Pair."""
        live.append(n)
        return n, "x"

    given: list[Any] = []

    def run(prompt: str) -> str:
        given.append((rows.invoke({"n": 1}), pair.invoke({"n": 2}), pair.invoke({"n": 2})))
        return str(given[-1])

    baseline = bench.record(run, {"prompt": "go"})
    assert [n.call.arguments for n in baseline.calls if n.call] == [{"n": 1}, {"n": 2}, {"n": 2}]
    result = bench.replay(baseline, run)
    assert result.faithful, result.message
    assert live == [1, 2, 2]
    assert given[0] == given[1] == ([Row(id=1)], (2, "x"), (2, "x"))


@pytest.mark.parametrize("handled", [True, "sorry", False])
def test_a_stop_is_not_swallowed_by_a_tool_node_that_handles_errors(bench: Bench, handled: Any) -> None:
    words, live, models = ["a"], list[str](), list[Any]()

    @tool
    def look(q: str) -> str:
        """Looks."""
        live.append(q)
        return q

    def run(prompt: str) -> str:
        script = [calling(("look", {"q": words[0]}))]
        models.append(script)
        return str(graph_of(script, [look], handle_tool_errors=handled).invoke(ask(prompt))["messages"][-1].content)

    baseline = bench.record(run, {"prompt": "go"})
    words[0], live[:] = "other", []
    result = bench.replay(baseline, run)
    assert live == []
    assert result.replay.status is ReplayStatus.FAILED
    assert "other" in result.message
    assert len(result.model_calls) == 1, "the model was asked after the stop"


def test_errors_that_a_tool_node_turns_into_messages_are_raised_again(bench: Bench) -> None:
    live: list[str] = []

    @tool
    def look(q: str) -> str:
        """Looks."""
        live.append(q)
        raise KeyError(q)

    def run(prompt: str) -> str:
        graph = graph_of([calling(("look", {"q": "x"}))], [look], handle_tool_errors=True)
        return str(seen(graph.invoke(ask(prompt))))

    baseline = bench.record(run, {"prompt": "go"})
    assert [n.outcome.error.class_name for n in baseline.calls if n.outcome and n.outcome.error] == ["KeyError"]
    faithful(bench, baseline, run, live)


def test_a_fan_out_to_tools_by_send_keeps_each_call_its_answer(bench: Bench) -> None:
    live: list[int] = []

    @tool
    def work(n: int) -> str:
        """Works."""
        live.append(n)
        return f"{n}: {len(live)}"

    class Fan(TypedDict):
        found: Annotated[list[str], operator.add]

    graph: Any = StateGraph(Fan)
    graph.add_node("work", lambda item: {"found": [work.invoke({"n": item["n"]})]})
    graph.add_conditional_edges(START, lambda state: [Send("work", {"n": n}) for n in (1, 2, 1, 3)], ["work"])
    compiled = graph.compile()

    def run(prompt: str) -> str:
        return str(sorted(compiled.invoke({"found": []}, {"max_concurrency": 1})["found"]))

    baseline = bench.record(run, {"prompt": "go"})
    assert len(baseline.calls) == 4
    faithful(bench, baseline, run, live)


def test_an_agent_that_hands_over_with_its_messages_leaves_each_of_them_once(bench: Bench) -> None:
    """The way of swarms and supervisors: the messages that a tool gives back are those of the state, by their ids."""
    live: list[Any] = []

    @tool
    def to_bob(runtime: ToolRuntime[Any, Any]) -> Command[Any]:
        """Hands over."""
        live.append(None)
        moved = ToolMessage("moved", tool_call_id=runtime.tool_call_id)
        return Command(goto="bob", graph=Command.PARENT, update={"messages": [*runtime.state["messages"], moved]})

    def run(prompt: str) -> str:
        graph: Any = StateGraph(MessagesState)
        alice = create_agent(Fake(script=[calling(("to_bob", {}))]), [to_bob], name="alice")
        graph.add_node("alice", alice, destinations=("bob",))
        graph.add_node("bob", create_agent(Fake(script=[]), [], name="bob"))
        graph.add_edge(START, "alice")
        said = graph.compile(name="swarm").invoke({"messages": [("user", prompt)]})["messages"]
        return str([m.content for m in said])

    baseline = bench.record(run, {"prompt": "go"})
    assert baseline.session.output == "['go', '', 'moved', 'done']"
    faithful(bench, baseline, run, live)


MODES: tuple[Any, ...] = ("updates", "messages", "values", "custom", "tasks", "checkpoints", "debug")


@pytest.mark.parametrize("modes", [list(MODES), *MODES], ids=str)
def test_what_tools_write_to_the_stream_comes_again_in_every_mode(bench: Bench, modes: Any) -> None:
    live: list[Any] = []

    @tool
    async def walk(n: int, runtime: ToolRuntime[Any, Any]) -> str:
        """Walks."""
        live.append(n)
        get_stream_writer()({"step": n})
        runtime.stream_writer(("turn", n))
        return "walked"

    async def stream(prompt: str) -> str:
        model = Fake(script=[calling(("walk", {"n": 1})), calling(("walk", {"n": 2}))])
        graph = create_agent(model, [walk], name="tour", checkpointer=InMemorySaver())
        seen: list[str] = []
        config: Any = {"configurable": {"thread_id": "t"}}
        given: Any = {"messages": [("user", prompt)]}
        async for found in graph.astream(given, config, stream_mode=modes):
            mode, chunk = found if isinstance(modes, list) else (modes, found)
            seen.append(f"{mode}: {chunk if mode == 'custom' else len(chunk)}")
        return "\n".join(seen)

    def run(prompt: str) -> str:
        return asyncio.run(stream(prompt))

    baseline = bench.record(run, {"prompt": "go"})
    assert ("('turn', 2)" in baseline.session.output) == ("custom" in modes)
    faithful(bench, baseline, run, live)


def test_an_unknown_tool_and_bad_arguments_leave_nodes(bench: Bench) -> None:
    live: list[int] = []

    @tool
    def add(x: int) -> int:
        """Adds."""
        live.append(x)
        return x + 1

    unread: Any = {"name": "add", "args": '{"x": ', "id": "b", "error": None, "type": "invalid_tool_call"}
    broken = AIMessage(content="", invalid_tool_calls=[unread])
    script = [calling(("nope", {}), ("add", {"x": "no number"}), ("add", {"x": 1})), broken]

    def run(prompt: str) -> str:
        return str(seen(graph_of(script, [add]).invoke(ask(prompt))))

    baseline = bench.record(run, {"prompt": "go"})
    kinds = [n.outcome.kind if n.outcome else n.status for n in baseline.calls]
    assert kinds == [
        OutcomeKind.RESULT_ERROR, OutcomeKind.INVALID_ARGS, OutcomeKind.VALUE, OutcomeKind.INVALID_ARGS,
    ]  # fmt: skip
    assert baseline.calls[-1].call.arguments == {"$invalid": '{"x": '}
    faithful(bench, baseline, run, live)


def test_files_that_a_deep_agent_writes_to_its_state_are_there_after_a_replay(bench: Bench) -> None:
    write = {"file_path": "/a.txt", "content": "hello"}
    edit = {"file_path": "/a.txt", "old_string": "hello", "new_string": "bye"}
    script = [
        calling(("write_file", write)), calling(("edit_file", edit)),
        calling(("task", {"description": "look", "subagent_type": "general-purpose"})),
    ]  # fmt: skip
    files: list[Any] = []

    def run(prompt: str) -> str:
        agent = create_deep_agent(model=Fake(script=script), tools=[])
        state = agent.invoke(ask(prompt))
        files.append(state["files"])
        return str(state["messages"][-1].content)

    baseline = bench.record(run, {"prompt": "go"})
    assert files[0]["/a.txt"]["content"] == "bye"
    assert [n.name for n in baseline.nodes if n.kind is NodeKind.AGENT_CALL] == ["general-purpose"]
    faithful(bench, baseline, run, [])
    assert files[1:] == files[:1] * 2, "the files differ, times included"


# --- pauses ---------------------------------------------------------------------------------------------------------


def test_a_tool_that_pauses_twice_is_resumed_in_the_same_places(bench: Bench) -> None:
    live: list[str] = []

    @tool
    def book(day: str) -> str:
        """Books."""
        name = interrupt({"ask": "name"})
        sure = interrupt({"ask": "sure"})
        live.append(day)
        return f"{day} for {name}: {sure}"

    asked: list[Any] = []

    def run(prompt: str) -> str:
        agent = create_agent(Fake(script=[calling(("book", {"day": "mon"}))]), [book], checkpointer=InMemorySaver())
        config: Any = {"configurable": {"thread_id": "t"}}
        state = agent.invoke(ask(prompt), config)
        for answer in ("Ann", True):
            asked.append(state["__interrupt__"][0].value)
            state = agent.invoke(Command(resume=answer), config)
        return str(state["messages"][-2].content)

    baseline = bench.record(run, {"prompt": "go"})
    assert baseline.output == "mon for Ann: True"
    kinds = [(n.call.attempt, n.outcome.kind) for n in baseline.calls if n.call and n.outcome]
    assert kinds == [(1, OutcomeKind.INTERRUPT), (2, OutcomeKind.INTERRUPT), (3, OutcomeKind.VALUE)]
    assert len(baseline.session.turns) == 3
    faithful(bench, baseline, run, live)
    assert asked == [{"ask": "name"}, {"ask": "sure"}] * 3


def test_a_person_in_the_loop_rejects_one_call_and_lets_the_other_run(bench: Bench) -> None:
    live: list[str] = []

    @tool
    def delete(path: str) -> str:
        """Deletes."""
        live.append(path)
        return f"deleted {path}"

    def run(prompt: str) -> str:
        agent = create_agent(
            Fake(script=[calling(("delete", {"path": "a"}), ("delete", {"path": "b"}))]),
            [delete],
            middleware=[HumanInTheLoopMiddleware(interrupt_on={"delete": True})],
            checkpointer=InMemorySaver(),
        )
        config: Any = {"configurable": {"thread_id": "t"}}
        agent.invoke(ask(prompt), config)
        decisions = [{"type": "reject", "message": "not that"}, {"type": "approve"}]
        state = agent.invoke(Command(resume={"decisions": decisions}), config)
        return str(sorted(m.content for m in state["messages"] if isinstance(m, ToolMessage)))

    baseline = bench.record(run, {"prompt": "go"})
    assert baseline.error is None, baseline.error
    assert live == ["b"]
    found = {n.call.arguments["path"]: n.outcome.kind for n in baseline.calls if n.call and n.outcome}
    assert found == {"a": OutcomeKind.RESULT_ERROR, "b": OutcomeKind.VALUE}
    faithful(bench, baseline, run, live)


def test_attempts_of_a_retry_middleware_are_served_in_order(bench: Bench) -> None:
    live: list[int] = []

    @tool
    def flaky(x: int) -> int:
        """Fails twice."""
        live.append(x)
        if len(live) < 3:
            raise ConnectionError("try again")
        return x

    def run(prompt: str) -> str:
        retry = ToolRetryMiddleware(max_retries=3, initial_delay=0, backoff_factor=0, jitter=False)
        agent = create_agent(Fake(script=[calling(("flaky", {"x": 7}))]), [flaky], middleware=[retry])
        return str(seen(agent.invoke(ask(prompt))))

    baseline = bench.record(run, {"prompt": "go"})
    assert [n.call.attempt for n in baseline.calls if n.call] == [1, 2, 3]
    faithful(bench, baseline, run, live)


# --- graphs as entry points -----------------------------------------------------------------------------------------


def test_a_graph_is_started_again_from_its_recorded_inputs(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    live: list[str] = []

    @tool
    def look(q: str) -> str:
        """Looks."""
        live.append(q)
        return q

    monkeypatch.setattr(project, "default_recorder", lambda: bench.recorder)
    graph = graph_of([calling(("look", {"q": "x"}))], [look])
    want_sessions(True)
    try:
        graph.invoke({"messages": [("user", "hi")], "notes": [1]}, {"configurable": {"who": "me"}})
        list(graph.stream(ask("streamed"), stream_mode="updates"))
    finally:
        want_sessions(False)
    bench.recorder.flush()
    sessions = {s.inputs["messages"][0]["content"]: s for s in bench.store.sessions.find(SessionQuery()).items}
    first, streamed = bench.read(sessions["hi"].id), bench.read(sessions["streamed"].id)
    assert first.session.inputs["graph_configurable"] == {"who": "me"}
    assert first.session.status is SessionStatus.COMPLETED
    assert (first.session.output, streamed.session.output) == ({"answer": "done", "notes": [1]}, "done")
    live.clear()
    for baseline in (first, streamed):
        result = bench.replay(baseline, graph, model_policy=HistoryModel())
        assert result.faithful, f"{result.replay.fidelity} {result.message}"
    assert live == []
