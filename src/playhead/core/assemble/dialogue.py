"""Inputs, outputs and turns of a session, as the messages show them."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from playhead.core.assemble.draft import Draft
from playhead.core.protocol.parts import calls_of
from playhead.core.values import JSON, NodeKind


class DraftTurn(NamedTuple):
    input: JSON
    output: JSON
    nodes: tuple[Draft, ...]


class Dialogue(NamedTuple):
    turns: tuple[DraftTurn, ...]
    trailing: JSON


def input_of(messages: Sequence[JSON]) -> JSON:
    """User messages as an input: the text, or the parts when there is more than one text."""
    parts = [part for message in messages for part in message["parts"]]
    if len(parts) == 1 and parts[0]["type"] == "text":
        return parts[0]["text"]
    if not parts:
        return "" if messages else None
    return parts if all(m["role"] == "user" for m in messages) else list(messages)


def output_of(message: JSON) -> JSON:
    """What an answer says: its text, or the message when there is more; null when it asks for tools."""
    if message is None or calls_of(message):
        return None
    said = [p for p in message["parts"] if p["type"] != "reasoning"]
    if all(p["type"] == "text" for p in said):
        return "".join(p["text"] for p in said)
    return {"role": "assistant", "parts": said}


def system_of(messages: Iterable[JSON]) -> str | None:
    """The system text of a request."""
    texts = [
        p["text"] for m in messages if m["role"] == "system" for p in m["parts"] if p["type"] == "text" and p["text"]
    ]
    return "\n\n".join(texts) if texts else None


def first_input(model: Draft) -> JSON:
    """The messages of a model call before the first answer in them, without the system text."""
    facts = model.record.model
    if facts is None or facts.messages is None:
        return None
    before: list[JSON] = []
    for message in facts.messages:
        if message["role"] == "assistant":
            break
        if message["role"] != "system":
            before.append(message)
    return input_of(before) if before else None


def message_id(index: int) -> str:
    """The external id of the model call that a transcript's message is the answer of."""
    return f"m{index}"


def turns_of(transcript: Sequence[JSON], drafts: Sequence[Draft]) -> Dialogue:
    """One turn for each unbroken run of user messages that a model call follows.

    ``drafts`` are in order; model calls are told by `message_id`. User messages after the last one are trailing.
    """
    models = {d.record.external_id: d for d in drafts if d.kind is NodeKind.MODEL_CALL}
    starts: list[tuple[JSON, Draft]] = []  # input and first model call of each turn
    run: list[JSON] = []
    for index, message in enumerate(transcript):
        if message["role"] == "user":
            run.append(message)
            continue
        model = models.get(message_id(index)) if message["role"] == "assistant" else None
        if model is not None and (run or not starts):
            starts.append((input_of(run), model))
            run = []
    place = {id(d): i for i, d in enumerate(drafts)}
    edges = [place[id(model)] for _, model in starts] + [len(drafts)]
    turns = [
        DraftTurn(given, _answer(drafts[first:last]), tuple(drafts[first:last]))
        for (given, _), first, last in zip(starts, edges, edges[1:], strict=False)
    ]
    return Dialogue(tuple(turns), input_of(run) if run else None)


def _answer(drafts: Sequence[Draft]) -> JSON:
    models = [d for d in drafts if d.kind is NodeKind.MODEL_CALL]
    facts = models[-1].record.model if models else None
    return output_of(facts.response) if facts is not None else None
