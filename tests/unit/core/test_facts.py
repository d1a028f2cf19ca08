"""Facts are found however they are spelled, and never inside something else."""

from typing import Any

import pytest
from pydantic import ValidationError

from playhead.core.facts.named import Fact, find


def fact(kind: str, value: Any, **more: Any) -> Fact:
    return Fact.model_validate({"name": "f", "as": kind, "value": value, **more})


NUMBER = fact("number", 1786)
MONEY = fact("money", "129.00", currency="USD")
DATE = fact("date", "2024-05-20")
EARLY = fact("date", "2024-05-06")
ID = fact("id", "R-77")
ZEROS = fact("id", "0042")

FOUND = [
    (NUMBER, ["1,786", "1786.00", "$1\u2009786", "1_786", "1 786", "+1786", "(1786)", "1786.", "1786, 1787", "1786kg",
              "327, 1000 and 1786", "EUR 1786", "cost:1786", "1786%", "is 1786-", "1\u202f786 items"]),
    (MONEY, ["$129", "USD 129.00", "129 dollars", "129.00", "US$129", "129 USD", "129USD", "USD129", "$129.001",
             "costs $129.", "$ 129", "129.00 usd", "A $129 refund", "€5 off, so $129", "$129 and €5", "You pay 129"]),
    (DATE, ["May 20, 2024", "20 May 2024", "2024-05-20T11:00:00", "05/20/2024", "May 20th", "20th of May, 2024",
            "2024/05/20", "20.05.2024", "May 20 2024", "Mon, 20 May 2024 11:00", "20-May-2024", "05/20/24", "may 20",
            "2024-05-20.", "on 2024-05-20, we", "Sent. May 20."]),
    (EARLY, ["6 May 2024", "2024-05-06", "May 6", "6th May"]),
    (fact("date", "2024-05-06", day_first=False), ["05/06/2024"]),
    (fact("date", "2024-06-05", day_first=True), ["05/06/2024"]),
    (fact("date", "2024-09-03"), ["3 Sept 2024", "Sep. 3, 2024", "September 3rd 2024"]),
    (ID, ["r77", "R 77", "(#R-77)", "R-77.", "refund R_77!", "id=R-77", "R\u201177", "R-77, R-78", "'R-77'"]),
    (ZEROS, ["0042", "#0042", "(0042)"]),
    (fact("id", "HATHAT"), ["HATHAT", "hathat,", "reservation HATHAT is"]),
    (fact("id", "#4821"), ["4821", "order #4821"]),
    (fact("text", "New York"), ["new-york", "NEW YORK CITY", "“New  York”", "newyork", "Ｎｅｗ York"]),
    (fact("text", "don't"), ["I dont", "I don’t"]),
    (fact("pattern", r"R-\d+"), ["see R-7"]),
    (fact("number", "1.786", decimal="."), ["1.786"]),
    (fact("number", 1786, decimal=","), ["1.786", "1.786,00", "1786"]),
    (fact("number", 100, tolerance=0.5), ["100.4", "99.5"]),
    (fact("number", -5), ["-5", "is −5 degrees"]),
    (fact("money", "-5", currency="USD"), ["-$5", "$-5"]),
    (fact("money", "1500", currency="JPY"), ["¥1,500", "1500 yen", "JPY 1500.4"]),
    (fact("money", "10", currency="CAD"), ["$10", "C$10", "CAD 10"]),
]  # fmt: skip
NOT_FOUND = [
    (NUMBER, ["17860", "HAT1786", "1.786", "11,786", "1786.5", "1786-05-01", "R-1786", "1786/2", "v1786.2.3", "-1786",
              "1,7860", "1786abc", "x_1786", "", "21 786", "12:1786"]),
    (MONEY, ["€129", "$1290", "$12.90", "129 euros", "EUR 129", "129,5", "$129.50", "1$29", "£129.00", "129 EUR"]),
    (fact("money", "129", currency="USD", currency_required=True), ["129", "129 EUR"]),
    (DATE, ["May 20, 2023", "May 2, 2024", "20 June 2024", "2024-05-200", "May 200", "20 Maybe 2024", "12024-05-20"]),
    (fact("date", "2024-05-20", year_required=True), ["May 20th", "20 May"]),
    (EARLY, ["05/06/2024"]),
    (ID, ["R-777", "AR-77", "R-77-B", "X-R-77", "R-7 7", "R7", "R77A"]),
    (ZEROS, ["42", "00042", "0 042x"]),
    (fact("id", "77"), ["R-77", "77-A", "177"]),
    (fact("text", "refund"), ["refun", "refunt"]),
    (fact("pattern", r"^R-\d+$"), ["see R-7"]),
]  # fmt: skip


@pytest.mark.parametrize(("fact", "text"), [(f, t) for f, texts in FOUND for t in texts], ids=str)
def test_a_fact_is_found(fact: Fact, text: str) -> None:
    assert find(fact, text).found
    assert find(fact, f"It was {text}").found or fact.kind in ("pattern", "date")


@pytest.mark.parametrize(("fact", "text"), [(f, t) for f, texts in NOT_FOUND for t in texts], ids=str)
def test_something_else_is_no_fact(fact: Fact, text: str) -> None:
    found = find(fact, text)
    assert not found.found
    assert found.reason in ("absent", "ambiguous_date")


def test_a_date_that_can_be_read_two_ways_says_so() -> None:
    assert find(EARLY, "on 05/06/2024").reason == "ambiguous_date"
    assert find(fact("date", "2024-01-01"), "on 05/06/2024").reason == "absent"


@pytest.mark.parametrize(
    ("made", "text", "fits"),
    [
        (fact("number", 5, must_not=True), "it is 6", True),
        (fact("number", 5, must_not=True), "it is 5", False),
        (fact("number", 5, exclusive=True), "5, and 5.0", True),
        (fact("number", 5, exclusive=True), "5 or 6", False),
        (fact("money", 5, currency="USD", exclusive=True), "$5 for 2 nights", True),
        (fact("money", 5, currency="USD", exclusive=True), "$5, not $7", False),
        (fact("id", "R-77", exclusive=True), "R-77 of order A-1", True),
        (fact("id", "R-77", exclusive=True), "R-77 or R-78", False),
        (fact("date", "2024-05-20", exclusive=True), "20 May 2024, not 21 May 2024", False),
    ],
)
def test_what_must_not_be_said(made: Fact, text: str, fits: bool) -> None:
    assert find(made, text).fits(made) is fits


@pytest.mark.parametrize(
    ("kind", "value"),
    [("number", "five"), ("money", ""), ("date", "May"), ("id", "--"), ("pattern", "("), ("other", 1)],
)
def test_a_fact_that_nothing_could_state_is_refused(kind: str, value: str) -> None:
    with pytest.raises(ValidationError):
        fact(kind, value)


@pytest.mark.parametrize("kind", ["number", "money", "id", "text"])
def test_long_texts_are_searched_in_reasonable_time(kind: str) -> None:
    assert not find(fact(kind, "987654321"), "1,234 a-b_c " * 5000 + "9" * 5000).found
