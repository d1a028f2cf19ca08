"""Dates in a text, in the ways that people write them."""

import re
from dataclasses import dataclass
from datetime import date

_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_NUMBER = (
    {name: i for i, name in enumerate(_MONTHS, 1)} | {name[:3]: i for i, name in enumerate(_MONTHS, 1)} | {"sept": 9}
)
_MONTH = "|".join(sorted(_NUMBER, key=len, reverse=True))
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?:,? ?(?:of )?(\d{4})(?!\d))?"
_NAMED = (
    (
        re.compile(rf"(?<![^\W_]){_DAY}(?: of)?[ -]({_MONTH})\.?(?![^\W_]){_YEAR.replace(',? ?', '[, -]{0,2}')}", re.I),
        (1, 2, 3),
    ),
    (re.compile(rf"(?<![^\W_])({_MONTH})\.?[ -]{_DAY}(?![^\W_]){_YEAR}", re.I), (2, 1, 3)),
)
_ISO = re.compile(r"(?<![\w.-])(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?=$|[Tt]\d|[^\w]|[\s])(?!\2\d)")
_NUMERIC = re.compile(r"(?<![\w./-])(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d{2})(?![\w]|\2\d)")


@dataclass(frozen=True, slots=True)
class Said:
    """A date as it stands in a text: the days that it can mean. ``ambiguous``: two, and nothing says which."""

    text: str
    days: tuple[date, ...]
    year: int | None
    month_day: tuple[int, int] | None = None
    ambiguous: bool = False


def parse_day(text: str) -> date | None:
    """The day of an ISO date or date-time."""
    match = re.fullmatch(r"\s*(\d{4})-(\d{1,2})-(\d{1,2})(?:[Tt ].*)?", text)
    return _day(int(match[1]), int(match[2]), int(match[3])) if match else None


def dates(text: str, *, day_first: bool | None = None) -> list[Said]:
    """Every date of a text."""
    return [*_iso(text), *_named(text), *_numeric(text, day_first)]


def _iso(text: str) -> list[Said]:
    found: list[Said] = []
    for match in _ISO.finditer(text):
        day = _day(int(match[1]), int(match[3]), int(match[4]))
        if day is not None:
            found.append(Said(match.group(), (day,), day.year, (day.month, day.day)))
    return found


def _named(text: str) -> list[Said]:
    found: list[Said] = []
    taken: list[tuple[int, int]] = []
    for pattern, (at_day, at_month, at_year) in _NAMED:
        for match in pattern.finditer(text):
            if any(match.start() < end and start < match.end() for start, end in taken):
                continue
            month, number = _NUMBER[match[at_month].lower()], int(match[at_day])
            year = int(match[at_year]) if match[at_year] else None
            day = _day(year or 2024, month, number)  # 2024 has a 29 February
            if day is not None:
                taken.append(match.span())
                found.append(Said(match.group(), (day,) if year else (), year, (month, number)))
    return found


def _numeric(text: str, day_first: bool | None) -> list[Said]:
    found: list[Said] = []
    for match in _NUMERIC.finditer(text):
        first, second, year = int(match[1]), int(match[3]), int(match[4])
        year += 2000 if year < 100 else 0
        european, american = _day(year, second, first), _day(year, first, second)
        if day_first is not None:
            chosen = european if day_first else american
            readings = {chosen} if chosen is not None else set[date]()
        else:
            readings = {day for day in (european, american) if day is not None}
        if readings:
            found.append(Said(match.group(), tuple(sorted(readings)), year, ambiguous=len(readings) > 1))
    return found


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
