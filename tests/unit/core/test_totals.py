"""Sums of usage and cost: one set of rules for what is recorded and for what is imported."""

import pytest

from playhead.core.totals import add_cost, add_usage, less_cost, remainder
from playhead.core.values import Cost, Usage


def test_sums_know_what_any_part_knows() -> None:
    total = add_usage([Usage(input_uncached=1), None, Usage(input_uncached=2, output_visible=3)])
    assert total == Usage(input_uncached=3, output_visible=3)
    assert add_usage([None]) is None
    assert add_usage([]) is None


def test_what_a_total_has_beyond_the_parts() -> None:
    total = Usage(input_uncached=10, output_visible=3)
    assert remainder(total, Usage(input_uncached=4, output_visible=5)) == Usage(input_uncached=6)
    assert remainder(total, None) == total
    assert remainder(total, total) is None


@pytest.mark.parametrize(
    ("sources", "sum_of_them"),
    [
        (["reported", "reported"], "reported"), (["estimated"], "estimated"), (["replayed", "replayed"], "replayed"),
        (["reported", "estimated"], "estimated"), (["reported", "replayed"], "estimated"),
    ],
)  # fmt: skip
def test_the_source_of_a_sum_is_that_of_its_parts_or_an_estimate(sources: list, sum_of_them: str) -> None:
    total = add_cost([Cost(amount="0.10", source=source) for source in sources])
    assert total == Cost(amount="0.1" if len(sources) == 1 else "0.2", source=sum_of_them)  # type: ignore[arg-type]


def test_costs_of_different_currencies_have_no_sum() -> None:
    assert add_cost([Cost(amount="1"), Cost(amount="1", currency="EUR")]) is None
    assert add_cost([None]) is None


def test_a_cost_without_a_part_is_exact() -> None:
    assert less_cost(Cost(amount="0.3"), Cost(amount="0.1")) == Cost(amount="0.2")
