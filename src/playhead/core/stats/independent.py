"""Two runs of different cases: the fallback where nothing can be paired."""

import math
from typing import NamedTuple

from playhead.core.stats.distributions import normal_cdf, normal_quantile
from playhead.core.stats.rates import Interval, rate_interval


class Difference(NamedTuple):
    """Candidate minus baseline; ``interval`` is Newcombe's."""

    diff: float
    interval: Interval
    z: float
    z_p: float
    fisher_p: float


def diff_independent(candidate: tuple[int, int], baseline: tuple[int, int], confidence: float = 0.95) -> Difference:
    """Compares two rates, each as passes and trials.

    Newcombe 1998 (method 10 of his paper on independent proportions): two Wilson intervals joined. The pooled z test
    and Fisher's exact test stand beside it.
    """
    (new, n_new), (old, n_old) = candidate, baseline
    if min(n_new, n_old) <= 0:
        raise ValueError("a comparison needs trials on both sides")
    p, q = new / n_new, old / n_old
    first, second = rate_interval(new, n_new, confidence), rate_interval(old, n_old, confidence)
    low = p - q - math.hypot(p - first.low, second.high - q)
    high = p - q + math.hypot(first.high - p, q - second.low)
    pooled = (new + old) / (n_new + n_old)
    spread = math.sqrt(pooled * (1 - pooled) * (1 / n_new + 1 / n_old))
    z = (p - q) / spread if spread else 0.0
    return Difference(p - q, Interval(low, high), z, 2 * normal_cdf(-abs(z)), fisher_exact(new, n_new, old, n_old))


def fisher_exact(x: int, n: int, y: int, m: int) -> float:
    """Fisher's two-sided test: all tables with these margins that are no likelier than this one, counted exactly."""
    total = x + y
    first, last = max(0, total - m), min(n, total)
    weight = math.comb(n, first) * math.comb(m, total - first)
    weights = [weight]
    for k in range(first, last):
        weight = weight * ((n - k) * (total - k)) // ((k + 1) * (m - total + k + 1))
        weights.append(weight)
    seen = weights[x - first]
    return sum(w for w in weights if w <= seen) / sum(weights)


def power_independent(p_baseline: float, p_candidate: float, n: int, alpha: float = 0.05) -> float:
    """How often the two-sided pooled z test of two runs of ``n`` cases each sees this change; both tails count."""
    diff = abs(p_baseline - p_candidate)
    middle = (p_baseline + p_candidate) / 2
    null = math.sqrt(2 * middle * (1 - middle) / n)
    real = math.sqrt((p_baseline * (1 - p_baseline) + p_candidate * (1 - p_candidate)) / n)
    z = normal_quantile(1 - alpha / 2)
    if real == 0:
        return float(diff > 0)
    return normal_cdf((diff - z * null) / real) + normal_cdf((-diff - z * null) / real)


def n_independent(p_baseline: float, p_candidate: float, power: float = 0.8, alpha: float = 0.05) -> int:
    """Cases per run that unpaired runs need for this change, by Cohen's h (Cohen 1988)."""
    h = abs(2 * math.asin(math.sqrt(p_baseline)) - 2 * math.asin(math.sqrt(p_candidate)))
    if h == 0:
        raise ValueError("no number of cases shows a change of nothing")
    return math.ceil(2 * ((normal_quantile(1 - alpha / 2) + normal_quantile(power)) / h) ** 2)
