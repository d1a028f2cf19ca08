"""The seam in a replay: claims in the model's order, stops, rejected calls, model history, the end of a recording."""

import asyncio
import logging
import threading
from typing import Any

import pytest

from playhead.core.policy import (
    HistoryConfig,
    HistoryModel,
    InjectConfig,
    LLMConfig,
    PassthroughConfig,
    StaticCase,
    StaticConfig,
    ToolPolicy,
)
from playhead.core.tape import Tape
from playhead.core.values import Origin, Outcome, OutcomeKind, SessionStatus
from playhead.engine import seam
from playhead.engine.answers import RecordedAnswers
from playhead.engine.recorder import Recorder
from playhead.engine.replaying import RecordingEnded, ReplayState
from playhead.engine.seam import ModelRequest, ModelResult, Requested
from playhead.errors import MissError, RecordingError, ReplayStop
from playhead.store.ports import SessionQuery

begin: Any = seam.session
TOOLS = [{"name": "search", "parameters": {"type": "object", "properties": {"limit": {"type": "integer"}}}}]


def text(role: str, words: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "text": words}]}


def ask(active: Any, calls: list[Requested], messages: list[Any] | None = None) -> Any:
    request = ModelRequest(messages=messages or [text("user", "hi")], tools=TOOLS, model="m")
    step = active.model_call("m", request=request)
    answer = step.decide()
    step.announce(calls)
    step.observe(answer or ModelResult(message=text("assistant", "ok")))
    return answer


def make_state(recorder: Recorder, policy: ToolPolicy | None = None, *, history: bool = False, **more: Any) -> Any:
    assert recorder.flush()
    baseline = recorder.store.sessions.find(SessionQuery(oldest_first=True)).items[0]
    nodes = recorder.store.sessions.nodes(baseline.id)
    tape = Tape.build(nodes, policy)
    answers = RecordedAnswers(nodes, tape, baseline, on_miss="fail") if history else None
    if history:
        more["model_policy"] = HistoryModel()
    return ReplayState(tape=tape, baseline=baseline, policy=policy or ToolPolicy(), answers=answers, **more)


def rows(state: Any) -> list[tuple[str | None, str]]:
    return [(row.tool, row.by) for row in state.ledger if row.kind == "tool"]


def record(recorder: Recorder, *answers: Any) -> None:
    with begin("desk", inputs="hi", recorder=recorder) as active:
        ask(active, [Requested(f"c{n}", "search", {"q": "x"}) for n in range(len(answers))])
        for number, answer in enumerate(answers):
            active.tool_call("search", call_id=f"c{number}").returned(answer)
        active.set_output("done")


def test_parallel_identical_calls_get_their_own_answers_however_they_arrive(recorder: Recorder):
    record(recorder, "A", "B", "C")
    state = make_state(recorder)
    got: dict[int, Any] = {}

    def call(active: Any, number: int) -> None:
        step = active.tool_call("search", call_id=f"new{number}")
        got[number] = step.decide().value
        step.observe(Outcome(kind=OutcomeKind.VALUE, value=got[number]))

    with seam.replaying(state), begin("desk", recorder=recorder) as active:
        ask(active, [Requested(f"new{n}", "search", '{"q":"x"}') for n in range(3)])
        threads = [threading.Thread(target=call, args=(active, n)) for n in (2, 0, 1)]
        for thread in threads:
            thread.start()
            thread.join()
    assert got == {0: "A", 1: "B", 2: "C"}
    assert rows(state) == [("search", "served")] * 3
    result = recorder.store.sessions.find(SessionQuery(origins=(Origin.REPLAY,))).items
    assert recorder.flush()
    result = recorder.store.sessions.get(state.sessions[0])
    assert (result.inputs, result.baseline_id, result.origin) == ("hi", state.baseline.id, Origin.REPLAY)


def test_a_miss_stops_every_later_decision_and_model_call_and_leaves_as_a_miss(recorder: Recorder):
    record(recorder, "A")
    state = make_state(recorder)
    stops: list[str] = []

    def swallow(call: Any) -> None:
        try:
            call()
        except BaseException as error:
            stops.append(type(error).__name__)

    def replay() -> None:
        with seam.replaying(state), begin("desk", recorder=recorder) as active:
            swallow(lambda: active.tool_call("search", arguments={"q": "other"}).decide())
            swallow(lambda: active.tool_call("search", arguments={"q": "x"}))
            swallow(lambda: ask(active, []))

    with pytest.raises(MissError, match="search"):
        replay()
    assert stops == ["ReplayStop"] * 3
    assert rows(state) == [("search", "missed")]
    assert recorder.flush()
    result = recorder.store.sessions.get(state.sessions[0])
    assert (result.status, result.error.class_name) == (SessionStatus.FAILED, "MissError")  # type: ignore[union-attr]


def test_an_inner_boundary_passes_the_stop_on_even_when_it_was_swallowed(recorder: Recorder):
    record(recorder, "A")
    state = make_state(recorder)

    def replay() -> None:
        with seam.replaying(state), begin("desk", recorder=recorder), begin("agent"), begin("inner"):
            try:
                active: Any = seam.current()
                active.tool_call("search", arguments={"q": "other"}).decide()
            except BaseException:
                pass

    with pytest.raises(MissError):
        replay()


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_static_inject_llm_and_passthrough_are_carried_out(recorder: Recorder, colour: str):
    record(recorder, "A")

    class Writer:
        def write(self, config: Any, request: Any) -> Outcome:
            return Outcome(kind=OutcomeKind.VALUE, value=f"made for {request.arguments['q']}")

        async def write_async(self, config: Any, request: Any) -> Outcome:
            return self.write(config, request)

    policy = ToolPolicy(
        tools={
            "fixed": StaticConfig(cases=(StaticCase(result="F", delay_ms=1),)),
            "broken": InjectConfig(kind="timeout", nth=1, then=PassthroughConfig()),
            "written": LLMConfig(),
            "live": PassthroughConfig(),
            "soft": HistoryConfig(on_miss="error_result"),
        }
    )
    state = make_state(recorder, policy, writer=Writer())
    got: dict[str, Any] = {}
    with seam.replaying(state), begin("desk", recorder=recorder) as active:
        for tool in ("fixed", "broken", "written", "live", "soft"):
            step = active.tool_call(tool, arguments={"q": "x"})
            answer = step.decide() if colour == "sync" else asyncio.run(step.decide_async())
            got[tool] = answer
            step.observe(answer or Outcome(kind=OutcomeKind.VALUE, value="ran"))
    assert (got["fixed"].value, got["written"].value, got["live"]) == ("F", "made for x", None)
    assert got["broken"].kind is not OutcomeKind.VALUE
    assert got["soft"].kind is OutcomeKind.RESULT_ERROR
    assert [by for _, by in rows(state)] == ["static", "injected", "generated", "live", "missed"]


def test_a_model_that_cannot_write_a_result_stops_the_replay(recorder: Recorder):
    record(recorder, "A")
    state = make_state(recorder, ToolPolicy(default=LLMConfig()))

    def replay() -> None:
        with seam.replaying(state), begin("desk", recorder=recorder) as active:
            active.tool_call("search", arguments={"q": "x"}).decide()

    with pytest.raises(RecordingError, match="no model"):
        replay()
    assert rows(state) == [("search", "stopped")]


def test_retries_under_one_call_id_get_their_attempts_and_one_more_is_a_miss(recorder: Recorder):
    with begin("desk", recorder=recorder) as active:
        ask(active, [Requested("a", "search", {"q": 1})])
        active.tool_call("search", call_id="a").fail(TimeoutError("slow"))
        active.tool_call("search", call_id="a").returned("found")
    state = make_state(recorder)
    got: list[Any] = []

    def replay() -> None:
        with seam.replaying(state), begin("desk", recorder=recorder) as active:
            ask(active, [Requested("z", "search", {"q": 1})])
            for _ in range(3):
                step = active.tool_call("search", call_id="z")
                got.append(step.decide())
                step.observe(got[-1])

    with pytest.raises(MissError):
        replay()
    assert [g.kind for g in got] == [OutcomeKind.ERROR, OutcomeKind.VALUE]
    assert repr(seam.exception_of(got[0])) == "TimeoutError('slow')"


def refuse(recorder: Recorder, content: str, tool: str = "nope", *, is_error: bool = False, agent: str = "desk") -> Any:
    part = {
        "type": "tool_result",
        "id": "a",
        "name": tool,
        "content": content,
        **({"is_error": True} if is_error else {}),
    }
    with begin(agent, recorder=recorder) as active:
        ask(active, [Requested("a", tool, {"q": 1})])
        ask(active, [], [text("user", "hi"), {"role": "tool", "parts": [part]}])
    return active


def test_a_call_refused_again_in_the_same_way_is_served_by_that(recorder: Recorder):
    refuse(recorder, "unknown tool")
    state = make_state(recorder)
    with seam.replaying(state):
        refuse(recorder, "unknown tool")
    (row,) = [row for row in state.ledger if row.kind == "tool"]
    assert (row.by, row.marks) == ("rejected", ("rejected again",))
    state = make_state(recorder)
    with seam.replaying(state):
        refuse(recorder, "other words")
    (row,) = [row for row in state.ledger if row.kind == "tool"]
    assert (row.by, row.marks) == ("rejected", ())


def test_a_tool_that_ran_without_asking_stops_the_replay_unless_it_may_run_live(recorder: Recorder):
    record(recorder, "A")
    with pytest.raises(RecordingError, match="outside playhead"), seam.replaying(make_state(recorder)):
        refuse(recorder, "a result", "search")
    state = make_state(recorder, ToolPolicy(default=PassthroughConfig()))
    with seam.replaying(state):
        refuse(recorder, "a result", "search")
    assert rows(state) == [("search", "live")]


def test_a_tool_that_ran_without_asking_while_recording_stops_the_replay_although_it_says_the_same(
    recorder: Recorder, caplog: pytest.LogCaptureFixture
):
    with caplog.at_level(logging.WARNING, "playhead"):
        refuse(recorder, "a result", "search", agent="warned")
        refuse(recorder, "a result", "search", agent="warned")
    (warned,) = caplog.records
    assert "tool 'search' of 'warned' was answered and nothing saw it run" in warned.getMessage()
    state = make_state(recorder)
    with pytest.raises(RecordingError, match="outside playhead"), seam.replaying(state):
        refuse(recorder, "a result", "search", agent="warned")
    assert rows(state) == [("search", "live")]


@pytest.mark.parametrize("arguments", [{"q": 1, "limit": "many"}, {"q": 1}], ids=["misfit", "fits"])
def test_what_a_loop_of_ones_own_answers_instead_of_the_tool_is_served_by_being_answered_again(
    recorder: Recorder, caplog: pytest.LogCaptureFixture, arguments: Any
):
    """Chat completions have no mark for an error result. The schema refuses the arguments, or the tool is one that is
    seen when it runs."""

    def run(content: str) -> None:
        part = {"type": "tool_result", "id": "a", "name": "search", "content": content}
        with begin("loop", recorder=recorder) as active:
            ask(active, [Requested("b", "search", {"q": 2})])
            step = active.tool_call("search", arguments={"q": 2}, call_id="b")
            answer = step.decide()
            step.observe(answer or Outcome(kind=OutcomeKind.VALUE, value="found"))
            ask(active, [Requested("a", "search", arguments)])
            ask(active, [], [text("user", "hi"), {"role": "tool", "parts": [part]}])

    run("limit: no number")
    assert caplog.records == []
    state = make_state(recorder)
    with seam.replaying(state):
        run("limit: no number")
    assert [(row.by, row.marks) for row in state.ledger if row.kind == "tool"] == [
        ("served", ()), ("rejected", ("rejected again",)),
    ]  # fmt: skip
    with pytest.raises(RecordingError, match="outside playhead"), seam.replaying(make_state(recorder)):
        run("other words")


def test_model_history_answers_equal_requests_and_misses_others(recorder: Recorder):
    record(recorder, "A")
    state = make_state(recorder, history=True)
    with seam.replaying(state), begin("desk", recorder=recorder) as active:
        assert ask(active, []).value == text("assistant", "ok")
    assert [row.by for row in state.ledger if row.kind == "model"] == ["served"]
    state = make_state(recorder, history=True)

    def replay() -> None:
        with seam.replaying(state), begin("desk", recorder=recorder) as active:
            ask(active, [], [text("user", "hello")])

    with pytest.raises(MissError, match="hello"):
        replay()


def test_where_the_recording_ends_the_replay_ends_as_it_did(recorder: Recorder):
    call = {"type": "tool_call", "id": "a", "name": "search", "arguments": {"q": 1}}
    answer = {"role": "assistant", "parts": [call]}
    with begin("desk", recorder=recorder) as active:
        step = active.model_call("m", request=ModelRequest(messages=[text("user", "hi")], model="m"))
        step.announce([Requested("a", "search", {"q": 1})])
        step.observe(ModelResult(message=answer))
        active.tool_call("search", call_id="a").returned("found")
        active.set_output("stopped here")
    state = make_state(recorder, history=True)
    result = {"role": "tool", "parts": [{"type": "tool_result", "id": "a", "name": "search", "content": "found"}]}

    def replay() -> None:
        with seam.replaying(state), begin("desk", recorder=recorder) as active:
            messages = [text("user", "hi")]
            step = active.model_call("m", request=ModelRequest(messages=messages, model="m"))
            step.observe(step.decide())
            step.announce([Requested("a", "search", {"q": 1})])
            call = active.tool_call("search", call_id="a")
            call.observe(call.decide())
            active.model_call("m", request=ModelRequest(messages=[*messages, answer, result], model="m")).decide()

    with pytest.raises(RecordingEnded):
        replay()
    assert recorder.flush()
    ended = recorder.store.sessions.get(state.sessions[0])
    assert (ended.status, ended.output) == (SessionStatus.COMPLETED, "stopped here")


def test_wide_scopes_ask_the_store_once_per_tool(recorder: Recorder):
    record(recorder, "A")
    asked: list[str] = []

    def widen(tool: str, config: HistoryConfig) -> Any:
        asked.append(f"{tool} {config.scope}")
        return recorder.store.sessions.newest_calls(tool, agent="desk")

    state = make_state(recorder, ToolPolicy(default=HistoryConfig(scope="agent")), widen=widen)
    with seam.replaying(state), begin("desk", recorder=recorder) as active:
        for _ in range(3):
            step = active.tool_call("search", arguments={"q": "x"})
            assert step.decide().value == "A"
            step.observe(Outcome(kind=OutcomeKind.VALUE, value="A"))
    assert asked == ["search agent"]


def test_two_replays_and_a_thread_without_context_stop_both(recorder: Recorder):
    record(recorder, "A")
    states = [make_state(recorder), make_state(recorder)]
    ready, done = threading.Barrier(3), threading.Event()

    def run(state: Any) -> None:
        try:
            with seam.replaying(state), begin("desk", recorder=recorder):
                ready.wait(60)
                done.wait(60)
        except RecordingError:
            return

    threads = [threading.Thread(target=run, args=(state,)) for state in states]
    for thread in threads:
        thread.start()
    ready.wait(60)
    with pytest.raises(ReplayStop, match="without context"):
        seam.current()
    done.set()
    for thread in threads:
        thread.join()
    assert all(state.latch is not None for state in states)
