"""Canonical text, keys and redaction, beside `json.dumps(sort_keys=True)` and sha256 of the same value.

Ratios of processor time, because other work on the machine disturbs the clock. Targets: a key of JSON arguments at
most 1x, of typed arguments at most 2.5x; redacting 1 KB without a secret some tens of microseconds.
"""

import json
import timeit
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from hashlib import sha256
from time import process_time
from typing import Any
from uuid import UUID

from playhead.core.canonical import canonical, parse_emitted, render, to_stored
from playhead.core.keys import call_key
from playhead.core.redaction.redact import Redactor

SIZES = (100, 1_000, 10_000, 100_000)


def rows(size: int, *, typed: bool = False) -> dict[str, Any]:
    """Arguments of about `size` bytes of JSON text."""
    found: list[dict[str, Any]] = []
    value: dict[str, Any] = {"query": "orders of the customer", "limit": 25, "dry_run": False, "rows": found}
    while len(json.dumps(value, default=str)) < size:
        number = len(found)
        row: dict[str, Any] = {
            "id": f"A-{number:06d}",
            "city": "Zürich",
            "price": number + 0.25,
            "note": "left at the door",
        }
        if typed:
            row |= {
                "at": datetime(2026, 1, 2, 3, 4, number % 60, tzinfo=UTC),
                "u": UUID(int=number),
                "p": Decimal(number) / 8,
            }
        found.append({**row, "tags": ["a", None]})
    return value


def baseline(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def microseconds(call: Callable[[], object], times: int) -> float:
    return min(timeit.repeat(call, number=times, repeat=7, timer=process_time)) / times * 1e6


def compare(label: str, size: int, call: Callable[[], object], base: float, target: str) -> None:
    took = microseconds(call, max(5, 400_000 // size))
    print(f"  {label:<34} {took:10.1f} us  {took / base:5.2f}x  {target}")


def main() -> None:
    redactor = Redactor({f"SECRET_{number}": f"value-of-secret-{number:04d}" for number in range(20)})
    for size in SIZES:
        plain, typed = rows(size), rows(size, typed=True)
        text = json.dumps(plain)
        times = max(5, 400_000 // size)
        base, typed_base = (microseconds(lambda value=value: baseline(value), times) for value in (plain, typed))
        print(f"{len(text)} bytes of JSON arguments: json.dumps and sha256 {base:.1f} us")
        compare("key", size, lambda plain=plain: call_key("orders.find", plain), base, "target 1x")
        compare(
            "key, 20 secrets configured", size, lambda plain=plain: call_key("f", plain, secrets=redactor), base, ""
        )
        compare(
            "key from a Python value", size, lambda plain=plain: sha256(canonical(plain)).digest(), base, "target 1x"
        )
        compare(
            "key of typed arguments",
            size,
            lambda typed=typed: sha256(canonical(typed)).digest(),
            typed_base,
            "target 2.5x",
        )
        compare("stored form (a copy)", size, lambda plain=plain: to_stored(plain), base, "")
        compare("emitted text to stored form", size, lambda text=text: parse_emitted(text), base, "")
        compare("stored text", size, lambda plain=plain: render(plain), base, "")
        compare(
            "redaction, nothing to find", size, lambda plain=plain: redactor.redact(plain), base, "tens of us at 1 KB"
        )


if __name__ == "__main__":
    main()
