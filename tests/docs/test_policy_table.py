"""Each row of docs/choosing-a-policy.md does what it says, with the policy that the page prints."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pages import ROOT, blocks, headings

import playhead
from playhead.core.values import FidelityKind, ReplayStatus
from playhead.engine.project import Project, use_recorder
from playhead.engine.recorder import Recorder
from playhead.engine.settings import Settings
from playhead.errors import RefusedError
from playhead.store.memory import MemoryStore

PAGE = ROOT / "docs" / "choosing-a-policy.md"
LIVE: list[str] = []  # what really ran


@playhead.tool
def find_order(order_id: str) -> dict[str, Any]:
    LIVE.append("find_order")
    return {"order_id": order_id, "amount": 129.0}


@playhead.tool
def find_customer(order_id: str) -> str:
    LIVE.append("find_customer")
    return "c-17"


@playhead.tool
def get_current_time() -> str:
    LIVE.append("get_current_time")
    return f"tick {len(LIVE)}"


@playhead.tool
def issue_refund(order_id: str, amount: float) -> str:
    LIVE.append("issue_refund")
    return f"refund issued: ${amount:.2f}"


def desk(order_id: str) -> str:
    get_current_time()
    order = find_order(order_id)
    return issue_refund(order_id, order["amount"])


def curious_desk(order_id: str) -> str:
    """A version that asks for something that was never recorded, and copes with an error."""
    try:
        customer = find_customer(order_id)
    except Exception as error:
        customer = f"nobody ({type(error).__name__})"
    find_order(order_id)
    return f"handed over, for {customer}"


def generous_desk(order_id: str) -> str:
    return issue_refund(order_id, find_order(order_id)["amount"] * 2)


def policy_of(section: str) -> dict[str, Any]:
    """The JSON block below a heading of the page."""
    text = PAGE.read_text("utf-8")
    start = text[: text.index(f"\n## {section}\n")].count("\n") + 2
    return json.loads(next(block.text for block in blocks(PAGE, "json") if block.line > start))


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryStore]:
    """A store with one session of the desk."""
    store = MemoryStore()
    recorder = Recorder(store)
    before = use_recorder(recorder)
    playhead.agent("desk")(desk)("4821")
    recorder.flush()
    LIVE.clear()
    yield store
    use_recorder(before)
    recorder.close()


def replay(store: MemoryStore, agent: Any, section: str) -> playhead.ReplayResult:
    return playhead.replay("last", agent=agent, tool_policy=policy_of(section), store=store)


def by_tool(result: playhead.ReplayResult) -> dict[str | None, str]:
    return {row.tool: row.by for row in result.ledger if row.kind == "tool"}


def test_reproduce_faithfully(recorded: MemoryStore) -> None:
    result = replay(recorded, desk, "Reproduce faithfully")
    assert result.fidelity.kind is FidelityKind.FAITHFUL
    assert set(by_tool(result).values()) == {"served"}
    assert LIVE == []


def test_reproducing_stops_at_what_was_not_recorded(recorded: MemoryStore) -> None:
    result = replay(recorded, curious_desk, "Reproduce faithfully")
    assert result.status is ReplayStatus.FAILED
    assert result.error is not None
    assert "find_customer" in result.error.message
    assert LIVE == []


def test_a_fork_may_explore_by_reading(recorded: MemoryStore) -> None:
    result = replay(recorded, curious_desk, "A fork that may explore")
    assert result.status is ReplayStatus.COMPLETED
    assert by_tool(result)["find_customer"] == "missed"
    assert result.fidelity.kind is not FidelityKind.FAITHFUL
    assert str(result.output).startswith("handed over, for nobody")
    assert LIVE == []


def test_a_fork_that_writes_something_new_stops(recorded: MemoryStore) -> None:
    result = replay(recorded, generous_desk, "A fork that may explore")
    assert result.status is ReplayStatus.FAILED
    assert result.error is not None
    assert "/amount" in result.error.message
    assert LIVE == []


def test_a_counterfactual_changes_one_answer(recorded: MemoryStore) -> None:
    result = replay(recorded, desk, "A counterfactual")
    assert result.output == "refund refused: card expired"
    assert by_tool(result) == {"get_current_time": "served", "find_order": "served", "issue_refund": "static"}
    assert LIVE == []


def test_cheap_safe_reads_run_and_nothing_else(recorded: MemoryStore) -> None:
    result = replay(recorded, desk, "Cheap, safe reads")
    assert result.status is ReplayStatus.COMPLETED
    assert by_tool(result) == {"get_current_time": "live", "find_order": "served", "issue_refund": "served"}
    assert result.fidelity.kind is FidelityKind.UNPROVEN
    assert LIVE == ["get_current_time"]


def test_a_cohort_scope_needs_an_experiment(recorded: MemoryStore) -> None:
    with pytest.raises(RefusedError, match="cohort_version"):
        replay(recorded, desk, "A cohort as a regression suite")
    assert LIVE == []


def test_the_default_is_the_faithful_row(recorded: MemoryStore) -> None:
    stored = recorded.sessions.resolve("last")
    plan = playhead.Client(recorded, Project(root=ROOT, settings=Settings(), url="memory:")).replays.plan(
        playhead.ReplayCreateRequest(baseline_session_id=stored), inline=True
    )
    assert plan.policy == playhead.ToolPolicy.model_validate(policy_of("Reproduce faithfully"))


def test_every_row_of_the_table_has_a_section() -> None:
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| [")]
    assert len(rows) == len(headings(PAGE)) - 1 == 5
