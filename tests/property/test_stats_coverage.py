"""How often each interval holds the truth, summed over every outcome (no simulation noise) or simulated with a seed;
and the remaining functions against scipy and statsmodels."""

import math
import random
from typing import Any

import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats import inter_rater as _inter_rater
from statsmodels.stats import power as _power

from playhead.core import stats
from playhead.core.stats.paired import newcombe_paired, tango_interval

sp: Any = scipy.stats  # the oracles' own types are wrong or missing
inter_rater: Any = _inter_rater
power: Any = _power

fast = settings(max_examples=40, deadline=None)
RATES = [i / 40 for i in range(1, 40)]


def coverage(intervals: list[Any], p: float) -> float:
    weights = binomial(len(intervals) - 1, p)
    return sum(weight for weight, (low, high) in zip(weights, intervals, strict=True) if low <= p <= high)


def binomial(n: int, p: float) -> list[float]:
    return sp.binom.pmf(range(n + 1), n, p).tolist()


def all_coverages(method: Any, n: int) -> list[float]:
    intervals = [stats.rate_interval(k, n, 0.95, method) for k in range(n + 1)]
    return [coverage(intervals, p) for p in RATES]


@pytest.mark.parametrize("n", [10, 120])
def test_clopper_and_pearson_never_cover_less_than_they_say(n: int) -> None:
    assert min(all_coverages("clopper_pearson", n)) >= 0.95


@pytest.mark.parametrize(("method", "worst"), [("wilson", 0.92), ("jeffreys", 0.91)])
def test_wilson_and_jeffreys_cover_what_they_say_on_average(method: str, worst: float) -> None:
    for n in (30, 120):
        found = all_coverages(method, n)
        assert 0.945 <= sum(found) / len(found) <= 0.96
        assert min(found) >= worst
    assert min(all_coverages("wald", 30)) < 0.6  # why it is for comparison only


@pytest.mark.parametrize("n", [20, 100])
def test_one_sided_bounds_are_a_guarantee(n: int) -> None:
    upper, lower = ([f(k, n) for k in range(n + 1)] for f in (stats.upper_bound, stats.lower_bound))
    for p in RATES:
        weights = binomial(n, p)
        assert sum(w for w, bound in zip(weights, upper, strict=True) if p <= bound) >= 0.95 - 1e-12
        assert sum(w for w, bound in zip(weights, lower, strict=True) if bound <= p) >= 0.95 - 1e-12


def tables(n: int, lost: float, won: float) -> list[tuple[int, int, float]]:
    """Every count of regressions and fixes that is not negligible, with its probability."""
    discordant = binomial(n, lost + won)
    found = [
        (b, m - b, discordant[m] * share)
        for m in range(n + 1)
        if discordant[m] > 1e-5
        for b, share in enumerate(binomial(m, lost / (lost + won)))
    ]
    return [row for row in found if row[2] > 1e-5]


@pytest.mark.parametrize(("lost", "won"), [(0.1, 0.1), (0.15, 0.05), (0.05, 0.2)])
def test_paired_intervals_cover_what_they_say(lost: float, won: float) -> None:
    n, kept = 60, 0.6
    tango = newcombe = margin_passes = 0.0
    for b, c, weight in tables(n, lost, won):
        low, high = tango_interval(b, c, n)
        tango += weight * (low <= won - lost <= high)
        a = round(kept * (n - b - c))  # of the cases that agree, those that pass
        low, high = newcombe_paired(a, b, c, n - a - b - c)
        newcombe += weight * (low <= won - lost <= high)
        if lost > won:
            margin_passes += weight * stats.noninferiority(a, b, c, n - a - b - c, lost - won).non_inferior
    assert 0.94 <= tango <= 0.97
    assert 0.94 <= newcombe <= 0.985
    assert margin_passes <= 0.06  # a loss of exactly the margin is called harmless at alpha


def test_the_interval_of_unpaired_runs_covers_what_it_says() -> None:
    n, m, p, q = 50, 40, 0.85, 0.75
    first, second = binomial(n, p), binomial(m, q)
    covered = 0.0
    for x, weight in enumerate(first):
        for y, other in enumerate(second):
            if weight * other > 1e-5:
                low, high = newcombe_independent(x, n, y, m)
                covered += weight * other * (low <= p - q <= high)
    assert 0.94 <= covered <= 0.97


def newcombe_independent(x: int, n: int, y: int, m: int) -> tuple[float, float]:
    return stats.diff_independent((x, n), (y, m)).interval


def test_the_tests_reject_identical_runs_in_alpha_of_comparisons_at_most() -> None:
    """Exactly, over every table of 40 cases of which a fifth differ; the mid-p form may go a little beyond."""
    exact = mid = one_sided = 0.0
    for b, c, weight in tables(40, 0.1, 0.1):
        seen = stats.paired_binary(20, b, c, 20 - b - c) if b + c <= 20 else stats.paired_binary(0, b, c, 40 - b - c)
        exact += weight * (seen.exact_p <= 0.05)
        mid += weight * (seen.mid_p <= 0.05)
        one_sided += weight * (seen.one_sided_p <= 0.05)
    assert 0.01 <= exact <= 0.05
    assert exact <= mid <= 0.055
    assert 0.01 <= one_sided <= 0.05


def test_the_bootstrap_over_cases_covers_about_what_it_says() -> None:
    rng = random.Random(30)
    covered = 0
    for index in range(80):
        cases = [(sum(rng.random() < p for _ in range(3)), 3) for p in [rng.betavariate(3, 1) for _ in range(40)]]
        low, high = stats.cluster_bootstrap(cases, seed=index, resamples=100)
        covered += low <= 0.75 <= high
    assert covered / 80 >= 0.85


def test_evidence_against_a_true_rate_reaches_its_limit_in_alpha_of_sequences_at_most() -> None:
    """Every sequence of 120 trials, looked at after each; paired signs are the same test against a half."""
    for p0 in (0.5, 0.9):
        alive, stopped = {0: 1.0}, 0.0
        for n in range(1, 121):
            after: dict[int, float] = {}
            for passes, weight in alive.items():
                for more, chance in ((1, p0), (0, 1 - p0)):
                    after[passes + more] = after.get(passes + more, 0.0) + weight * chance
            hit = [s for s in after if stats.mixture_evalue(s, n, p0) >= 20]
            stopped += sum(after.pop(s) for s in hit)
            alive = after
        assert 0.001 < stopped <= 0.05


@fast
@given(st.lists(st.lists(st.integers(0, 40), min_size=3, max_size=3), min_size=3, max_size=3))
def test_cohens_kappa(table: list[list[int]]) -> None:
    seen = stats.kappa(table)
    if seen.kappa is not None:
        assert seen.kappa == pytest.approx(float(inter_rater.cohens_kappa(table, return_results=False)), abs=1e-12)


@fast
@given(st.lists(st.tuples(st.integers(0, 200), st.integers(1, 200)), min_size=2, max_size=6))
def test_kinds_of_failure_are_compared_by_chi_square(counts: list[tuple[int, int]]) -> None:
    kinds = {f"k{i}": (min(r, n), n) for i, (r, n) in enumerate(counts)}
    total = sum(r for r, _ in kinds.values())
    seen = stats.recovery(kinds)
    if 0 < total < sum(n for _, n in kinds.values()):
        wanted = sp.chi2_contingency([[r for r, _ in kinds.values()], [n - r for r, n in kinds.values()]], False)
        assert (seen.chi2, seen.p) == (pytest.approx(wanted.statistic), pytest.approx(wanted.pvalue, abs=1e-12))
    else:
        assert seen.p == 1.0


@fast
@given(st.floats(0.02, 0.98), st.floats(0.02, 0.98), st.sampled_from([0.8, 0.9]))
def test_cases_for_unpaired_runs(p: float, q: float, wanted: float) -> None:
    if abs(p - q) < 0.01:
        return
    effect = 2 * math.asin(math.sqrt(p)) - 2 * math.asin(math.sqrt(q))
    theirs = power.NormalIndPower().solve_power(abs(effect), power=wanted, alpha=0.05)
    assert abs(stats.n_independent(p, q, wanted) - math.ceil(float(theirs))) <= 1


@fast
@given(st.floats(0, 1), st.floats(0.55, 1), st.floats(0.55, 1))
def test_a_rate_is_corrected_for_what_its_evaluator_gets_wrong(
    true: float, sensitivity: float, specificity: float
) -> None:
    reported = true * sensitivity + (1 - true) * (1 - specificity)
    assert stats.corrected_rate(reported, sensitivity, specificity) == pytest.approx(true, abs=1e-9)


@fast
@given(st.integers(1, 300), st.data())
def test_bounds_on_labels_left_wrong_are_clopper_and_pearsons(audited: int, data: st.DataObject) -> None:
    wrong = data.draw(st.integers(0, audited))
    agree = audited + data.draw(st.integers(0, 500))
    n = agree + data.draw(st.integers(0, 100))
    upper = 1.0 if wrong == audited else float(sp.beta.ppf(0.95, wrong + 1, audited - wrong))
    seen = stats.label_audit(n, agree, audited, wrong)
    assert seen.residual_upper == pytest.approx((agree - audited) * upper / n, abs=1e-9)


@pytest.mark.parametrize(("runs", "rate"), [(3, 1.0), (5, 0.8), (20, 0.9), (7, 0.5)])
def test_stopping_early_decides_as_all_runs_do(runs: int, rate: float) -> None:
    rule = stats.curtailment(runs, rate)
    rng = random.Random(runs)
    for _ in range(100):
        outcomes = [rng.random() < rate for _ in range(runs)]
        passes = failures = 0
        for passed in outcomes:
            passes, failures = passes + passed, failures + (not passed)
            if failures >= rule.fails_at_failure or passes >= rule.passes_at_pass:
                break
        else:
            pytest.fail("never decided")
        assert (passes >= rule.passes_at_pass) == (sum(outcomes) >= rate * runs - 1e-9)
