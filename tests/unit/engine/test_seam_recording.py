"""What the seam records outside a replay: order, announced calls, nesting, threads, and what nobody decided."""

import asyncio
import contextvars
import threading
from typing import Any

import pytest

from playhead.core.values import Mark, NodeKind, NodeStatus, Outcome, OutcomeKind, SessionStatus, Usage
from playhead.engine import context, seam
from playhead.engine.recorder import Recorder
from playhead.engine.seam import ModelRequest, ModelResult, Requested, SilentStep

begin: Any = seam.session
TOOLS = [{"name": "search", "parameters": {"type": "object"}}, {"name": "pay", "parameters": {"type": "object"}}]


def text(role: str, words: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "text": words}]}


def result(call_id: str, content: Any, **more: Any) -> dict[str, Any]:
    part = {"type": "tool_result", "id": call_id, "name": None, "content": content, **more}
    return {"role": "tool", "parts": [part]}


def asked(active: Any, calls: list[Requested], messages: list[Any] | None = None) -> Any:
    request = ModelRequest(messages=messages or [text("user", "hi")], tools=TOOLS, model="m-1")
    step = active.model_call("m-1", request=request)
    step.announce(calls)
    step.observe(ModelResult(message=text("assistant", "ok")))
    return step


def test_a_session_keeps_inputs_output_and_its_steps_in_start_order(recorder: Recorder, recorded: Any):
    with begin("desk", inputs={"prompt": "hi"}, recorder=recorder) as active:
        asked(active, [])
        span = active.span("load")
        with span.inside():
            call = active.tool_call("search", arguments={"q": "x"})
            call.returned([1])
        span.returned("loaded")
        active.set_output("done")
    session = recorded.session()
    assert (session.status, session.inputs, session.output) == (SessionStatus.COMPLETED, {"prompt": "hi"}, "done")
    model, outer, tool = recorded.nodes()
    assert [n.kind for n in (model, outer, tool)] == [NodeKind.MODEL_CALL, NodeKind.SPAN, NodeKind.TOOL_CALL]
    assert tool.parent_id == outer.id
    assert model.model.requested == "m-1"
    assert model.model.key
    assert model.inputs["tools"] == TOOLS


def test_parallel_calls_keep_the_order_of_the_response_and_their_emitted_arguments(recorder: Recorder, recorded: Any):
    with begin("desk", recorder=recorder) as active:
        model = asked(active, [Requested("a", "search", '{"q": "x"}'), Requested("b", "search", '{"q": "x"}')])
        later = active.tool_call("search", arguments={"q": "x", "limit": 5}, call_id="b")
        first = active.tool_call("search", arguments={"q": "x", "limit": 5}, call_id="a")
        later.returned("B")
        first.returned("A")
    a, b = [n for n in recorded.nodes() if n.call]
    assert [(n.call.call_id, n.outcome.value, n.call.occurrence, n.call.index) for n in (a, b)] == [
        ("a", "A", 1, 0), ("b", "B", 2, 1)
    ]  # fmt: skip
    assert a.call.arguments == {"q": "x"}
    assert a.call.model_call == model.id


def test_a_call_id_used_again_later_belongs_to_the_newer_response(recorder: Recorder, recorded: Any):
    with begin("desk", recorder=recorder) as active:
        for value in ("one", "two"):
            asked(active, [Requested("call_1", "search", {"q": value})])
            active.tool_call("search", arguments={}, call_id="call_1").returned(value)
    calls = [n for n in recorded.nodes() if n.call]
    assert [(n.call.arguments["q"], n.outcome.value, n.call.attempt) for n in calls] == [
        ("one", "one", 1), ("two", "two", 1)
    ]  # fmt: skip


def test_a_retry_under_one_call_id_is_the_next_attempt(recorder: Recorder, recorded: Any):
    with begin("desk", recorder=recorder) as active:
        asked(active, [Requested("a", "search", {"q": "x"})])
        active.tool_call("search", call_id="a").fail(TimeoutError("slow"))
        active.tool_call("search", call_id="a").returned("found")
    one, two = [n for n in recorded.nodes() if n.call]
    assert [(n.call.attempt, n.call.occurrence, n.status) for n in (one, two)] == [
        (1, 1, NodeStatus.FAILED), (2, 1, NodeStatus.COMPLETED)
    ]  # fmt: skip


def test_missing_and_repeated_call_ids_are_made_up_from_their_place(recorder: Recorder, recorded: Any):
    with begin("desk", recorder=recorder) as active:
        asked(
            active, [Requested("x", "search", {"q": 1}), Requested("x", "pay", {}), Requested(None, "search", {"q": 2})]
        )
        active.tool_call("search", arguments={"q": 2}).returned("by arguments")
        active.tool_call("pay", call_id="x").returned("paid")
        active.tool_call("search", call_id="x").returned("found")
    calls = [n for n in recorded.nodes() if n.call]
    assert [(n.call.call_id, n.outcome.value) for n in calls] == [
        ("x", "found"), ("@1", "paid"), ("@2", "by arguments")
    ]  # fmt: skip


def test_a_call_refused_by_the_framework_is_recorded_from_the_next_request(recorder: Recorder, recorded: Any):
    with begin("desk", recorder=recorder) as active:
        asked(
            active, [Requested("a", "nope", {}), Requested("b", "search", "{bad"), Requested("c", "search", {"q": 1})]
        )
        history = [text("user", "hi"), result("a", "unknown tool"), result("b", "not JSON", is_error=True)]
        asked(active, [], [*history, result("c", "by hand")])
    unknown, bad, by_hand = [n for n in recorded.nodes() if n.call]
    assert (unknown.outcome.kind, unknown.call.source) == (OutcomeKind.RESULT_ERROR, "transcript")
    assert (bad.outcome.kind, bad.call.arguments) == (OutcomeKind.INVALID_ARGS, {"$invalid": "{bad"})
    assert (by_hand.outcome.kind, by_hand.outcome.value, by_hand.call.mark) == (OutcomeKind.VALUE, "by hand", Mark.TEXT)


def test_a_result_that_stood_in_the_request_before_is_not_that_of_a_new_call(recorder: Recorder, recorded: Any):
    messages = [text("user", "hi"), result("a", 1)]
    with begin("desk", recorder=recorder) as active:
        asked(active, [Requested("a", "search", {"q": 1})], messages=messages)
        asked(active, [], messages=[*messages, text("user", "and?")])
        asked(active, [], messages=[*messages, text("user", "and?"), result("a", 2)])
    node = recorded.node("search")
    assert (node.outcome.value, node.call.source) == (2, "transcript")


def test_an_announced_call_that_nobody_ran_says_so_when_the_session_ends(recorder: Recorder, recorded: Any):
    with begin("desk", recorder=recorder) as active:
        asked(active, [Requested("a", "search", {"q": 1})])
    assert recorded.node("search").status is NodeStatus.NEVER_RAN


def test_the_same_call_seen_by_two_seams_is_one_node(recorder: Recorder, recorded: Any):
    with begin("desk", recorder=recorder) as active:
        outer = active.tool_call("mcp__shop__search", arguments='{"q": "x"}')
        with outer.inside():
            inner = active.tool_call("search", arguments={"q": "x"})
            assert isinstance(inner, SilentStep)
            inner.note(request_id="r-1")
            other = active.tool_call("search", arguments={"q": "y"})
            other.returned(2)
        outer.returned(1)
    one, two = recorded.nodes()
    assert one.attributes == {"request_id": "r-1"}
    assert (two.parent_id, two.call.arguments) == (one.id, {"q": "y"})


def test_the_wire_below_a_model_seam_is_silent(recorder: Recorder, recorded: Any):
    with begin("desk", recorder=recorder) as active:
        step = active.model_call("m-1", request=ModelRequest(messages=[text("user", "hi")]))
        with step.inside():
            wire = active.model_call("wire", request=ModelRequest(messages=[text("user", "hi")]))
            assert wire.silent
            wire.announce([Requested("a", "search", {})])
            wire.observe(ModelResult(message=None))
        step.observe(ModelResult(message=text("assistant", "ok")))
    assert [n.name for n in recorded.nodes()] == ["m-1"]


def test_paths_count_equal_calls_inside_and_outside_a_tool_apart(recorder: Recorder, recorded: Any):
    with begin("desk", recorder=recorder) as active:
        active.tool_call("search", arguments={"q": 1}).returned("outside")
        outer = active.tool_call("research", arguments={})
        with outer.inside(), begin("helper", inputs="x", recorder=recorder):
            active.tool_call("search", arguments={"q": 1}).returned("inside")
        outer.returned("ok")
    outside, research, helper, inside = recorded.nodes()
    assert (outside.call.path, outside.call.occurrence, inside.call.occurrence) == ((), 1, 1)
    assert inside.call.path == (f"{research.call.key}#1",)
    assert (helper.kind, helper.name, helper.inputs, helper.parent_id) == (
        NodeKind.AGENT_CALL, "helper", "x", research.id
    )  # fmt: skip


def test_a_second_run_is_a_turn_when_it_goes_on_from_the_first_else_a_sub_agent(recorder: Recorder, recorded: Any):
    with begin("desk", recorder=recorder, function=True):
        first = begin("inner", inputs="one")
        with first as active:
            asked(active, [])
            first.output, first.messages = "1", [text("user", "one"), text("assistant", "1")]
        second = begin("inner", inputs="two", history=[text("user", "one"), text("assistant", "1")])
        with second as active:
            asked(active, [])
            second.output = "2"
        with begin("judge", inputs="three") as active:
            asked(active, [])
    session, nodes = recorded.session(), recorded.nodes()
    assert [(t.input, t.output, t.first_node) for t in session.turns] == [
        ("one", "1", nodes[0].id), ("two", "2", nodes[1].id)
    ]  # fmt: skip
    assert [n.kind for n in nodes] == [
        NodeKind.MODEL_CALL, NodeKind.MODEL_CALL, NodeKind.AGENT_CALL, NodeKind.MODEL_CALL
    ]  # fmt: skip


def test_a_thread_without_context_belongs_to_the_only_session(recorder: Recorder, recorded: Any):
    def work() -> None:
        found = seam.current()
        assert found is not None
        found.tool_call("search", arguments={"q": 1}).returned(1)

    with begin("desk", recorder=recorder):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert recorded.node("search").outcome.value == 1


def test_with_two_sessions_a_thread_without_context_is_not_guessed(
    recorder: Recorder, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(context._open, "warned", False)
    found: list[Any] = []
    inside = threading.Event()

    def other() -> None:
        with begin("other", recorder=recorder):
            inside.set()
            done.wait(60)

    done = threading.Event()
    neighbour = threading.Thread(target=other, daemon=True)
    neighbour.start()
    assert inside.wait(60)
    with begin("desk", recorder=recorder):
        for _ in range(2):
            lost = threading.Thread(target=lambda: found.append(seam.current()))
            lost.start()
            lost.join()
    done.set()
    neighbour.join()
    assert found == [None, None]
    assert len([r for r in caplog.records if "thread without context" in r.message]) == 1


def values(recorder: Recorder, session_id: str) -> list[Any]:
    nodes: list[Any] = list(recorder.store.sessions.nodes(session_id))
    return [node.outcome.value for node in nodes]


def test_ten_sessions_in_threads_and_tasks_do_not_mix(recorder: Recorder, recorded: Any):
    async def run(number: int) -> None:
        async with begin(f"task-{number}", recorder=recorder) as active:
            await asyncio.sleep(0)
            active.tool_call("search", arguments={"n": number}).returned(number)

    def in_thread(number: int) -> None:
        with begin(f"thread-{number}", recorder=recorder) as active:
            active.tool_call("search", arguments={"n": number}).returned(number)

    async def main() -> None:
        await asyncio.gather(*(run(n) for n in range(5)))

    threads = [threading.Thread(target=in_thread, args=(n,)) for n in range(5)]
    for thread in threads:
        thread.start()
    asyncio.run(main())
    for thread in threads:
        thread.join()
    sessions = recorded.sessions()
    assert len(sessions) == 10
    for session in sessions:
        assert values(recorder, session.id) == [int(session.agent.split("-")[1])]


def test_a_call_after_the_session_ended_is_not_recorded_and_harms_nobody(recorder: Recorder, recorded: Any):
    with begin("desk", recorder=recorder):
        late = contextvars.copy_context()
    assert late.run(seam.current) is None
    assert recorded.nodes() == []
    assert recorder.counters["late"] == 1


def test_steps_left_open_at_the_end_are_cancelled(recorder: Recorder, recorded: Any):
    with begin("desk", recorder=recorder) as active:
        active.tool_call("search", arguments={})
    assert recorded.node("search").status is NodeStatus.CANCELLED


def test_flush_shows_steps_that_are_still_running(recorder: Recorder, recorded: Any):
    with begin("desk", recorder=recorder) as active:
        call = active.tool_call("search", arguments={"q": 1})
        shown: Any = recorded.node("search")
        assert (shown.status, shown.ended_at) == (NodeStatus.OPEN, None)
        call.returned("x")
    assert recorded.node("search").outcome.value == "x"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), asyncio.CancelledError(), GeneratorExit()])
def test_a_cancelled_step_has_no_outcome_and_the_session_is_abandoned(
    error: BaseException, recorder: Recorder, recorded: Any
):
    scope = begin("desk", recorder=recorder)
    active = scope.open()
    assert active is not None
    active.tool_call("search", arguments={}).fail(error)
    scope.close(error)
    assert (recorded.node("search").status, recorded.node("search").outcome) == (NodeStatus.CANCELLED, None)
    assert recorded.session().status is SessionStatus.ABANDONED


def test_a_failed_run_keeps_its_error(recorder: Recorder, recorded: Any):
    with pytest.raises(ValueError, match="no"), begin("desk", recorder=recorder):
        raise ValueError("no")
    session = recorded.session()
    assert (session.status, session.error.class_name, session.error.message) == (
        SessionStatus.FAILED,
        "ValueError",
        "no",
    )


def test_leaving_with_exit_code_zero_is_a_completed_run(recorder: Recorder, recorded: Any):
    with pytest.raises(SystemExit), begin("desk", recorder=recorder):
        raise SystemExit(0)
    assert recorded.session().status is SessionStatus.COMPLETED


def test_only_the_first_ending_of_a_step_counts(recorder: Recorder, recorded: Any):
    with begin("desk", recorder=recorder) as active:
        call = active.tool_call("search", arguments={})
        call.returned(1)
        call.fail(ValueError("late"))
    assert recorded.node("search").outcome.value == 1


def test_arguments_without_key_are_kept_and_say_why(recorder: Recorder, recorded: Any):
    with begin("desk", recorder=recorder) as active:
        active.tool_call("search", arguments={"v": float("nan")}).returned(1)
    call = recorded.node("search").call
    assert (call.key, call.no_key.reason, call.no_key.at) == (None, "non_finite", "/v")
    assert call.arguments == {"v": {"$float": "NaN"}}


def test_lone_surrogates_are_recorded_and_have_a_key(recorder: Recorder, recorded: Any):
    with begin("desk", inputs="\ud800", recorder=recorder) as active:
        active.tool_call("search", arguments='{"q": "\\ud800"}').returned("\udfff")
    node = recorded.node("search")
    assert (node.call.arguments, node.outcome.value) == ({"q": "\ud800"}, "\udfff")
    assert node.call.key
    assert recorded.session().inputs == "\ud800"


def test_a_value_changed_after_it_was_handed_over_is_recorded_as_it_was(recorder: Recorder, recorded: Any):
    with begin("desk", recorder=recorder) as active:
        value, arguments = {"n": [1]}, {"q": [1]}
        call = active.tool_call("search", arguments=arguments)
        call.returned(value)
        value["n"].append(2)
        arguments["q"].append(2)
    node = recorded.node("search")
    assert (node.outcome.value, node.call.arguments) == ({"n": [1]}, {"q": [1]})


def test_a_result_without_stored_form_is_marked_and_the_session_names_it(recorder: Recorder, recorded: Any):
    cycle: list[Any] = []
    cycle.append(cycle)
    with begin("desk", recorder=recorder) as active:
        active.tool_call("search", arguments={}).returned(cycle)
        active.set_output(object())
    node, session = recorded.node("search"), recorded.session()
    assert (node.status, node.call.mark, node.outcome.value) == (NodeStatus.COMPLETED, Mark.MISSING, None)
    assert any("search" in w and "cycle" in w for w in session.warnings)
    assert any("object" in w for w in session.warnings)
    assert session.output is None


def test_usage_and_cost_are_summed_and_a_reported_total_leaves_a_remainder(recorder: Recorder, recorded: Any):
    usage = Usage(input_uncached=100, input_cache_read=20, output_visible=10)
    with begin("desk", recorder=recorder) as active:
        for _ in range(2):
            step = active.model_call("gpt-4o", request=ModelRequest(messages=[], model="gpt-4o", provider="openai"))
            step.observe(ModelResult(message=text("assistant", "x"), usage=usage, served="gpt-4o"))
        active.usage_total = Usage(input_uncached=250, output_visible=5)
    session = recorded.session()
    assert (session.usage.input_uncached, session.usage.input_cache_read, session.usage.output_visible) == (250, 40, 20)
    assert session.usage.output_reasoning is None
    assert session.cost.source == "estimated"
    assert 0 < float(session.cost.amount) < 0.01


def test_provider_executed_tools_are_recorded_as_the_providers(recorder: Recorder, recorded: Any):
    from playhead.core.values import Outcome

    with begin("desk", recorder=recorder) as active:
        model = active.model_call("m", request=ModelRequest(messages=[]))
        outcome = Outcome(kind=OutcomeKind.VALUE, value=["hit"])
        active.provider_call(model, "web_search", call_id="w", arguments={"q": "x"}, outcome=outcome)
        model.observe(ModelResult(message=text("assistant", "x")))
    node = recorded.node("web_search")
    assert (node.call.source, node.attributes["executor"], node.outcome.value) == ("provider", "provider", ["hit"])


def test_equal_calls_of_several_threads_at_one_time_are_marked_as_unordered(recorder: Recorder, recorded: Any):
    started = threading.Barrier(2)

    def call(active: Any) -> None:
        step = active.tool_call("search", arguments={"q": "x"})
        started.wait(60)
        step.returned(threading.get_ident())

    with begin("desk", recorder=recorder) as active:
        threads = [threading.Thread(target=call, args=(active,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        one = active.tool_call("pay", arguments={})
        two = active.tool_call("pay", arguments={})
        one.returned(1)
        two.returned(2)
    marks = {(n.name, n.call.overlapped) for n in recorded.nodes()}
    assert marks == {("search", True), ("pay", False)}


def test_a_decorated_call_of_a_tool_that_runs_elsewhere_is_that_call(recorder: Recorder) -> None:
    with begin("desk", recorder=recorder) as active:
        step = active.tool_call("mcp__shop__look", arguments={"q": 1}, call_id="c")
        active.runs_elsewhere(step)
        assert isinstance(active.tool_call("look", arguments={"q": 1}), SilentStep)
        for other in (("look", {"q": 2}, None), ("pay", {"q": 1}, None), ("look", {"q": 1}, "d")):
            tool, arguments, call_id = other
            assert not isinstance(active.tool_call(tool, arguments=arguments, call_id=call_id), SilentStep)
        step.observe(Outcome(kind=OutcomeKind.VALUE, value=1))
        assert not isinstance(active.tool_call("look", arguments={"q": 1}), SilentStep)
