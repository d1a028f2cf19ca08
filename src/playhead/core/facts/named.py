"""Named facts: values that an answer must state, however it spells them.

Each kind has one meaning: a number is a decimal and never a part of a longer one, an id is a whole token, a date is a
day whatever the order of its parts. What could be read in two ways is not found, and says so.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from playhead.core.byte_patterns import searched
from playhead.core.facts.dates import Said, dates, parse_day
from playhead.core.facts.numbers import Numeral, minor_unit, numerals, parse_decimal

Kind: TypeAlias = Literal["number", "money", "date", "id", "text", "pattern"]


class Fact(BaseModel):
    """One value. ``must_not``: it must not be stated. ``exclusive``: no other value of the kind may be."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    name: str
    kind: Kind = Field(alias="as")
    value: str | int | float
    where: Literal["final", "any"] = "final"
    must_not: bool = False
    exclusive: bool = False
    tolerance: float = Field(default=0, ge=0)
    decimal: Literal[".", ","] = "."
    currency: str | None = None
    currency_required: bool = False
    day_first: bool | None = None
    year_required: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        problem = _problem(self)
        if problem:
            raise ValueError(problem)
        return self


def _problem(fact: Fact) -> str | None:
    if fact.kind in ("number", "money") and parse_decimal(fact.value) is None:
        return f"{fact.value!r} is no number"
    if fact.kind == "date" and parse_day(str(fact.value)) is None:
        return f"{fact.value!r} is no date; write 2024-05-20"
    if fact.kind in ("id", "text") and not plain_text(str(fact.value)):
        return f"{fact.value!r} has nothing to look for"
    if fact.kind == "pattern":
        try:
            searched(str(fact.value), "")
        except ValueError as error:
            return f"{fact.value!r} is no pattern: {error}"
    return None


@dataclass(frozen=True, slots=True)
class Found:
    """Whether the text states the fact; ``reason`` is a stable word where it does not (``absent``, ``ambiguous_date``,
    ``other_value``). ``others`` are further values of the kind."""

    found: bool
    reason: str = ""
    others: tuple[str, ...] = ()

    def fits(self, fact: Fact) -> bool:
        """Whether the fact holds: stated, or left out where it must not be."""
        if fact.must_not:
            return not self.found
        return self.found and not (fact.exclusive and self.others)


def find(fact: Fact, text: str) -> Found:
    """Looks for one fact in a text."""
    text = _normal(text)
    return _FINDERS[fact.kind](fact, text)


def _normal(text: str) -> str:
    return unicodedata.normalize("NFKC", text).translate(_DASHES)


_DASHES = {0x2010: "-", 0x2011: "-", 0x2012: "-", 0x2212: "-"}


def _result(hits: int, others: Sequence[str], reason: str = "absent") -> Found:
    return Found(hits > 0, "" if hits else reason, tuple(dict.fromkeys(others)))


def _number(fact: Fact, text: str) -> Found:
    wanted = parse_decimal(fact.value)
    assert wanted is not None
    tolerance = parse_decimal(fact.tolerance) or 0
    found = numerals(text, decimal=fact.decimal)
    near = [abs(n.value - wanted) <= tolerance for n in found]
    return _result(sum(near), [n.text for n, hit in zip(found, near, strict=True) if not hit])


def _money(fact: Fact, text: str) -> Found:
    wanted = parse_decimal(fact.value)
    assert wanted is not None
    unit = minor_unit(fact.currency)
    tolerance = parse_decimal(fact.tolerance) or 0

    def fits(numeral: Numeral) -> bool:
        if abs(numeral.value.quantize(unit) - wanted.quantize(unit)) > tolerance:
            return False
        if not numeral.currencies:
            return not fact.currency_required
        return fact.currency is None or fact.currency.upper() in numeral.currencies

    found = numerals(text, decimal=fact.decimal)
    hits = [fits(n) for n in found]
    return _result(sum(hits), [n.text for n, hit in zip(found, hits, strict=True) if not hit and n.currencies])


def _date(fact: Fact, text: str) -> Found:
    wanted = parse_day(str(fact.value))
    assert wanted is not None
    hits, others, unsure = 0, list[str](), False
    for said in dates(text, day_first=fact.day_first):
        if said.ambiguous:
            unsure = unsure or wanted in said.days
        elif wanted in said.days or (_fits_any_year(said, wanted) and not fact.year_required):
            hits += 1
        elif said.year is not None:
            others.append(said.text)
    return _result(hits, others, "ambiguous_date" if unsure else "absent")


def _fits_any_year(said: Said, wanted: date) -> bool:
    return said.year is None and said.month_day == (wanted.month, wanted.day)


def _id(fact: Fact, text: str) -> Found:
    wanted = re.sub(r"[-_\s]", "", plain_text(str(fact.value)).lstrip("#"))
    pieces = re.findall(r"\d+|[^\W\d_]+|.", wanted)
    shape = r"[-_ ]?".join(re.escape(piece) for piece in pieces)
    whole = r"(?<![^\W_])(?<![^\W_][-_]){}(?![-_]?[^\W_])"
    folded = text.casefold()
    hits = len(re.findall(whole.format(shape), folded))
    alike = r"[-_ ]?".join(_alike(piece) for piece in pieces)
    others = [m.group() for m in re.finditer(whole.format(alike), folded) if not re.fullmatch(shape, m.group())]
    return _result(hits, others)


def _alike(piece: str) -> str:
    if piece.isdigit():
        return rf"\d{{{len(piece)}}}"
    return rf"[^\W\d_]{{{len(piece)}}}" if piece.isalpha() else re.escape(piece)


_DROPPED = re.compile(r"[\s,./\-_*^\"'`´‘’“”„«»]")


def _text(fact: Fact, text: str) -> Found:
    return _result(plain_text(str(fact.value)) in plain_text(text), ())


def plain_text(text: str) -> str:
    """The text as kind ``text`` compares it: without case, spaces, quotes and marks between words."""
    return _DROPPED.sub("", unicodedata.normalize("NFKC", text).casefold())


def _pattern(fact: Fact, text: str) -> Found:
    return _result(searched(str(fact.value), text), ())


_FINDERS: dict[str, Any] = {
    "number": _number,
    "money": _money,
    "date": _date,
    "id": _id,
    "text": _text,
    "pattern": _pattern,
}
