"""A case as the messages that a model is sent, and as the nodes that a tape is made of."""

from collections.abc import Mapping, Sequence
from typing import Any

from playhead.core.canonical import NoKeyError
from playhead.core.codec import dump, load
from playhead.core.keys import call_key
from playhead.core.protocol import parts
from playhead.core.protocol.parts import Message as Normal
from playhead.core.protocol.parts import Part
from playhead.core.protocol.shape import is_object
from playhead.core.suites.suite import Call, Case, Message, Round
from playhead.core.values import JSON, Mark, Node, NodeKind, NodeStatus, Outcome, OutcomeKind, ToolCall

# --- to a model ------------------------------------------------------------------------------------------------------


def history(case: Case) -> list[Normal]:
    """The messages before the turn, in normal form."""
    names = {call.id: call.tool for message in case.history for call in message.calls}
    return [_normal(message, names) for message in case.history]


def recorded_rounds(case: Case) -> list[Normal]:
    """The recorded rounds of calls with their results, in normal form: what is spliced in after the history."""
    return [message for one in case.recorded for message in round_messages(one)]


def round_messages(one: Round) -> list[Normal]:
    said = [*parts.texts([one.text or ""]), *map(call_part, one.calls)]
    results = [result_part(c.id, c.tool, outcome_of(one, c.id), shown=one.shown.get(c.id)) for c in one.calls]
    return [parts.message("assistant", said), *[parts.message("tool", [result]) for result in results]]


def outcome_of(one: Round, call: str) -> Outcome:
    """What a recorded call gave; one that gave nothing ended in an error."""
    found = one.outcomes.get(call)
    return read_outcome(found) if found is not None else Outcome(kind=OutcomeKind.RESULT_ERROR, value="no result")


def _normal(message: Message, names: Mapping[str, str]) -> Normal:
    if message.role == "tool":
        assert message.call_id is not None
        outcome = read_outcome(message.outcome or {})
        part = result_part(message.call_id, names.get(message.call_id), outcome, shown=message.content)
        return parts.message("tool", [part])
    said = parts.texts([message.content]) if isinstance(message.content, str) else list(message.content or ())
    return parts.message(message.role, [*said, *map(call_part, message.calls)])


def call_part(call: Call) -> Part:
    return {"type": "tool_call", "id": call.id, "name": call.tool, "arguments": call.emitted}


def result_part(id: str, tool: str | None, outcome: Outcome, *, shown: JSON = None) -> Part:
    """The result of a call as a model sees it."""
    content = shown if shown is not None else shown_outcome(outcome)
    part: Part = {"type": "tool_result", "id": id, "name": tool, "content": content}
    failed = outcome.kind is not OutcomeKind.VALUE or outcome.error_hint
    return {**part, "is_error": True} if failed else part


def shown_outcome(outcome: Outcome) -> JSON:
    """What a model sees of an outcome: the value, or the text of the error."""
    if outcome.error is not None:
        return f"Error: {outcome.error.message or outcome.error.class_name}"
    return outcome.value


def read_outcome(data: Mapping[str, Any]) -> Outcome:
    """
    Raises:
        FormatError: no outcome.
    """
    return load(Outcome, dict(data))


def outcome_json(outcome: Outcome) -> dict[str, JSON]:
    """The stored form, without a framework's own object beside it."""
    found = dump(outcome)
    found.pop("native", None)
    return found


# --- from a recording -----------------------------------------------------------------------------------------------


class Numbered:
    """Gives calls ids that are their own inside a case: providers repeat theirs."""

    def __init__(self) -> None:
        self._count = 0
        self._open: list[tuple[JSON, str, Call]] = []

    def call(self, part: Part) -> Call:
        self._count += 1
        made = made_call(f"c{self._count}", part)
        self._open.append((part["id"], part["name"], made))
        return made

    def answered(self, part: Part) -> Call | None:
        """The call that a result belongs to: the last one of that id that waits, else the first that waits."""
        fitting = [one for one in self._open if one[0] == part["id"]]
        if not fitting:
            return None
        self._open.remove(fitting[0])
        return fitting[0][2]


def made_call(id: str, part: Part) -> Call:
    arguments = part["arguments"]
    if is_object(arguments) and set(arguments) == {"$invalid"}:
        return Call(id=id, tool=part["name"], raw_arguments=str(arguments["$invalid"]))
    return Call(id=id, tool=part["name"], arguments=arguments)


class Answers:
    """The recorded outcomes of a session's calls, each found once: by tool and arguments, in recorded order."""

    def __init__(self, calls: Sequence[Node]) -> None:
        self._waiting: dict[str, list[Node]] = {}
        for node in calls:
            assert node.call is not None
            self._waiting.setdefault(_token(node.call.tool, node.call.arguments), []).append(node)

    def take(self, call: Call) -> Node | None:
        waiting = self._waiting.get(_token(call.tool, call.emitted), [])
        return waiting.pop(0) if waiting else None


def _token(tool: str, arguments: JSON) -> str:
    try:
        return call_key(tool, arguments)
    except NoKeyError:
        return f"-{tool}"


def from_messages(messages: Sequence[Normal], answers: Answers) -> tuple[tuple[Message, ...], Numbered]:
    """The history of a case from the messages of a recorded request.

    Args:
        answers: what the calls gave; a call that they do not hold gave what the message shows.
    """
    numbered = Numbered()
    made: list[Message] = []
    for message in messages:
        results = [p for p in message["parts"] if p["type"] == "tool_result" and "executor" not in p]
        made += [_answer(part, numbered, answers) for part in results]
        rest = [p for p in message["parts"] if p not in results]
        if rest:
            made.append(_message(message["role"], rest, numbered))
    return tuple(made), numbered


def _message(role: str, rest: list[Part], numbered: Numbered) -> Message:
    calls = [numbered.call(p) for p in rest if p["type"] == "tool_call" and "executor" not in p]
    said = [p for p in rest if p["type"] != "tool_call" or "executor" in p]
    content: Any = said or None
    if said and all(p["type"] == "text" for p in said):
        content = "".join(p["text"] for p in said)
    kind: Any = "user" if role == "tool" else role
    return Message(role=kind, content=content, calls=tuple(calls))


def _answer(part: Part, numbered: Numbered, answers: Answers) -> Message:
    call = numbered.answered(part)
    node = answers.take(call) if call is not None else None
    if node is None or node.outcome is None:
        kind = OutcomeKind.RESULT_ERROR if part.get("is_error") else OutcomeKind.VALUE
        outcome = Outcome(kind=kind, value=part["content"])
    else:
        outcome = node.outcome
    shown = None if shown_outcome(outcome) == part["content"] else part["content"]
    id = call.id if call is not None else f"unknown-{part['id']}"
    return Message(role="tool", call_id=id, outcome=outcome_json(outcome), content=shown)


# --- to a tape ------------------------------------------------------------------------------------------------------


def case_nodes(case: Case) -> list[Node]:
    """The recorded rounds as the nodes of a baseline."""
    nodes: list[Node] = []
    for place, one in enumerate(case.recorded):
        asked = f"{case.id}/round {place + 1}"
        nodes.append(_node(case, len(nodes) + 1, asked, NodeKind.MODEL_CALL, "model call"))
        for index, call in enumerate(one.calls):
            nodes.append(call_node(case.id, len(nodes) + 1, call, outcome_of(one, call.id), asked=asked, index=index))
    return nodes


def _node(case: Case, seq: int, id: str, kind: NodeKind, name: str) -> Node:
    return Node(id=id, session_id=case.id, seq=seq, kind=kind, name=name, started_at=seq, ended_at=seq)


def call_node(
    session: str, seq: int, call: Call, outcome: Outcome | None, *, asked: str | None = None, index: int | None = None,
    **more: Any,
) -> Node:  # fmt: skip
    """A tool call as a node. ``more`` sets further fields of its `ToolCall`."""
    key, no_key = None, None
    try:
        key = call_key(call.tool, call.emitted)
    except NoKeyError as error:
        no_key = error.no_key
    details: dict[str, Any] = {
        "tool": call.tool, "arguments": call.emitted, "call_id": call.id, "key": key, "no_key": no_key,
        "model_call": asked, "index": index, "mark": Mark.NATIVE, **more,
    }  # fmt: skip
    failed = outcome is not None and outcome.kind is OutcomeKind.ERROR
    return Node(
        id=f"{session}/{call.id}",
        session_id=session,
        seq=seq,
        kind=NodeKind.TOOL_CALL,
        name=call.tool,
        started_at=seq,
        ended_at=seq,
        status=NodeStatus.FAILED if failed else NodeStatus.COMPLETED,
        outcome=outcome,
        call=ToolCall(**details),
    )
