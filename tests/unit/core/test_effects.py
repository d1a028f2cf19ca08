"""Effects that a session had twice."""

from dataclasses import replace
from typing import Any

import pytest

from playhead.core.effects import ToolEffect, doubles, retry_safe
from playhead.core.values import (
    Effect,
    ErrorInfo,
    Node,
    NodeStatus,
    Outcome,
    OutcomeKind,
    Provenance,
)
from playhead.testing.sessions import a_tool_call

TIMED_OUT = Outcome(kind=OutcomeKind.ERROR, error=ErrorInfo(class_name="ReadTimeout"))
REFUSED = Outcome(kind=OutcomeKind.ERROR, error=ErrorInfo(class_name="ValueError"))


def declared(**fields: Any) -> ToolEffect:
    return ToolEffect.model_validate({"class": "write", **fields})


EFFECTS = {
    "pay": declared(financial=True, idempotency_key="/request"),
    "look": declared(**{"class": "read"}),
    "book": declared(
        effect_key=["/user", "/flight"],
        undone_by=[{"tool": "cancel", "where": {"/id": {"$result": "/id"}}}],
    ),
    "cancel": declared(**{"class": "destructive"}),
    "set": declared(idempotent=True),
    "note": declared(bookkeeping=True),
}


def session(*calls: tuple[Any, ...]) -> list[Node]:
    nodes: list[Node] = []
    for seq, (tool, arguments, *result) in enumerate(calls):
        given = result[0] if result else "ok"
        outcome = given if isinstance(given, Outcome) else None
        nodes.append(a_tool_call(seq, tool, arguments, None if outcome else given, outcome=outcome))
    return nodes


def kinds(*calls: tuple[Any, ...], **more: Any) -> list[str]:
    return [double.kind for double in doubles(session(*calls), EFFECTS, **more)]


def book(flight: str, id: str, user: str = "mia", **more: Any) -> tuple[Any, ...]:
    return ("book", {"user": user, "flight": flight, **more}, {"id": id})


@pytest.mark.parametrize(
    ("calls", "found"),
    [
        ([("pay", {"to": "a"}), ("pay", {"to": "a"})], ["standing"]),
        ([("pay", {"to": "a"}), ("pay", {"to": "b"})], []),
        ([("pay", {"to": "a"}), ("pay", {"to": "a"}), ("pay", {"to": "a"})], ["standing"] * 2),
        ([("look", {}), ("look", {})], []),
        ([("set", {"a": 1}), ("set", {"a": 1})], []),
        ([("note", {}), ("note", {})], []),
        ([("pay", {"to": "a"}, REFUSED), ("pay", {"to": "a"})], []),
        ([("pay", {"to": "a", "request": "1"}), ("pay", {"to": "a", "request": "1"})], []),
        ([("pay", {"to": "a", "request": "1"}), ("pay", {"to": "a", "request": "2"})], ["standing"]),
        ([("other", {}), ("other", {})], ["undeclared"]),
        ([book("F1", "A", seat=1), book("F1", "B", seat=2)], ["standing"]),
        ([book("F1", "A"), ("cancel", {"id": "A"}), book("F1", "B")], []),
        ([book("F1", "A"), book("F1", "B"), ("cancel", {"id": "B"})], ["compensated"]),
        ([book("F1", "A"), book("F1", "B"), ("cancel", {"id": "A"})], ["compensated"]),
        ([book("F1", "A"), book("F1", "B"), ("cancel", {"id": "Z"})], ["standing"]),
        ([book("F1", "A"), book("F1", "B"), ("cancel", {"id": "A"}, REFUSED)], ["standing"]),
    ],
)
def test_doubles(calls: list[tuple[Any, ...]], found: list[str]) -> None:
    assert kinds(*calls) == found


@pytest.mark.parametrize("gone", ["A", "B", "C"])
def test_of_three_effects_and_one_undone_exactly_one_double_stands(gone: str) -> None:
    calls = [book("F1", "A"), book("F1", "B"), book("F1", "C"), ("cancel", {"id": gone})]
    assert sorted(kinds(*calls)) == ["compensated", "standing"]


def test_the_results_of_tools_that_give_json_text_are_read() -> None:
    calls = [("book", {"user": "m", "flight": "F"}, '{"id": "A"}'), ("cancel", {"id": "A"})]
    assert kinds(*calls, ("book", {"user": "m", "flight": "F"}, '{"id": "B"}')) == []


def test_so_many_as_were_asked_for_are_no_double() -> None:
    three = [("pay", {"to": "a"})] * 3
    assert kinds(*three, repeat_ok=3) == []
    assert kinds(*three, repeat_ok=2) == ["standing"]


@pytest.mark.parametrize(
    "unseen",
    [
        TIMED_OUT,
        Outcome(kind=OutcomeKind.ERROR, error=ErrorInfo(class_name="HTTPError", status=504)),
        Outcome(kind=OutcomeKind.INTERRUPT),
    ],
)
def test_a_call_that_nobody_saw_the_end_of_counts_until_a_read_verifies(unseen: Outcome) -> None:
    pay = ("pay", {"to": "a"}, unseen)
    assert kinds(pay, ("pay", {"to": "a"})) == ["standing"]
    assert kinds(pay, pay) == ["standing"]
    assert kinds(pay, ("look", {}), ("pay", {"to": "a"})) == []
    assert kinds(pay, ("look", {}, REFUSED), ("pay", {"to": "a"})) == ["standing"]


def test_injected_damage_is_an_unseen_end_and_a_canceled_call_too() -> None:
    hidden = a_tool_call(0, "pay", {"to": "a"}, "{", call={"provenance": Provenance(by="injected", detail="malformed")})
    again = a_tool_call(1, "pay", {"to": "a"}, "ok")
    assert [d.kind for d in doubles([hidden, again], EFFECTS)] == ["standing"]
    cut_off = replace(hidden, outcome=None, status=NodeStatus.CANCELLED)
    assert [d.kind for d in doubles([cut_off, again], EFFECTS)] == ["standing"]


def test_the_recorded_class_counts_where_nothing_is_declared() -> None:
    calls = [a_tool_call(n, "send", {"x": 1}, "ok", call={"effect": Effect.WRITE}) for n in range(2)]
    assert [d.kind for d in doubles(calls)] == ["standing"]
    calls = [a_tool_call(n, "send", {"x": 1}, "ok", call={"effect": Effect.READ}) for n in range(2)]
    assert doubles(calls) == []


def test_a_write_between_that_names_the_first_result_is_told() -> None:
    write = {"class": "write"}
    effects = {name: ToolEffect.model_validate(write) for name in ("order", "close")}
    effects["look"] = declared(**{"class": "read"})
    first, again = ("order", {"n": 1}, {"order_id": "O-1"}), ("order", {"n": 1}, {"order_id": "O-2"})

    def found(*between: tuple[Any, ...]) -> list[str]:
        return [d.kind for d in doubles(session(first, *between, again), effects)]

    assert found() == ["standing"]
    assert found(("close", {"id": "O-1"})) == ["touched"]
    assert found(("look", {"id": "O-1"})) == ["standing"]
    assert found(("close", {"id": "O-9"})) == ["standing"]


def test_what_may_be_repeated() -> None:
    assert retry_safe(EFFECTS["look"], {})
    assert retry_safe(EFFECTS["set"], {})
    assert retry_safe(EFFECTS["pay"], {"request": "r"})
    assert not retry_safe(EFFECTS["pay"], {})
