"""``playhead gate`` and ``playhead plan`` as a user types them."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from playhead.core.suites.summary import RunSummary, to_text
from playhead.testing.runs import simulated_run

from .conftest import Project


@pytest.fixture
def runs(tmp_path: Path) -> dict[str, RunSummary]:
    """Files of runs: a baseline, one that is equal, one that is worse, one that is uncertain, one that broke down."""
    made = {
        "base": simulated_run([1.0] * 120, seed="1", run="base"),
        "same": simulated_run([1.0] * 120, seed="1", run="same"),
        "worse": simulated_run([0.6] * 120, seed="2", run="worse"),
        "unsure": simulated_run([1.0] * 120, seed="3", run="unsure", recovery=()),
    }
    errors = simulated_run([1.0] * 120, seed="1", run="errors")
    cases = tuple(replace(c, trials=tuple(replace(t, status="error") for t in c.trials)) for c in errors.cases)
    made["errors"] = replace(errors, cases=cases)
    for name, run in made.items():
        (tmp_path / f"{name}.json").write_text(to_text(run), encoding="utf-8")
    return made


@pytest.mark.parametrize(
    ("run", "verdict", "code"),
    [("same", "pass", 0), ("worse", "fail", 1), ("unsure", "inconclusive", 4), ("errors", "no_verdict", 3)],
)
def test_t24_each_verdict_has_its_exit_code(empty: Project, runs: Any, run: str, verdict: str, code: int) -> None:
    done = empty("gate", f"{run}.json", "--against", "base.json")
    assert (done.code, done.json["verdict"]) == (code, verdict)
    assert done.json["format"] == "playhead.gate/1"
    assert bool(done.json["reasons"]) == (verdict != "pass")


def test_on_a_terminal_the_reasons_come_first_and_every_criterion_is_shown(empty: Project, runs: Any) -> None:
    done = empty("gate", "worse.json", "--against", "base.json", "--output", "text")
    assert done.out.startswith("fail: worse against base\n  selection: changed by")
    for words in ("stability", "recovery", "arguments", "loop", "wrong_tool"):
        assert words in done.out


def test_t24_an_unknown_criterion_is_refused_with_the_known_ones(empty: Project, runs: Any) -> None:
    (empty_file := Path("gate.toml")).write_text('criteria = ["select"]\n')
    done = empty("gate", "same.json", "--against", "base.json", "--criteria", str(empty_file))
    assert done.code == 2
    assert done.error["code"] == "config"
    assert "stability" in done.error["hint"]


@pytest.mark.parametrize("name", ["gate.toml", "gate.json"])
def test_criteria_come_from_a_file(empty: Project, runs: Any, name: str) -> None:
    text = 'criteria = ["selection"]\n' if name.endswith("toml") else '{"criteria": ["selection"]}'
    Path(name).write_text(text)
    done = empty("gate", "unsure.json", "--against", "base.json", "--criteria", name)
    assert (done.code, [part["name"] for part in done.json["parts"]]) == (0, ["selection"])


@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        (("nothere.json", "--against", "base.json"), "not_found", "nothere.json"),
        (("base.json", "--against", "last-release"), "not_found", "no release"),
        (("base.json", "--against", "broken.json"), "format", "broken.json"),
        (("base.json", "--against", "base.json", "--report", "x.pdf"), "usage", "x.pdf"),
        (("base.json", "--against", "base.json", "--release"), "usage", "reason"),
        (("base.json", "--against", "base.json", "--criteria", "nothere.toml"), "config", "nothere.toml"),
    ],
)
def test_what_cannot_be_read_is_named(empty: Project, runs: Any, words: tuple[str, ...], code: str, named: str) -> None:
    Path("broken.json").write_text('{"format": "something else"}')
    done = empty("gate", *words)
    assert done.error["code"] == code
    assert named in done.error["message"]


def test_an_accepted_run_is_the_last_release(empty: Project, runs: Any) -> None:
    assert empty("init").code == 0
    refused = empty("gate", "worse.json", "--against", "base.json", "--accept", "--output", "text")
    assert "not kept as last-release" in refused.out
    assert empty("gate", "same.json", "--against", "base.json", "--accept").code == 0
    done = empty("gate", "worse.json", "--against", "last-release")
    assert (done.code, done.json["baseline"]) == (1, "same")
    assert not list(Path(".playhead/releases").glob("*.tmp"))


def test_the_same_look_again_costs_nothing_another_one_costs_alpha(empty: Project, runs: Any) -> None:
    assert empty("init").code == 0
    for _ in range(2):
        first = empty("gate", "same.json", "--against", "base.json")
        assert (first.json["look"], first.json["alpha"]) == (1, 0.05)
    Path("gate.json").write_text('{"margin": 0.06}')
    second = empty("gate", "same.json", "--against", "base.json", "--criteria", "gate.json")
    assert (second.json["look"], second.json["alpha"]) == (2, 0.025)
    assert [look["verdict"] for look in second.json["earlier"]] == ["pass"]


def test_a_sequential_gate_may_be_asked_again(empty: Project, runs: Any) -> None:
    (empty.folder / ".playhead").mkdir()
    first = empty("gate", "worse.json", "--against", "base.json", "--sequential").json
    again = empty("gate", "worse.json", "--against", "base.json", "--sequential", "--recovery", "same.json").json
    assert (first["verdict"], again["verdict"], again["look"], again["alpha"]) == ("fail", "fail", 2, 0.05)
    assert [look["verdict"] for look in again["earlier"]] == ["fail"]
    assert {part["form"] for part in again["parts"]} == {"sequential"}
    both = empty("gate", "same.json", "--against", "base.json", "--sequential", "--literal")
    assert (both.code, both.error["code"]) == (2, "usage")


def test_a_gate_leaves_nothing_behind_where_there_is_no_project(empty: Project, runs: Any) -> None:
    assert empty("gate", "same.json", "--against", "base.json").code == 0
    assert not Path(".playhead").exists()


def test_reports_are_written_beside_the_verdict(empty: Project, runs: Any) -> None:
    names = ["r.html", "out/r.md", "r.xml", "r.json"]
    done = empty("gate", "worse.json", "--against", "base.json", *(w for n in names for w in ("--report", n)))
    assert done.code == 1
    assert all(Path(name).stat().st_size > 500 for name in names)
    assert Path("out/r.md").read_text(encoding="utf-8").startswith("## Release gate: ❌ fail")
    assert json.loads(Path("r.json").read_text())["gate"]["verdict"] == "fail"


def test_a_configured_secret_is_in_no_report(empty: Project, runs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "hunter2-hunter2-hunter2"
    monkeypatch.setenv("SHOP_API_KEY", secret)
    leaked = replace(runs["worse"], notes=(f"said {secret}",))
    Path("leak.json").write_text(to_text(leaked), encoding="utf-8")
    assert empty("gate", "leak.json", "--against", "base.json", "--report", "r.html", "--report", "r.json").code == 1
    assert secret not in Path("r.html").read_text(encoding="utf-8") + Path("r.json").read_text(encoding="utf-8")


def test_t01_the_plan_for_four_hundred_cases(empty: Project) -> None:
    data = empty("plan", "--cases", "400", "--rate", "0.88").json
    assert round(100 * data["halfwidth"], 1) == 3.2
    assert [round(100 * end, 1) for end in data["interval"]] == [84.4, 90.8]
    assert round(data["unpaired_power"], 3) == 0.519
    assert [round(row["power"], 3) for row in data["paired"]] == [0.973, 0.874, 0.703, 0.569]
    assert [row["cases_for_80"] for row in data["paired"]] == [218, 312, 469, 626]
    assert data["paired"][1]["no_loss_80"] == 248
    halves = [empty("plan", "--rate", str(rate)).json["halfwidth"] for rate in (0.86, 0.87, 0.89)]
    assert [round(100 * half, 1) for half in halves] == [3.4, 3.3, 3.1]
    small = empty("plan", "--cases", "50").json
    assert [round(100 * v, 1) for v in (small["halfwidth"], *small["interval"])] == [9.0, 76.2, 94.4]


def test_the_plan_takes_discordance_from_two_runs_and_names_small_intents(empty: Project, runs: Any) -> None:
    again = simulated_run([0.9] * 120, seed="5", run="again")
    Path("again.json").write_text(to_text(again), encoding="utf-8")
    data = empty("plan", "--before", "base.json", "--again", "again.json", "--margin", "0.02").json
    assert data["discordance"] == "measured"
    assert len(data["paired"]) == 1
    assert all(row["too_small"] for row in data["intents"])
    assert len(data["intents"]) == 10


@pytest.mark.parametrize("words", [("--rate", "1.5"), ("--discordance", "many"), ("--cases", "0")])
def test_a_plan_of_nonsense_is_refused(empty: Project, words: tuple[str, ...]) -> None:
    assert empty("plan", *words).code == 2


def test_a_plan_reads_well_on_a_terminal(empty: Project) -> None:
    text = empty("plan", "--output", "text").out
    assert "3.2 points (Wilson 84.4 to 90.8 %)" in text
    assert re.search(r"10 %\s+87.4 %\s+312", text)


def test_a_report_of_one_run_needs_no_gate(empty: Project, runs: Any) -> None:
    done = empty("suite", "report", "worse.json", "--against", "base.json", "--to", "r.html", "--to", "r.xml")
    assert (done.code, done.json["format"], done.json["gate"]) == (0, "playhead.report/1", None)
    assert done.json["dimensions"]["selection"]["against"]["change"] < -0.3
    assert "<svg" in Path("r.html").read_text(encoding="utf-8")
    text = empty("suite", "report", "worse.json", "--output", "text").out
    assert re.search(r"selection\s+\d\d\.\d %", text)
    assert "flaky" in text


def test_models_are_compared_and_the_cheapest_good_one_is_named(empty: Project, runs: Any) -> None:
    for name in ("base", "same", "worse"):
        cost = {"base": 0.03, "same": 0.02, "worse": 0.01}[name]
        cases = tuple(replace(c, trials=tuple(replace(t, cost_usd=cost) for t in c.trials)) for c in runs[name].cases)
        Path(f"{name}.json").write_text(to_text(replace(runs[name], cases=cases, model=name)), encoding="utf-8")
    words = (
        "suite",
        "compare",
        "base.json",
        "same.json",
        "worse.json",
        "--reference",
        "base",
        "--cheapest-within",
        "0.05",
    )
    done = empty(*words)
    assert (done.code, done.json["cheapest"], done.json["cases"]) == (0, "same", 120)
    assert done.json["q"]["p"] < 0.001
    assert "cheapest good enough: same" in empty(*words, "--output", "text").out
    assert empty("suite", "compare", "base.json", "same.json", "--reference", "base").code == 2
