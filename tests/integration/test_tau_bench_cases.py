"""Labels that recorded sessions give for nothing: weak ones of confirmed sessions, mined ones of corrected failures."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from playhead.core.capture import Captured, CaptureOptions, capture
from playhead.core.effects import ToolEffect
from playhead.core.protocol.openai_chat import read_tool
from playhead.core.suites.labels import check_label, read_label
from playhead.core.suites.suite import ToolSchema, schemas
from playhead.importers import import_paths
from playhead.store.memory import MemoryStore
from playhead.store.ports import SessionQuery

THINK = {"think": ToolEffect.model_validate({"class": "read", "bookkeeping": True})}
Recorded = tuple[MemoryStore, list[ToolSchema]]


@pytest.fixture(scope="module")
def airline(shared_data: Path) -> Recorded:
    store = MemoryStore()
    import_paths(store, [shared_data / "tau-bench" / "gpt-4o-airline.json"])
    listed = json.loads((shared_data / "tau-bench" / "tools-airline.json").read_text("utf-8"))
    return store, [ToolSchema.model_validate(read_tool(t)) for t in listed]


def captured(airline: Recorded, effects: dict[str, Any] | None = None) -> Captured:
    store, tools = airline
    found = Captured()
    for session in store.sessions.find(SessionQuery(), limit=200).items:
        verdicts = store.sessions.verdicts(session.id)
        options = CaptureOptions(tools=tools, effects=effects or {})
        capture(found, session, store.sessions.nodes(session.id), verdicts, options)
    return found


@pytest.fixture(scope="module")
def declared(airline: Recorded) -> Captured:
    return captured(airline, THINK)


@pytest.fixture(scope="module")
def undeclared(airline: Recorded) -> Captured:
    return captured(airline)


def kinds(found: Captured, state: str) -> Counter[str]:
    return Counter(entry.label["kind"] for entry in found.labels if entry.state == state)


def test_t04_weak_labels_of_confirmed_sessions(declared: Captured, undeclared: Captured) -> None:
    assert len(declared.confirmed) == 36
    assert kinds(declared, "weak") == {"call": 156, "no_tool": 248}
    assert kinds(undeclared, "weak")["call"] == 172
    weak = {entry.case for entry in declared.labels if entry.state == "weak"}
    sessions = {case.source.session for case in declared.cases if case.id in weak}
    assert len(sessions) == 36
    assert {entry.confirmed_by for entry in declared.labels if entry.state == "weak"} == {"import:reward"}


def mined(found: Captured) -> tuple[int, int, int]:
    entries = [entry for entry in found.labels if entry.state == "mined"]
    source = {case.id: case.source.session for case in found.cases}
    return len(entries), len({source[e.case] for e in entries}), len({e.chain for e in entries})


def test_t06_recovery_cases_are_mined_from_failures_that_were_corrected(
    declared: Captured, undeclared: Captured
) -> None:
    assert mined(undeclared) == (37, 24, 26)
    assert mined(declared) == (38, 25, 27)
    entries = [entry for entry in undeclared.labels if entry.state == "mined"]
    assert Counter(entry.label["calls"][0]["tool"] for entry in entries) == {
        "update_reservation_flights": 23, "book_reservation": 13, "update_reservation_baggages": 1,
    }  # fmt: skip
    assert sum(entry.confirmed_by is not None for entry in entries) == 5
    assert all(entry.reason for entry in entries if entry.confirmed_by is None)
    assert undeclared.mining == {"corrected": 37, "failed again": 12, "last call": 3, "never corrected": 15}


def test_t06_a_recovery_case_ends_with_the_failure_and_its_label_validates(undeclared: Captured) -> None:
    cases = {case.id: case for case in undeclared.cases}
    for entry in undeclared.labels:
        case = cases[entry.case]
        if entry.state == "mined":
            last = case.history[-1]
            assert last.role == "tool"
            assert last.outcome is not None
            assert str(last.outcome["value"]).startswith("Error")
        assert check_label(read_label(entry.label), schemas(case, undeclared.tools)) == []


def test_a_case_holds_everything_before_its_turn_and_every_round_after_it(declared: Captured) -> None:
    case = next(c for c in declared.cases if c.id == "gpt-4o-airline/3/0:3")
    assert [m.role for m in case.history] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert [c.tool for one in case.recorded for c in one.calls][:2] == ["get_user_details", "get_reservation_details"]
    ids = [c.id for one in case.recorded for c in one.calls]
    assert ids == [f"c{n + 1}" for n in range(len(ids))]
    assert all(set(one.outcomes) == {c.id for c in one.calls} for one in case.recorded)
    assert case.answer
    assert len(case.tools) == 14


def test_ids_of_calls_are_unique_in_a_case_though_the_recording_repeats_them(declared: Captured) -> None:
    for case in declared.cases:
        before = [c.id for m in case.history for c in m.calls]
        after = [c.id for one in case.recorded for c in one.calls]
        assert len({*before, *after}) == len(before) + len(after)
        answered = [m.call_id for m in case.history if m.role == "tool"]
        assert answered == before


def test_cases_of_one_session_share_a_slice(declared: Captured) -> None:
    slices: dict[str | None, set[str]] = {}
    for case in declared.cases:
        slices.setdefault(case.source.session, set()).add(case.slice)
    assert {len(found) for found in slices.values()} == {1}
    held_back = sum("held_back" in found for found in slices.values())
    assert 10 <= held_back <= 40  # about a fifth of 120


def test_sessions_without_schemas_are_refused_by_name(airline: Recorded) -> None:
    store, _ = airline
    session = store.sessions.find(SessionQuery(), limit=1).items[0]
    found = Captured()
    capture(found, session, store.sessions.nodes(session.id))
    assert found.cases == []
    assert {one.why for one in found.skipped} == {"no tool schemas were captured"}
    assert found.skipped[0].what.startswith("gpt-4o-airline/")
