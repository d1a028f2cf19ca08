"""``playhead replay list | get`` and the two comparisons."""

from collections.abc import Callable
from typing import Any

import pytest

from playhead.core.values import (
    Divergence,
    ErrorInfo,
    Fidelity,
    FidelityKind,
    LedgerRow,
    Replay,
    ReplayStatus,
    SessionStatus,
    Verdict,
)
from playhead.errors import NotFoundError, UsageError
from playhead.store.memory import MemoryStore

from .conftest import START, Shown, make_nodes, make_session, session_id

Run = Callable[..., Shown]
REPLAY = "0190cccc-0000-7000-8000-000000000001"


def add_replay(store: MemoryStore, **changes: Any) -> Replay:
    values: dict[str, Any] = {
        "id": REPLAY,
        "baseline_session_id": session_id(1),
        "result_session_id": session_id(2),
        "created_at": START,
        "status": ReplayStatus.COMPLETED,
        "fidelity": Fidelity(
            kind=FidelityKind.DIVERGED,
            divergence=Divergence(
                what="arguments", where="tool call 1 refund", pointers=("/order_id",), expected="4821", seen="4822"
            ),
        ),
        "ledger": (LedgerRow(kind="tool", by="served", tool="refund", arguments={"order_id": "4821"}),),
        "verdicts": (Verdict(name="fidelity", passed=False, evaluator="fidelity@1"),),
        "tool_policy": {"tools": {"refund": {"type": "history", "ignore": ["/order_id"]}}},
    }
    return store.replays.create(Replay(**{**values, **changes}))


def test_list_shows_status_and_fidelity(command: Run, store: MemoryStore) -> None:
    add_replay(store)
    listed = command("replay list")
    assert listed.json["items"][0]["fidelity"]["kind"] == "diverged"
    assert "ledger" not in listed.json["items"][0]
    assert "diverged" in listed.text


@pytest.mark.parametrize(("words", "found"), [(["--baseline", "000001"], 1), (["--baseline", "000002"], 0)])
def test_list_by_baseline(command: Run, store: MemoryStore, words: list[str], found: int) -> None:
    add_replay(store)
    assert len(command("replay list", *words).json["items"]) == found


def test_get_carries_every_member_that_a_script_may_look_for(command: Run, store: MemoryStore) -> None:
    add_replay(store)
    data = command("replay get").json
    assert {"id", "job_id", "status", "baseline_session_id", "result_session_id", "error"} <= set(data)
    assert data["error"] is None


def test_get_reads_from_the_answer_to_the_calls(command: Run, store: MemoryStore) -> None:
    add_replay(store, error=ErrorInfo(class_name="MissError", message="no recording", attributes={"hint": "allow it"}))
    text = command("replay get", REPLAY[-6:]).text
    for part in ("tool call 1 refund", "/order_id", "4821", "4822", "1 served", "MissError: no recording", "allow it"):
        assert part in text


def test_get_says_how_much_of_a_long_ledger_is_not_shown(command: Run, store: MemoryStore) -> None:
    add_replay(store, ledger=tuple(LedgerRow(kind="tool", by="served", tool=f"t{n}") for n in range(100)))
    assert "60 more rows" in command("replay get").text
    assert "t99" in command("replay get", "--full").text


def test_an_unknown_replay_is_not_found(command: Run) -> None:
    with pytest.raises(NotFoundError):
        command("replay get", "ffffffff")


def test_equal_sessions_have_no_difference(command: Run) -> None:
    shown = command("session diff", "000001", "000002", "--calls-only")
    assert shown.result.exit_code == 0
    assert shown.json["divergence"] is None
    assert "no difference in 3 aligned calls" in shown.text


def test_a_changed_argument_is_named_with_its_pointer(command: Run, store: MemoryStore) -> None:
    store.sessions.put(make_session(5), make_nodes(5, order_id="4822"))
    shown = command("session diff", "000001", "000005")
    assert shown.result.exit_code == 1
    assert shown.json["divergence"]["pointers"] == ["/order_id"]
    for part in ("refund", "/order_id", "4821", "4822"):
        assert part in shown.text


def test_a_changed_output_is_shown_as_a_diff(command: Run, store: MemoryStore) -> None:
    store.sessions.put(make_session(5, output="refused"), make_nodes(5))
    text = command("session diff", "000001", "000005").text
    assert "-done" in text
    assert "+refused" in text


def test_every_difference_says_why(command: Run, store: MemoryStore) -> None:
    nodes = make_nodes(5, order_id="4822")
    store.sessions.put(make_session(5, status=SessionStatus.FAILED, output="refused"), nodes)
    text = command("session diff", "000001", "000005").text
    assert "the baseline completed, the result failed" in text


def test_a_replay_is_compared_with_its_baseline_under_its_own_policy(command: Run, store: MemoryStore) -> None:
    store.sessions.put(make_session(5), make_nodes(5, order_id="4822"))
    add_replay(store, result_session_id=session_id(5))
    assert command("replay compare").json["divergence"] is None


def test_compare_takes_replays_and_sessions(command: Run, store: MemoryStore) -> None:
    add_replay(store)
    data = command("replay compare", session_id(1), REPLAY).json
    assert (data["baseline_id"], data["result_id"]) == (session_id(1), session_id(2))


def test_a_replay_without_a_result_cannot_be_compared(command: Run, store: MemoryStore) -> None:
    add_replay(store, result_session_id=None, status=ReplayStatus.FAILED)
    with pytest.raises(UsageError, match="failed"):
        command("replay compare")
    with pytest.raises(UsageError):
        command("replay compare", session_id(1), REPLAY)


def test_compare_of_neither_session_nor_replay_is_not_found(command: Run) -> None:
    with pytest.raises(NotFoundError):
        command("replay compare", "ffffffff", "eeeeeeee")
