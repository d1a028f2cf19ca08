"""A live run, a recording run and a replay of an op give equal outcomes, errors among them."""

import uuid
from datetime import UTC, date, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import playhead
from playhead import OpError, register_error


class ApiError(Exception):
    def __init__(self, message: str, status: int) -> None:
        super().__init__(message, status)
        self.status = status


register_error(ApiError)

TEXT = st.text(max_size=8)
PLAIN = (
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT | st.binary(max_size=6) | st.decimals(allow_nan=False, allow_infinity=False, places=3)
    | st.dates(date(1, 1, 2)) | st.uuids() | st.timedeltas(timedelta(-999), timedelta(999))
    | st.datetimes() | st.datetimes(timezones=st.just(UTC))
)  # fmt: skip
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT | st.integers(), inner, max_size=3)
    | st.sets(TEXT, max_size=3),
    max_leaves=6,
)  # fmt: skip
ERRORS = (
    st.builds(OpError, TEXT, st.sampled_from(["failed", "rate_limit"]), st.integers(400, 599), st.booleans(),
              st.none() | st.integers(0, 60))
    | st.builds(ApiError, TEXT, st.integers(400, 599))
    | st.builds(KeyError, TEXT) | st.builds(ValueError, TEXT, st.integers()) | st.builds(TimeoutError)
)  # fmt: skip


def seen(call: Any, n: int) -> Any:
    """What a caller can see of a call."""
    try:
        return call(n)
    except Exception as error:
        attributes = ("status", "code", "retryable", "retry_after")
        return (type(error), str(error), error.args, [getattr(error, name, None) for name in attributes])


@settings(max_examples=25, deadline=None)
@given(st.lists(VALUES | ERRORS, min_size=1, max_size=6))
def test_live_recorded_and_replayed_outcomes_are_equal(ends: list[Any]) -> None:
    live: list[int] = []

    @playhead.op("f", effect="read", errors=[KeyError, ValueError, TimeoutError])
    def f(n: int) -> Any:
        live.append(n)
        if isinstance(ends[n], Exception):
            raise ends[n]
        return ends[n]

    with TemporaryDirectory() as folder:
        found = {"live": [seen(f, n) for n in range(len(ends))]}
        for mode in ("record", "replay"):
            with playhead.fixtures(mode, dir=Path(folder) / "fixtures"):
                found[mode] = [seen(f, n) for n in range(len(ends))]
    assert found["live"] == found["record"] == found["replay"]
    assert repr(found["live"]) == repr(found["replay"]) or _unordered(ends)
    assert len(live) == 2 * len(ends)


def _unordered(value: Any) -> bool:
    """Whether it holds what has no order of its own, or a spelling beside its value: 1.10 as a Decimal."""
    if isinstance(value, list | tuple):
        return any(_unordered(each) for each in value)  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return len(value) > 1 or any(_unordered(each) for each in value.values())  # pyright: ignore
    return isinstance(value, set | Decimal | float | uuid.UUID)
