"""Our statistics against scipy, statsmodels and brute force, over wide ranges."""

import itertools
import math
import random
from collections.abc import Sequence
from typing import Any

import pytest
import scipy.optimize
import scipy.special
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats import contingency_tables as _tables
from statsmodels.stats import power as _power
from statsmodels.stats import proportion as _proportion

from playhead.core import stats
from playhead.core.stats import distributions as dist
from playhead.core.stats.paired import _float_flips, tango_interval  # pyright: ignore[reportPrivateUsage]

sp: Any = scipy.stats  # the oracles' own types are wrong or missing
special: Any = scipy.special
optimize: Any = scipy.optimize
contingency_tables: Any = _tables
power: Any = _power
proportion: Any = _proportion

fast = settings(max_examples=60, deadline=None)
near = pytest.approx
probabilities = st.floats(0.001, 0.999)
sizes = st.one_of(st.integers(1, 60), st.integers(1, 20_000))


def close(seen: float, wanted: float, *, rel: float = 1e-8, tiny: float = 1e-12) -> None:
    assert seen == near(wanted, rel=rel, abs=tiny)


@st.composite
def counts(draw: st.DrawFn) -> tuple[int, int]:
    n = draw(sizes)
    return draw(st.integers(0, n)), n


@st.composite
def tables(draw: st.DrawFn) -> tuple[int, int, int, int]:
    a, b, c, d = (draw(st.one_of(st.integers(0, 12), st.integers(0, 600))) for _ in range(4))
    return (a, b, c, d + 1) if a + b + c + d == 0 else (a, b, c, d)


@fast
@given(st.floats(1e-12, 1 - 1e-12))
def test_the_normal_distribution(p: float) -> None:
    close(dist.normal_quantile(p), float(sp.norm.ppf(p)))
    close(dist.normal_cdf(dist.normal_quantile(p)), p)


@fast
@given(probabilities, st.one_of(st.integers(1, 40), st.integers(1, 10_000)))
def test_students_t(p: float, df: int) -> None:
    close(dist.t_quantile(p, df), float(sp.t.ppf(p, df)))
    x = float(sp.t.ppf(p, df))
    close(dist.t_cdf(x, df), float(sp.t.cdf(x, df)))


@fast
@given(st.floats(0, 400), st.integers(1, 200))
def test_the_chi_square_tail(x: float, df: int) -> None:
    close(dist.chi2_tail(x, df), float(sp.chi2.sf(x, df)))


@fast
@given(st.floats(0, 1), st.floats(0.5, 20_000), st.floats(0.5, 20_000))
def test_the_incomplete_beta_function(x: float, a: float, b: float) -> None:
    close(dist.beta_cdf(x, a, b), float(special.betainc(a, b, x)), rel=1e-7)


@fast
@given(counts(), probabilities)
def test_binomial_tails(passes: tuple[int, int], p: float) -> None:
    k, n = passes
    close(dist.binomial_cdf(k, n, p), float(sp.binom.cdf(k, n, p)), rel=1e-7)
    close(dist.fair_tail(k, n), float(sp.binom.cdf(k, n, 0.5)), rel=1e-7)


@fast
@given(counts(), st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_intervals_of_a_rate(passes: tuple[int, int], confidence: float) -> None:
    k, n = passes
    names = {"wilson": "wilson", "clopper_pearson": "beta", "wald": "normal"}
    for ours, theirs in names.items():
        low, high = proportion.proportion_confint(k, n, 1 - confidence, theirs)
        seen = stats.rate_interval(k, n, confidence, ours)  # type: ignore[arg-type]
        close(seen.low, float(low) if k else 0.0, tiny=1e-9)
        close(seen.high, float(high) if k < n else 1.0, tiny=1e-9)
    jeffreys = stats.rate_interval(k, n, confidence, "jeffreys")
    tail = (1 - confidence) / 2
    close(jeffreys.low, 0.0 if k == 0 else float(sp.beta.ppf(tail, k + 0.5, n - k + 0.5)), tiny=1e-9)
    close(jeffreys.high, 1.0 if k == n else float(sp.beta.ppf(1 - tail, k + 0.5, n - k + 0.5)), tiny=1e-9)


@fast
@given(st.integers(1, 100_000), st.floats(0.001, 0.3))
def test_bounds_of_what_never_happened_are_those_of_clopper_and_pearson(n: int, alpha: float) -> None:
    close(stats.zero_event_upper(n, alpha), float(sp.beta.ppf(1 - alpha, 1, n)), tiny=1e-10)
    close(stats.all_pass_lower(n, alpha), float(sp.beta.ppf(alpha, n, 1)), tiny=1e-10)


@fast
@given(st.floats(1e-5, 0.5), st.floats(0.001, 0.3))
def test_the_smallest_clean_run_is_the_smallest(rate: float, alpha: float) -> None:
    n = stats.zero_event_n(rate, alpha)
    assert stats.zero_event_upper(n, alpha) <= rate * (1 + 1e-9)
    assert n == 1 or stats.zero_event_upper(n - 1, alpha) > rate * (1 - 1e-9)


@fast
@given(tables())
def test_paired_binary_tests(table: tuple[int, int, int, int]) -> None:
    a, b, c, d = table
    seen = stats.paired_binary(a, b, c, d)
    if b + c:
        exact = contingency_tables.mcnemar([[a, b], [c, d]], exact=True)
        close(seen.exact_p, float(exact.pvalue))
        corrected = contingency_tables.mcnemar([[a, b], [c, d]], exact=False, correction=True)
        close(seen.chi2, float(corrected.statistic))
        close(seen.chi2_p, float(corrected.pvalue))
        close(seen.one_sided_p, float(sp.binom.sf(b - 1, b + c, 0.5)))
    assert seen.newcombe.low - 1e-12 <= seen.diff <= seen.newcombe.high + 1e-12
    assert seen.tango.low - 1e-12 <= seen.diff <= seen.tango.high + 1e-12


@fast
@given(tables())
def test_tangos_interval_ends_where_the_constrained_score_does(table: tuple[int, int, int, int]) -> None:
    a, b, c, d = table
    low, high = tango_interval(b, c, a + b + c + d)
    for end in (low, high):
        if -0.999 < end < 0.999 and b + c:
            assert abs(constrained_score(b, c, a + d, end)) == near(float(sp.norm.ppf(0.975)), rel=1e-4)


def constrained_score(b: int, c: int, same: int, diff: float) -> float:
    """The score with the nuisance parameter by numeric maximum likelihood, not by Tango's closed form."""
    n = b + c + same

    def loss(lost: float) -> float:
        won = lost + diff
        rest = 1 - lost - won
        parts = [(b, lost), (c, won), (same, rest)]
        return -math.fsum(k * math.log(max(p, 1e-300)) for k, p in parts if k)

    low, high = max(0.0, -diff), (1 - diff) / 2
    lost = float(optimize.minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-13}).x)
    return (c - b - n * diff) / math.sqrt(n * (2 * lost + diff - diff**2))


@fast
@given(counts(), counts())
def test_independent_runs(first: tuple[int, int], second: tuple[int, int]) -> None:
    seen = stats.diff_independent(first, second)
    low, high = proportion.confint_proportions_2indep(*first, *second, method="newcomb", compare="diff")
    close(seen.interval.low, float(low), tiny=1e-7)
    close(seen.interval.high, float(high), tiny=1e-7)
    if 0 < first[0] + second[0] < first[1] + second[1]:
        z, p = proportion.proportions_ztest([first[0], second[0]], [first[1], second[1]])
        close(seen.z, float(z))
        close(seen.z_p, float(p), tiny=1e-11)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 300), min_size=4, max_size=4))
def test_fishers_exact_test(cells: list[int]) -> None:
    x, y, more, other = cells
    wanted = sp.fisher_exact([[x, more], [y, other]]).pvalue
    if x + more and y + other:
        close(stats.fisher_exact(x, x + more, y, y + other), float(wanted), rel=1e-6)


@fast
@given(st.lists(st.floats(0, 1), min_size=1, max_size=7))
def test_holm_is_what_testing_every_intersection_by_bonferroni_gives(p_values: list[float]) -> None:
    places = range(len(p_values))
    groups = [group for size in places for group in itertools.combinations(places, size + 1)]
    seen = stats.holm(p_values)
    for i in places:
        worst = max(min(1.0, len(group) * min(p_values[j] for j in group)) for group in groups if i in group)
        assert seen.adjusted[i] == near(worst)
        assert seen.reject[i] == (seen.adjusted[i] <= 0.05)


@fast
@given(st.lists(st.lists(st.integers(0, 1), min_size=4, max_size=4), min_size=2, max_size=40))
def test_cochrans_q(matrix: list[list[int]]) -> None:
    seen = stats.cochran_q(matrix)
    if all(len(set(row)) == 1 for row in matrix):
        assert (seen.q, seen.p) == (0.0, 1.0)
        return
    wanted = contingency_tables.cochrans_q(matrix)
    close(seen.q, float(wanted.statistic))
    close(seen.p, float(wanted.pvalue))


@fast
@given(st.lists(st.integers(-4, 4), max_size=11))
def test_the_sign_flip_test_counts_every_choice_of_signs(differences: list[int]) -> None:
    sizes = [abs(d) for d in differences]
    sums = [
        sum(s * d for s, d in zip(signs, sizes, strict=True)) for signs in itertools.product((-1, 1), repeat=len(sizes))
    ]
    seen = stats.signflip(differences)
    assert seen.p_drop == sum(s <= sum(differences) for s in sums) / len(sums)
    assert seen.p_rise == sum(s >= sum(differences) for s in sums) / len(sums)


@fast
@given(st.integers(0, 400), st.integers(0, 400))
def test_with_one_run_per_case_it_is_mcnemars_one_sided_test(lost: int, won: int) -> None:
    close(stats.signflip([-1] * lost + [1] * won).p_drop, float(sp.binom.cdf(won, lost + won, 0.5)), rel=1e-9)


@fast
@given(st.lists(st.integers(-12, 12), min_size=1, max_size=200))
def test_the_distribution_of_a_huge_suite_agrees_with_the_exact_one(differences: list[int]) -> None:
    from collections import Counter

    counted = Counter(abs(d) for d in differences if d)
    low, weights = _float_flips(counted)
    risen = sum(d for d in differences if d > 0)
    exact = stats.signflip(differences)
    assert math.fsum(weights[: max(0, risen - low + 1)]) == near(exact.p_drop, abs=1e-12)
    assert math.fsum(weights[max(0, risen - low) :]) == near(exact.p_rise, abs=1e-12)


def test_a_huge_suite_is_compared_quickly_and_right() -> None:
    drawn = random.Random(1)
    differences = [drawn.choice([-3, -2, -1, 0, 1, 2, 3]) for _ in range(8_000)]
    spread = math.sqrt(sum(d * d for d in differences))
    normal = float(sp.norm.cdf((sum(differences) + 1) / spread))
    assert stats.signflip(differences).p_drop == near(normal, abs=1e-3)


@fast
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=80))
def test_paired_rates_are_students_over_the_differences(pairs: list[tuple[int, int]]) -> None:
    seen = stats.paired_rates([(b, 3) for b, _ in pairs], [(c, 3) for _, c in pairs])
    values = [(c - b) / 3 for b, c in pairs]
    if len(set(values)) > 1:
        wanted = sp.ttest_1samp(values, 0.0)
        close(seen.t_p, float(wanted.pvalue))
        interval = wanted.confidence_interval(0.95)
        close(seen.t_interval.low, max(-1.0, float(interval.low)))
        close(seen.t_interval.high, min(1.0, float(interval.high)))
    assert seen.bounds.low <= seen.diff <= seen.bounds.high


@fast
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 12)), min_size=1, max_size=20))
def test_runs_of_different_number_compare_exactly(sides: list[tuple[int, int]]) -> None:
    from fractions import Fraction

    baseline = [(min(c, n), n) for c, n in sides]
    candidate = [(min(1, n), n + 1) for _, n in sides]
    seen = stats.paired_rates(baseline, candidate)
    wanted = [Fraction(c, k) - Fraction(b, n) for (b, n), (c, k) in zip(baseline, candidate, strict=True)]
    assert [Fraction(d, seen.denominator) for d in seen.differences] == wanted


@fast
@given(st.integers(2, 400), probabilities, probabilities)
def test_power_of_unpaired_runs(n: int, p: float, q: float) -> None:
    null = math.sqrt((p + q) / 2 * (1 - (p + q) / 2) * 2)
    real = math.sqrt(p * (1 - p) + q * (1 - q))
    wanted = power.normal_power_het(p - q, n, 0.05, std_null=null, std_alternative=real, alternative="two-sided")
    close(stats.power_independent(p, q, n), float(wanted), tiny=1e-9)


@settings(max_examples=12, deadline=None)
@given(st.integers(5, 40), st.floats(0.01, 0.4), st.floats(0.01, 0.4))
def test_power_of_paired_runs_is_the_sum_over_all_tables(n: int, lost: float, won: float) -> None:
    total = 0.0
    for b in range(n + 1):
        for c in range(n + 1 - b):
            if stats.mcnemar(b, c)[0] <= 0.05:
                total += float(sp.multinomial.pmf([b, c, n - b - c], n, [lost, won, 1 - lost - won]))
    close(stats.power_paired(n, lost, won), total, rel=1e-6)


@fast
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 6)), min_size=1, max_size=30), st.integers(1, 6))
def test_repeated_success_is_the_mean_over_all_choices_of_runs(cases: list[tuple[int, int]], k: int) -> None:
    known = [(min(c, n), n) for c, n in cases]
    seen = stats.pass_k(known, k)
    hats, ats = [], []
    for c, n in known:
        if n >= k:
            chosen = list(itertools.combinations([True] * c + [False] * (n - c), k))
            hats.append(sum(map(all, chosen)) / len(chosen))
            ats.append(sum(map(any, chosen)) / len(chosen))
    assert seen.left_out == len(known) - len(hats)
    if hats:
        close(seen.pass_hat, sum(hats) / len(hats))  # type: ignore[arg-type]
        close(seen.pass_at, sum(ats) / len(ats))  # type: ignore[arg-type]


@settings(max_examples=10, deadline=None)
@given(st.lists(st.floats(0.05, 0.95), min_size=1, max_size=3), st.integers(1, 3))
def test_literal_rules_are_counted_over_every_outcome(population: list[float], k: int) -> None:
    outcomes: list[tuple[int, int, float]] = [(0, 0, 1.0)]
    for p in population:
        outcomes = [
            (passes + j, flaky + (0 < j < k), weight * math.comb(k, j) * p**j * (1 - p) ** (k - j))
            for passes, flaky, weight in outcomes
            for j in range(k + 1)
        ]
    pairs = [(b, c, b[2] * c[2]) for b in outcomes for c in outcomes]
    seen = stats.literal_false_block(population, k)
    close(seen.rate_rule, math.fsum(w for b, c, w in pairs if c[0] < b[0]))
    close(seen.flaky_rule, math.fsum(w for b, c, w in pairs if c[1] > b[1]))
    close(seen.either, math.fsum(w for b, c, w in pairs if c[0] < b[0] or c[1] > b[1]))
    margin = 0.3
    wanted = math.fsum(w for b, c, w in pairs if b[0] - c[0] > margin * len(population) * k + 1e-9)
    close(stats.literal_intent_false_block([population, population], k, margin), 1 - (1 - wanted) ** 2)


@fast
@given(st.floats(0.001, 0.999), st.sampled_from([0.5, 0.8, 0.9, 0.99]))
def test_the_runs_that_show_a_flake_are_the_fewest(p: float, probability: float) -> None:
    k = stats.flake_runs_needed(p, probability)
    assert k is not None
    assert stats.flake_seen_probability(p, k) >= probability
    assert k == 2 or stats.flake_seen_probability(p, k - 1) < probability


@fast
@given(st.integers(0, 60), st.integers(0, 60), st.floats(0.01, 0.99))
def test_the_mixture_is_the_integral_over_all_rates(passes: int, failures: int, p0: float) -> None:
    n = passes + failures
    log = special.betaln(1 + passes, 1 + failures) - passes * math.log(p0) - failures * math.log1p(-p0)
    close(stats.mixture_evalue(passes, n, p0), math.exp(log), rel=1e-7)
    low, high = stats.confidence_sequence(passes, n)
    assert (low <= p0 <= high) == (stats.mixture_evalue(passes, n, p0) < 20) or near(p0, abs=1e-9) in (low, high)


@fast
@given(st.lists(st.integers(0, 3), min_size=2, max_size=60))
def test_clustered_rates(passes: list[int]) -> None:
    seen = stats.clustered_rate([(c, 3) for c in passes])
    rates = [c / 3 for c in passes]
    close(seen.rate, sum(rates) / len(rates))
    close(seen.se, float(sp.sem(rates)), tiny=1e-9)
    assert seen.interval.low <= seen.rate <= seen.interval.high
    assert seen.interval.low >= 0
    assert seen.interval.high <= 1
    assert seen.n_effective <= seen.trials + 1e-9


def _covered(rng: random.Random, population: Sequence[float], runs: int) -> tuple[bool, bool, bool]:
    cases = [(sum(rng.random() < p for _ in range(runs)), runs) for p in population]
    truth = 0.75
    clustered = stats.clustered_rate(cases)
    naive = clustered.naive
    trials = sum(c for c, _ in cases)
    exact = stats.lower_bound(trials, len(cases) * runs)
    return clustered.interval.low <= truth <= clustered.interval.high, naive.low <= truth <= naive.high, exact <= truth


def test_intervals_cover_what_they_say_by_simulation() -> None:
    """Cases are drawn from Beta(3, 1), whose mean is 0.75, and each is run three times."""
    rng = random.Random(20)
    trials = [_covered(rng, [rng.betavariate(3, 1) for _ in range(60)], 3) for _ in range(1500)]
    clustered, naive, _ = (sum(column) / len(trials) for column in zip(*trials, strict=True))
    assert 0.935 <= clustered <= 0.97
    assert naive < clustered - 0.02  # what ignoring the cases costs


def test_paired_bounds_cover_on_each_side_by_simulation() -> None:
    rng = random.Random(21)
    below = above = 0
    for _ in range(1500):
        population = [rng.betavariate(4, 1) for _ in range(50)]
        baseline = [(sum(rng.random() < p for _ in range(3)), 3) for p in population]
        candidate = [(sum(rng.random() < p - 0.1 * p for _ in range(3)), 3) for p in population]
        low, high = stats.paired_rates(baseline, candidate).bounds
        below, above = below + (low <= -0.08), above + (high >= -0.08)
    assert 0.93 <= below / 1500 <= 0.975
    assert 0.93 <= above / 1500 <= 0.975


def test_the_confidence_sequence_holds_at_every_look_by_simulation() -> None:
    rng = random.Random(22)
    missed = 0
    for _ in range(300):
        passes = 0
        for n in range(1, 81):
            passes += rng.random() < 0.7
            if stats.mixture_evalue(passes, n, 0.7) >= 20:
                missed += 1
                break
    assert missed / 300 <= 0.05


def test_the_bootstrap_depends_on_its_seed_alone() -> None:
    cases = [(c, 3) for c in (0, 1, 3, 3, 2, 3, 3, 0)]
    first = stats.cluster_bootstrap(cases, seed=5, resamples=300)
    assert first == stats.cluster_bootstrap(cases, seed=5, resamples=300)
    assert first != stats.cluster_bootstrap(cases, seed=6, resamples=300)
