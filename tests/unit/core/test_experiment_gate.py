"""The gate on an experiment's run: what its changes may do, and what its reports say of hostile text."""

import re
from typing import Any
from xml.etree import ElementTree

import pytest

from playhead.cli.experiment_gate import form_of, rendered
from playhead.core.experiments.gate import gated_arms, judge_experiment
from playhead.core.experiments.report import report
from playhead.core.experiments.runs import ExperimentRun
from playhead.core.experiments.samples import CaseSamples, Sample
from playhead.core.gate.criteria import Criteria
from playhead.core.gate.report_json import gate_json
from playhead.core.values import Verdict
from playhead.errors import UsageError

OFFLINE = {"type": "history"}


def sample(passed: bool | None, *, evaluator: str = "polite", **more: Any) -> Sample:
    said = (Verdict(name=evaluator, evaluator=f"{evaluator}@1", passed=passed),)
    return Sample(**{"status": "completed", "session_id": "s", "verdicts": said, **more})


def a_run(cases: list[CaseSamples], *arms: str, repeats: int = 1, offline: bool = True) -> ExperimentRun:
    named = [{"name": name, **({"model_policy": OFFLINE} if offline else {})} for name in arms or ("change",)]
    return ExperimentRun(
        id="run", experiment="terse", created_at=0, cohort="orders@1", arms=named, evaluators=[],
        config={"repeats": repeats}, members=tuple(case.session_id for case in cases),
    )  # fmt: skip


def population(size: int, passes: int, baseline: int | None = None, **more: Any) -> list[CaseSamples]:
    """Cases of which the first ``passes`` pass after the change, and of the recordings the first ``baseline``."""
    before = size if baseline is None else baseline
    return [
        CaseSamples(
            session_id=f"s{n}", baseline=sample(n < before, **more), arms={"change": [sample(n < passes, **more)]}
        )
        for n in range(size)
    ]


@pytest.mark.parametrize(
    ("size", "passes", "verdict", "code"),
    [(120, 120, "pass", 0), (120, 100, "fail", 1), (20, 20, "inconclusive", 4), (120, 116, "inconclusive", 4)],
)
def test_a_change_ships_when_no_loss_is_left_and_is_blocked_when_one_is_shown(
    size: int, passes: int, verdict: str, code: int
) -> None:
    cases = population(size, passes)
    found = judge_experiment(a_run(cases), cases)
    assert (found.verdict, found.exit_code) == (verdict, code)
    assert found.parts[0].name == "change: polite@1"
    assert bool(found.reasons) == (verdict != "pass")


def test_all_arms_are_one_family() -> None:
    """One arm alone with so small a p-value would fail; among eight it is what chance gives."""
    cases = population(60, 55)
    alone = judge_experiment(a_run(cases), cases)
    assert (alone.verdict, alone.parts[0].p) == ("fail", pytest.approx(1 / 32))
    names = [f"a{n}" for n in range(8)]
    many = [
        CaseSamples(session_id=c.session_id, baseline=c.baseline, arms={name: c.arms["change"] for name in names})
        for c in cases
    ]
    assert judge_experiment(a_run(many, *names), many).verdict == "inconclusive"


def test_replays_that_came_to_no_end_leave_nothing_to_judge() -> None:
    cases = population(40, 40)
    broken = Sample(status="failed", error="MissError: never recorded")
    cases[3] = CaseSamples(session_id="s3", baseline=sample(True), arms={"change": [broken]})
    found = judge_experiment(a_run(cases), cases)
    assert (found.verdict, found.exit_code) == ("no_verdict", 3)
    assert "1 of 40 replays" in found.reasons[0]
    assert "never recorded" in found.reasons[0]
    assert judge_experiment(a_run(cases), cases, Criteria(error_limit=0.05)).verdict != "no_verdict"


def test_a_loop_is_not_tolerated_and_a_flag_names_ones_own_evaluator() -> None:
    cases = population(200, 199, 200, evaluator="no-loops")
    found = judge_experiment(a_run(cases), cases)
    assert (found.verdict, found.zero[0].name, found.zero[0].seen, found.zero[0].of) == ("fail", "change: loop", 1, 200)
    assert "2.35 %" in found.reasons[0]
    own = population(200, 199)
    assert judge_experiment(a_run(own), own, Criteria(zero_tolerance=("flag:polite",))).verdict == "fail"


def test_a_live_model_needs_repeats() -> None:
    cases = population(120, 120)
    found = judge_experiment(a_run(cases, offline=False), cases)
    assert found.verdict == "inconclusive"
    assert "1 repeats with a live model" in found.reasons[0]
    assert judge_experiment(a_run(cases, offline=False, repeats=3), cases).verdict == "pass"


def test_stability_is_compared_with_the_unchanged_arm() -> None:
    steady, shaky = [sample(True)] * 3, [sample(True), sample(False), sample(True)]
    cases = [
        CaseSamples(
            session_id=f"s{n}", baseline=sample(True), arms={"unchanged": steady, "change": shaky if n < 9 else steady}
        )
        for n in range(120)
    ]
    run = a_run(cases, "unchanged", "change", repeats=3)
    assert gated_arms(run) == ("change",)
    found = judge_experiment(run, cases)
    part = next(part for part in found.parts if part.name == "change: stability")
    assert part.verdict == "fail"
    assert found.newly_flaky == tuple(f"s{n}" for n in range(9))


def test_cost_counts_when_it_is_asked_for() -> None:
    cases = [
        CaseSamples(
            session_id=f"s{n}", baseline=sample(True, cost=0.01 + n / 1e6),
            arms={"change": [sample(True, cost=0.02 + n / 1e6)]},
        )
        for n in range(60)
    ]  # fmt: skip
    criteria = Criteria.model_validate({"extra": {"cost": {"margin": 0.2}}})
    found = judge_experiment(a_run(cases), cases, criteria)
    assert any(re.search(r"change: cost: rose by 9\d", reason) for reason in found.reasons)


def test_without_a_verdict_nothing_is_shown() -> None:
    cases = population(120, 120, evaluator="fidelity")
    found = judge_experiment(a_run(cases), cases)
    assert found.verdict == "inconclusive"
    assert "no evaluator said yes or no" in found.reasons[0]
    assert "--evaluator" in found.settle[0]


@pytest.mark.parametrize(("noisy", "verdict"), [(False, "fail"), (True, "inconclusive")])
def test_a_verdict_that_compares_with_the_recording_is_held_against_the_unchanged_arm(
    noisy: bool, verdict: str
) -> None:
    """Of 100 sessions 20 come out otherwise: harm, unless they do so without the change as well."""
    cases = [
        CaseSamples(
            session_id=f"s{n}", baseline=sample(None),
            arms={"change": [sample(n >= 20)], **({"unchanged": [sample(n < 80)]} if noisy else {})},
        )
        for n in range(100)
    ]  # fmt: skip
    found = judge_experiment(a_run(cases, *(["unchanged"] if noisy else []), "change"), cases)
    assert (found.verdict, found.parts[0].baseline) == (verdict, 0.8 if noisy else 1.0)


def test_recordings_that_were_not_evaluated_compare_with_nothing() -> None:
    silent = Sample(status="completed", session_id="s")
    cases = [CaseSamples(session_id=f"s{n}", baseline=silent, arms={"change": [sample(True)]}) for n in range(120)]
    found = judge_experiment(a_run(cases), cases)
    assert found.verdict == "inconclusive"
    assert "no data" in found.reasons[0]


HOSTILE = '</td><script>alert(1)</script>"><img src=x onerror=alert(2)> & | \u202e'


def hostile_report() -> Any:
    cases = population(30, 20)
    cases.append(
        CaseSamples(
            session_id=HOSTILE, baseline=sample(True, evaluator=HOSTILE),
            arms={"change": [Sample(status="failed", replay_id="r", error=HOSTILE), sample(False, evaluator=HOSTILE)]},
        )
    )  # fmt: skip
    run = a_run(cases)
    told: Any = report(run, cases)
    return {**told, "gate": gate_json(judge_experiment(run, cases, Criteria(error_limit=0.5)))}


def test_the_page_of_an_experiment_loads_nothing_and_shows_hostile_text_as_text() -> None:
    page = rendered(hostile_report(), "html")
    assert "default-src 'none'" in page
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert not re.search(r"(?:src|href)\s*=\s*[\"']?(?:https?:)?//", page)
    for words in ("Gate:", "Arms", "Verdicts", "Changes", "came to no end", "terse on orders@1"):
        assert words in page


def test_the_junit_report_is_xml_and_names_lost_cases_and_criteria() -> None:
    root = ElementTree.fromstring(rendered(hostile_report(), "junit"))
    suites = {suite.get("name"): suite for suite in root}
    arm, gate = suites["terse change"], suites["gate"]
    failed = {test.get("name") for test in arm if test.find("failure") is not None}
    assert {f"s{n}" for n in range(20, 30)} <= failed
    assert any(test.find("error") is not None for test in arm)
    assert any(test.get("name") == "change: polite@1" and test.find("failure") is not None for test in gate)
    assert arm.get("failures") == str(len(failed))


def test_the_markdown_report_begins_with_the_verdict_and_has_no_markup_of_strangers() -> None:
    told = rendered(hostile_report(), "markdown")
    assert "Release gate: ❌ fail" in told
    assert "<script" not in re.sub(r"`[^`]*`|\\.", "", told)


def test_the_form_of_a_report_follows_its_name() -> None:
    assert [form_of(name) for name in ("a.json", "a.md", "a.html", "a.xml")] == ["json", "markdown", "html", "junit"]
    with pytest.raises(UsageError, match=r"no report has the form 'a\.pdf'"):
        form_of("a.pdf")
