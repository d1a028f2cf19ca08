"""Doubles, loops and facts on sessions that others recorded."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from playhead.core.argument_schema import argument_errors
from playhead.core.effects import Double, ToolEffect, doubles
from playhead.core.evaluation import failed, final_text, texts, tool_calls
from playhead.core.facts.named import Fact, find
from playhead.core.loops import longest_failing_run, loops, repeated_failures
from playhead.core.values import Node, Session
from playhead.importers import import_paths
from playhead.store.memory import MemoryStore
from playhead.store.ports import SessionQuery
from playhead.testing.sessions import a_tool_call

WRITES = {"book_reservation", "send_certificate"}
DECLARED_BOOKING = {
    "class": "write",
    "financial": True,
    "effect_key": ["/user_id", "/origin", "/destination", "/flight_type", "/flights", "/passengers"],
    "undone_by": [{"tool": "cancel_reservation", "where": {"/reservation_id": {"$result": "/reservation_id"}}}],
}
Recorded = dict[tuple[int, int], tuple[Session, list[Node]]]


@pytest.fixture(scope="module")
def airline(shared_data: Path) -> Recorded:
    """Sessions and their nodes by task and trial."""
    store = MemoryStore()
    import_paths(store, [shared_data / "tau-bench" / "gpt-4o-airline.json"])
    page = store.sessions.find(SessionQuery(), limit=200)
    return {(s.metadata["task_id"], s.metadata["trial"]): (s, store.sessions.nodes(s.id)) for s in page.items}


@pytest.fixture(scope="module")
def schemas(shared_data: Path) -> dict[str, Any]:
    tools = json.loads((shared_data / "tau-bench" / "tools-airline.json").read_text())
    return {t["function"]["name"]: t["function"]["parameters"] for t in tools}


def classes(names: Any, *, booking: bool = False) -> dict[str, ToolEffect]:
    found: dict[str, ToolEffect] = {}
    for name in names:
        kind = "write" if name in WRITES or name.startswith("update_reservation") else "read"
        kind = "destructive" if name == "cancel_reservation" else kind
        found[name] = ToolEffect.model_validate({"class": kind, "bookkeeping": name == "think"})
    if booking:
        found["book_reservation"] = ToolEffect.model_validate(DECLARED_BOOKING)
    return found


def every_double(airline: Recorded, effects: dict[str, ToolEffect]) -> Iterator[tuple[tuple[int, int], Double]]:
    for place, (_, nodes) in airline.items():
        for double in doubles(tool_calls(nodes), effects):
            yield place, double


def reservation(node: Node) -> str:
    assert node.outcome is not None
    value = node.outcome.value
    return (json.loads(value) if isinstance(value, str) else value)["reservation_id"]


def test_the_double_booking_as_declared(airline: Recorded, schemas: dict[str, Any]) -> None:
    found = list(every_double(airline, classes(schemas, booking=True)))
    assert [(place, reservation(d.first), reservation(d.second), d.kind) for place, d in found] == [
        ((0, 3), "HATHAT", "HATHAU", "compensated"),
        ((0, 3), "HATHAT", "HATHAV", "standing"),
    ]


def test_the_double_booking_by_classes_alone(airline: Recorded, schemas: dict[str, Any]) -> None:
    found = list(every_double(airline, classes(schemas)))
    assert [(place, reservation(d.first), reservation(d.second), d.kind) for place, d in found] == [
        ((0, 3), "HATHAU", "HATHAV", "touched")
    ]


def test_without_declarations_everything_equal_is_told_and_nothing_counted(airline: Recorded) -> None:
    found = list(every_double(airline, {}))
    assert {d.kind for _, d in found} == {"undeclared"}
    groups = Counter((place, d.second.call.key) for place, d in found if d.second.call is not None)
    assert (len(groups), len({place for place, _ in groups})) == (10, 8)
    pairs = [(place, reservation(d.second)) for place, d in found if d.second.name == "book_reservation"]
    assert pairs == [((0, 3), "HATHAV")]


def test_a_repetition_that_was_asked_for(shared_data: Path) -> None:
    lines = (shared_data / "agentdojo-groundtruth" / "banking.sessions.jsonl").read_text().splitlines()
    record = next(r for r in map(json.loads, lines) if r["id"] == "banking/injection/injection_task_6")
    asked = [call for message in record["messages"] for call in message.get("tool_calls") or ()]
    calls = [
        a_tool_call(n, c["function"]["name"], json.loads(c["function"]["arguments"]), "sent")
        for n, c in enumerate(asked)
    ]
    effects = {"send_money": ToolEffect.model_validate({"class": "write", "financial": True})}
    assert [d.kind for d in doubles(calls, effects) if d.first.name == "send_money"] == ["standing", "standing"]
    assert [d for d in doubles(calls, effects, repeat_ok=3) if d.first.name == "send_money"] == []


def test_loops_in_recordings(airline: Recorded) -> None:
    def thinks(node: Node) -> bool:
        return node.name == "think"

    most = {
        place: max((len(c) for c in repeated_failures(tool_calls(nodes), at_least=2).values()), default=0)
        for place, (_, nodes) in airline.items()
    }
    assert {p: n for p, n in most.items() if n >= 3} == {(13, 0): 3, (8, 1): 3, (9, 2): 4, (11, 2): 3}
    assert sum(n == 2 for n in most.values()) == 6
    found = {p for p, (_, nodes) in airline.items() if loops(tool_calls(nodes), skip=thinks)}
    assert found == {(13, 0), (8, 1), (9, 2), (11, 2)}
    runs = {
        p: longest_failing_run([n for n in tool_calls(nodes) if not thinks(n)]) for p, (_, nodes) in airline.items()
    }
    assert {p: n for p, n in runs.items() if n >= 4} == {
        (3, 0): 5, (9, 2): 5, (13, 0): 4, (23, 1): 4, (23, 3): 4,
    }  # fmt: skip


def test_every_argument_is_valid_although_most_sessions_fail(airline: Recorded, schemas: dict[str, Any]) -> None:
    calls = [n for _, nodes in airline.values() for n in tool_calls(nodes)]
    assert (len(calls), len({n.name for n in calls})) == (810, 14)
    assert [e for n in calls if n.call is not None for e in argument_errors(schemas[n.name], n.call.arguments)] == []
    assert sum(map(failed, calls)) == 67


@pytest.mark.parametrize("where", ["any", "final"])
def test_outcome_facts_on_real_answers(airline: Recorded, where: str) -> None:
    found: dict[int, dict[int, list[str]]] = {}
    for (task, trial), (session, nodes) in sorted(airline.items()):
        for text in session.metadata.get("expected_outputs") or ():
            said = final_text(session, nodes) if where == "final" else "\n".join(texts(nodes))
            fact = Fact.model_validate({"name": text, "as": "number", "value": text})
            if find(fact, said).found:
                found.setdefault(task, {}).setdefault(trial, []).append(text)
    trials = {1: ["23553"], 2: ["23553"]} if where == "any" else {1: ["23553"]}
    assert found == {2: trials, 8: {1: ["327", "1000"]}, 9: {2: ["327"]}}
