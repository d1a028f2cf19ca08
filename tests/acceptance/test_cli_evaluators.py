"""From a scaffold to an exit code: evaluators on the command line, run by the worker of a job."""

from typing import Any

import pytest

CHECK = """
def at_most(ctx):
    paid = [float(n.call.arguments["amount"]) for n in ctx.tool_calls if n.name == "refund"]
    return {"passed": sum(paid) <= ctx.params.get("limit", 200), "score": sum(paid)}
"""


def verdicts(found: Any) -> dict[str, bool | None]:
    return {v["evaluator"].partition("#")[0]: v["passed"] for v in found["verdicts"]}


@pytest.fixture
def checked(project: Any) -> Any:
    (project.folder / "checks.py").write_text(CHECK)
    assert project("evaluator", "register", "checks.py:at_most", "--output", "json").code == 0
    return project


def test_the_reference_line_judges_result_and_baseline(checked: Any) -> None:
    done = checked(
        "replay", "create", "last", "--evaluator", "at-most@1",
        "--tool-policy", '{"default":{"type":"history","scope":"baseline","on_miss":"fail"}}',
        "--evaluate-baselines", "--wait", "--output", "json",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert verdicts(done.json) == {"at-most@1": True}
    shown = checked("replay", "get", done.json["id"], "--output", "json").json
    assert shown["verdicts"] == done.json["verdicts"]
    for session in (done.json["result_session_id"], done.json["baseline_session_id"]):
        found = checked("session", "show", session, "--output", "json").json
        assert verdicts(found) == {"at-most@1": True}
    assert checked.ran() == []


@pytest.mark.parametrize("way", ["--wait", "--inline"])
def test_a_failed_verdict_reaches_the_exit_code_when_asked(checked: Any, way: str) -> None:
    line = ("replay", "create", "last", way, "--output", "json", "--evaluator", "at-most", "--evaluator-params")
    assert checked(*line, '{"limit": 100}').code == 0
    done = checked(*line, '{"limit": 100}', "--fail-on-verdict")
    assert (done.code, verdicts(done.json)) == (1, {"at-most@1": False})
    assert checked(*line, '{"limit": 130}', "--fail-on-verdict").code == 0


@pytest.mark.parametrize("way", ["--wait", "--inline"])
def test_a_broken_evaluator_exits_3_and_the_replay_stands(checked: Any, way: str) -> None:
    (checked.folder / "checks.py").write_text("import os\n\ndef at_most(ctx):\n    os._exit(0)\n")
    checked("evaluator", "register", "checks.py:at_most")
    done = checked("replay", "create", "last", way, "--evaluator", "at-most@2", "--evaluator", "fidelity")
    assert done.code == 3
    found = checked("replay", "get", "last", "--output", "json").json
    assert (found["status"], found["error"]["code"], found["fidelity"]["kind"]) == ("failed", "evaluator", "faithful")
    assert "at-most@2" in found["error"]["message"]
    assert verdicts(found) == {"at-most@2": None, "fidelity@1": True}


def test_an_unknown_evaluator_is_refused_before_anything_is_made(checked: Any) -> None:
    done = checked("replay", "create", "last", "--evaluator", "at-mst", "--output", "json")
    assert (done.code, done.error["code"]) == (2, "not_found")
    assert "at-most" in done.error["hint"]
    assert checked("replay", "list", "--output", "json").json["items"] == []


def test_a_changed_file_is_told_and_the_registered_code_runs(checked: Any) -> None:
    (checked.folder / "checks.py").write_text("def at_most(ctx):\n    return False\n")
    done = checked("replay", "create", "last", "--wait", "--evaluator", "at-most", "--output", "json")
    assert verdicts(done.json) == {"at-most@1": True}
    assert any("has changed since" in note for note in done.notes)
