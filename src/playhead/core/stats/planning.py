"""How many cases a question needs, and what a number of cases can see."""

import math

from playhead.core.stats.distributions import binomial_cdf, fair_tail, normal_quantile

_NEGLIGIBLE = 1e-15


def power_paired(n: int, p_lost: float, p_won: float, alpha: float = 0.05) -> float:
    """How often McNemar's exact two-sided test of ``n`` cases sees a change, by enumeration over discordance.

    Args:
        n: cases, one trial each.
        p_lost: share of cases that only the baseline passes.
        p_won: share that only the candidate passes.
        alpha: of the test.
    """
    discordance = p_lost + p_won
    if discordance <= 0:
        return 0.0
    share = p_lost / discordance
    power, critical = 0.0, -1
    for m, weight in _binomial_points(n, discordance):
        critical = _critical(m, critical, alpha)
        if critical >= 0:
            power += weight * (binomial_cdf(critical, m, share) + binomial_cdf(critical, m, 1 - share))
    return min(1.0, power)


def _binomial_points(n: int, p: float) -> list[tuple[int, float]]:
    """The probabilities of Bin(n, p) that are not negligible."""
    if p >= 1:
        return [(n, 1.0)]
    points: list[tuple[int, float]] = []
    for k in range(n + 1):
        log = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        weight = math.exp(log + k * math.log(p) + (n - k) * math.log1p(-p))
        if weight > _NEGLIGIBLE:
            points.append((k, weight))
    return points


def _critical(m: int, start: int, alpha: float) -> int:
    """The largest k for which k of ``m`` discordant cases is significant; -1 for none. It grows with ``m``."""
    k = start
    while 2 * (k + 1) < m and 2 * fair_tail(k + 1, m) <= alpha:
        k += 1
    return k


def n_paired_connor(p_lost: float, p_won: float, power: float = 0.8, alpha: float = 0.05) -> int:
    """Cases that paired runs need for this change (Connor 1987, two-sided McNemar)."""
    diff, discordance = abs(p_lost - p_won), p_lost + p_won
    if diff == 0:
        raise ValueError("no number of cases shows a change of nothing")
    spread = normal_quantile(power) * math.sqrt(discordance - diff * diff)
    return math.ceil(((normal_quantile(1 - alpha / 2) * math.sqrt(discordance) + spread) / diff) ** 2)


def n_noninferiority(discordance: float, margin: float, power: float = 0.8, alpha: float = 0.05) -> int:
    """Cases that show no loss of ``margin`` when nothing changed: (z_(1-alpha) + z_power)^2 discordance / margin^2.

    ``discordance`` is the variance of a per-case difference; with one run per case, the share of cases that differ.
    """
    z = normal_quantile(1 - alpha) + normal_quantile(power)
    return math.ceil(z * z * discordance / margin**2 - 1e-9)


def wald_halfwidth(p: float, n: int, confidence: float = 0.95) -> float:
    """Points either side of a rate, by the textbook formula."""
    return normal_quantile((1 + confidence) / 2) * math.sqrt(p * (1 - p) / n)


def n_for_halfwidth(p: float, halfwidth: float, confidence: float = 0.95) -> int:
    """Cases for an interval of ``halfwidth`` either side: z^2 p(1-p) / h^2."""
    z = normal_quantile((1 + confidence) / 2)
    return math.ceil(z * z * p * (1 - p) / halfwidth**2 - 1e-9)
