"""Inline replays of plain functions: policies, misses, fidelity, the guard, and what an agent may swallow."""

import asyncio
import socket
import threading
from typing import Any

import pytest

import playhead
from playhead.core.values import FidelityKind, Origin, ReplayStatus, SessionStatus
from playhead.engine import replay as replay_engine
from playhead.engine import seam
from playhead.engine.recorder import Recorder
from playhead.engine.seam import ModelRequest, ModelResult
from playhead.errors import PolicyError, RefusedError

CALLS: list[str] = []


@pytest.fixture(autouse=True)
def no_calls() -> None:
    CALLS.clear()


@playhead.tool
def poll(q: str) -> dict[str, Any]:
    CALLS.append("poll")
    return {"n": len(CALLS)}


@playhead.tool(effect="write")
def pay(to: str, amount: float = 1.0) -> str:
    CALLS.append("pay")
    if CALLS.count("pay") == 1 and to == "x":
        raise TimeoutError("gateway")
    return f"paid {to} {amount}"


@playhead.agent("poller")
def poller(prompt: str, times: int = 3) -> list[Any]:
    return [poll("q") for _ in range(times)]


def record(agent: Any, *args: Any, **kwargs: Any) -> Any:
    result = agent(*args, **kwargs)
    playhead.flush()
    CALLS.clear()
    return result


def by(result: playhead.ReplayResult) -> list[str]:
    return [row.by for row in result.ledger if row.kind == "tool"]


def test_an_unchanged_replay_is_faithful_runs_nothing_and_keeps_its_own_session(recorder: Recorder):
    recorded = record(poller, "hello")
    result = playhead.replay(agent=poller)
    assert result.fidelity.kind is FidelityKind.FAITHFUL
    assert (result.status, CALLS, by(result)) == (ReplayStatus.COMPLETED, [], ["served"] * 3)
    assert result.output == recorded
    assert result.session.origin is Origin.REPLAY
    assert result.session.baseline_id == result.baseline.id
    assert result.session.inputs == {"prompt": "hello", "times": 3}
    assert result.replay.guard == "python"
    stored = recorder.store.replays.get(result.id)
    assert stored == result.replay


def test_a_session_of_5000_calls_replays_and_is_read_for_examples_once(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
):
    read: list[str] = []
    examples = replay_engine._examples
    monkeypatch.setattr(replay_engine, "_examples", lambda nodes, tool: read.append(tool) or examples(nodes, tool))
    record(poller, "hello", times=5000)
    result = playhead.replay(agent=poller)
    assert (result.fidelity.kind, len(result.ledger), CALLS) == (FidelityKind.FAITHFUL, 5000, [])
    assert len(read) <= 1


def test_the_recorded_entry_point_runs_when_no_agent_is_given(recorder: Recorder):
    record(poller, "hello")
    assert playhead.replay("last").fidelity.kind is FidelityKind.FAITHFUL


def test_r14_one_call_too_many_says_that_all_answers_are_used(recorder: Recorder):
    record(poller, "hello")
    more = playhead.replay(agent=lambda prompt, times: poller(prompt, 4))
    assert more.status is ReplayStatus.FAILED
    assert "all 3 recorded answers" in more.error.message
    assert more.fidelity.divergence.what == "extra"
    assert CALLS == []
    soft = playhead.replay(
        agent=lambda prompt, times: poller(prompt, 4),
        tool_policy={"default": {"type": "history", "on_miss": "error_result"}},
    )
    assert soft.status is ReplayStatus.COMPLETED
    assert soft.fidelity.kind is FidelityKind.DIVERGED
    assert by(soft).count("missed") == 1
    assert CALLS == []


def test_r15_repeats_on_purpose_say_so(recorder: Recorder):
    record(poller, "hello")
    five = lambda prompt, times: poller(prompt, 5)  # noqa: E731
    last = playhead.replay(agent=five, tool_policy={"default": {"type": "history", "repeat": "last"}})
    first = playhead.replay(agent=five, tool_policy={"default": {"type": "history", "repeat": "first"}})
    assert [r["n"] for r in last.output] == [1, 2, 3, 3, 3]
    assert [r["n"] for r in first.output] == [1, 2, 3, 1, 1]
    assert [bool(row.marks) for row in last.ledger][:5] == [False, False, False, True, True]


def test_r19_a_failure_is_served_before_the_success(recorder: Recorder):
    @playhead.agent("payer")
    def payer(prompt: str) -> list[str]:
        found = []
        for _ in range(2):
            try:
                found.append(pay("x"))
            except TimeoutError as error:
                found.append(f"failed: {error}")
        return found

    assert record(payer, "p") == ["failed: gateway", "paid x 1.0"]
    result = playhead.replay(agent=payer)
    assert result.output == ["failed: gateway", "paid x 1.0"]
    assert (result.fidelity.kind, CALLS) == (FidelityKind.FAITHFUL, [])


def test_r22_r23_a_swallowed_miss_still_fails_and_nothing_runs(recorder: Recorder):
    @playhead.agent("swallower")
    def swallower(prompt: str, words: tuple[str, ...] = ("a", "b")) -> str:
        for word in words:
            try:
                poll(word)
            except BaseException:
                CALLS.append("swallowed")
        return "sorry"

    record(swallower, "p")
    result = playhead.replay(agent=lambda prompt, words: swallower(prompt, ("a", "changed", "b")))
    assert result.status is ReplayStatus.FAILED
    assert result.error.code == "miss"
    assert "poll" not in CALLS
    assert by(result)[:2] == ["served", "missed"]


def test_r23_nothing_served_although_the_baseline_has_calls_is_a_failure(recorder: Recorder):
    record(poller, "hello")
    result = playhead.replay(agent=lambda prompt, times: "sorry")
    assert result.status is ReplayStatus.FAILED
    assert result.error.code == "nothing_served"


def test_r37_calls_that_nobody_asked_for_are_left_over(recorder: Recorder):
    record(poller, "hello")
    result = playhead.replay(agent=lambda prompt, times: poller(prompt, 1))
    left = [(row.tool, row.occurrence, row.arguments) for row in result.ledger if row.by == "unused"]
    assert left == [("poll", 2, {"q": "q"}), ("poll", 3, {"q": "q"})]
    assert result.fidelity.kind is FidelityKind.DIVERGED


def test_reference_policy_json_works_as_it_stands(recorder: Recorder):
    @playhead.agent("mixed")
    def mixed(prompt: str) -> list[Any]:
        return [poll("q"), pay("y", 2.0)]

    record(mixed, "p")
    policy = """{"default": {"type": "history", "scope": "baseline", "on_miss": "fail"},
        "tools": {"poll": {"type": "passthrough"},
                  "pay": {"type": "static", "on_miss": "error_result",
                     "cases": [{"match": {"to": "y"}, "match_mode": "subset", "result": "refund issued: $129.00"}]}}}"""
    result = playhead.replay(agent=mixed, tool_policy=policy)
    assert result.output == [{"n": 1}, "refund issued: $129.00"]
    assert CALLS == ["poll"]
    assert by(result) == ["live", "static"]
    assert result.fidelity.kind is FidelityKind.UNPROVEN
    assert result.replay.guard.startswith("none")


def test_a_static_error_and_an_injected_failure_reach_the_agent(recorder: Recorder):
    @playhead.agent("careful")
    def careful(prompt: str) -> str:
        try:
            return pay("y")
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    record(careful, "p")
    static = {"type": "static", "cases": [{"error": {"message": "no funds", "class": "ValueError"}}]}
    assert playhead.replay(agent=careful, tool_policy={"tools": {"pay": static}}).output == "ValueError: no funds"
    injected = playhead.replay(
        agent=careful, tool_policy={"tools": {"pay": {"type": "inject", "kind": "timeout", "nth": 1}}}
    )
    assert "tim" in injected.output.lower()
    assert by(injected) == ["injected"]
    assert CALLS == []


def test_a_failed_run_replays_to_the_same_failure(recorder: Recorder):
    @playhead.agent("failing")
    def failing(prompt: str) -> str:
        return pay("x")

    with pytest.raises(TimeoutError):
        failing("p")
    playhead.flush()
    result = playhead.replay(agent=failing)
    assert (result.status, result.session.status) == (ReplayStatus.COMPLETED, SessionStatus.FAILED)
    assert result.fidelity.kind is FidelityKind.FAITHFUL
    assert result.session.error.class_name == "TimeoutError"


class UnheardError(Exception):
    """Stands for what a client makes of a connection that came to nothing."""


def ask(reached: bool, status: int | None = None) -> str:
    active: Any = seam.current()
    user: Any = {"role": "user", "parts": [{"type": "text", "text": "hi"}]}
    step = active.model_call("m", request=ModelRequest(messages=[user], model="m"))
    if reached:
        step.observe(ModelResult(message={"role": "assistant", "parts": [{"type": "text", "text": "ok"}]}))
        return "ok"
    error = UnheardError("the model said no")
    if status is None:
        error.__cause__ = ConnectionRefusedError(111, "Connection refused")
    step.fail(error)
    raise error


@pytest.mark.parametrize("swallowed", [True, False])
@pytest.mark.parametrize("fork", [True, False])
def test_a_live_model_that_was_never_reached_says_nothing_of_a_change(recorder: Recorder, swallowed: bool, fork: bool):
    world = {"reached": True}

    @playhead.agent("chatty")
    def chatty(prompt: str) -> Any:
        poll("q")
        try:
            return ask(world["reached"])
        except UnheardError:
            if not swallowed:
                raise
            return "sorry"

    record(chatty, "p")
    world["reached"] = False
    result = playhead.replay(agent=chatty, override={"prompt": "other"} if fork else None)
    assert (result.status, result.error.code) == (ReplayStatus.FAILED, "model_access")
    assert "the model was never reached: ConnectionRefusedError" in result.error.message
    assert "model_endpoints" in result.error.attributes["hint"]


def test_what_a_model_that_answered_refuses_is_a_result_of_the_change(recorder: Recorder):
    world = {"reached": True}

    @playhead.agent("refused")
    def refused(prompt: str) -> Any:
        poll("q")
        return ask(world["reached"], 400)

    record(refused, "p")
    world["reached"] = False
    result = playhead.replay(agent=refused, override={"prompt": "far too long"})
    assert (result.status, result.session.status) == (ReplayStatus.COMPLETED, SessionStatus.FAILED)


def test_a_connection_outside_a_model_call_is_refused_and_named(recorder: Recorder):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        @playhead.agent("leaky")
        def leaky(prompt: str) -> str:
            poll("q")
            try:
                socket.create_connection(("127.0.0.1", port), timeout=20).close()
            except OSError as error:
                return type(error).__name__
            return "connected"

        assert record(leaky, "p") == "connected"
        result = playhead.replay(agent=leaky)
    assert result.output == "EgressBlockedError"
    assert [row.detail for row in result.ledger if row.kind == "egress"] == [f"127.0.0.1:{port}"]
    assert result.fidelity.kind is FidelityKind.DIVERGED


def test_the_guard_of_an_inline_replay_leaves_other_threads_alone(recorder: Recorder):
    reached = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        go, done = threading.Event(), threading.Event()

        def other() -> None:
            go.wait(60)
            socket.create_connection(server.getsockname(), timeout=20).close()
            reached.append(True)
            done.set()

        thread = threading.Thread(target=other)
        thread.start()

        @playhead.agent("waits")
        def waits(prompt: str) -> str:
            poll("q")
            go.set()
            done.wait(60)
            return "ok"

        record(waits, "p")
        thread.join()
        for event in (go, done, reached):
            event.clear()
        thread = threading.Thread(target=other)
        thread.start()
        result = playhead.replay(agent=waits)
        thread.join()
    assert reached == [True]
    assert result.fidelity.kind is FidelityKind.FAITHFUL


def test_async_agents_and_parallel_calls_replay_in_start_order(recorder: Recorder):
    @playhead.tool
    async def slow(n: int) -> int:
        CALLS.append("slow")
        mine = len(CALLS)
        await asyncio.sleep(0.01 * (3 - mine))
        return mine

    @playhead.agent("gatherer")
    async def gatherer(prompt: str) -> list[int]:
        return list(await asyncio.gather(slow(1), slow(1), slow(1)))

    assert record(lambda p: asyncio.run(gatherer(p)), "p") == [1, 2, 3]
    for _ in range(5):
        result = playhead.replay(agent=gatherer)
        assert result.output == [1, 2, 3]
        assert result.fidelity.kind is FidelityKind.FAITHFUL
    assert CALLS == []


def test_prompt_override_reaches_the_function_and_is_kept_apart(recorder: Recorder):
    @playhead.agent("echo")
    def echo(prompt: str) -> str:
        return f"{poll('q')['n']} {prompt}"

    record(echo, "old")
    result = playhead.replay(agent=echo, override={"prompt": "new"})
    assert result.output == "1 new"
    assert result.session.inputs == {"prompt": "old"}
    assert result.session.effective_prompt == "new"


def test_an_override_that_nothing_takes_fails_the_replay(recorder: Recorder):
    record(poller, "p")
    result = playhead.replay(agent=poller, override={"model": "other"})
    assert result.status is ReplayStatus.FAILED
    assert result.error.code == "override_not_applied"
    assert "failed first" not in result.error.message


def test_an_override_that_an_agent_fails_before_taking_tells_of_that_failure(recorder: Recorder):
    record(poller, "p")

    def keyless(prompt: str, **_: object) -> None:
        raise RuntimeError("set MODEL_KEY")

    result = playhead.replay(agent=keyless, override={"model": "other"})
    assert result.error.code == "override_not_applied"
    assert "the agent failed first, with RuntimeError: set MODEL_KEY" in result.error.message


def test_agent_scope_answers_from_other_sessions_of_the_agent(recorder: Recorder):
    @playhead.agent("asker")
    def asker(prompt: str) -> Any:
        return poll(prompt)

    record(asker, "one")
    record(asker, "two")
    result = playhead.replay(
        "last", agent=lambda prompt: asker("one"), tool_policy={"default": {"type": "history", "scope": "agent"}}
    )
    assert result.output == {"n": 1}
    assert CALLS == []


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ({"default": {"type": "history", "on_mis": "fail"}}, "on_mis"),
        ({"default": {"type": "history", "on_miss": "explode"}}, "explode"),
        ({"tools": {"a": {"type": "error_result"}}}, "error_result"),
        ("{not json", "JSON"),
    ],
)
def test_bad_policies_are_refused_with_place_and_choices(recorder: Recorder, policy: Any, words: str):
    record(poller, "p")
    with pytest.raises(PolicyError, match=words):
        playhead.replay(agent=poller, tool_policy=policy)


def test_a_policy_for_a_tool_that_is_not_there_warns_with_near_names(recorder: Recorder):
    record(poller, "p")
    result = playhead.replay(agent=poller, tool_policy={"tools": {"pol": {"type": "passthrough"}}})
    assert any("poll" in warning for warning in result.warnings)


def test_cohort_scope_outside_an_experiment_is_refused(recorder: Recorder):
    record(poller, "p")
    with pytest.raises(RefusedError, match="cohort_version"):
        playhead.replay(agent=poller, tool_policy={"default": {"type": "history", "scope": "cohort_version"}})


def test_sessions_that_cannot_start_again_are_refused_with_the_reason(recorder: Recorder):
    @playhead.agent("odd")
    def odd(stream: Any) -> str:
        return "done"

    record(odd, iter("abc"))
    with pytest.raises(RefusedError, match="stream"):
        playhead.replay("last", agent=odd)


def test_an_open_session_is_refused_and_an_abandoned_one_needs_force(recorder: Recorder):
    with playhead.session("manual", inputs={"prompt": "x"}) as session:
        playhead.flush()
        assert session.id is not None
        with pytest.raises(RefusedError, match="still running"):
            playhead.replay(session.id, agent=lambda prompt: 1)
    playhead.flush()
    recorder.store.sessions.update(session.id, status=SessionStatus.ABANDONED)
    with pytest.raises(RefusedError, match="abandoned"):
        playhead.replay(session.id, agent=lambda prompt: 1)
    assert playhead.replay(session.id, agent=lambda prompt: 1, force=True).status is ReplayStatus.COMPLETED
