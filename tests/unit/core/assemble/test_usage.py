"""Token figures into buckets: dialects, totals, nonsense."""

import pytest

from playhead.core.assemble.usage import GENAI, Dialect, amount, counted

EXCLUSIVE = Dialect(
    input=("in",), output=("out",), read=("read",), write=("write",), reasoning=("think",), total=("total",),
    input_inclusive=False, output_inclusive=False,
)  # fmt: skip
INCLUSIVE = Dialect(
    input=("in",), output=("out",), read=("details/read",), reasoning=("think",), total=("total",)
)  # fmt: skip


def buckets(raw: dict, dialect: Dialect) -> tuple[int | None, ...]:
    usage = counted(raw, dialect).usage
    assert usage is not None
    return (
        usage.input_uncached, usage.input_cache_read, usage.input_cache_write, usage.output_visible,
        usage.output_reasoning,
    )  # fmt: skip


def test_inclusive_and_exclusive_figures_give_the_same_buckets() -> None:
    assert buckets({"in": 140, "details": {"read": 64}, "out": 30, "think": 8}, INCLUSIVE) == (76, 64, None, 22, 8)
    assert buckets({"in": 76, "read": 64, "out": 22, "think": 8}, EXCLUSIVE) == (76, 64, None, 22, 8)


def test_unknown_stays_unknown() -> None:
    assert buckets({"gen_ai.usage.input_tokens": 5}, GENAI) == (5, None, None, None, None)
    assert counted({}, GENAI).usage is None


def test_a_total_decides_against_the_table() -> None:
    found = counted({"in": 100, "read": 50, "out": 10, "total": 110}, EXCLUSIVE)
    assert found.usage is not None
    assert (found.usage.input_uncached, found.usage.input_cache_read) == (50, 50)
    assert found.conflict
    assert buckets({"in": 100, "details": {"read": 50}, "out": 10, "total": 160}, INCLUSIVE)[:2] == (100, 50)


def test_what_a_total_leaves_over_is_reasoning() -> None:
    assert buckets({"in": 100, "out": 10, "total": 150}, INCLUSIVE) == (100, None, None, 10, 40)


def test_parts_that_are_more_than_the_whole_leave_nothing_and_are_told() -> None:
    found = counted({"in": 5, "details": {"read": 9}, "out": 1}, INCLUSIVE)
    assert found.usage is not None
    assert (found.usage.input_uncached, bool(found.conflict)) == (0, True)


@pytest.mark.parametrize("bad", [-1, 1.5, float("nan"), float("inf"), "many", True, [3], 1 << 70])
def test_a_figure_that_is_no_count_is_dropped_and_named(bad: object) -> None:
    found = counted({"in": bad, "out": 3}, INCLUSIVE)
    assert found.usage is not None
    assert (found.usage.input_uncached, len(found.dropped)) == (None, 1)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (3.4200000000000005e-05, "0.0000342"), ("0.00003420", "0.0000342"), (1, "1"), (0.1, "0.1"), ("-1", None),
        ("NaN", None), ("x", None), (None, None), (True, None),
    ],
)  # fmt: skip
def test_a_cost_is_decimal_text(given: object, text: str | None) -> None:
    assert amount(given) == text
