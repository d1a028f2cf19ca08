"""Labels and those who give them, choices between two tools, and rates of several kinds of trial."""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from playhead.core.stats.distributions import chi2_tail, fair_tail
from playhead.core.stats.rates import Interval, rate_interval, upper_bound

AmbiguityVerdict: TypeAlias = Literal["ambiguous", "clear", "undecided"]


class Agreement(NamedTuple):
    """How far two raters agree: on ``n`` items, in ``raw`` of them, ``kappa`` beyond chance (None: undefined)."""

    n: int
    raw: float
    kappa: float | None


class LabelAudit(NamedTuple):
    """Labels that are still wrong after a review: estimate, its share of all, and one-sided upper bounds."""

    errors_left: float
    residual_rate: float
    agreement_upper: float
    residual_upper: float


class MinorityShare(NamedTuple):
    """How often the less chosen of two tools was chosen; ``p_half``: against a fair coin, two-sided."""

    share: float
    interval: Interval
    p_half: float


class Recovery(NamedTuple):
    """Recovery by kind of failure, and whether the kinds differ (chi-square of homogeneity)."""

    kinds: Mapping[str, Interval]
    pooled: float
    pooled_interval: Interval
    chi2: float
    df: int
    p: float


def kappa(table: Sequence[Sequence[int]]) -> Agreement:
    """Cohen's kappa of a square table of counts, one rater's categories as rows, the other's as columns."""
    n = sum(map(sum, table))
    if not n:
        return Agreement(0, 0.0, None)
    raw = sum(row[i] for i, row in enumerate(table)) / n
    rows = [sum(row) for row in table]
    columns = [sum(column) for column in zip(*table, strict=True)]
    chance = sum(r * c for r, c in zip(rows, columns, strict=True)) / (n * n)
    return Agreement(n, raw, None if chance == 1 else (raw - chance) / (1 - chance))


def agreement(pairs: Sequence[tuple[Hashable, Hashable]]) -> Agreement:
    """`kappa` of pairs of labels."""
    labels = list(dict.fromkeys(label for pair in pairs for label in pair))
    place = {label: i for i, label in enumerate(labels)}
    table = [[0] * len(labels) for _ in labels]
    for left, right in pairs:
        table[place[left]][place[right]] += 1
    return kappa(table)


def label_audit(n: int, agreements: int, audited: int, audit_errors: int, confidence: float = 0.95) -> LabelAudit:
    """The wrong labels that remain when all disagreements are reviewed and a sample of the agreements was audited.

    Args:
        n: all labels.
        agreements: labels on which the sources agree.
        audited: of these, drawn at random and reviewed.
        audit_errors: of those, wrong.
        confidence: of the bounds (Clopper-Pearson).
    """
    left = agreements - audited
    if not 0 <= audit_errors <= audited <= agreements <= n or n == 0:
        raise ValueError(f"{audit_errors} wrong of {audited} audited of {agreements} agreements of {n} cannot be")
    upper = upper_bound(audit_errors, audited, confidence)
    errors = left * audit_errors / audited if audited else float(left)
    return LabelAudit(errors, errors / n, upper, left * upper / n)


def corrected_rate(rate: float, sensitivity: float, specificity: float) -> float:
    """The true rate behind the one that an imperfect evaluator reports (Rogan and Gladen 1978), kept within 0 and 1."""
    informed = sensitivity + specificity - 1
    if informed <= 0:
        raise ValueError("an evaluator that is no better than chance corrects nothing")
    return min(1.0, max(0.0, (rate + specificity - 1) / informed))


def minority_share(minority: int, n: int, confidence: float = 0.95) -> MinorityShare:
    """The share of the less chosen tool, with its Clopper-Pearson interval."""
    interval = rate_interval(minority, n, confidence, "clopper_pearson")
    half = 1.0 if 2 * minority == n else min(1.0, 2 * fair_tail(min(minority, n - minority), n))
    return MinorityShare(minority / n if n else 0.0, interval, half)


def ambiguity_verdict(minority: int, n: int, confidence: float = 0.95) -> AmbiguityVerdict:
    """``ambiguous``: the minority share is surely above 0.10; ``clear``: surely below 0.30; else ``undecided``."""
    low, high = minority_share(minority, n, confidence).interval
    if low > 0.10:
        return "ambiguous"
    return "clear" if high < 0.30 else "undecided"


def recovery(kinds: Mapping[str, tuple[int, int]], confidence: float = 0.95) -> Recovery:
    """Recovered of injected, by kind: Wilson intervals, pooled, and the chi-square of homogeneity."""
    known = {name: counts for name, counts in kinds.items() if counts[1] > 0}
    recovered, n = sum(r for r, _ in known.values()), sum(k for _, k in known.values())
    if n == 0:
        raise ValueError("a recovery rate needs at least one injected failure")
    pooled = recovered / n
    spread = pooled * (1 - pooled)
    chi2 = math.fsum((r - k * pooled) ** 2 / (k * spread) for r, k in known.values()) if spread else 0.0
    df = len(known) - 1
    intervals = {name: rate_interval(r, k, confidence) for name, (r, k) in known.items()}
    return Recovery(intervals, pooled, rate_interval(recovered, n, confidence), chi2, df, chi2_tail(chi2, df))
