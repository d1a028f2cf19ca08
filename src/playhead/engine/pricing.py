"""What a model call costs, from the kept price table of genai-prices. Used by the writer thread only."""

from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache
from typing import Any

from playhead.core.values import Cost, Usage

BUCKETS = ("input_uncached", "input_cache_read", "input_cache_write", "output_visible", "output_reasoning")


def price(usage: Usage | None, model: str | None, provider: str | None) -> Cost | None:
    """The estimated cost, None when the model or its usage is unknown."""
    if usage is None or not model or all(getattr(usage, name) is None for name in BUCKETS):
        return None
    try:
        amount = _calculate(usage, model, provider)
    except Exception:  # noqa: BLE001 - a model or provider that the table does not have, or a foreign table's fault
        return None
    return Cost(amount=plain_decimal(amount), source="estimated")


def _calculate(usage: Usage, model: str, provider: str | None) -> Decimal:
    genai = _table()
    read, write = usage.input_cache_read or 0, usage.input_cache_write or 0
    spent = genai.Usage(
        input_tokens=(usage.input_uncached or 0) + read + write,
        cache_read_tokens=read,
        cache_write_tokens=write,
        output_tokens=(usage.output_visible or 0) + (usage.output_reasoning or 0),
    )
    try:
        return genai.calc_price(spent, model_ref=model, provider_id=provider).total_price
    except LookupError:
        if provider is None:
            raise
        return genai.calc_price(spent, model_ref=model).total_price


@lru_cache(maxsize=1)
def _table() -> Any:
    import genai_prices

    return genai_prices


def plain_decimal(amount: Decimal) -> str:
    """Decimal text without an exponent or trailing zeros."""
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def sum_usage(parts: Iterable[Usage]) -> Usage | None:
    """Bucket by bucket; a bucket that nobody knows stays unknown."""
    known = list(parts)
    if not known:
        return None
    totals: dict[str, int | None] = {}
    for name in BUCKETS:
        values = [v for v in (getattr(part, name) for part in known) if v is not None]
        totals[name] = sum(values) if values else None
    return Usage(**totals)


def remainder(total: Usage, counted: Usage | None) -> Usage | None:
    """What a framework's total has beyond the calls that were counted; never negative, None when it is nothing."""
    rest: dict[str, int | None] = {}
    for name in BUCKETS:
        whole = getattr(total, name)
        part = getattr(counted, name) if counted is not None else None
        rest[name] = None if whole is None else max(0, whole - (part or 0)) or None
    return Usage(**rest) if any(v is not None for v in rest.values()) else None


def sum_costs(parts: Iterable[Cost]) -> Cost | None:
    """The sum; reported only when every part was."""
    known = list(parts)
    if not known:
        return None
    amount = sum((Decimal(part.amount) for part in known), Decimal(0))
    first = known[0].source
    same = all(part.source == first for part in known)
    return Cost(amount=plain_decimal(amount), source=first if same else "estimated")
