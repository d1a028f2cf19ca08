"""Sessions and nodes that the suites store."""

from collections.abc import Sequence
from typing import Any

from playhead.core.values import (
    JSON,
    Cost,
    ModelCall,
    Node,
    NodeKind,
    Outcome,
    OutcomeKind,
    Session,
    ToolCall,
    Usage,
)

START = 1_790_000_000_000_000_000


def session_id(number: int) -> str:
    """Ids as they are in life: made at one time, they share their beginning and differ at the end."""
    return f"0197c0de-0000-7000-8000-{number:012x}"


def a_session(number: int = 1, **changes: Any) -> Session:
    values: dict[str, Any] = {"id": session_id(number), "agent": "support", "started_at": START + number}
    return Session(**{**values, **changes})


def tool_call(
    session: str, seq: int, *, key: str | None = None, value: JSON = "ok", tool: str = "lookup", **changes: Any
) -> Node:
    values: dict[str, Any] = {
        "id": f"{session}-n{seq}",
        "session_id": session,
        "seq": seq,
        "kind": NodeKind.TOOL_CALL,
        "name": tool,
        "started_at": START + seq,
        "ended_at": START + seq + 5,
        "call": ToolCall(tool=tool, arguments={"q": seq}, key=key, call_id=f"call_{seq}"),
        "outcome": Outcome(kind=OutcomeKind.VALUE, value=value),
    }
    return Node(**{**values, **changes})


def model_call(session: str, seq: int, messages: Sequence[JSON], *, tools: JSON = None, **changes: Any) -> Node:
    inputs: dict[str, JSON] = {"messages": messages, "params": {"temperature": 0.5, "stop": None}}
    if tools is not None:
        inputs["tools"] = tools
    values: dict[str, Any] = {
        "id": f"{session}-n{seq}",
        "session_id": session,
        "seq": seq,
        "kind": NodeKind.MODEL_CALL,
        "name": "model",
        "started_at": START + seq,
        "ended_at": START + seq + 5,
        "inputs": inputs,
        "outcome": Outcome(kind=OutcomeKind.VALUE, value=message("assistant", f"answer {seq}")),
        "model": ModelCall(requested="m", usage=Usage(input_uncached=3, raw={"in": 3}), cost=Cost(amount="0.01")),
    }
    return Node(**{**values, **changes})


def message(role: str, text: str) -> dict[str, JSON]:
    return {"role": role, "parts": [{"type": "text", "text": text}]}


def schemas(size: int = 20) -> list[JSON]:
    return [{"name": f"tool_{n}", "description": "does " + "this and that " * 5, "parameters": {}} for n in range(size)]
