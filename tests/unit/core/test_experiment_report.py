"""What a run of an experiment is said to have shown."""

from typing import Any

import pytest
from pydantic import ValidationError

from playhead.core.experiments.definition import Arm, ExperimentConfig
from playhead.core.experiments.report import report
from playhead.core.experiments.runs import ExperimentRun
from playhead.core.experiments.samples import CaseSamples, Sample
from playhead.core.values import Verdict


def said(passed: bool | None, score: float | None = None) -> tuple[Verdict, ...]:
    return (Verdict(name="kind", evaluator="kind@1", passed=passed, score=score),)


def sample(passed: bool | None, **more: Any) -> Sample:
    return Sample(**{"status": "completed", "verdicts": said(passed), **more})


def told(*cases: CaseSamples, arms: tuple[str, ...] = ("change",), against: Any = None) -> Any:
    run = ExperimentRun(
        id="r", experiment="x", created_at=0, cohort="c@1", arms=[{"name": name} for name in arms], evaluators=[],
        config={"repeats": 2}, members=tuple(case.session_id for case in cases),
    )  # fmt: skip
    return report(run, cases, against)


def case(id: str, baseline: bool | None, *runs: bool | None, **more: Any) -> CaseSamples:
    return CaseSamples(session_id=id, baseline=sample(baseline), arms={"change": [sample(r) for r in runs], **more})


def change_of(found: Any, against: str = "against_baseline") -> Any:
    return found["arms"][0][against]["verdicts"][0]


def test_rates_count_cases_not_trials():
    found = told(case("a", True, True, True), case("b", True, False), case("c", True, True, False))
    (rate,) = found["arms"][0]["verdicts"]
    assert (rate["cases"], rate["trials"], rate["rate"]) == (3, 5, 0.5)
    assert rate["flaky"] == ["c"]
    change = change_of(found)
    assert (change["wins"], change["losses"], change["ties"]) == (0, 2, 1)
    assert change["difference"] == pytest.approx(-0.5)
    assert change["lost_cases"] == ["b", "c"]  # the largest loss first


def test_what_has_no_verdict_is_left_out_of_every_rate():
    broken = Sample(status="failed", replay_id="p", error="MissError: never recorded", verdicts=said(None))
    found = told(
        CaseSamples(session_id="a", baseline=sample(True), arms={"change": [broken, sample(True)]}),
        case("b", None, None),
    )
    (rate,) = found["arms"][0]["verdicts"]
    assert (rate["cases"], rate["rate"]) == (1, 1.0)
    assert found["arms"][0]["replays"] == {"failed": 1, "completed": 2}
    assert found["arms"][0]["failures"] == [{"replay": "p", "session": None, "error": "MissError: never recorded"}]
    assert change_of(found)["cases"] == 1


def test_an_arm_is_compared_with_the_unchanged_one():
    one = CaseSamples(
        session_id="a", baseline=sample(True), arms={"unchanged": [sample(False)], "change": [sample(False)]}
    )
    found = told(one, arms=("change", "unchanged"))
    assert change_of(found)["losses"] == 1
    assert change_of(found, "against_unchanged")["losses"] == 0
    assert "against_unchanged" not in found["arms"][1]


def test_an_erased_baseline_is_named_and_compares_with_nothing():
    gone = CaseSamples(session_id="a", baseline=None, arms={"change": [sample(True)]})
    found = told(gone)
    assert found["run"]["erased"] == ["a"]
    assert change_of(found)["cases"] == 0


def test_cost_and_time_are_paired_by_case():
    def made(id: str, before: float, after: float) -> CaseSamples:
        return CaseSamples(
            session_id=id, baseline=sample(True, cost=before, latency=10 * before, tokens=100),
            arms={"change": [sample(True, cost=after, latency=10 * after)]},
        )  # fmt: skip

    compared = told(made("a", 1, 2), made("b", 5, 8))["arms"][0]["against_baseline"]
    assert compared["cost"]["difference"] == 2
    low, high = compared["cost"]["interval"]
    assert low < 2 < high
    assert compared["latency_ms"]["difference"] == 20
    assert compared["tokens"] is None


def test_two_runs_of_a_cohort_compare_by_arm():
    now, before = case("a", True, False), case("a", True, True)
    assert change_of(told(now, against=[before]), "against_run")["losses"] == 1


@pytest.mark.parametrize(
    ("arm", "problem"),
    [({"name": "baseline"}, "recorded sessions"), ({"name": "x"}, "changes nothing"), ({"name": "-"}, "letters")],
)
def test_an_arm_is_a_named_change(arm: Any, problem: str):
    with pytest.raises(ValidationError, match=problem):
        Arm.model_validate(arm)


def test_arms_of_one_name_are_refused():
    with pytest.raises(ValidationError, match="two arms are named 'unchanged'"):
        ExperimentConfig(name="x", arms=(Arm(name="unchanged"), Arm(name="unchanged")))
