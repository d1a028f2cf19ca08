"""Distribution functions and their inverses, in double precision.

Tails are computed as tails, never as one minus the rest. Inverses bisect, which is slow by the standards of numerical
work (a millisecond) and cannot go wrong.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Final

_TINY: Final = 1e-300
_EXACT: Final = 1e-15


def normal_cdf(x: float) -> float:
    """P(Z <= x)."""
    return 0.5 * math.erfc(-x / math.sqrt(2))


@lru_cache(maxsize=256)
def normal_quantile(p: float) -> float:
    """The x with P(Z <= x) = p."""
    if p in (0, 1):
        return math.inf if p else -math.inf
    if p > 0.5:
        return -normal_quantile(1 - p) if p < 1 - 1e-9 else bisected(lambda x: normal_cdf(-x) <= 1 - p, 0, 40)
    return bisected(lambda x: normal_cdf(x) >= p, -40, 0)


def bisected(reached: Callable[[float], bool], low: float, high: float) -> float:
    """The first x between ``low`` and ``high`` for which ``reached`` holds; it holds from there on."""
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if reached(middle):
            high = middle
        else:
            low = middle
    return high


def beta_cdf(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b).

    By its continued fraction (Abramowitz and Stegun 26.5.8), evaluated with Lentz's method.
    """
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_tail(1 - x, b, a)
    return _beta_tail(x, a, b)


def _beta_tail(x: float, a: float, b: float) -> float:
    front = math.exp(a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)) / a
    c, d = 1.0, 1 / _away(1 - (a + b) * x / (a + 1))
    total = d
    for m in range(1, 20_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        step = 1.0
        for part in (even, odd):
            d = 1 / _away(1 + part * d)
            c = _away(1 + part / c)
            step = c * d
            total *= step
        if abs(step - 1) < _EXACT:
            break
    return front * total


def _away(value: float) -> float:
    """Away from zero, where the fraction would divide by it."""
    return value if abs(value) > _TINY else _TINY


@lru_cache(maxsize=4096)
def beta_quantile(p: float, a: float, b: float) -> float:
    """The x with I_x(a, b) = p."""
    return bisected(lambda x: beta_cdf(x, a, b) >= p, 0.0, 1.0)


def t_cdf(x: float, df: float) -> float:
    """P(T <= x) of Student's t (Abramowitz and Stegun 26.7.1)."""
    if math.isinf(x):
        return float(x > 0)
    square = x * x
    if square < df:
        tail = 0.5 - 0.5 * beta_cdf(square / (df + square), 0.5, df / 2)  # the other end loses what is near zero
    else:
        tail = 0.5 * beta_cdf(df / (df + square), df / 2, 0.5)
    return tail if x < 0 else 1 - tail


@lru_cache(maxsize=1024)
def t_quantile(p: float, df: float) -> float:
    """The x with P(T <= x) = p."""
    if p > 0.5:
        return -t_quantile(1 - p, df)
    low = -1.0
    while t_cdf(low, df) > p:
        low *= 2
    return bisected(lambda x: t_cdf(x, df) >= p, low, 0.0)


def chi2_tail(x: float, df: float) -> float:
    """P(chi-square with ``df`` degrees of freedom >= x): the upper incomplete gamma function.

    Series below the mean, continued fraction above it (Abramowitz and Stegun 6.5.29 and 6.5.31).
    """
    if x / 2 <= 0 or df <= 0:
        return 1.0
    a, y = df / 2, x / 2
    front = math.exp(a * math.log(y) - y - math.lgamma(a))
    if y < a + 1:
        term = total = 1 / a
        n = a
        while abs(term) > abs(total) * 1e-17:
            n += 1
            term *= y / n
            total += term
        return 1 - front * total
    b = y + 1 - a
    c, d = 1 / _TINY, 1 / b
    total = d
    for i in range(1, 10_000):
        part = -i * (i - a)
        b += 2
        d = 1 / _away(part * d + b)
        c = _away(b + part / c)
        total *= c * d
        if abs(c * d - 1) < _EXACT:
            break
    return front * total


def binomial_cdf(k: int, n: int, p: float) -> float:
    """P(X <= k), X ~ Bin(n, p)."""
    if k < 0 or k >= n:
        return float(k >= n)
    return beta_cdf(1 - p, n - k, k + 1)


def fair_tail(k: int, n: int) -> float:
    """P(X <= k), X ~ Bin(n, 1/2), correctly rounded up to 4,000 coins."""
    if k < 0 or k >= n:
        return float(k >= n)
    if n > 4000:
        return binomial_cdf(k, n, 0.5)
    term = total = 1
    for i in range(k):
        term = term * (n - i) // (i + 1)
        total += term
    return total / (1 << n)


def fair_point(k: int, n: int) -> float:
    """P(X = k), X ~ Bin(n, 1/2), correctly rounded up to 1,000 coins."""
    if n <= 1000:
        return math.comb(n, k) / (1 << n)
    return math.exp(math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2))


def convolved(left: list[float], right: list[float]) -> list[float]:
    """The distribution of the sum of two independent counts."""
    total = [0.0] * (len(left) + len(right) - 1)
    for i, weight in enumerate(left):
        if weight:
            for j, other in enumerate(right):
                total[i + j] += weight * other
    return total
