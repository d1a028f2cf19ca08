"""Gate and report on runs that stand in a real SQLite store, not in files."""

import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from playhead.core.suites.contents import Contents
from playhead.core.suites.suite import Case, Suite, ToolSchema
from playhead.core.suites.trials import SuiteRun, Trial, TrialStep
from playhead.store.sqlite import SqliteStore

from .conftest import Project

LOOK = ToolSchema(
    name="look",
    parameters={"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]},
)
CASES = 60


def case(n: int) -> Case:
    return Case.model_validate(
        {
            "id": f"c{n}",
            "intent": f"i{n % 2}",
            "history": [{"role": "user", "content": f"order {n}?"}],
            "tools": ["look"],
            "label": {"kind": "call", "calls": [{"tool": "look", "arguments": {"order_id": str(n)}}]},
        }
    )


def answer(n: int, good: bool) -> Any:
    arguments = {"order_id": str(n)} if good else {"order_id": "wrong"}
    calls = [{"type": "tool_call", "id": "x", "name": "look", "arguments": arguments}]
    return {"role": "assistant", "parts": calls}


def add_run(store: SqliteStore, id: str, at: int, passes: Any) -> None:
    """A finished run; ``passes(case, trial)`` says whether its call has the right argument."""
    ids = tuple(f"c{n}" for n in range(CASES))
    store.suites.save_run(
        SuiteRun(id=id, suite="shop", suite_digest="d", created_at=at, model="small", status="completed", cases=ids)
    )
    for n in range(CASES):
        for k in range(3):
            step = TrialStep(request="r", message=answer(n, passes(n, k)))
            store.suites.add_trial(
                Trial(run=id, case=f"c{n}", n=k, seed=0, case_digest="d", steps=(step,), final="done")
            )


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stored")
    (folder / ".playhead").mkdir()
    with closing(SqliteStore(folder / ".playhead" / "store.db")) as store:
        store.suites.put(Contents(suite=Suite(name="shop"), cases=tuple(map(case, range(CASES))), tools={"look": LOOK}))
        add_run(store, "0" * 31 + "1", 1_000, lambda n, k: True)
        add_run(store, "0" * 31 + "2", 2_000, lambda n, k: n != 7 or k != 1)
        add_run(store, "0" * 31 + "3", 3_000, lambda n, k: n >= 10)
    return folder


@pytest.fixture
def project(
    stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Project:
    """A copy of the store: a gate remembers what was looked at before."""
    folder = shutil.copytree(stored, tmp_path / "stored")
    monkeypatch.chdir(folder)
    return Project(folder, capsys)


ALONE = 'criteria = ["selection", "arguments", "intents", "stability"]\nextra = { values = {} }\n'


def test_a_run_of_the_store_is_gated_against_an_earlier_one(project: Project) -> None:
    (project.folder / "gate.toml").write_text(ALONE)
    same = project("gate", "last~1", "--against", "last~2", "--criteria", "gate.toml")
    assert (same.code, same.json["verdict"]) == (0, "pass")
    stability = next(part for part in same.json["parts"] if part["name"] == "stability")
    assert "over 2 runs of this configuration 1 of 60 cases are flaky; newly: c7" in stability["reasons"][-1]
    worse = project("gate", "last", "--against", "last~1", "--criteria", "gate.toml")
    assert (worse.code, worse.json["verdict"]) == (1, "fail")
    assert any(reason.startswith("values: changed by -16") for reason in worse.json["reasons"])
    assert worse.json["candidate"].endswith("3")


def test_a_report_of_a_stored_run_has_its_history(project: Project) -> None:
    told = project("suite", "report", "last", "--to", "r.html", "--to", "r.md").json["history"]
    assert (len(told["pooled"]), told["earlier"]) == (3, 2)
    assert set(told["newly_flaky"]) == {f"c{n}" for n in range(10) if n != 7}
    assert told["flipped"] == [f"c{n}" for n in range(10) if n != 7]  # c7 was mixed before
    assert "<h2>History</h2>" in (project.folder / "r.html").read_text("utf-8")
    assert "History: `over 3 runs" in (project.folder / "r.md").read_text("utf-8")
    text = project("suite", "report", "last~1", "--output", "text").out
    assert "over 2 runs of this configuration 1 of 60 cases are flaky; newly: c7" in text
    assert project("suite", "report", "last~2").json["history"] is None  # nothing was before


def test_a_stored_run_is_accepted_and_compared_with(project: Project) -> None:
    (project.folder / "gate.toml").write_text(ALONE)
    kept = project("gate", "last~1", "--against", "last~2", "--criteria", "gate.toml", "--accept", "--output", "text")
    assert "kept as last-release" in kept.out
    again = project("gate", "last", "--against", "last-release", "--criteria", "gate.toml")
    assert again.out, again.err
    assert (again.code, again.json["baseline"][-1]) == (1, "2")
    missing = project("gate", "fff0", "--against", "last")
    assert (missing.code, missing.error["code"]) == (2, "not_found")


def test_reading_what_is_held_back_is_counted_and_is_no_further_look(project: Project) -> None:
    words = ("gate", "last~1", "--against", "last~2", "--criteria", "gate.toml", "--release", "--reason", "v2")
    (project.folder / "gate.toml").write_text("alpha = 0.04\n" + ALONE)
    first, again = project(*words).json, project(*words).json
    assert (first["held_back_accesses"], again["held_back_accesses"]) == (1, 2)
    assert first["look"] == again["look"]
    refused = project(*words[:-2])
    assert (refused.code, refused.error["code"]) == (2, "usage")
