"""Replays that look unchanged and are not: each must not be called faithful, and its ledger must say why."""

import dataclasses
import threading
from contextlib import suppress
from typing import Any

import pytest

import playhead
from playhead.core.values import FidelityKind, ReplayStatus
from playhead.engine import seam
from playhead.engine.recorder import Recorder
from playhead.engine.seam import ModelRequest, ModelResult, Requested
from playhead.engine.settle import exit_code
from playhead.errors import ReplayStop

LIVE: list[str] = []
HISTORY = {"type": "history"}


@pytest.fixture(autouse=True)
def nothing_live() -> None:
    LIVE.clear()


@playhead.tool
def look(x: int) -> int:
    LIVE.append("look")
    return x * 10 + len(LIVE) // 100


def record(agent: Any, *args: Any) -> str:
    with suppress(Exception):
        agent(*args)
    playhead.flush()
    LIVE.clear()
    return "last"


def ends(*, output: Any = None, error: Exception | None = None) -> Any:
    @playhead.agent("desk")
    def desk(prompt: str) -> Any:
        look(1)
        if error is not None:
            raise error
        return output

    return desk


@pytest.mark.parametrize(
    ("theirs", "ours", "what"),
    [
        ({"output": "a"}, {"output": "b"}, "output"),
        ({"output": "a"}, {"output": None}, "output"),
        ({"output": "a"}, {"error": ValueError("no")}, "status"),
        ({"error": ValueError("no")}, {"error": KeyError("no")}, "status"),
        ({"error": ValueError("no")}, {"error": ValueError("other")}, "status"),
    ],
)
def test_equal_calls_and_another_end(recorder: Recorder, theirs: Any, ours: Any, what: str):
    record(ends(**theirs), "q")
    assert playhead.replay("last", agent=ends(**theirs)).fidelity.kind is FidelityKind.FAITHFUL
    result = playhead.replay("last", agent=ends(**ours))
    assert result.fidelity.divergence is not None
    assert (result.fidelity.divergence.what, exit_code(result.replay, fork=False)) == (what, 1)


@pytest.mark.parametrize("ours", [object(), "text"])
def test_an_output_without_a_stored_form_proves_nothing(recorder: Recorder, ours: Any):
    record(ends(output=object()), "q")
    result = playhead.replay("last", agent=ends(output=ours))
    assert (result.fidelity.kind, exit_code(result.replay, fork=False)) == (FidelityKind.UNPROVEN, 4)
    assert "not stored" in result.fidelity.reasons[0]


def test_what_a_static_answer_changes_in_the_output_is_no_difference_of_the_agent(recorder: Recorder):
    @playhead.agent("desk")
    def desk(prompt: str) -> int:
        return look(1)

    record(desk, "q")
    policy = {"tools": {"look": {"type": "static", "cases": [{"result": 77}]}}}
    result = playhead.replay("last", agent=desk, tool_policy=policy)
    assert (result.output, result.fidelity.kind) == (77, FidelityKind.UNPROVEN)


def outer_giving(result: str) -> Any:
    @playhead.tool("outer")
    def outer(x: int) -> str:
        LIVE.append("outer")
        look(x)
        return result

    @playhead.agent("desk")
    def desk(prompt: str) -> str:
        outer(1)
        return "done"

    return desk


def test_a_tool_that_runs_live_for_the_calls_inside_it_and_gives_something_else(recorder: Recorder):
    record(outer_giving("a"), "q")
    policy = {"tools": {"outer": {"type": "passthrough"}}}
    same = playhead.replay("last", agent=outer_giving("a"), tool_policy=policy)
    assert (same.fidelity.kind, LIVE) == (FidelityKind.FAITHFUL, ["outer"])
    other = playhead.replay("last", agent=outer_giving("b"), tool_policy=policy)
    found = other.fidelity.divergence
    assert found is not None
    assert (found.what, found.where, found.expected, found.seen) == ("outcome", "tool call 1 outer", "a", "b")


def test_another_session_that_answers_something_else(recorder: Recorder):
    seen = [10]

    @playhead.tool
    def price(item: str) -> int:
        return seen[0]

    @playhead.agent("shop")
    def shop(prompt: str) -> str:
        price("tea")
        return "done"

    shop("q")
    playhead.flush()
    baseline = playhead.replay("last", agent=shop).baseline.id
    wide = {"default": {"type": "history", "scope": "agent"}}
    assert playhead.replay(baseline, agent=shop, tool_policy=wide).fidelity.kind is FidelityKind.FAITHFUL
    seen[0] = 12
    record(shop, "q")
    result = playhead.replay(baseline, agent=shop, tool_policy=wide)
    found = result.fidelity.divergence
    assert found is not None
    assert (found.what, found.expected, found.seen) == ("outcome", 10, 12)


def nested() -> Any:
    @playhead.tool("outer")
    def outer(x: int) -> int:
        LIVE.append("outer")
        step = ask(seam.current(), [user(f"inside {x}")], say("ok"))
        assert step
        return look(x) + look(x + 1)

    @playhead.agent("desk")
    def desk(prompt: str) -> int:
        found = outer(1)
        return found + look(5)

    return desk


def test_what_an_answer_hides_stands_in_the_ledger_as_covered(recorder: Recorder):
    record(nested(), "q")
    result = playhead.replay("last", agent=nested(), model_policy=HISTORY)
    assert (result.fidelity.kind, LIVE) == (FidelityKind.FAITHFUL, [])
    assert [(row.kind, row.by, row.tool) for row in result.ledger] == [
        ("tool", "served", "outer"),
        ("tool", "covered", "look"),
        ("tool", "covered", "look"),
        ("model", "covered", "m"),
        ("tool", "served", "look"),
    ]


def test_fields_that_the_default_of_a_policy_ignores_are_no_difference(recorder: Recorder):
    def at(time: int) -> Any:
        @playhead.tool
        def since(time: int) -> int:
            return 1

        @playhead.agent("desk")
        def desk(prompt: str) -> int:
            return since(time)

        return desk

    record(at(1), "q")
    policy = {"default": {"type": "history", "ignore": ["/time"]}}
    result = playhead.replay("last", agent=at(2), tool_policy=policy)
    assert (result.error, result.fidelity.kind) == (None, FidelityKind.UNPROVEN)
    assert "loosely" in result.fidelity.reasons[0]


@pytest.mark.parametrize("status", [s for s in ReplayStatus if s.value in ("pending", "running", "evaluating")])
def test_a_replay_that_has_not_ended_is_no_success(recorder: Recorder, status: ReplayStatus):
    record(ends(output="a"), "q")
    done = playhead.replay("last", agent=ends(output="a")).replay
    assert exit_code(done, fork=False) == 0
    assert exit_code(dataclasses.replace(done, status=status), fork=True) == 3
    assert exit_code(dataclasses.replace(done, fidelity=None), fork=False) == 4


# model calls, as an adapter makes them

CALL = Requested("c1", "look", {"x": 1})


def say(text: str, *calls: Requested) -> Any:
    made = [{"type": "tool_call", "id": c.call_id, "name": c.tool, "arguments": c.arguments} for c in calls]
    return {"role": "assistant", "parts": [*([{"type": "text", "text": text}] if text else []), *made]}


def result_of(content: Any, *, is_error: bool = False) -> Any:
    part = {"type": "tool_result", "id": "c1", "name": "look", "content": content}
    return {"role": "tool", "parts": [{**part, **({"is_error": True} if is_error else {})}]}


def user(text: str) -> Any:
    return {"role": "user", "parts": [{"type": "text", "text": text}]}


def ask(active: Any, messages: list[Any], answer: Any, *calls: Requested, params: Any = None, tools: Any = ()) -> Any:
    request = ModelRequest(messages=messages, model="m", params=params or {}, tools=tools)
    step = active.model_call("m", request=request)
    served = step.decide()
    message = served.value if served is not None else answer
    step.announce(calls)
    step.observe(served if served is not None else ModelResult(message=message))
    return message


def refused_call(content: str | None) -> Any:
    """An agent whose framework refuses the model's call with a text; None lets the tool run."""

    def desk(prompt: str) -> str:
        with seam.session("desk", inputs={"prompt": prompt}) as active:
            assert active is not None
            first = ask(active, [user("hi")], say("", CALL), CALL)
            if content is None:
                step = active.tool_call("look", arguments={"x": 1}, call_id="c1")
                answer = step.decide()
                step.observe(answer) if answer is not None else step.returned(10)
                told = result_of(10)
            else:
                told = result_of(content, is_error=True)
            ask(active, [user("hi"), first, told], say("done"))
            return "done"

    return desk


def test_a_call_that_the_framework_refuses_now_and_that_ran_when_it_was_recorded(recorder: Recorder):
    record(refused_call(None), "q")
    assert playhead.replay("last", agent=refused_call(None)).fidelity.kind is FidelityKind.FAITHFUL
    result = playhead.replay("last", agent=refused_call("x must be a string"))
    assert [row.by for row in result.ledger if row.kind == "tool"] == ["rejected"]
    assert result.fidelity.kind is FidelityKind.DIVERGED
    assert exit_code(result.replay, fork=False) == 1


def test_a_call_that_is_refused_with_other_words(recorder: Recorder):
    record(refused_call("x must be a string"), "q")
    assert playhead.replay("last", agent=refused_call("x must be a string")).fidelity.kind is FidelityKind.FAITHFUL
    other = playhead.replay("last", agent=refused_call("x is wrong"))
    assert other.fidelity.kind is FidelityKind.DIVERGED
    assert other.fidelity.divergence is not None
    assert other.fidelity.divergence.what == "outcome"


def asks(times: int, **options: Any) -> Any:
    @playhead.agent("desk")
    def desk(prompt: str) -> str:
        for n in range(times):
            ask(seam.current(), [user(f"question {n}")], say(f"answer {n}"), **options)
        return "done"

    return desk


def test_recorded_model_calls_that_nothing_asked_for_are_left_over(recorder: Recorder):
    record(asks(3), "q")
    assert playhead.replay("last", agent=asks(3), model_policy=HISTORY).fidelity.kind is FidelityKind.FAITHFUL
    result = playhead.replay("last", agent=asks(2), model_policy=HISTORY)
    assert [(row.kind, row.by, row.detail) for row in result.ledger if row.by == "unused"] == [
        ("leftover", "unused", "model call 3")
    ]
    assert result.fidelity.kind is FidelityKind.DIVERGED
    live = playhead.replay("last", agent=asks(2))
    assert not [row for row in live.ledger if row.by == "unused"]


@pytest.mark.parametrize(
    "changed", [{"params": {"temperature": 1}}, {"tools": [{"name": "look", "description": "", "parameters": {}}]}]
)
def test_a_request_with_other_parameters_or_tools_is_no_recorded_one(recorder: Recorder, changed: Any):
    record(asks(1), "q")
    result = playhead.replay("last", agent=asks(1, **changed), model_policy=HISTORY)
    assert (result.status, result.fidelity.kind) == (ReplayStatus.FAILED, FidelityKind.DIVERGED)


def two_turns(*outputs: str) -> Any:
    @playhead.agent("desk")
    def desk(prompt: str) -> str:
        history: list[Any] = []
        for n, output in enumerate(outputs):
            turn = seam.session("runner", inputs=f"turn {n}", history=history)
            with turn as active:
                message = ask(active, [user(f"question {n}")], say(f"answer {n}"))
                turn.output, turn.messages = output, [message]
                history.append(message)
        return "done"

    return desk


def test_an_earlier_turn_with_another_output(recorder: Recorder):
    record(two_turns("a", "b"), "q")
    same = playhead.replay("last", agent=two_turns("a", "b"), model_policy=HISTORY)
    assert (same.fidelity.kind, len(same.session.turns)) == (FidelityKind.FAITHFUL, 2)
    result = playhead.replay("last", agent=two_turns("x", "b"), model_policy=HISTORY)
    found = result.fidelity.divergence
    assert found is not None
    assert (found.what, found.where) == ("output", "turn 1")


def test_a_stop_that_no_call_shows_stands_in_the_ledger(recorder: Recorder):
    def opens_two(prompt: str) -> str:
        with suppress(ReplayStop):
            state = seam.replay_here()
            assert state is not None
            raise state.stop(playhead.PlayheadError("an adapter could not go on"))
        return "done"

    record(ends(output="done"), "q")
    result = playhead.replay("last", agent=lambda prompt: (opens_two(prompt), ends(output="done")(prompt)))
    assert result.status is ReplayStatus.FAILED
    assert [row.detail for row in result.ledger if row.by == "stopped"] == ["an adapter could not go on"]
    assert result.fidelity.kind is FidelityKind.DIVERGED


def test_a_call_after_the_session_has_ended_stands_in_the_ledger(recorder: Recorder):
    def late(prompt: str) -> str:
        closed = threading.Event()

        def later() -> None:
            closed.wait(60)
            with suppress(BaseException):
                look(2)

        with seam.session("desk", inputs={"prompt": prompt}):
            with seam.session("inner", function=True):
                thread = threading.Thread(target=later)
                thread.start()
            closed.set()
            thread.join()
            return "done"

    record(ends(output="done"), "q")
    result = playhead.replay("last", agent=late)
    assert result.status is ReplayStatus.FAILED
    assert LIVE == []
    assert result.fidelity.kind is FidelityKind.DIVERGED
