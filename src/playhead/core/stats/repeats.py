"""Cases that are run several times: repeated success, flakiness, and what a literal rule makes of it."""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from playhead.core.stats.distributions import convolved
from playhead.core.stats.rates import Passes

_LONGEST: Final = 1 << 40

_Joint: TypeAlias = list[list[float]]
"""Probability by passes (rows) and flaky cases (columns)."""


class PassK(NamedTuple):
    """``pass_hat``: the chance that k runs of a case all pass; ``pass_at``: that one of k does. Means over ``cases``;
    None where no case has k runs."""

    pass_hat: float | None
    pass_at: float | None
    cases: int
    left_out: int


class CaseLabel(NamedTuple):
    """The chances of each class of a case."""

    all_pass: float
    mixed: float
    all_fail: float
    majority_pass: float


class LiteralBlock(NamedTuple):
    """How often literal rules block a release that is identical to the last one."""

    rate_rule: float
    flaky_rule: float
    either: float


def pass_k(cases: Passes, k: int) -> PassK:
    """pass^k (Yao et al. 2024) and pass@k (Chen et al. 2021), unbiased; cases with fewer than k runs are left out."""
    known = [(c, n) for c, n in cases if n >= k]
    if not known or k < 1:
        return PassK(None, None, 0, len(cases))
    hat = math.fsum(math.comb(c, k) / math.comb(n, k) for c, n in known) / len(known)
    at = math.fsum(1 - math.comb(n - c, k) / math.comb(n, k) for c, n in known) / len(known)
    return PassK(hat, at, len(known), len(cases) - len(known))


def flake_seen_probability(p: float, k: int) -> float:
    """The chance that a case of pass probability ``p`` looks mixed in ``k`` runs: 1 - p^k - (1-p)^k."""
    return max(0.0, 1 - p**k - (1 - p) ** k)


def flake_runs_needed(p: float, probability: float = 0.9) -> int | None:
    """Runs that show a case as mixed with this probability; None for a case that never changes."""
    high = 2
    while flake_seen_probability(p, high) < probability:
        high *= 2
        if high > _LONGEST:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if flake_seen_probability(p, middle) >= probability else (middle, high)
    return high


def case_label_probability(p: float, k: int = 3) -> CaseLabel:
    """The chances that a case of pass probability ``p`` passes all, some, none or most of ``k`` runs."""
    most = math.fsum(math.comb(k, j) * p**j * (1 - p) ** (k - j) for j in range(k // 2 + 1, k + 1))
    return CaseLabel(p**k, flake_seen_probability(p, k), (1 - p) ** k, most)


def expected_flips(probabilities: Sequence[float], k: int = 3) -> float:
    """How many cases change class (pass, fail, flaky) between two runs of one release, on average."""
    labels = (case_label_probability(p, k) for p in probabilities)
    return math.fsum(1 - a.all_pass**2 - a.mixed**2 - a.all_fail**2 for a in labels)


def literal_false_block(probabilities: Sequence[float], k: int) -> LiteralBlock:
    """What "rate at or above the last release" and "flaky count must not rise" do to an identical release, exactly.

    Both counts come from the same runs, so their joint distribution is built case by case.
    """
    joint: _Joint = [[1.0]]
    for p in probabilities:
        if 0 < p < 1:  # a case that never changes moves neither count
            joint = _with_case(joint, p, k)
    passes = [math.fsum(row) for row in joint]
    flaky = [math.fsum(column) for column in zip(*joint, strict=True)]
    either = 1 - _no_worse(joint)
    return LiteralBlock(_less(passes), _less(flaky), max(0.0, either))


def _with_case(joint: _Joint, p: float, k: int) -> _Joint:
    wide = [[0.0] * (len(joint[0]) + 1) for _ in range(len(joint) + k)]
    points = [math.comb(k, j) * p**j * (1 - p) ** (k - j) for j in range(k + 1)]
    for passes, row in enumerate(joint):
        for flaky, weight in enumerate(row):
            if weight:
                for j, point in enumerate(points):
                    wide[passes + j][flaky + (0 < j < k)] += weight * point
    return wide


def _less(weights: Sequence[float]) -> float:
    """P(X < Y) of two independent draws; by symmetry also P(X > Y)."""
    return max(0.0, (1 - math.fsum(w * w for w in weights)) / 2)


def _no_worse(joint: _Joint) -> float:
    """P(candidate passes >= baseline's and candidate flaky <= baseline's)."""
    columns = len(joint[0])
    at_most = [0.0] * columns  # baseline passes up to here, by its flaky count
    total = 0.0
    for row in joint:
        at_most = [seen + weight for seen, weight in zip(at_most, row, strict=True)]
        from_flaky = math.fsum(at_most)
        for flaky, weight in enumerate(row):
            total += weight * from_flaky
            from_flaky -= at_most[flaky]
    return total


def literal_intent_false_block(intents: Sequence[Sequence[float]], k: int, margin: float) -> float:
    """How often an identical release has an intent that drops by more than ``margin``.

    Args:
        intents: pass probabilities of the cases of each intent.
        k: runs per case.
        margin: largest drop that the rule lets through.
    """
    clean = 1.0
    for probabilities in intents:
        weights = [1.0]
        for p in probabilities:
            weights = convolved(weights, [math.comb(k, j) * p**j * (1 - p) ** (k - j) for j in range(k + 1)])
        least = math.floor(margin * len(probabilities) * k + 1e-9) + 1
        clean *= 1 - _drops_by(weights, least)
    return 1 - clean


def _drops_by(weights: Sequence[float], least: int) -> float:
    """P(Y - X >= least) of two independent draws."""
    below, total = 0.0, 0.0
    for y in range(least, len(weights)):
        below += weights[y - least]
        total += weights[y] * below
    return total
