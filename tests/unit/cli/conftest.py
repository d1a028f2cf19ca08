"""A store in memory with one small session, and a way to call a command on it as the command line does."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from playhead.cli.context import Context
from playhead.cli.output import Result
from playhead.cli.run import call, find_command
from playhead.core.values import (
    AgentVersion,
    Cost,
    Mark,
    ModelCall,
    Node,
    NodeKind,
    Origin,
    Outcome,
    OutcomeKind,
    RunSpec,
    Session,
    SessionStatus,
    ToolCall,
    Usage,
)
from playhead.store.memory import MemoryStore

SECOND = 1_000_000_000
START = 1_760_000_000 * SECOND


def session_id(number: int) -> str:
    return f"0190aaaa-0000-7000-8000-{number:012x}"


def make_session(number: int, **changes: Any) -> Session:
    values: dict[str, Any] = {
        "id": session_id(number),
        "agent": "desk",
        "started_at": START + number * SECOND,
        "ended_at": START + number * SECOND + SECOND // 2,
        "status": SessionStatus.COMPLETED,
        "inputs": {"prompt": f"refund order {number}"},
        "output": "done",
        "usage": Usage(input_uncached=100, input_cache_read=20, output_visible=7),
        "cost": Cost(amount="0.0031"),
    }
    return Session(**{**values, **changes})


def make_nodes(number: int, *, order_id: str = "4821") -> list[Node]:
    id, at = session_id(number), START + number * SECOND
    asked = Node(
        id=f"{id}-m", session_id=id, seq=1, kind=NodeKind.MODEL_CALL, name="chat", started_at=at, ended_at=at + 1000,
        inputs={"messages": [{"role": "user", "parts": [{"type": "text", "text": "refund"}]}]},
        model=ModelCall(requested="gpt-x"),
        outcome=Outcome(kind=OutcomeKind.VALUE, value={"role": "assistant", "parts": []}),
    )  # fmt: skip
    called = Node(
        id=f"{id}-t", session_id=id, seq=2, kind=NodeKind.TOOL_CALL, name="refund", started_at=at + 2000,
        ended_at=at + 9000, call=ToolCall(tool="refund", arguments={"order_id": order_id}, mark=Mark.NATIVE),
        outcome=Outcome(kind=OutcomeKind.VALUE, value="refund issued"),
    )  # fmt: skip
    inner = Node(
        id=f"{id}-i", session_id=id, seq=3, kind=NodeKind.TOOL_CALL, name="ledger", started_at=at + 3000,
        ended_at=at + 4000, parent_id=called.id, call=ToolCall(tool="ledger", arguments={}, mark=Mark.MISSING),
        outcome=None,
    )  # fmt: skip
    return [asked, called, inner]


@pytest.fixture
def store() -> MemoryStore:
    made = MemoryStore()
    for number in (1, 2):
        made.sessions.put(make_session(number), make_nodes(number))
    made.sessions.put(
        make_session(3, agent="other", origin=Origin.IMPORT, status=SessionStatus.FAILED, tags=("nightly",)), []
    )
    made.agents.register(
        AgentVersion(
            id="0190bbbb-0000-7000-8000-000000000001", agent="desk", number=1, created_at=START,
            run_spec=RunSpec(entry_point="desk.main:handle", env=("DESK_REGION",)),
            fingerprint={"commit": "0123456789abcdef", "dirty": None}, capabilities={"overrides": True},
        )
    )  # fmt: skip
    return made


@dataclass
class Shown:
    result: Result
    text: str
    json: Any


@pytest.fixture
def command(store: MemoryStore, capsys: pytest.CaptureFixture[str]) -> Callable[..., Shown]:
    """Runs ``command("session list", "--limit", "1")`` on the store and renders what it gives in both forms."""
    from playhead.cli.output import emit

    def run(*words: str) -> Shown:
        found = find_command([part for word in words[:1] for part in word.split()] + list(words[1:]))
        assert not isinstance(found, str)
        name, function, rest = found
        result = call(name, function, rest, Context(opened=store))
        assert isinstance(result, Result)
        import io

        text, data = io.StringIO(), io.StringIO()
        emit(result, "text", text)
        emit(result, "json", data)
        return Shown(result, text.getvalue(), json.loads(data.getvalue()) if result.raw is None else None)

    return run
