"""How single values read."""

import pytest

from playhead.cli import shown
from playhead.core.values import Cost, Outcome, OutcomeKind, Truncated, Usage
from playhead.errors import UsageError

NOW = 1_760_000_000_000_000_000
HOUR = 3_600_000_000_000


@pytest.mark.parametrize(
    ("end", "text"),
    [
        (1_500_000, "1.5 ms"),
        (250_000_000, "250 ms"),
        (2_500_000_000, "2.5 s"),
        (5 * HOUR // 60, "5.0 min"),
        (None, None),
    ],
)
def test_durations_have_a_unit_that_suits_them(end: int | None, text: str | None) -> None:
    assert shown.lasted(0, end) == text


@pytest.mark.parametrize(
    ("usage", "text"),
    [
        (None, None),
        (Usage(), None),
        (Usage(input_uncached=5, output_visible=1, output_reasoning=2), "5 in, 3 out"),
        (Usage(input_uncached=5, input_cache_read=7), "12 in (7 cached), ? out"),
    ],
)
def test_unknown_tokens_are_not_zero(usage: Usage | None, text: str | None) -> None:
    assert shown.tokens(usage) == text


def test_money_says_where_it_comes_from() -> None:
    assert shown.money(Cost(amount="0.10", source="reported")) == "0.10 USD (reported)"


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("2h", NOW - 2 * HOUR),
        ("1d", NOW - 24 * HOUR),
        ("2025-10-09T08:53:20+00:00", NOW),
        (None, None),
    ],
)
def test_times_may_be_relative_or_absolute(text: str | None, ns: int | None) -> None:
    assert shown.instant(text, now=NOW) == ns


def test_what_is_no_time_is_refused_with_examples() -> None:
    with pytest.raises(UsageError) as caught:
        shown.instant("yesterday", now=NOW)
    assert "2h" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (Outcome(kind=OutcomeKind.VALUE, value={"a": 1}), '{"a": 1}'),
        (Outcome(kind=OutcomeKind.VALUE, value=None), "null"),
        (Outcome(kind=OutcomeKind.RETRY, value="again"), "retry again"),
        (Outcome(kind=OutcomeKind.VALUE, truncated=Truncated(bytes=9, sha256="0")), "truncated (9 bytes)"),
    ],
)
def test_an_outcome_reads_on_one_line(outcome: Outcome, text: str) -> None:
    assert shown.outcome(outcome, 60) == text
