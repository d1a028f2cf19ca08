"""Replays are judged when they have settled: which evaluators, on which session, and what it means for the replay."""

from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.core.values import ErrorInfo, ReplayStatus, SessionStatus, Verdict
from playhead.engine.settle import exit_code
from playhead.errors import NotFoundError, RefusedError, UsageError

SAID: list[str] = ["done"]


@playhead.tool
def look(x: int) -> int:
    return x * 10


@playhead.agent("clerk")
def clerk(x: int) -> str:
    return f"{look(x)} {SAID[-1]}"


@pytest.fixture
def recorded(project: Path) -> Any:
    """A recorded session of the clerk, and an open client."""
    SAID[:] = ["done"]
    clerk(1)
    playhead.flush()
    with playhead.open() as client:
        yield client


def register(client: playhead.Client, body: str, name: str = "check") -> None:
    Path(f"{name}.py").write_text(f"import os, time\n\ndef check(ctx):\n    {body}\n")
    client.evaluators.register(f"{name}.py:check", name=name)


def replay(**more: Any) -> playhead.ReplayResult:
    return playhead.replay(agent=clerk, **more)


def named(verdicts: Any) -> dict[str | None, bool | None]:
    return {v.evaluator: v.passed for v in verdicts}


def test_fidelity_judges_a_replay_that_names_no_evaluator(recorded: playhead.Client) -> None:
    done = replay()
    assert named(done.verdicts) == {"fidelity@1": True}
    assert recorded.sessions.verdicts(done.session.id) == list(done.verdicts)
    stored = recorded.replays.get(done.id)
    assert (stored.status, stored.verdicts) == (ReplayStatus.COMPLETED, done.verdicts)
    assert stored.evaluators == ({"evaluator": "fidelity@1", "params": {}, "digest": None},)
    assert recorded.sessions.verdicts(done.baseline.id) == []


def test_fidelity_fails_a_diverged_replay_and_only_describes_a_fork(recorded: playhead.Client) -> None:
    SAID.append("other")
    diverged = replay(model_policy={"type": "history"})
    assert named(diverged.verdicts) == {"fidelity@1": False}
    assert exit_code(diverged.replay, fork=False, fail_on_verdict=True) == 1
    fork = replay(tool_policy={"tools": {"look": {"type": "static", "cases": [{"result": 7}]}}})
    assert named(fork.verdicts) == {"fidelity@1": None}
    assert exit_code(fork.replay, fork=True, fail_on_verdict=True) == 0


def test_a_registered_evaluator_sees_result_baseline_ledger_and_comparison(recorded: playhead.Client) -> None:
    body = (
        "return {'passed': ctx.comparison.output_equal, 'label': ctx.ledger[0].by, 'score': len(ctx.baseline_nodes),"
        " 'explanation': f'{ctx.baseline.id} {ctx.fidelity.kind} {ctx.unchanged}'}"
    )
    register(recorded, body)
    SAID.append("other")
    done = replay(evaluators=["check"])
    (verdict,) = done.verdicts
    assert (verdict.evaluator, verdict.passed, verdict.label, verdict.score) == ("check@1", False, "served", 1)
    assert verdict.explanation == f"{done.baseline.id} {done.fidelity.kind} True"
    assert exit_code(done.replay, fork=True, fail_on_verdict=True) == 1
    assert exit_code(done.replay, fork=True) == 0


def test_a_name_is_the_version_of_the_time_it_was_created(recorded: playhead.Client) -> None:
    register(recorded, "return True")
    done = replay(evaluators=["check", playhead.EvaluatorConfig(evaluator="max-calls", params={"max": 0})])
    register(recorded, "return False")
    again = replay(evaluators=["check@1", "check@2"])
    assert list(named(done.verdicts).values()) == [True, False]
    assert named(again.verdicts) == {"check@1": True, "check@2": False}


def test_unknown_evaluators_and_parameters_are_refused_before_anything_runs(recorded: playhead.Client) -> None:
    for evaluator, error in (("fidelty", NotFoundError), ("check@9", NotFoundError)):
        with pytest.raises(error):
            replay(evaluators=[evaluator])
    with pytest.raises(UsageError, match="params/mx"):
        replay(evaluators=[playhead.EvaluatorConfig(evaluator="max-calls", params={"mx": 1})])
    assert recorded.replays.list().items == ()


@pytest.mark.parametrize(
    ("mode", "runs"), [("none", 0), (False, 0), ("if_missing", 1), (True, 1), ("force", 2)], ids=str
)
def test_baselines_are_judged_as_asked(recorded: playhead.Client, project: Path, mode: Any, runs: int) -> None:
    counted = project / "counted"
    register(recorded, f"open({str(counted)!r}, 'a').write('x' if ctx.baseline is None else ''); return True")
    for _ in range(2):
        replay(evaluators=["check", "fidelity"], evaluate_baselines=mode)
    assert len(counted.read_text()) == runs
    found = named(recorded.sessions.verdicts(replay(evaluators=["check"]).baseline.id))
    assert found == ({"check@1": True} if runs else {})


def test_a_baseline_that_an_evaluator_broke_on_is_due_again(recorded: playhead.Client) -> None:
    baseline = replay().baseline.id
    register(recorded, "return True")
    broken = Verdict(name="check", evaluator="check@1", error=ErrorInfo(class_name="EvaluatorError"))
    recorded.sessions.add_verdicts(baseline, [broken])
    replay(evaluators=["check"], evaluate_baselines="if_missing")
    assert named(recorded.sessions.verdicts(baseline)) == {"check@1": True}


@pytest.mark.parametrize("body", ["raise ValueError('no')", "os._exit(0)", "return None", "print('x' * 9_000_000)"])
def test_a_broken_evaluator_fails_the_replay_and_leaves_its_record(recorded: playhead.Client, body: str) -> None:
    register(recorded, body)
    done = replay(evaluators=["check", "fidelity"])
    assert (done.status, done.error.code if done.error else None) == (ReplayStatus.FAILED, "evaluator")
    assert "check@1" in (done.error.message if done.error else "")
    assert named(done.verdicts) == {"check@1": None, "fidelity@1": True}
    assert (done.fidelity.kind, len(done.ledger)) == ("faithful", 1)
    assert exit_code(done.replay, fork=False) == 3
    stored = recorded.replays.get(done.id)
    assert (stored.result_session_id, stored.ledger) == (done.session.id, done.ledger)


def test_a_replay_that_failed_is_not_judged(recorded: playhead.Client) -> None:
    register(recorded, "return True")

    def other(x: int) -> int:
        return look(x + 1)

    done = playhead.replay(agent=other, evaluators=["check"])
    assert (done.status, done.verdicts) == (ReplayStatus.FAILED, ())
    assert recorded.sessions.verdicts(done.session.id) == []


def test_an_evaluator_is_listed_and_read_by_the_client(recorded: playhead.Client) -> None:
    register(recorded, "return True")
    assert {"fidelity", "llm-judge", "check"} <= {e.name for e in recorded.evaluators.list()}
    found = recorded.evaluators.get("check")
    assert (found.version, found.kind, found.current) == (1, "registered", True)
    assert recorded.evaluators.get("fidelity@1").kind == "built-in"
    with pytest.raises(NotFoundError):
        recorded.evaluators.get("fidelity@2")


@pytest.mark.parametrize(
    ("model", "words"), [({}, "no model is named"), ({"model": "nobody:nothing"}, "'nobody:nothing' cannot be used")]
)
def test_a_judge_that_cannot_ask_is_refused_before_anything_runs(
    recorded: playhead.Client, model: dict[str, str], words: str
) -> None:
    pytest.importorskip("pydantic_ai")
    judge = playhead.EvaluatorConfig(evaluator="llm-judge", params={"question": "Good?", **model})
    request = playhead.ReplayCreateRequest(baseline_session_id="last", evaluators=(judge,))
    with pytest.raises(RefusedError, match=words):
        replay(evaluators=[judge])
    with pytest.raises(RefusedError, match=words):
        recorded.replays.create(request)
    assert recorded.replays.list().items == ()


def test_a_judge_asks_the_model_that_it_names(recorded: playhead.Client) -> None:
    pytest.importorskip("pydantic_ai")
    judge = playhead.EvaluatorConfig(evaluator="llm-judge", params={"question": "Good?", "model": "test", "repeats": 1})
    done = replay(evaluators=[judge])
    assert "no readable verdict in 1 answers" in (done.error.message if done.error else "")


def test_secrets_in_verdicts_are_taken_out(recorded: playhead.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "tok-8c1e5d7f9a2b")
    register(recorded, "return {'explanation': 'saw tok-8c1e5d7f9a2b', 'passed': True}")
    done = replay(evaluators=["check"])
    assert "tok-8c1e5d7f9a2b" not in repr(recorded.replays.get(done.id)) + repr(done.verdicts)


def test_refusals_come_before_evaluators(recorded: playhead.Client) -> None:
    recorded.sessions.update(replay().baseline.id, status=SessionStatus.ABANDONED)
    with pytest.raises(RefusedError):
        replay(evaluators=["fidelity"])
