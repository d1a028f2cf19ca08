"""Cohorts and experiments from the command line: populations, arms, runs that stop and go on, reports."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from .conftest import Project

DESK = """\
import os
import pathlib
import sys
import time

import playhead


@playhead.tool(effect="read")
def price(item: str) -> int:
    with open("live.log", "a") as log:
        log.write(item)
    return len(item)


@playhead.agent("desk")
def desk(item: str) -> str:
    while os.path.exists("hold"):
        pathlib.Path("held").touch()
        time.sleep(0.05)
    if os.path.exists("other"):
        item = pathlib.Path("other").read_text()
    return f"{item} costs {price(item)}"


if __name__ == "__main__":
    for item in sys.argv[1:]:
        desk(item)
"""
ITEMS = ("tea", "milk", "honey", "bread")
DEARER = {"tools": {"price": {"type": "static", "cases": [{"match": {"item": "milk"}, "result": 9}, {"result": 5}]}}}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("desk")
    (folder / "desk.py").write_text(DESK)
    (folder / ".playhead").mkdir()
    subprocess.run([sys.executable, "desk.py", *ITEMS], cwd=folder, check=True, timeout=60)
    shutil.copytree(folder / ".playhead", folder / "pristine")
    return folder


@pytest.fixture
def project(kept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Project:
    shutil.rmtree(kept / ".playhead")
    shutil.copytree(kept / "pristine", kept / ".playhead")
    for name in ("hold", "held", "other", "live.log"):
        (kept / name).unlink(missing_ok=True)
    monkeypatch.chdir(kept)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return Project(kept, capsys)


def session_ids(project: Project) -> list[str]:
    listed = project("session", "list", "--agent", "desk", "--origin", "live", "--oldest-first").json["items"]
    return [session["id"] for session in listed]


def test_a_cohort_is_frozen_and_changes_by_version(project: Project) -> None:
    ids = session_ids(project)
    made = project("cohort", "create", "orders", "--agent", "desk").json
    assert (made["ref"], made["members"]) == ("orders@1", ids)
    less = project("cohort", "change", "orders", "--remove", ids[0]).json
    assert (less["ref"], less["members"]) == ("orders@2", ids[1:])
    assert project("cohort", "show", "orders@1").json["members"] == ids
    assert project("cohort", "freeze", "orders").json["ref"] == "orders@3"  # the query finds all four again
    assert project("cohort", "freeze", "orders").json["ref"] == "orders@3"
    shown = project("cohort", "show", "orders").json
    assert (shown["found"], shown["tools"], shown["agents"]) == (4, {"price": 4}, {"desk": 4})


def test_a_cohort_is_made_from_a_list_or_a_sample(project: Project) -> None:
    ids = session_ids(project)
    (project.folder / "ids").write_text(f"{ids[2]}\n\n{ids[0]}\n")
    assert project("cohort", "create", "two", "--from-file", "ids").json["members"] == [ids[2], ids[0]]
    drawn = project("cohort", "create", "some", "--agent", "desk", "--sample", "2").json["members"]
    assert len(drawn) == 2
    assert set(drawn) < set(ids)
    assert project("cohort", "create", "again", "--agent", "desk", "--sample", "2").json["members"] == drawn
    nothing = project("cohort", "create", "none", "--agent", "nobody")
    assert (nothing.code, nothing.error["code"]) == (2, "usage")


def test_a_cohort_is_made_from_a_query_of_the_language(project: Project) -> None:
    ids = session_ids(project)
    project("session", "tag", ids[1], "odd one")
    made = project("cohort", "create", "odd", "--query", "agent = desk and tag in ('odd one') and started > 1d").json
    assert made["members"] == [ids[1]]
    assert "started > " in made["source"]["query"]["where"]
    project("session", "tag", ids[3], "odd one")
    assert project("cohort", "freeze", "odd").json["members"] == [ids[1], ids[3]]
    others = project("session", "list", "--query", "not tag = 'odd one'", "--origin", "live").json["items"]
    assert {session["id"] for session in others} == {ids[0], ids[2]}
    wrong = project("cohort", "create", "bad", "--query", "agent = desk and agnt = x")
    assert (wrong.code, wrong.error["details"]["at"]) == (2, 18)
    assert ">>> agnt = x" in wrong.error["message"]
    assert "agent_version" in wrong.error["hint"]
    assert project("cohort", "create", "two\nlines", "--agent", "desk").code == 2


def test_a_session_of_a_cohort_is_erased_only_on_purpose(project: Project) -> None:
    ids = session_ids(project)
    project("cohort", "create", "orders", "--agent", "desk")
    refused = project("session", "delete", ids[0], "--yes")
    assert refused.code == 2
    assert "orders@1" in refused.error["message"]
    assert project("session", "delete", ids[0], "--yes", "--erase").code == 0
    assert project("cohort", "show", "orders").json["erased"] == [ids[0]]
    project("experiment", "create", "same", "--unchanged")
    run = project("experiment", "run", "same", "--cohort", "orders").json
    assert list(run["refused"]) == [ids[0]]
    assert run["refused"][ids[0]].startswith("erased")
    assert run["report"]["run"]["cases"] == 3


def test_arms_are_compared_with_recording_and_noise(project: Project) -> None:
    project("cohort", "create", "orders", "--agent", "desk")
    made = project(
        "experiment", "create", "dearer", "--unchanged", "--tool-policy", json.dumps(DEARER), "--evaluator",
        "output-equals", "--evaluator", "latency",
    )  # fmt: skip
    assert [arm["name"] for arm in made.json["config"]["arms"]] == ["unchanged", "change"]
    planned = project("experiment", "run", "dearer", "--cohort", "orders", "--repeats", "2", "--plan").json
    assert (planned["estimate"]["replays"], planned["estimate"]["live"]) == (16, 0)
    done = project("experiment", "run", "dearer", "--cohort", "orders", "--repeats", "2")
    assert (done.code, done.json["status"]) == (0, "completed")
    unchanged, change = done.json["report"]["arms"]
    assert unchanged["fidelity"] == {"faithful": 8}
    assert change["replays"] == {"completed": 8}
    verdict = next(v for v in change["verdicts"] if v["verdict"].startswith("output-equals"))
    assert verdict["rate"] == 0.5  # honey and bread really have five letters
    against = next(v for v in change["against_unchanged"]["verdicts"] if v["verdict"].startswith("output-equals"))
    assert (against["wins"], against["losses"], against["ties"]) == (0, 2, 2)
    assert not (project.folder / "live.log").exists()
    text = project("experiment", "report", "last", "--output", "text").out
    assert "change loses" not in text or "output-equals" in text
    page = project("experiment", "report", "last", "--form", "markdown").out
    assert "| change | unchanged | output-equals\\@1 | -50.0%" in page
    assert project("experiment", "run", "dearer", "--cohort", "orders", "--fail-on-verdict").code == 1


def test_an_experiment_ends_with_the_verdict_of_the_gate(project: Project) -> None:
    """Four sessions are too few to show that nothing was lost, and two losses of four are not proof."""
    project("cohort", "create", "orders", "--agent", "desk")
    project("experiment", "create", "dearer", "--tool-policy", json.dumps(DEARER), "--evaluator", "output-equals")
    (project.folder / "gate.toml").write_text("margin = 0.6\nalpha = 0.4\nmin_runs = 1\n")
    done = project("experiment", "run", "dearer", "--cohort", "orders", "--gate", "gate.toml")
    gate = done.json["report"]["gate"]
    assert (done.code, gate["verdict"], gate["parts"][0]["name"]) == (1, "fail", "change: output-equals@1")
    again = project("experiment", "report", "last", "--gate", "default", "--output", "text")
    assert again.code == 4
    assert again.out.startswith("inconclusive: ")
    assert "earlier looks" in again.out
    for name, words in (("r.html", "default-src 'none'"), ("r.xml", "<testsuite"), ("r.md", "inconclusive")):
        written = project("experiment", "report", "last", "--gate", "default", "--out", name)
        assert (written.code, written.json["written"]) == (4, name)
        assert words in (project.folder / name).read_text("utf-8")
    assert project("experiment", "report", "last", "--form", "html").out.startswith("<!doctype html>")
    (project.folder / "gate.toml").write_text('criteria = ["select"]\n')
    refused = project("experiment", "run", "dearer", "--cohort", "orders", "--gate", "gate.toml")
    assert (refused.code, refused.error["code"]) == (2, "config")  # before anything runs
    assert len(project("experiment", "show", "dearer").json["runs"]) == 1
    assert project("experiment", "report", "last", "--out", "r.pdf").code == 2


def test_a_cohort_is_a_regression_suite(project: Project) -> None:
    """Any session of the version answers; what none of them has recorded stops the replay."""
    policy = {"default": {"type": "history", "scope": "cohort_version", "on_miss": "fail"}}
    project("cohort", "create", "orders", "--agent", "desk")
    assert project("experiment", "create", "suite", "--tool-policy", json.dumps(policy)).code == 0
    (project.folder / "other").write_text("honey")  # every replay asks for what only one of them recorded
    done = project("experiment", "run", "suite", "--cohort", "orders")
    assert (done.code, done.json["report"]["arms"][0]["replays"]) == (0, {"completed": 4})
    (project.folder / "other").write_text("salt")
    missed = project("experiment", "run", "suite", "--cohort", "orders")
    assert (missed.code, missed.json["report"]["arms"][0]["replays"]) == (1, {"failed": 4})
    assert "salt" in missed.json["report"]["arms"][0]["failures"][0]["error"]
    assert not (project.folder / "live.log").exists()


def test_failed_replays_are_tried_again_alone(project: Project) -> None:
    project("cohort", "create", "orders", "--agent", "desk")
    project("experiment", "create", "same", "--unchanged")
    (project.folder / "other").write_text("honey")
    first = project("experiment", "run", "same", "--cohort", "orders").json
    assert first["report"]["arms"][0]["replays"] == {"failed": 3, "completed": 1}
    (project.folder / "other").unlink()
    again = project("experiment", "resume", first["id"], "--failed")
    assert (again.code, len(again.json["job_ids"])) == (0, 2)
    assert again.json["report"]["arms"][0]["replays"] == {"completed": 4}
    assert len(project("job", "get", again.json["job_ids"][1], "--tasks").json["tasks"]) == 3
    assert project("experiment", "resume", first["id"], "--failed").error["code"] == "usage"


def test_a_run_that_was_killed_goes_on_where_it_stopped(project: Project) -> None:
    project("cohort", "create", "orders", "--agent", "desk")
    project("experiment", "create", "same", "--unchanged")
    (project.folder / "hold").touch()
    process = project.start("experiment", "run", "same", "--cohort", "orders", "--workers", "1")
    until = time.monotonic() + 60
    while not (project.folder / "held").exists():
        assert time.monotonic() < until, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    (project.folder / "hold").unlink()
    done = project("experiment", "resume", "last")
    assert (done.code, done.json["status"]) == (0, "completed")
    assert done.json["report"]["arms"][0]["replays"] == {"completed": 4}
    assert len(project("replay", "list").json["items"]) == 4


def test_a_budget_ends_the_run_and_says_so(project: Project) -> None:
    project("cohort", "create", "orders", "--agent", "desk")
    project("experiment", "create", "same", "--unchanged")
    (project.folder / "hold").touch()
    done = project("experiment", "run", "same", "--cohort", "orders", "--max-minutes", "0.0001")
    assert (done.code, done.json["status"]) == (4, "canceled")
    assert done.json["stopped"].startswith("budget")
    refused = project("experiment", "run", "same", "--cohort", "orders", "--max-cost", "1", "--no-wait")
    assert (refused.code, refused.error["code"]) == (2, "usage")


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        (("experiment", "create", "x"), 2, "arms"),
        (("experiment", "create", "x y", "--unchanged"), 2, "name"),
        (("experiment", "create", "x", "--arm", '{"name": "a"}'), 2, "changes nothing"),
        (("experiment", "create", "x", "--arm", "{"), 2, "not JSON"),
        (("experiment", "create", "x", "--unchanged", "--evaluator", "nobody"), 2, "nobody"),
        (("experiment", "run", "nothing", "--cohort", "c"), 2, "nothing"),
        (("experiment", "report", "last"), 2, "last"),
        (("cohort", "show", "nothing"), 2, "nothing"),
        (("cohort", "create", "a@1", "--agent", "desk"), 2, "version"),
        (("cohort", "create", "a", "--agent", "desk", "--session", "last"), 2, "at once"),
    ],
)
def test_bad_input_is_named(project: Project, words: tuple[str, ...], code: int, part: str) -> None:
    done: Any = project(*words)
    assert done.code == code
    assert part in done.error["message"]
