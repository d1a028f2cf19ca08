"""Cases over several runs: how often each passed, its class, and which of them count."""

from collections.abc import Iterable, Sequence
from typing import Final, Literal, TypeAlias

from playhead.core.suites.summary import CaseResult, RunSummary, TrialResult

Measure: TypeAlias = Literal["selection", "arguments", "schema", "values", "outcome", "whole"]
MEASURES: Final[tuple[Measure, ...]] = ("selection", "arguments", "schema", "values", "outcome", "whole")
CaseClass: TypeAlias = Literal["pass", "fail", "flaky"]


def measured(trial: TrialResult, measure: Measure) -> bool | None:
    """What a trial scored; None for an error, and where the measure does not apply."""
    if trial.status == "error":
        return None
    return trial.passed if measure == "whole" else getattr(trial, measure)


def results(case: CaseResult, measure: Measure) -> list[bool]:
    """Of the valid runs of a case, in order."""
    name = "passed" if measure == "whole" else measure
    return [v for t in case.trials if t.status != "error" and (v := getattr(t, name)) is not None]


def tally(case: CaseResult, measure: Measure) -> tuple[int, int]:
    """Passes and valid runs."""
    found = results(case, measure)
    return sum(found), len(found)


def class_of(passes: int, runs: int) -> CaseClass | None:
    """None for a case without a valid run."""
    if runs == 0:
        return None
    return "pass" if passes == runs else "fail" if passes == 0 else "flaky"


def counted(cases: Iterable[CaseResult], slice: Literal["tune", "held_back", "all"] = "all") -> list[CaseResult]:
    """Cases that count: not retired, with an active label, of the slice."""
    return [c for c in cases if c.status == "active" and c.active and slice in (c.slice, "all")]


def tallies(cases: Sequence[CaseResult], measure: Measure) -> list[tuple[int, int]]:
    """`tally` of each case that has a valid run."""
    found = (tally(case, measure) for case in cases)
    return [pair for pair in found if pair[1]]


def flaky_cases(summary: RunSummary) -> list[CaseResult]:
    """Counted cases that pass on one run and fail on another."""
    return [case for case in counted(summary.cases) if class_of(*tally(case, "whole")) == "flaky"]
