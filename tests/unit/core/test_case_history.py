"""Cases pooled over the runs of one configuration: what flakes, what turned, and since when."""

from dataclasses import replace
from typing import Any

import pytest

from playhead.core.gate.judge import judge
from playhead.core.suites.history import History, history
from playhead.core.suites.summary import RunSummary
from playhead.testing.runs import a_case, a_run, simulated_run


def run(name: str, *passes: str, digests: str = "d", **fields: Any) -> RunSummary:
    """A run; each case is its trials, + or -; ids are letters."""
    cases = [
        a_case(chr(ord("a") + n), [sign == "+" for sign in signs], digest=digests) for n, signs in enumerate(passes)
    ]
    return a_run(cases, name, created_at=f"2026-01-{name}", **fields)


def groups(found: History) -> tuple[tuple[str, ...], ...]:
    return found.flaky, found.newly_flaky, found.no_longer_flaky, found.flipped


def test_trials_of_one_configuration_pool() -> None:
    found = history([run("01", "+++", "+++", "---"), run("02", "+++", "---", "---"), run("03", "+++", "+++", "-+-")])
    assert found.pooled == ("01", "02", "03")
    assert [(c.id, c.passes, c.runs, c.kind) for c in found.cases] == [
        ("a", 9, 9, "pass"), ("b", 6, 9, "flaky"), ("c", 1, 9, "flaky"),
    ]  # fmt: skip
    assert groups(found) == (("b", "c"), ("c",), (), ("b",))
    assert "over 3 runs of this configuration 2 of 3 cases are flaky" in found.line


@pytest.mark.parametrize(
    "changed", [{"model": "other"}, {"params": {"digest": "x"}}, {"system_prompt_digest": "x"}, {"tools_digest": "x"},
                {"agent_version": "support@2"}, {"strict": "on"}],
)  # fmt: skip
def test_another_configuration_is_what_was_before(changed: Any) -> None:
    old = [run("01", "+-+", "+++"), run("02", "+++", "+++")]
    found = history([*old, run("03", "+++", "+-+", **changed)])
    assert found.pooled == ("03",)
    assert groups(found) == (("b",), ("b",), ("a",), ())


def test_a_case_that_was_changed_begins_anew() -> None:
    found = history([run("01", "---"), run("02", "+++", digests="new")])
    (case,) = found.cases
    assert (case.kind, case.before, case.first_seen, case.flipped_since) == ("pass", None, "2026-01-02", None)


def test_a_flip_is_dated_by_the_first_run_on_this_side() -> None:
    found = history([run("01", "---"), run("02", "+++"), run("03", "+++")])
    assert (found.cases[0].flipped_since, found.cases[0].first_seen) == ("02", "2026-01-01")
    assert found.flipped == ()  # it is no news of this run
    assert history([run("01", "---"), run("02", "+-+"), run("03", "+++")]).cases[0].flipped_since is None


def test_errors_and_held_back_cases_are_left_out() -> None:
    last = run("02", "+++", "+++")
    hidden = replace(last, cases=(last.cases[0], replace(last.cases[1], slice="held_back")))
    assert [case.id for case in history([run("01", "+++", "---"), hidden]).cases] == ["a"]
    errors = replace(
        last, cases=tuple(replace(c, trials=tuple(replace(t, status="error") for t in c.trials)) for c in last.cases)
    )
    assert history([run("01", "+++", "---"), errors]).cases[0].runs == 3


def test_the_gate_tells_it_beside_stability_and_decides_as_before() -> None:
    new, old = (simulated_run([1.0] * 120, seed="1", run=name) for name in ("new", "old"))
    told = history([run("01", "+++"), run("02", "+-+")])
    report = judge(new, old, history=told)
    stability = next(part for part in report.parts if part.name == "stability")
    assert stability.reasons[-1] == told.line
    assert report.verdict == judge(new, old).verdict
