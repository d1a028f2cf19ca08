"""What a model call costs, from the kept price table of genai-prices. Used by the writer thread only."""

import sys
from decimal import Decimal
from functools import lru_cache
from typing import Any

from playhead.core.totals import BUCKETS, plain
from playhead.core.values import Cost, Usage


def price(usage: Usage | None, model: str | None, provider: str | None) -> Cost | None:
    """The estimated cost, None when the model or its usage is unknown."""
    if usage is None or not model or all(getattr(usage, name) is None for name in BUCKETS):
        return None
    try:
        amount = _calculate(usage, model, provider)
    except Exception:  # noqa: BLE001 - a model or provider that the table does not have, or a foreign table's fault
        return None
    return Cost(amount=plain(amount), source="estimated")


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


def prepare() -> None:
    """Loads the table here and now, where the writer's thread must not be the one to do it.

    The table imports ``httpx2``. Clients of openai 2 look that up in ``sys.modules`` without waiting for its import to
    end, and fail when another thread is in the middle of it.
    """
    if "openai" in sys.modules and "httpx2" not in sys.modules:
        try:
            _table()
        except Exception:  # noqa: BLE001 - prices are then unknown; the agent goes on
            return
