"""How sure one rate is: of one run, of cases over several runs, and of events that must not happen."""

import hashlib
import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from playhead.core.stats.distributions import beta_quantile, normal_quantile, t_quantile

Method: TypeAlias = Literal["wilson", "clopper_pearson", "jeffreys", "wald"]
Passes: TypeAlias = Sequence[tuple[int, int]]
"""Per case: passes and valid runs."""


class Interval(NamedTuple):
    """The ends of an interval; both belong to it."""

    low: float
    high: float


class ClusteredRate(NamedTuple):
    """The pass rate of cases that were run several times.

    ``interval`` is the one to show; ``t_interval`` and ``naive`` (all trials as if independent) stand for comparison.
    ``icc`` is how alike runs of one case are; None where it is not defined (no variance at all, or one run per case).
    """

    rate: float
    cases: int
    trials: int
    se: float
    n_effective: float
    interval: Interval
    t_interval: Interval
    naive: Interval
    icc: float | None
    design_effect: float | None


def wilson(rate: float, n: float, z: float) -> Interval:
    """Wilson 1927: the rates that a score test does not reject. Takes a mean rate and an effective number of trials."""
    if n <= 0:
        return Interval(0.0, 1.0)
    centre = rate + z * z / (2 * n)
    spread = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low = 0.0 if rate <= 0 else max(0.0, (centre - spread) / scale)
    high = 1.0 if rate >= 1 else min(1.0, (centre + spread) / scale)
    return Interval(low, high)


def rate_interval(passes: int, n: int, confidence: float = 0.95, method: Method = "wilson") -> Interval:
    """A two-sided interval of a rate. No trials say nothing: the interval is then 0 to 1.

    Wilson 1927; Clopper and Pearson 1934 (never covers less than it says); Jeffreys as in Brown, Cai and DasGupta 2001,
    with their ends at 0 and n; Wald, the textbook one, for comparison only.
    """
    _counts(passes, n)
    if n == 0:
        return Interval(0.0, 1.0)
    tail = (1 - confidence) / 2
    z = normal_quantile(1 - tail)
    rate = passes / n
    if method == "wilson":
        return wilson(rate, n, z)
    if method == "wald":
        half = z * math.sqrt(rate * (1 - rate) / n)
        return Interval(max(0.0, rate - half), min(1.0, rate + half))
    if method == "clopper_pearson":
        return Interval(lower_bound(passes, n, 1 - tail), upper_bound(passes, n, 1 - tail))
    low = 0.0 if passes == 0 else beta_quantile(tail, passes + 0.5, n - passes + 0.5)
    high = 1.0 if passes == n else beta_quantile(1 - tail, passes + 0.5, n - passes + 0.5)
    return Interval(low, high)


def lower_bound(passes: int, n: int, confidence: float = 0.95) -> float:
    """One-sided Clopper-Pearson bound: the rate is at least this."""
    _counts(passes, n)
    return 0.0 if passes == 0 else beta_quantile(1 - confidence, passes, n - passes + 1)


def upper_bound(passes: int, n: int, confidence: float = 0.95) -> float:
    """One-sided Clopper-Pearson bound: the rate is at most this."""
    _counts(passes, n)
    return 1.0 if passes == n else beta_quantile(confidence, passes + 1, n - passes)


def zero_event_upper(n: int, alpha: float = 0.05) -> float:
    """Upper bound of a rate of which ``n`` trials showed nothing: 1 - alpha^(1/n), Clopper-Pearson at 0 of n."""
    return 1.0 if n <= 0 else -math.expm1(math.log(alpha) / n)


def zero_event_n(rate: float, alpha: float = 0.05) -> int:
    """Clean trials that show a rate of at most ``rate``."""
    return math.ceil(math.log(alpha) / math.log1p(-rate) - 1e-12)


def all_pass_lower(n: int, alpha: float = 0.05) -> float:
    """Lower bound of a rate of which all of ``n`` trials passed: alpha^(1/n)."""
    return 0.0 if n <= 0 else alpha ** (1 / n)


def clustered_rate(cases: Passes, confidence: float = 0.95) -> ClusteredRate:
    """The mean of per-case rates, and how sure it is when runs of one case are alike.

    The default is Wilson's interval at the effective sample size rate(1-rate)/se^2 with Student's t for z, after
    Korn and Graubard 1998; se = sd/sqrt(cases). Cases without a valid run are left out.

    Raises:
        ValueError: no case has a valid run.
    """
    known = [(passes, runs) for passes, runs in cases if runs > 0]
    if not known:
        raise ValueError("a rate needs at least one case with a valid run")
    rates = [passes / runs for passes, runs in known]
    n, trials = len(known), sum(runs for _, runs in known)
    rate = math.fsum(rates) / n
    se = standard_error(rates)
    n_effective = float(n) if se == 0 else min(rate * (1 - rate) / se**2, float(trials))
    tail = (1 + confidence) / 2
    icc = _icc(known)
    naive = rate_interval(sum(passes for passes, _ in known), trials, confidence)
    effect = None if icc is None else 1 + (trials / n - 1) * icc
    if n == 1:
        return ClusteredRate(rate, 1, trials, 0.0, 1.0, Interval(0.0, 1.0), Interval(0.0, 1.0), naive, icc, effect)
    t = t_quantile(tail, n - 1)
    plain = Interval(max(0.0, rate - t * se), min(1.0, rate + t * se))
    return ClusteredRate(rate, n, trials, se, n_effective, wilson(rate, n_effective, t), plain, naive, icc, effect)


def standard_error(values: Sequence[float]) -> float:
    """sd/sqrt(n) of values, 0 for fewer than two."""
    n = len(values)
    if n < 2:
        return 0.0
    mean = math.fsum(values) / n
    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    return 0.0 if variance < 1e-30 else math.sqrt(variance / n)


def _icc(cases: Passes) -> float | None:
    """The one-way ANOVA estimate (Donner 1986), with the weighted mean size where cases have different runs."""
    n, trials = len(cases), sum(runs for _, runs in cases)
    if n < 2 or trials == n:
        return None
    mean = sum(passes for passes, _ in cases) / trials
    between = math.fsum(runs * (passes / runs - mean) ** 2 for passes, runs in cases) / (n - 1)
    within = math.fsum(passes * (runs - passes) / runs for passes, runs in cases) / (trials - n)
    size = (trials - sum(runs * runs for _, runs in cases) / trials) / (n - 1)
    spread = between + (size - 1) * within
    return None if spread <= 0 else (between - within) / spread


def effective_n(n: int, k: int, icc: float) -> float:
    """Independent trials that ``n`` cases of ``k`` runs are worth: nk / (1 + (k-1) icc), Kish 1965."""
    return n * k / (1 + (k - 1) * icc)


def cluster_bootstrap(cases: Passes, seed: int, confidence: float = 0.95, resamples: int = 10_000) -> Interval:
    """Percentile bootstrap over cases (Efron 1979). The same seed gives the same interval on every machine."""
    rates = [passes / runs for passes, runs in cases if runs > 0]
    n = len(rates)
    if n == 0:
        raise ValueError("a rate needs at least one case with a valid run")
    means: list[float] = []
    for index in range(resamples):
        drawn = hashlib.shake_256(f"playhead.bootstrap/1 {seed} {index}".encode()).digest(4 * n)
        places = (int.from_bytes(drawn[i : i + 4], "big") for i in range(0, 4 * n, 4))
        means.append(math.fsum(rates[place * n >> 32] for place in places) / n)
    means.sort()
    tail = (1 - confidence) / 2
    return Interval(percentile(means, tail), percentile(means, 1 - tail))


def percentile(ordered: Sequence[float], share: float) -> float:
    """Of sorted values, with linear interpolation between neighbours."""
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _counts(passes: int, n: int) -> None:
    if not 0 <= passes <= n:
        raise ValueError(f"{passes} passes of {n} trials cannot be")
