"""Upkeep: new cases from recent sessions and the retirement of old ones, planned before they are done."""

from typing import Any

import pytest

from playhead.core.suites.contents import Contents
from playhead.core.suites.suite import Suite
from playhead.core.values import ModelCall, Node, NodeKind, Outcome, OutcomeKind, Session, SessionStatus
from playhead.engine.suites.build import build
from playhead.engine.suites.location import StoredSuite
from playhead.engine.suites.upkeep import (
    apply_refresh,
    apply_retirement,
    plan_refresh,
    plan_retirement,
    propose_retirement,
    quotas,
)
from playhead.errors import UsageError
from playhead.store.memory import MemoryStore

DAY = 86_400_000_000_000
NOW = 20_000 * DAY
TOOL = {"name": "look", "description": "", "parameters": {"type": "object", "properties": {}}}


def session(store: MemoryStore, number: int, *, age: int, said: str, intent: str, tool: str = "look") -> None:
    id = f"s{number:03}"
    at = NOW - age * DAY
    made = Session(
        id=id, agent="desk", started_at=at, status=SessionStatus.COMPLETED, metadata={"intent": intent}, inputs=said
    )
    request = {
        "messages": [{"role": "user", "parts": [{"type": "text", "text": said}]}],
        "tools": [{**TOOL, "name": tool}],
        "params": {},
    }
    answer = {"role": "assistant", "parts": [{"type": "text", "text": "Yes."}]}
    node = Node(
        id=f"{id}-m", session_id=id, seq=1, kind=NodeKind.MODEL_CALL, name="model call", started_at=at, inputs=request,
        outcome=Outcome(kind=OutcomeKind.VALUE, value=answer), model=ModelCall(requested="m"),
    )  # fmt: skip
    store.sessions.put(made, [node])


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    for n in range(3):
        session(store, n, age=200, said=f"old question {n}", intent="refund", tool="find")
    contents, _ = build(store, [f"s{n:03}" for n in range(3)], name="desk")
    store.suites.put(contents)
    return store


def refreshed(store: MemoryStore, **more: Any) -> Any:
    options = {"since": NOW - 30 * DAY, "now": NOW, "per_intent": 20, **more}
    return plan_refresh(store, store.suites.get("desk"), **options)


def test_a_refresh_takes_recent_sessions_by_intent_and_no_near_duplicates(store: MemoryStore) -> None:
    for n in range(10):
        session(store, 100 + n, age=5, said=f"Where is {n}?", intent="track")
    session(store, 200, age=5, said="  where is 3? ", intent="track")
    session(store, 201, age=5, said="Old question 1", intent="refund")
    session(store, 202, age=5, said="Refund me.", intent="refund")
    plan = refreshed(store, per_intent=4)
    assert plan.by_intent == {"track": 4, "refund": 1}
    assert (plan.sessions, plan.duplicates + plan.beyond) == (13, 8)
    assert plan.duplicates >= 1
    assert plan.new == refreshed(store, per_intent=4).new
    assert len(store.suites.get("desk").cases) == 3
    before = store.suites.get("desk")
    apply_refresh(StoredSuite(store, "desk"), before, plan)
    after = store.suites.get("desk")
    assert len(after.cases) == 8
    assert after.suite.intents["track"].traffic == round(11 / 13, 4)
    assert refreshed(store, per_intent=4).by_intent.get("refund") is None


def test_new_cases_are_shared_out_by_traffic(store: MemoryStore) -> None:
    for place, (intent, count) in enumerate((("track", 20), ("cancel", 10), ("praise", 3), ("odd", 1))):
        for n in range(count):
            session(store, 100 + 100 * place + n, age=5, said=f"{intent} {n}", intent=intent)
    assert refreshed(store, per_intent=10).by_intent == {"track": 10, "cancel": 5, "praise": 2, "odd": 1}


def test_every_intent_of_the_traffic_gets_a_case_where_any_does() -> None:
    assert quotas({"a": 1000, "b": 1}, 20) == {"a": 20, "b": 1}
    assert quotas({"a": 3, "b": 1}, 0) == {"a": 0, "b": 0}
    assert quotas({}, 20) == {}


def test_a_refresh_says_how_fresh_the_suite_is(store: MemoryStore) -> None:
    session(store, 100, age=5, said="Where is it?", intent="track")
    found = refreshed(store).freshness
    assert (found.median_age_days, found.older_than_90_days) == (200.0, 0.75)
    assert (found.intents_without_cases, found.intents_without_traffic) == ((), ("refund",))
    assert found.tools_no_longer_offered == ("find",)
    assert refreshed(store, per_intent=0).freshness.intents_without_cases == ("track",)


def test_a_suite_without_agents_needs_one_named(store: MemoryStore) -> None:
    store.suites.put(Contents(suite=Suite(name="empty")))
    with pytest.raises(UsageError, match="which agent"):
        plan_refresh(store, store.suites.get("empty"), since=0, now=NOW, per_intent=1)


def test_what_traffic_no_longer_has_is_proposed_for_retirement(store: MemoryStore) -> None:
    session(store, 100, age=5, said="Where is it?", intent="track")
    contents = store.suites.get("desk")
    plan, _ = propose_retirement(store, contents, since=NOW - 30 * DAY, now=NOW)
    assert set(plan.cases.values()) == {"intent refund"}
    assert len(plan.cases) == 3


def test_retired_cases_stay_with_their_reason_and_are_not_run(store: MemoryStore) -> None:
    from playhead.engine.suites.run import Selection, chosen

    contents = store.suites.get("desk")
    plan = plan_retirement(contents, ids=["s001:1"])
    home = StoredSuite(store, "desk")
    with pytest.raises(UsageError, match="reason"):
        apply_retirement(home, contents, plan, " ")
    apply_retirement(home, contents, plan, "no such orders any more")
    found = {case.id: (case.status, case.retired_because) for case in store.suites.get("desk").cases}
    assert found["s001:1"] == ("retired", "no such orders any more")
    assert found["s000:1"] == ("active", None)
    run = chosen(store.suites.get("desk"), Selection(slice="all", unlabelled=True))
    assert "s001:1" not in [case.id for case in run]
    with pytest.raises(UsageError, match="no active case 's001:1'"):
        plan_retirement(store.suites.get("desk"), ids=["s001:1"])


@pytest.mark.parametrize("given", [{"ids": ["x"]}, {"intents": ["x"]}, {"tools": ["x"]}])
def test_what_is_not_there_cannot_be_retired(store: MemoryStore, given: Any) -> None:
    with pytest.raises(UsageError, match="no active"):
        plan_retirement(store.suites.get("desk"), **given)


def test_cases_that_need_a_tool_are_found_by_their_calls() -> None:
    from playhead.testing.conformance.suites import a_suite

    contents = a_suite()
    assert set(plan_retirement(contents, tools=["look"]).cases) == {"a", "b", "c"}
