"""The criteria of a gate one by one: what was measured, and what it says on its own.

A part holds a raw p-value; the verdict over all parts, with Holm's adjustment, is `core.gate.judge`'s.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from playhead.core.gate.criteria import Form
from playhead.core.stats import (
    ClusteredRate,
    Interval,
    PairedRates,
    all_pass_lower,
    clustered_rate,
    confidence_sequence,
    flaky_change,
    mixture_evalue,
    n_noninferiority,
    paired_bounds,
    paired_evalue,
    paired_rates,
    signflip,
    wilson,
    zero_event_n,
    zero_event_upper,
)
from playhead.core.stats.distributions import normal_quantile, t_cdf, t_quantile
from playhead.core.stats.rates import standard_error
from playhead.core.suites.case_runs import Measure, class_of, results, tallies, tally
from playhead.core.suites.summary import CaseResult, RecoveryResult

Verdict: TypeAlias = Literal["pass", "fail", "inconclusive"]
Pairs: TypeAlias = Sequence[tuple[CaseResult, CaseResult]]
"""Cases of both runs: baseline, candidate."""

Z_POWER = 0.84
"""Of a power of 80 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One criterion. ``low`` and ``high`` are one-sided bounds: of the change where there is a baseline, else of the
    rate. ``p`` None: nothing to test. ``at_once``: fails whatever the p-values say. ``needed``: cases (recovery:
    injected failures) that would settle it. ``only_fails``: its passing is not asked for.
    """

    name: str
    verdict: Verdict = "inconclusive"
    form: Form = "statistical"
    baseline: float | None = None
    candidate: float | None = None
    change: float | None = None
    low: float | None = None
    high: float | None = None
    limit: float | None = None  # margin or floor
    p: float | None = None
    p_adjusted: float | None = None
    cases: int = 0
    needed: int | None = None
    powered: bool | None = None
    at_once: bool = False
    only_fails: bool = False
    beyond: float | None = None  # fails only when the change for the worse is larger than this as well
    reasons: tuple[str, ...] = ()

    @property
    def spends(self) -> bool:
        """Whether less is better: cost or latency, of a run or of an arm."""
        return is_spending(self.name)


def is_spending(name: str) -> bool:
    return name.rpartition(": ")[2] in ("cost", "latency")


def points(value: float | None) -> str:
    """A change in points: +3.3."""
    return "n/a" if value is None else f"{100 * value:+.1f}"


def percent(value: float | None) -> str:
    return "n/a" if value is None else f"{100 * value:.1f} %"


def no_data(name: str, limit: float | None, form: Form = "statistical") -> Part:
    return Part(name=name, limit=limit, form=form, reasons=("no data: no case has a valid run on both sides",))


def rate_part(name: str, pairs: Pairs, measure: Measure, margin: float, form: Form, alpha: float) -> Part:
    """A rate that must not drop: selection, an intent, an extra dimension."""
    found = _compared(pairs, measure, alpha)
    if found is None:
        return no_data(name, margin, form)
    old, new, compared = found.old, found.new, found.rates
    powered = is_powered([d / compared.denominator for d in compared.differences], margin, alpha)
    p_drop, bounds = compared.p_drop, compared.bounds
    if form == "sequential":  # each loss counts as a whole one
        p_drop, bounds = _sequential(compared.dropped, compared.rose, compared.cases, alpha)
        powered = confidence_sequence(0, compared.cases, alpha).high <= margin
    reasons: tuple[str, ...]
    if form == "literal":
        verdict: Verdict = "pass" if compared.diff >= -1e-12 else "fail"
        reasons = (f"{percent(new)} against {percent(old)}, literally at or above",)
    else:
        excluded = bounds.low > -margin
        verdict = "pass" if excluded and powered else "inconclusive"
        doubt = f"{compared.cases} cases are too few to show it" if excluded else "is not excluded"
        reasons = () if verdict == "pass" else (f"a drop of {100 * margin:g} points: {doubt}",)
    needed = None if verdict == "pass" or form == "literal" else needed_cases(compared, margin, alpha)
    return Part(
        name=name, verdict=verdict, form=form, baseline=old, candidate=new, change=compared.diff,
        low=bounds.low, high=bounds.high, limit=margin,
        p=None if form == "literal" else p_drop, cases=compared.cases, needed=needed, powered=powered,
        reasons=reasons,
    )  # fmt: skip


def _sequential(worse: int, better: int, n: int, alpha: float) -> tuple[float, Interval]:
    """p-value of more cases for the worse than for the better, and bounds of the mean change, both valid at every look:
    evidence on the signs of cases that differ, and confidence sequences of the shares that got worse and better."""
    p = min(1.0, 1 / paired_evalue(worse, better)) if worse > better else 1.0
    return p, Interval(-confidence_sequence(worse, n, alpha).high, confidence_sequence(better, n, alpha).high)


@dataclass(frozen=True, slots=True)
class _Compared:
    """A measure of both sides over the cases with runs on both: mean per-case rates, and their comparison."""

    old: float
    new: float
    rates: PairedRates


def _compared(pairs: Pairs, measure: Measure, alpha: float) -> _Compared | None:
    sides = [(tally(b, measure), tally(c, measure)) for b, c in pairs]
    before, after = [b for b, c in sides if b[1] and c[1]], [c for b, c in sides if b[1] and c[1]]
    if not before:
        return None
    return _Compared(_mean_rate(before), _mean_rate(after), paired_rates(before, after, alpha))


def _mean_rate(tallied: Sequence[tuple[int, int]]) -> float:
    return math.fsum(passes / runs for passes, runs in tallied) / len(tallied)


def needed_cases(compared: PairedRates, margin: float, alpha: float) -> int:
    """Cases that would show no loss of ``margin`` at 80 % power if nothing changed, with the variance seen here."""
    values = [d / compared.denominator for d in compared.differences]
    variance = standard_error(values) ** 2 * len(values)
    least = zero_event_n(min(margin, 1 - 1e-9), alpha)
    return max(least, n_noninferiority(variance, margin, 0.8, alpha)) if variance else least


def is_powered(changes: Sequence[float], margin: float, alpha: float) -> bool:
    """Whether so many cases, with changes as spread as these, can show no loss of ``margin``.

    Without it, a suite too small for its margin would pass whenever chance lifts the candidate.
    """
    n = len(changes)
    if n < 2:
        return False
    return (t_quantile(1 - alpha, n - 1) + Z_POWER) * standard_error(changes) <= margin and zero_event_upper(
        n, alpha
    ) <= margin


def arguments_part(pairs: Pairs, margin: float, form: Form, alpha: float) -> Part:
    """Calls that their tools' schemas accept. With strict mode on, a missing or mistyped argument fails at once."""
    part = rate_part("arguments", pairs, "schema", margin, form, alpha)
    trials = [trial for _, c in pairs for trial in c.trials if trial.status == "scored" and trial.schema is not None]
    strict = [t for t in trials if t.strict]
    broken = sum(any(e.bin in ("required", "type") for e in t.schema_errors) for t in strict)
    if broken:
        why = f"strict mode was on, and {broken} of {len(strict)} trials lack a required argument or have a wrong type"
        return replace(part, verdict="fail", at_once=True, reasons=(why,), needed=None)
    if form == "literal" and strict and any(not t.schema for t in trials):
        return replace(part, verdict="fail", reasons=("strict mode was on, and not every call fits its schema",))
    if trials and part.p is not None and all(t.schema for t in trials):
        n = len(trials)
        least = confidence_sequence(n, n, alpha).low if form == "sequential" else all_pass_lower(n, alpha)
        why = f"{len(trials)} of {len(trials)} trials fit their schemas: at least {percent(least)}"
        return replace(part, verdict="pass", needed=None, reasons=(why,))
    return part


def stability_part(pairs: Pairs, margin: float, form: Form, alpha: float) -> Part:
    """Cases that pass on one run and fail on another, compared on equal numbers of runs."""
    flags = [flags for flags in (_flaky_sides(b, c) for b, c in pairs) if flags is not None]
    if not flags:
        return replace(no_data("stability", margin, form), reasons=("no case has two valid runs on both sides",))
    n = len(flags)
    old, new = sum(b for b, _ in flags), sum(c for _, c in flags)
    changes = [int(c) - int(b) for b, c in flags]
    bounds = paired_bounds(changes, 1, alpha)
    powered = is_powered([float(d) for d in changes], margin, alpha)
    more, fewer = sum(d > 0 for d in changes), sum(d < 0 for d in changes)
    p_more = flaky_change(fewer, more).p_more
    if form == "sequential":
        p_more, turned = _sequential(more, fewer, n, alpha)
        bounds, powered = Interval(-turned.high, -turned.low), confidence_sequence(0, n, alpha).high <= margin
    counts = f"{old} flaky cases before, {new} now ({more} new, {fewer} gone)"
    needed = None
    if form == "literal":
        verdict: Verdict = "pass" if new <= old else "fail"
    else:
        verdict = "pass" if bounds.high < margin and powered else "inconclusive"
        if verdict != "pass":
            variance = standard_error([float(d) for d in changes]) ** 2 * n
            least = zero_event_n(min(margin, 1 - 1e-9), alpha)
            needed = max(least, n_noninferiority(variance, margin, 0.8, alpha)) if variance else least
    return Part(
        name="stability", verdict=verdict, form=form, baseline=old / n, candidate=new / n, change=(new - old) / n,
        low=bounds.low, high=bounds.high, limit=margin, p=None if form == "literal" else p_more, cases=n,
        needed=needed, powered=powered,
        reasons=(counts,) if powered or form == "literal" else (counts, f"{n} cases are too few for its margin"),
    )  # fmt: skip


def _flaky_sides(baseline: CaseResult, candidate: CaseResult) -> tuple[bool, bool] | None:
    old, new = results(baseline, "whole"), results(candidate, "whole")
    k = min(len(old), len(new))
    if k < 2:
        return None
    return class_of(sum(old[:k]), k) == "flaky", class_of(sum(new[:k]), k) == "flaky"


def recovery_rate(results: Iterable[RecoveryResult]) -> ClusteredRate | None:
    """Recovered of injected failures, clustered by case."""
    by_case: dict[str, list[bool]] = {}
    for result in results:
        if result.status == "scored":
            by_case.setdefault(result.case, []).append(result.recovered)
    if not by_case:
        return None
    return clustered_rate([(sum(found), len(found)) for found in by_case.values()])


def recovery_part(name: str, results: Sequence[RecoveryResult], floor: float, form: Form, alpha: float) -> Part:
    """A recovery rate that must reach its floor."""
    rate = recovery_rate(results)
    if rate is None:
        why = "no recovery run: `playhead inject SUITE` makes one, `--recovery RUN` names it"
        return Part(name=name, form=form, limit=floor, reasons=(why,))
    if rate.cases < 2:
        return Part(
            name=name, form=form, limit=floor, candidate=rate.rate, cases=1, reasons=("failures in one case only",)
        )
    t = t_quantile(1 - alpha, rate.cases - 1)
    bounds = wilson(rate.rate, rate.n_effective, t)
    spread = math.sqrt(floor * (1 - floor) / rate.n_effective)
    p = t_cdf((rate.rate - floor) / spread, rate.cases - 1) if spread else float(rate.rate >= floor)
    if form == "sequential":
        p, bounds = _sequential_rate(rate, floor, alpha)
    enough = (rate.rate if form == "literal" else bounds.low) >= floor
    verdict: Verdict = "pass" if enough else "fail" if form == "literal" else "inconclusive"
    told = f"{percent(rate.rate)} of {rate.trials} injected failures in {rate.cases} cases recovered"
    return Part(
        name=name, verdict=verdict, form=form, candidate=rate.rate, low=bounds.low, high=bounds.high, limit=floor,
        p=None if form == "literal" else p, cases=rate.cases, reasons=(f"{told}, at least {percent(bounds.low)}",),
        needed=None if verdict != "inconclusive" else _needed_failures(rate.rate, floor, alpha),
    )  # fmt: skip


def _sequential_rate(rate: ClusteredRate, floor: float, alpha: float) -> tuple[float, Interval]:
    """p-value of a rate below the floor and an interval, valid at every look, at the effective number of trials."""
    n = int(rate.n_effective)
    passes = int(rate.rate * n)
    p = min(1.0, 1 / mixture_evalue(passes, n, floor)) if rate.rate < floor else 1.0
    return p, confidence_sequence(passes, n, alpha)


def _needed_failures(rate: float, floor: float, alpha: float) -> int | None:
    """Injected failures that would show a floor below this rate; None where the rate itself is not above it."""
    if rate <= floor:
        return None
    if rate >= 1:
        return zero_event_n(max(1e-9, 1 - floor), alpha)
    return math.ceil(normal_quantile(1 - alpha) ** 2 * rate * (1 - rate) / (rate - floor) ** 2)


def spending_part(name: Literal["cost", "latency"], pairs: Pairs, margin: float, alpha: float) -> Part:
    """Mean cost or latency of a case, whose rise beyond a share of the baseline's fails."""
    sides = [(_mean(b, name), _mean(c, name)) for b, c in pairs]
    known = [(b, c) for b, c in sides if b is not None and c is not None]
    if len(known) < 2 or not (old := math.fsum(b for b, _ in known) / len(known)):
        return replace(no_data(name, margin), reasons=(f"no {name} is known on both sides",))
    new = math.fsum(c for _, c in known) / len(known)
    changes = [(c - b) / old for b, c in known]
    grid = 100_000
    flips = signflip([round(d * grid) for d in changes])
    mean = math.fsum(changes) / len(changes)
    half = t_quantile(1 - alpha, len(changes) - 1) * standard_error(changes)
    verdict: Verdict = "pass" if mean + half < margin else "inconclusive"
    return Part(
        name=name, verdict=verdict, baseline=old, candidate=new, change=mean, low=mean - half, high=mean + half,
        limit=margin, p=flips.p_rise, cases=len(known), beyond=margin,
        reasons=(f"{100 * mean:+.1f} % of the baseline's mean",),
    )  # fmt: skip


def _mean(case: CaseResult, name: Literal["cost", "latency"]) -> float | None:
    values = [t.cost_usd if name == "cost" else t.latency_ms for t in case.trials if t.status == "scored"]
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def pass_rate(cases: Sequence[CaseResult], measure: Measure) -> ClusteredRate | None:
    """The clustered rate of cases that have a valid run; None without any."""
    found = tallies(cases, measure)
    return clustered_rate(found) if found else None
