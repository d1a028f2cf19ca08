"""Sums of token counts and costs. Unknown stays unknown, never 0."""

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal

from playhead.core.values import Cost, Usage

BUCKETS = ("input_uncached", "input_cache_read", "input_cache_write", "output_visible", "output_reasoning")
"""The exclusive buckets of `Usage`."""


def add_usage(parts: Iterable[Usage | None]) -> Usage | None:
    """The sum per bucket; a bucket that no part knows stays unknown. None when there is no part."""
    sums: dict[str, int] = {}
    some = False
    for part in parts:
        if part is None:
            continue
        some = True
        for bucket in BUCKETS:
            value = getattr(part, bucket)
            if value is not None:
                sums[bucket] = sums.get(bucket, 0) + value
    return Usage(**sums) if some else None


def less_usage(whole: Usage | None, part: Usage | None) -> Usage | None:
    """A sum without one of its parts."""
    if whole is None or part is None:
        return whole
    left = {b: getattr(whole, b) for b in BUCKETS}
    taken = {b: getattr(part, b) for b in BUCKETS}
    return Usage(**{b: n - (taken[b] or 0) for b, n in left.items() if n is not None})


def remainder(total: Usage, counted: Usage | None) -> Usage | None:
    """What a reported total has beyond what was counted; never negative, None when it is nothing."""
    left = less_usage(total, counted)
    assert left is not None
    known = {b: n for b in BUCKETS if (n := getattr(left, b)) is not None and n > 0}
    return Usage(**known) if known else None


def same_figures(one: Usage, other: Usage) -> bool:
    """Whether two accounts of one call agree where both know."""
    pairs = ((getattr(one, b), getattr(other, b)) for b in BUCKETS)
    return all(a == b for a, b in pairs if a is not None and b is not None)


def plain(number: Decimal) -> str:
    """Decimal text without exponent and trailing zeros."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def add_cost(parts: Iterable[Cost | None]) -> Cost | None:
    """The decimal sum. Its source is that of the parts, estimated where they differ; None when nothing is known or the
    currencies differ."""
    known = [p for p in parts if p is not None]
    if not known or len({p.currency for p in known}) > 1:
        return None
    total = sum((Decimal(p.amount) for p in known), Decimal(0))
    first = known[0].source
    alike = all(p.source == first for p in known)
    return Cost(amount=plain(total), currency=known[0].currency, source=first if alike else "estimated")


def less_cost(whole: Cost | None, part: Cost | None) -> Cost | None:
    """A sum without one of its parts."""
    if whole is None or part is None:
        return whole
    return replace(whole, amount=plain(Decimal(whole.amount) - Decimal(part.amount)))
