"""Stopping early without paying for it: exact curtailment, and bounds that hold at every look."""

import math
from fractions import Fraction
from typing import NamedTuple

from playhead.core.stats.distributions import bisected
from playhead.core.stats.rates import Interval


class Curtailment(NamedTuple):
    """When the outcome of a threshold over a fixed number of runs cannot change any more."""

    max_failures: int
    fails_at_failure: int
    passes_at_pass: int


def curtailment(runs: int, min_rate: float) -> Curtailment:
    """The earliest runs at which "at least ``min_rate`` of ``runs`` pass" is decided; the decision is that of all."""
    needed = math.ceil(Fraction(str(min_rate)) * runs)
    return Curtailment(runs - needed, runs - needed + 1, needed)


def mixture_evalue(passes: int, n: int, p0: float) -> float:
    """Evidence against a rate of ``p0`` that may be looked at after every trial: B(1+s, 1+n-s) / (p0^s (1-p0)^(n-s)).

    The uniform mixture (Ville 1939; Robbins 1970): rejecting at 1/alpha is wrong at most alpha of the time, however
    often one looks.
    """
    failures = n - passes
    if (p0 <= 0 and passes) or (p0 >= 1 and failures):
        return math.inf
    log = _log_uniform(passes, n)
    log -= passes * math.log(p0) if passes else 0.0
    log -= failures * math.log1p(-p0) if failures else 0.0
    return math.exp(log) if log < 700 else math.inf


def _log_uniform(passes: int, n: int) -> float:
    """log B(1 + s, 1 + n - s), exactly 1 / ((n + 1) C(n, s))."""
    if n <= 5000:
        return -math.log((n + 1) * math.comb(n, passes))
    return math.lgamma(passes + 1) + math.lgamma(n - passes + 1) - math.lgamma(n + 2)


def paired_evalue(lost: int, won: int) -> float:
    """`mixture_evalue` of the signs of differing cases against 1/2."""
    return mixture_evalue(lost, lost + won, 0.5)


def confidence_sequence(passes: int, n: int, alpha: float = 0.05) -> Interval:
    """The rates with e below 1/alpha: an interval that holds at every look at once, and is wider for it."""
    if n == 0:
        return Interval(0.0, 1.0)
    rate = passes / n
    low = 0.0 if passes == 0 else bisected(lambda p: mixture_evalue(passes, n, p) < 1 / alpha, 0.0, rate)
    high = 1.0 if passes == n else bisected(lambda p: mixture_evalue(passes, n, p) >= 1 / alpha, rate, 1.0)
    return Interval(low, high)
