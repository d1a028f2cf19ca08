"""A dialogue kept as one message list: each answer in it is a model call whose request is everything before it."""

from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from typing import Any

from playhead.core.assemble.dialogue import message_id
from playhead.core.assemble.records import ModelFacts, Record, RecordError
from playhead.core.assemble.spelling import token, within_depth
from playhead.core.canonical import NoKeyError, digest, render
from playhead.core.protocol.messages import detect
from playhead.core.values import JSON, NodeKind


def read_messages(raw: Sequence[JSON], about: str = "", depth: int = 200) -> list[JSON]:
    """The messages in normal form.

    Raises:
        RecordError: ``too_deep``, or ``undecodable`` with the place of the first message that is none.
    """
    if not within_depth(raw, depth):
        raise RecordError("too_deep", f"messages nest deeper than {depth}", about)
    found = detect(list(raw))
    if found is None:
        bad = next((i for i, m in enumerate(raw) if not detect([m])), 0)
        raise RecordError("undecodable", f"message {bad} has no known shape", about, position=f"/messages/{bad}")
    return found


def transcript_records(
    messages: Sequence[JSON],
    *,
    model: str | None = None,
    tools: Sequence[JSON] | None = None,
    tool_choice: JSON = None,
    params: dict[str, JSON] | None = None,
    protocol: str | None = None,
    scripted: Collection[int] = (),
) -> list[Record]:
    """The model calls of a dialogue, in order. ``scripted`` are places of answers that no model gave."""
    return [
        Record(
            external_id=message_id(place),
            kind=NodeKind.MODEL_CALL,
            word="assistant",
            name=model or "model call",
            model=ModelFacts(
                messages=list(messages[:place]),
                response=message,
                tools=tools,
                tool_choice=tool_choice,
                params=params,
                requested=model,
                protocol=protocol,
            ),
        )
        for place, message in enumerate(messages)
        if message["role"] == "assistant" and place not in scripted
    ]


def transcript_id(messages: Sequence[JSON]) -> str:
    """What names a transcript that has no id of its own."""
    try:
        return digest(list(messages)).hex()
    except NoKeyError:  # arguments that nest too deeply: their own text names them
        return sha256(render(list(messages))).hexdigest()


def continues(messages: Sequence[JSON], stored: Mapping[str, Any], answer: JSON) -> bool:
    """Whether a dialogue begins with a stored one, given its last model call's request and answer."""
    known = [*(stored.get("messages") or ()), answer]
    return len(messages) >= len(known) and all(token(a) == token(b) for a, b in zip(known, messages, strict=False))
