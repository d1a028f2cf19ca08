"""A bad call fed back through a model: the call stands in the conversation as the model's own, its rejection follows,
and what counts is what the model does next."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from playhead.core.argument_schema import argument_errors
from playhead.core.effects import Effects, effect_of
from playhead.core.evaluation import as_text, failed
from playhead.core.facts.named import find
from playhead.core.fuzz.cases import FuzzCase
from playhead.core.fuzz.places import schema_at
from playhead.core.injection import at_pointer, build, found_at
from playhead.core.lint.errors import Failure, judge
from playhead.core.match import equal
from playhead.core.policy import CallView, InjectConfig
from playhead.core.protocol import parts
from playhead.core.protocol.parts import Message as Normal
from playhead.core.protocol.shape import is_list
from playhead.core.recovery.trial import MAX_STEPS, Recovery, classify
from playhead.core.suites.drive import Drive, Trace, bound, loop
from playhead.core.suites.messages import (
    call_node,
    call_part,
    case_nodes,
    outcome_json,
    outcome_of,
    read_outcome,
    result_part,
)
from playhead.core.suites.suite import Call, Case, Message, Tools, schemas
from playhead.core.values import JSON, Node, NodeKind, Outcome, OutcomeKind, Provenance

Group: TypeAlias = Literal["corrected", "loop", "gave_up", "other"]
GROUPS: Final[tuple[Group, ...]] = ("corrected", "loop", "gave_up", "other")
_GROUP_OF: Final[dict[str, Group]] = {
    "corrected_retry": "corrected", "right_answer": "corrected", "loop": "loop", "give_up_tool": "gave_up",
    "clear_message": "gave_up",
}  # fmt: skip

By: TypeAlias = Literal["validator", "recorded", "generated", "result"]
CALL: Final = "fuzz-call"


class Rejection(NamedTuple):
    """What the bad call gets, and whose words they are."""

    outcome: Outcome
    by: By


@dataclass(frozen=True, slots=True, kw_only=True)
class FedBack:
    """What the model did. ``outcome``: a class of `core.recovery.trial`, ``right_answer`` or ``overflow``."""

    outcome: str
    group: Group
    next_action: str | None = None
    steps: int | None = None
    tokens: int | None = None
    flags: tuple[str, ...] = ()


def group_of(outcome: str) -> Group:
    """The group that a class counts in."""
    return _GROUP_OF.get(outcome, "other")


# --- the conversation -----------------------------------------------------------------------------------------------


def started(case: Case, round: int, id: str) -> Case:
    """The case as it stands before one of its recorded rounds: earlier ones are history."""
    said = [message for one in case.recorded[:round] for message in _messages(one)]
    return case.model_copy(
        update={"id": id, "history": (*case.history, *said), "recorded": case.recorded[round:], "label": case.label}
    )


def _messages(one: Any) -> list[Message]:
    said = Message(role="assistant", content=one.text, calls=one.calls)
    results = [
        Message(
            role="tool", call_id=call.id, content=one.shown.get(call.id), outcome=outcome_json(outcome_of(one, call.id))
        )
        for call in one.calls
    ]
    return [said, *results]


def lead(fuzz: FuzzCase, outcome: Outcome) -> list[Normal]:
    """The bad call as the model's own, and what came of it."""
    call = bad_call(fuzz)
    return [
        parts.message("assistant", [call_part(call)]),
        parts.message("tool", [result_part(call.id, call.tool, outcome)]),
    ]


def bad_call(fuzz: FuzzCase) -> Call:
    return Call(id=CALL, tool=fuzz.tool, arguments=fuzz.arguments)


def feed_back(fuzz: FuzzCase, case: Case, tools: Tools, rejection: Rejection, effects: Effects) -> Drive:
    """Driver `loop` from the bad call on; the same call again gets the same rejection.

    Args:
        case: as `started` gave it.
    """
    node = call_node("fuzz", 0, bad_call(fuzz), None)
    assert node.call is not None
    given = {} if node.call.key is None else {node.call.key: rejection.outcome}
    return loop(
        case, tools, effects=effects, lead=lead(fuzz, rejection.outcome), given=given,
        max_turns=max(bound(case), MAX_STEPS + 1),
    )  # fmt: skip


# --- the rejection --------------------------------------------------------------------------------------------------


def rejection(
    fuzz: FuzzCase, parameters: JSON, *, said: str | None = None, recorded: Sequence[Failure] = ()
) -> Rejection:
    """What the bad call gets: what the tool itself said, else a recorded error of the tool, else a generated text.

    Args:
        said: by the tool, called with these arguments.
        recorded: failures of the tool; one that names the parameter goes first.
    """
    if fuzz.result is not None:
        return Rejection(Outcome(kind=OutcomeKind.VALUE, value=fuzz.result), "result")
    if said is not None:
        return Rejection(_refused(fuzz, said), "validator")
    name = fuzz.pointer.rsplit("/", 1)[-1] if fuzz.pointer else ""
    fitting = [one for one in recorded if one.tool == fuzz.tool]
    named = [one for one in fitting if name and judge(one.text, [name]).what]
    for one in (*named, *fitting)[:1]:
        return Rejection(_refused(fuzz, one.text), "recorded")
    return Rejection(_refused(fuzz, _generated(fuzz, parameters)), "generated")


def _refused(fuzz: FuzzCase, text: str) -> Outcome:
    kind = OutcomeKind.INVALID_ARGS if fuzz.expectation == "schema" else OutcomeKind.RESULT_ERROR
    return Outcome(kind=kind, value=text)


def _generated(fuzz: FuzzCase, parameters: JSON) -> str:
    """What failed, why, and what would do."""
    errors = argument_errors(parameters, fuzz.arguments)
    reason = "; ".join(f"{e.pointer or 'the arguments'}: {e.message}"[:200] for e in errors[:3])
    if found_at(fuzz.arguments, fuzz.pointer) and _is_short(at_pointer(fuzz.arguments, fuzz.pointer)):
        enum = _enum(parameters, fuzz.pointer)
        config = InjectConfig(kind="validation_error", pointer=fuzz.pointer, allowed=tuple(enum) if enum else ())
        view = CallView(
            ref="fuzz", tool=fuzz.tool, arguments=fuzz.arguments, key=None, no_key=None, parameters=parameters
        )
        said = as_text(build(config, view).value)
        return f"{said} ({reason})" if reason else said
    return f"Invalid arguments for {fuzz.tool}: {reason or fuzz.pointer}. Correct it and call the tool again."


def _is_short(value: JSON) -> bool:
    return len(as_text(value)) <= 200


def _enum(parameters: JSON, pointer: str) -> list[JSON]:
    values: JSON = schema_at(parameters, pointer).get("enum")
    return values if is_list(values) else []


# --- what came of it ------------------------------------------------------------------------------------------------


def fed_back(
    trace: Trace, fuzz: FuzzCase, case: Case, tools: Tools, rejected: Rejection, effects: Effects | None = None
) -> FedBack:
    """What a model did after the bad call, by the classes of `core.recovery.trial`."""
    declared = schemas(case, tools)
    kind = "empty" if fuzz.result is not None else "validation_error"
    config = InjectConfig(kind=kind, pointer=fuzz.pointer or None)
    whole = replace(trace, nodes=(_bad_node(fuzz, case, rejected), *trace.nodes))
    parameters = declared.get(fuzz.tool)

    def mends(node: Node) -> bool:
        assert node.call is not None
        return is_corrected(fuzz, parameters, node.call.arguments)

    found = classify(whole, case, tools, config, effects, mends=mends)
    assert found is not None  # the bad call is the injected failure
    outcome = found.outcome
    if fuzz.result is not None and outcome not in ("loop", "corrected_retry") and _right_answer(trace, case):
        outcome = "right_answer"
    return FedBack(
        outcome=outcome, group=group_of(outcome), next_action=found.next_action, steps=found.steps,
        tokens=found.tokens, flags=_flags(found, outcome),
    )  # fmt: skip


def _flags(found: Recovery, outcome: str) -> tuple[str, ...]:
    return found.flags if outcome != "right_answer" else tuple(flag for flag in found.flags if flag != "loop")


def is_corrected(fuzz: FuzzCase, parameters: JSON, arguments: JSON) -> bool:
    """Whether another call of the tool mends the bad one: it is valid, and the bad value is gone."""
    if argument_errors(parameters, arguments):
        return False
    if fuzz.result is not None:
        return not equal(arguments, fuzz.arguments)
    bad, now = at_pointer(fuzz.arguments, fuzz.pointer), at_pointer(arguments, fuzz.pointer)
    return fuzz.expectation == "schema" or not equal(bad, now)


def _right_answer(trace: Trace, case: Case) -> bool:
    facts = [fact for fact in case.facts if not fact.must_not]
    return trace.ended == "answer" and bool(facts) and all(find(fact, trace.final or "").found for fact in facts)


def _bad_node(fuzz: FuzzCase, case: Case, rejected: Rejection) -> Node:
    """The bad call as a node that hides the recorded call whose place it took."""
    hidden = next(
        (n for n in case_nodes(case) if n.kind is NodeKind.TOOL_CALL and n.call and n.call.tool == fuzz.tool), None
    )
    provenance = Provenance(by="injected", detail="fuzz", node_id=hidden.id if hidden is not None else None)
    return call_node("fuzz", 0, bad_call(fuzz), rejected.outcome, provenance=provenance)


def recorded_failures(cases: Sequence[Case], effects: Effects | None = None) -> list[Failure]:
    """The failed calls that the cases' recordings hold, each with the text that the model saw."""
    found: list[Failure] = []
    for case in cases:
        for node in (*case_nodes(case), *_history_nodes(case)):
            if node.call is None or node.outcome is None or not failed(node):
                continue
            if effect_of(node, effects or {}).bookkeeping:
                continue
            error = node.outcome.error
            text = error.message if error is not None else as_text(node.outcome.value)
            found.append(Failure(node.call.tool, node.call.arguments, text))
    return list({(one.tool, one.text): one for one in found}.values())


def _history_nodes(case: Case) -> list[Node]:
    calls: Mapping[str, Call] = {call.id: call for message in case.history for call in message.calls}
    return [
        call_node(case.id, 0, calls[message.call_id], read_outcome(message.outcome or {}))
        for message in case.history
        if message.role == "tool" and message.call_id in calls
    ]
