"""Two runs of the same cases, and several: what changed, and whether chance explains it."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from playhead.core.stats.distributions import (
    bisected,
    chi2_tail,
    convolved,
    fair_point,
    fair_tail,
    normal_quantile,
    t_cdf,
    t_quantile,
)
from playhead.core.stats.rates import Interval, Passes, rate_interval, standard_error, zero_event_upper

FEW = 10
"""With fewer differing cases than this, an interval of a difference is never narrower than the zero-event bound."""

_EXACT_COST = 16_000_000
"""Bits that the exact convolution may hold; beyond it, probabilities are doubles and the tails below 1e-18 are cut."""

_SIZES = 48
"""Beyond that cost, differences in units finer than this share of the largest are rounded (runs of many numbers)."""


class SignFlip(NamedTuple):
    """``p_drop``: how likely fair signs give a sum as low as this one; ``p_rise``: as high."""

    p_drop: float
    p_rise: float


class PairedRates(NamedTuple):
    """Candidate minus baseline over the same cases. ``differences`` are integers in units of 1/``denominator``."""

    diff: float
    cases: int
    differences: tuple[int, ...]
    denominator: int
    p_drop: float
    p_rise: float
    bounds: Interval
    t_interval: Interval
    t_p: float

    @property
    def dropped(self) -> int:
        """Cases that pass less often than before."""
        return sum(d < 0 for d in self.differences)

    @property
    def rose(self) -> int:
        return sum(d > 0 for d in self.differences)


class PairedBinary(NamedTuple):
    """Two runs, one trial per case. ``newcombe`` is the interval to show; ``one_sided_p`` asks for a drop only."""

    diff: float
    exact_p: float
    mid_p: float
    chi2: float
    chi2_p: float
    one_sided_p: float
    newcombe: Interval
    tango: Interval


class NonInferiority(NamedTuple):
    diff: float
    lower: float
    non_inferior: bool


class FlakyChange(NamedTuple):
    """``p_more``: one-sided, for more flaky cases than before."""

    p_more: float
    exact_p: float
    mid_p: float
    chi2: float
    chi2_p: float


class Pair(NamedTuple):
    """Columns ``left`` and ``right``: cases that only one of them passes, exact McNemar, and Holm over all pairs."""

    left: int
    right: int
    left_only: int
    right_only: int
    p: float
    holm: float


class CochranQ(NamedTuple):
    q: float
    df: int
    p: float
    pairs: tuple[Pair, ...]


class Holm(NamedTuple):
    adjusted: tuple[float, ...]
    reject: tuple[bool, ...]


def signflip(differences: Sequence[int]) -> SignFlip:
    """The exact sign-flip test (Fisher 1935): P(sum of s_i abs(d_i) <= sum of d_i) over all fair signs.

    The sum of all chosen sizes stands for the signs, so the tail is a count of subsets. With one run per case it is
    McNemar's one-sided exact test.
    """
    sizes = [abs(d) for d in differences if d]
    if not sizes:
        return SignFlip(1.0, 1.0)
    n, unit = len(sizes), math.gcd(*sizes)
    if sum(sizes) // unit * (n + 1) > _EXACT_COST and max(sizes) // unit > _SIZES:
        unit = min(max(sizes) // _SIZES, 2 * sum(sizes) * (n + 1) // _EXACT_COST + 1)
    counts = Counter((size + unit // 2) // unit for size in sizes)
    risen = sum((d + unit // 2) // unit for d in differences if d > 0)
    total = sum(size * times for size, times in counts.items())
    if total * (n + 1) <= _EXACT_COST:
        return _exact_flips(counts, n, total, risen)
    low, weights = _float_flips(counts)
    below = math.fsum(weights[: max(0, risen - low + 1)])
    above = math.fsum(weights[max(0, risen - low) :])
    return SignFlip(min(1.0, below), min(1.0, above))


def _exact_flips(counts: Counter[int], n: int, total: int, risen: int) -> SignFlip:
    """Counts of subsets by their sum, packed into one integer, ``width`` bits each."""
    width = n + 1
    packed = 1
    for size, times in counts.items():
        for _ in range(times):
            packed += packed << (size * width)
    mask = (1 << width) - 1
    below = _digits(packed & ((1 << (risen + 1) * width) - 1), width, mask)
    at = packed >> (risen * width) & mask
    return SignFlip(below / (1 << n), ((1 << n) - below + at) / (1 << n))


def _digits(packed: int, width: int, mask: int) -> int:
    """The sum of the counts in ``packed``: halves are added to each other, which no carry can disturb at this width."""
    size = -(-packed.bit_length() // width)
    while size > 1:
        half = (size + 1) // 2
        packed = (packed >> half * width) + (packed & ((1 << half * width) - 1))
        size = half
    return packed & mask


def _float_flips(counts: Counter[int]) -> tuple[int, list[float]]:
    """The distribution as doubles, from its first value that is not negligible."""
    low, weights = 0, [1.0]
    for size, times in counts.items():
        first, coins = _coins(times)
        spread = [0.0] * ((len(coins) - 1) * size + 1)
        for i, weight in enumerate(coins):
            spread[i * size] = weight
        weights = convolved(weights, spread) if len(weights) > len(spread) else convolved(spread, weights)
        low += first * size
        cut = next(i for i, weight in enumerate(weights) if weight > 1e-20)
        low, weights = low + cut, weights[cut:]
    return low, weights


def _coins(n: int) -> tuple[int, list[float]]:
    """Bin(n, 1/2) around its middle, and where that begins."""
    reach = min(n, 6 + math.ceil(5 * math.sqrt(n)))
    first, last = max(0, n // 2 - reach), min(n, n // 2 + reach)
    return first, [fair_point(k, n) for k in range(first, last + 1)]


def paired_rates(baseline: Passes, candidate: Passes, alpha: float = 0.05, confidence: float = 0.95) -> PairedRates:
    """Compares per-case rates. The two sides may have different numbers of runs; a case needs one run on each.

    Raises:
        ValueError: different numbers of cases, or no case with a run on both sides.
    """
    pairs = [(b, c) for b, c in zip(baseline, candidate, strict=True) if b[1] > 0 and c[1] > 0]
    if not pairs:
        raise ValueError("a comparison needs at least one case with a valid run on both sides")
    denominator = math.lcm(*(runs for pair in pairs for _, runs in pair))
    differences = tuple(c[0] * (denominator // c[1]) - b[0] * (denominator // b[1]) for b, c in pairs)
    flips = signflip(differences)
    n = len(differences)
    values = [d / denominator for d in differences]
    diff = sum(differences) / (n * denominator)
    se = standard_error(values)
    if n == 1:
        t_interval, t_p = Interval(-1.0, 1.0), 1.0
    else:
        half = t_quantile((1 + confidence) / 2, n - 1) * se
        t_interval = Interval(max(-1.0, diff - half), min(1.0, diff + half))
        t_p = 2 * t_cdf(-abs(diff) / se, n - 1) if se else float(diff == 0)
    bounds = paired_bounds(differences, denominator, alpha)
    return PairedRates(diff, n, differences, denominator, flips.p_drop, flips.p_rise, bounds, t_interval, t_p)


def paired_bounds(differences: Sequence[int], denominator: int = 1, alpha: float = 0.05) -> Interval:
    """One-sided bounds of the mean difference: mean -/+ t(1-alpha, n-1) sd/sqrt(n).

    A sample in which few cases differ has a variance that says too little: with fewer than `FEW` differing cases no
    bound is narrower than what ``n`` cases without any event would show.
    """
    values = [d / denominator for d in differences]
    n = len(values)
    if n < 2:
        return Interval(-1.0, 1.0)
    mean = math.fsum(values) / n
    half = t_quantile(1 - alpha, n - 1) * standard_error(values)
    low, high = mean - half, mean + half
    if sum(map(bool, differences)) < FEW:
        least = zero_event_upper(n, alpha)
        low, high = min(low, -least), max(high, least)
    return Interval(max(-1.0, low), min(1.0, high))


def mcnemar(b: int, c: int) -> tuple[float, float]:
    """The exact two-sided test on discordant pairs (McNemar 1947) and its mid-p form (Fagerland et al. 2013)."""
    n = b + c
    if n == 0:
        return 1.0, 1.0
    point = fair_point(b, n)
    if b == c:
        return 1.0, 1 - point / 2
    exact = min(1.0, 2 * fair_tail(min(b, c), n))
    return exact, exact - point


def _corrected_chi2(b: int, c: int) -> tuple[float, float]:
    """McNemar's chi-square with Edwards' correction, for display."""
    if b + c == 0:
        return 0.0, 1.0
    chi2 = (abs(b - c) - 1) ** 2 / (b + c)
    return chi2, chi2_tail(chi2, 1)


def paired_binary(a: int, b: int, c: int, d: int, confidence: float = 0.95) -> PairedBinary:
    """Compares one trial per case.

    Args:
        a: cases that pass in both runs.
        b: only in the baseline (regressions).
        c: only in the candidate (fixes).
        d: in neither.
        confidence: of the two intervals.
    """
    n = a + b + c + d
    if n == 0 or min(a, b, c, d) < 0:
        raise ValueError("a comparison needs at least one case, and no count below zero")
    exact, mid = mcnemar(b, c)
    chi2, chi2_p = _corrected_chi2(b, c)
    newcombe, tango = newcombe_paired(a, b, c, d, confidence), tango_interval(b, c, n, confidence)
    return PairedBinary((c - b) / n, exact, mid, chi2, chi2_p, fair_tail(c, b + c), newcombe, tango)


def newcombe_paired(a: int, b: int, c: int, d: int, confidence: float = 0.95) -> Interval:
    """Newcombe 1998, method 10: Wilson's intervals of both rates, joined by phi with the n/2 correction."""
    n = a + b + c + d
    new, old = (a + c) / n, (a + b) / n
    new_ends, old_ends = rate_interval(a + c, n, confidence), rate_interval(a + b, n, confidence)
    cross = a * d - b * c
    if cross > 0:
        cross = max(cross - n / 2, 0)
    scale = (a + b) * (c + d) * (a + c) * (b + d)
    phi = cross / math.sqrt(scale) if scale else 0.0
    diff = (c - b) / n
    down = _joined(new - new_ends.low, old_ends.high - old, phi)
    up = _joined(old - old_ends.low, new_ends.high - new, phi)
    return Interval(diff - down, diff + up)


def _joined(first: float, second: float, phi: float) -> float:
    return math.sqrt(max(0.0, first**2 - 2 * phi * first * second + second**2))


def tango_interval(b: int, c: int, n: int, confidence: float = 0.95) -> Interval:
    """Tango 1998: the differences that a score test of paired proportions does not reject."""
    z = normal_quantile((1 + confidence) / 2)
    low = bisected(lambda x: _tango_score(b, c, n, x) <= z, -1.0, (c - b) / n)
    high = bisected(lambda x: _tango_score(b, c, n, x) <= -z, (c - b) / n, 1.0)
    return Interval(low, high)


def _tango_score(b: int, c: int, n: int, diff: float) -> float:
    """The score of ``diff``; falls as it grows."""
    linear = (2 * n - c + b) * diff - b - c
    root = math.sqrt(max(0.0, linear**2 + 8 * n * b * diff * (1 - diff)))
    lost = (root - linear) / (4 * n)
    variance = n * (2 * lost + diff * (1 - diff))
    distance = c - b - n * diff
    if variance <= 0:
        return math.inf if distance > 0 else -math.inf if distance < 0 else 0.0
    return distance / math.sqrt(variance)


def noninferiority(a: int, b: int, c: int, d: int, margin: float, alpha: float = 0.05) -> NonInferiority:
    """Whether a drop of ``margin`` is excluded: the lower end of Newcombe's 1-2alpha interval is above -margin."""
    interval = newcombe_paired(a, b, c, d, 1 - 2 * alpha)
    return NonInferiority((c - b) / (a + b + c + d), interval.low, interval.low > -margin)


def flaky_change(baseline_only: int, candidate_only: int) -> FlakyChange:
    """Whether more cases are flaky than before: the exact sign test on cases that are flaky in one run only."""
    b, c = baseline_only, candidate_only
    exact, mid = mcnemar(b, c)
    chi2, chi2_p = _corrected_chi2(b, c)
    return FlakyChange(fair_tail(b, b + c), exact, mid, chi2, chi2_p)


def holm(p_values: Sequence[float], alpha: float = 0.05) -> Holm:
    """Holm 1979: p-values adjusted so that any wrong rejection among them all is at most alpha."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(order)
    highest = 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - rank) * p_values[index]))
        adjusted[index] = highest
    return Holm(tuple(adjusted), tuple(p <= alpha for p in adjusted))


def cochran_q(matrix: Sequence[Sequence[int]]) -> CochranQ:
    """Several models on the same cases (Cochran 1950), then exact McNemar for each pair with Holm.

    Args:
        matrix: a row per case, 0 or 1 per model.
    """
    columns = [list(column) for column in zip(*matrix, strict=True)]
    k = len(columns)
    if k < 2:
        raise ValueError("a comparison needs at least two models")
    totals, rows = [sum(column) for column in columns], [sum(row) for row in matrix]
    total = sum(totals)
    spread = k * total - sum(row * row for row in rows)
    q = (k - 1) * (k * sum(t * t for t in totals) - total * total) / spread if spread else 0.0
    found: list[tuple[int, int, int, int, float]] = []
    for i in range(k):
        for j in range(i + 1, k):
            left = sum(x > y for x, y in zip(columns[i], columns[j], strict=True))
            right = sum(x < y for x, y in zip(columns[i], columns[j], strict=True))
            found.append((i, j, left, right, mcnemar(left, right)[0]))
    adjusted = holm([p for *_, p in found]).adjusted
    pairs = tuple(Pair(*pair, h) for pair, h in zip(found, adjusted, strict=True))
    return CochranQ(q, k - 1, chi2_tail(q, k - 1) if spread else 1.0, pairs)
