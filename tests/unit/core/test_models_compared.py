"""Several models on the same cases."""

from dataclasses import replace
from typing import Any

import pytest

from playhead.core.models_compared import compare_models
from playhead.core.suites.summary import RunSummary
from playhead.testing.runs import a_case, a_run, a_trial, recovered, simulated_run


def priced(run: RunSummary, model: str, cost: float) -> RunSummary:
    cases = tuple(
        replace(c, trials=tuple(replace(t, cost_usd=cost, latency_ms=9.0) for t in c.trials)) for c in run.cases
    )
    return replace(run, run=model, model=model, cases=cases)


def models() -> list[RunSummary]:
    """A strong model, one as good and cheaper, and one that is cheapest and worse."""
    strong = priced(simulated_run([0.97] * 200, seed="1"), "strong", 0.02)
    equal = priced(simulated_run([0.97] * 200, seed="2"), "equal", 0.01)
    weak = priced(simulated_run([0.6] * 200, seed="3"), "weak", 0.001)
    return [strong, equal, weak]


def test_the_cheapest_is_the_one_that_is_not_worse() -> None:
    found = compare_models(models(), reference="strong")
    assert found.cheapest == "equal"
    good = {row.model: row.good_enough for row in found.rows}
    assert good == {"strong": True, "equal": True, "weak": False}
    assert "selection: a loss of 5 points is not excluded" in found.rows[2].why
    assert [row.cost_usd for row in found.rows] == pytest.approx([0.02, 0.01, 0.001])


def test_models_differ_by_cochrans_q_and_pair_by_pair() -> None:
    found = compare_models(models())
    assert found.q.p < 1e-6
    assert [pair.holm < 0.05 for pair in found.q.pairs] == [False, True, True]
    assert found.cheapest is None


def test_recovery_below_its_floor_is_not_good_enough() -> None:
    strong, equal, _ = models()
    found = compare_models([strong, replace(equal, recovery=recovered(120, 200))], reference="strong")
    assert found.rows[1].why == ("recovery: 80 % is not shown",)
    assert found.cheapest == "strong"


def test_cases_that_only_one_model_passes_are_named() -> None:
    left = a_run([a_case("a", [True, True, False]), a_case("b", [False] * 3), a_case("c", [True] * 3)], "left")
    right = a_run([a_case("a", [False, False, True]), a_case("b", [True] * 3), a_case("c", [True] * 3)], "right")
    found = compare_models([left, right])
    assert [row.only_it for row in found.rows] == [("a",), ("b",)]


def test_only_cases_that_ran_in_every_run_are_compared() -> None:
    broken = a_case("b", [], trials=(a_trial(0, None, status="error", schema=None, arguments=None),))
    left = a_run([a_case("a", [True]), a_case("b", [True]), a_case("c", [True])], "left")
    right = a_run([a_case("a", [True]), broken], "right")
    assert compare_models([left, right]).cases == 1


@pytest.mark.parametrize(
    ("runs", "more", "message"),
    [
        (slice(0, 1), {}, "at least two"),
        (slice(0, 2), {"reference": "other"}, "0 of the runs are 'other'"),
    ],
)
def test_what_cannot_be_compared_is_said(runs: slice, more: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare_models(models()[runs], **more)


def test_runs_without_a_shared_case_are_refused() -> None:
    with pytest.raises(ValueError, match="share no case"):
        compare_models([a_run([a_case("a", [True])], "l"), a_run([a_case("b", [True])], "r")])


def test_recovery_of_runs_of_their_own_counts_for_the_model_and_its_absence_too() -> None:
    strong, equal, _ = models()
    shown = {"strong": recovered(190, 200), "equal": recovered(190, 200)}
    assert compare_models([strong, equal], reference="strong", recovery=shown).cheapest == "equal"
    found = compare_models([strong, equal], reference="strong", recovery={"strong": shown["strong"]})
    assert found.cheapest == "strong"
    assert found.rows[1].why == ("recovery: no run with injected failures is of this model",)
    low = {**shown, "strong": recovered(120, 200), "equal": recovered(120, 200)}
    none = compare_models([strong, equal], reference="strong", recovery=low)
    assert (none.cheapest, none.rows[0].good_enough) == (None, False)
