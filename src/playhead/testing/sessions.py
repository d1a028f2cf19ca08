"""Small sessions and nodes for tests, with ids and times that are the same in every run."""

from collections.abc import Mapping, Sequence
from typing import Any

from playhead.core.canonical import NoKeyError
from playhead.core.keys import call_key
from playhead.core.values import (
    JSON,
    Mark,
    ModelCall,
    Node,
    NodeKind,
    NodeStatus,
    NoKey,
    Origin,
    Outcome,
    OutcomeKind,
    Session,
    SessionStatus,
    ToolCall,
)

START = 1_700_000_000_000_000_000


def a_session(id: str = "s1", **fields: Any) -> Session:
    """A completed session of the agent ``desk``."""
    defaults: dict[str, Any] = {
        "agent": "desk",
        "started_at": START,
        "ended_at": START + 1_000_000,
        "origin": Origin.LIVE,
        "status": SessionStatus.COMPLETED,
        "inputs": "hello",
        "output": "done",
    }
    return Session(id=id, **{**defaults, **fields})


def a_tool_call(
    seq: int, tool: str, arguments: JSON, result: JSON = None, *, session: str = "s1", path: Sequence[str] = (),
    occurrence: int = 1, outcome: Outcome | None = None, mark: Mark = Mark.NATIVE, parent: str | None = None,
    call: Mapping[str, Any] | None = None, **fields: Any,
) -> Node:  # fmt: skip
    """A completed tool call with the key of its arguments. ``call`` sets fields of its `ToolCall`."""
    key, no_key = None, None
    try:
        key = call_key(tool, arguments)
    except NoKeyError as error:
        no_key: NoKey | None = error.no_key
    details: dict[str, Any] = {
        "tool": tool,
        "arguments": arguments,
        "key": key,
        "no_key": no_key,
        "path": tuple(path),
        "occurrence": occurrence,
        "mark": mark,
        **(call or {}),
    }
    others: dict[str, Any] = {"status": NodeStatus.COMPLETED, **fields}
    return Node(
        id=f"{session}-n{seq}",
        session_id=session,
        seq=seq,
        kind=NodeKind.TOOL_CALL,
        name=tool,
        started_at=START + seq * 1000,
        ended_at=START + seq * 1000 + 500,
        parent_id=parent,
        outcome=outcome or Outcome(kind=OutcomeKind.VALUE, value=result),
        call=ToolCall(**details),
        **others,
    )


def a_model_call(
    seq: int, messages: Sequence[JSON], text: str = "", *, session: str = "s1", key: str | None = None,
    model: Mapping[str, Any] | None = None, parent: str | None = None,
) -> Node:  # fmt: skip
    """A completed model call that answered with ``text``. ``model`` sets fields of its `ModelCall`."""
    details: dict[str, Any] = {"requested": "m", "key": key, **(model or {})}
    return Node(
        id=f"{session}-n{seq}",
        session_id=session,
        seq=seq,
        kind=NodeKind.MODEL_CALL,
        name="model",
        started_at=START + seq * 1000,
        ended_at=START + seq * 1000 + 500,
        parent_id=parent,
        inputs={"messages": list(messages), "tools": [], "tool_choice": None, "params": {}},
        outcome=Outcome(kind=OutcomeKind.VALUE, value={"role": "assistant", "parts": [{"type": "text", "text": text}]}),
        model=ModelCall(**details),
    )


def user(text: str) -> JSON:
    """A user message in the normal form."""
    return {"role": "user", "parts": [{"type": "text", "text": text}]}


def system(text: str) -> JSON:
    """A system message in the normal form."""
    return {"role": "system", "parts": [{"type": "text", "text": text}]}
