"""Facts that a case could be held to: what stands in the recorded results and in the recorded answer."""

import re
from collections.abc import Iterator
from typing import Final

from playhead.core.evaluation import as_text
from playhead.core.facts.dates import dates
from playhead.core.facts.named import Fact, find
from playhead.core.facts.numbers import numerals
from playhead.core.suites.messages import outcome_of, shown_outcome
from playhead.core.suites.suite import Case

_ID: Final = re.compile(r"#?(?=[\w-]*\d)(?=[\w-]*[^\W\d_])[^\W_](?:[\w-]*[^\W_])?")
_MOST: Final = 12


def propose_facts(case: Case) -> list[Fact]:
    """Ids, money, dates and numbers that both the recorded outcomes and the recorded answer state."""
    if not case.answer or not case.recorded:
        return []
    shown = [as_text(shown_outcome(outcome_of(one, call.id))) for one in case.recorded for call in one.calls]
    results = "\n".join(text.replace('"', " ") for text in shown)
    found: list[Fact] = []
    for fact in _stated(case.answer):
        if any(fact.kind == known.kind and str(fact.value) == str(known.value) for known in found):
            continue
        loose = fact.model_copy(update={"currency": None}) if fact.kind == "money" else fact
        if find(loose, results).found and find(fact, case.answer).found:
            found.append(fact.model_copy(update={"name": f"{fact.kind}_{len(found) + 1}"}))
    return found[:_MOST]


def _stated(answer: str) -> Iterator[Fact]:
    days: set[str] = set()
    for said in dates(answer):
        if not said.ambiguous and said.year is not None and len(said.days) == 1:
            days.add(said.text)
            yield _fact("date", next(iter(said.days)).isoformat())
    ids = [match.group() for match in _ID.finditer(answer) if not any(match.group() in day for day in days)]
    for id in ids:
        yield _fact("id", id.lstrip("#"))
    for numeral in numerals(answer):
        if any(numeral.text in day for day in days):
            continue
        if len(numeral.currencies) >= 1:
            currency = {"currency": next(iter(numeral.currencies))} if len(numeral.currencies) == 1 else {}
            yield _fact("money", format(numeral.value, "f"), **currency)
        elif abs(numeral.value) >= 10:
            yield _fact("number", format(numeral.value, "f"))


def _fact(kind: str, value: str, **more: str) -> Fact:
    return Fact.model_validate({"name": kind, "as": kind, "value": value, **more})
