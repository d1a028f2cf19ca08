"""Fixtures of the ops that a recorded session called: planned first, then written.

What a session holds is more than a folder takes: it has every outcome that the agent saw, a folder only those that say
something about the op. A model's arguments are first made into the declared types and bound, as a
call by code would.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from playhead.core.canonical import NoKeyError, from_stored
from playhead.core.fixture_file import Fixture, dump, outcome_digest
from playhead.core.keys import call_key, strip
from playhead.core.protocol.shape import is_list, is_object
from playhead.core.redact import Redactor
from playhead.core.values import JSON, SERVED_MARKS, ErrorInfo, Node, Outcome, OutcomeKind
from playhead.engine.failures import is_registered_name
from playhead.engine.fixture_calls import tags_in
from playhead.engine.op_calls import stored_arguments
from playhead.engine.op_errors import stored_error
from playhead.engine.op_schema import problems
from playhead.engine.ops import Op
from playhead.errors import OpError
from playhead.store.fixture_writing import FixtureWriter
from playhead.store.fixtures import FixtureFolder


class _LeftOutError(Exception):
    """Why a call makes no fixture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    node: str
    tool: str
    reason: str
    is_op: bool = True


@dataclass(slots=True, kw_only=True)
class ExportPlan:
    session: str
    set_name: str
    fixtures: list[Fixture] = field(default_factory=list[Fixture])
    left_out: list[LeftOut] = field(default_factory=list[LeftOut])

    def write(self, folder: FixtureFolder, run: str, *, now: int) -> None:
        """Puts the fixtures into the set; they replace what it has of the same calls.

        Raises:
            StoreError: they cannot be written.
        """
        writer = FixtureWriter(folder, self.set_name, run)
        for order, fixture in enumerate(self.fixtures):
            writer.add(order, fixture)
        notes = [
            {"tool": each.tool, "key": "", "reason": each.reason, "at": _time(now)}
            for each in self.left_out
            if each.is_op
        ]
        writer.finish({"playhead": "recording/1", "command": f"playhead fixtures export {self.session}",
                       "at": _time(now), "hosts": [], "not_recorded": notes})  # fmt: skip


def plan_export(
    session: str, nodes: Sequence[Node], ops: Mapping[str, Op], redactor: Redactor, set_name: str
) -> ExportPlan:
    """The fixtures of a session's calls, in the order of their starts. Calls inside an op are the op's own business."""
    plan = ExportPlan(session=session, set_name=set_name)
    inside: set[str] = set()
    numbers: dict[str, int] = {}
    for node in sorted(nodes, key=lambda node: node.seq):
        if node.parent_id in inside:
            inside.add(node.id)
            continue
        if node.call is None:
            continue
        op = ops.get(node.call.tool)
        try:
            if op is None:
                raise _LeftOutError("no op of this name is declared in the modules of fixtures.ops")
            inside.add(node.id)
            fixture = _fixture(node, op, redactor, session)
        except _LeftOutError as error:
            reason = redactor.redact_text(str(error))
            plan.left_out.append(LeftOut(node=node.id, tool=node.call.tool, reason=reason, is_op=op is not None))
            continue
        number = numbers[fixture.key] = numbers.get(fixture.key, 0) + 1
        plan.fixtures.append(replace(fixture, occurrence=number))
    return plan


def _fixture(node: Node, op: Op, redactor: Redactor, session: str) -> Fixture:
    assert node.call is not None
    if op.is_method:
        raise _LeftOutError("the object that the method belongs to is not in the session")
    outcome = _outcome(node, op)
    ignore = tuple(op.options.ignore)
    bound = _arguments(node.call.arguments, op, redactor)
    arguments = strip(bound, ignore) if ignore else bound
    scope = redactor.key_view(op.scope(()))
    kept = redactor.key_view(arguments)
    try:
        key = call_key(op.id, kept, scope=scope)
    except NoKeyError as error:
        raise _LeftOutError(f"the call has no key: {error}") from None
    shown = redactor.redact(kept)
    for member in ("value", "error"):
        if member in outcome:
            cleaned = redactor.redact(outcome[member], outcome=True, schema=op.output.schema)
            if cleaned.refused:
                raise _LeftOutError(f"{cleaned.refused[0]} is not text and holds a secret")
            outcome = {**outcome, member: cleaned.value}
    fixture = Fixture(
        kind="op", tool=op.id, key=key, args=shown.value, outcome=outcome, effect=op.options.effect,
        scope=scope, ignored=ignore if arguments != bound else (), overlapped=node.call.overlapped,
        redacted=(*[f"/args{each}" for each in shown.pointers], *[f"/outcome{each}" for each in tags_in(outcome)]),
        assertions={**op.assertions(), "defaults": redactor.redact(op.input.defaults).value},
        recorded={
            "at": _time(node.started_at), "ms": _milliseconds(node), "playhead": version("playhead"),
            "language": "python", "session": session, "outcome": outcome_digest(outcome),
        },
    )  # fmt: skip
    held = redactor.known_in(dump(fixture))
    if held:
        raise _LeftOutError(f"it holds the value of {', '.join(held)}")
    return fixture


def _arguments(emitted: JSON, op: Op, redactor: Redactor) -> dict[str, JSON]:
    """The arguments as a call by code would have them: declared types made, names bound, defaults left out."""
    if not is_object(emitted) or set(emitted) & {"$invalid", "$deep"}:
        raise _LeftOutError("its arguments are no JSON object")
    lost = [place for place in tags_in(emitted) if not _is_configured(emitted, place, redactor)]
    if lost:
        raise _LeftOutError(f"{lost[0]} lost a secret that is not configured, and is part of the key")
    given: dict[str, Any] = {}
    for name, value in emitted.items():
        plain = from_stored(value)
        try:
            given[name] = op.input.make(name, plain)
        except ValueError as error:
            raise _LeftOutError(f"argument {name} does not fit its declaration: {error}") from None
    try:
        stored, no_key = stored_arguments(op, (), given)
    except OpError as error:
        raise _LeftOutError(error.message) from None
    if no_key is not None:
        raise _LeftOutError(f"the call has no key: {no_key}")
    return stored


def _is_configured(value: JSON, place: str, redactor: Redactor) -> bool:
    at: Any = value
    for step in place.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        at = at[int(name)] if is_list(at) else at[name]
    text = str(at)
    for name in redactor.configured_names:
        text = text.replace(f"[REDACTED:{name}]", "")
    return "[REDACTED:" not in text


def _outcome(node: Node, op: Op) -> dict[str, JSON]:
    assert node.call is not None
    found = node.outcome
    if found is None or node.ended_at is None:
        raise _LeftOutError("the call did not end")
    if node.call.mark not in SERVED_MARKS:
        raise _LeftOutError(f"its result is {node.call.mark.value}")
    if found.truncated is not None:
        raise _LeftOutError("its result was too large to be kept")
    if node.attributes.get("partial") is True:
        raise _LeftOutError("its consumer left before the end")
    if found.kind is OutcomeKind.ERROR and found.error is not None:
        if not _says_something(found.error, op):
            raise _LeftOutError(f"{found.error.class_name} says nothing about the op")
        return {"kind": "error", "error": stored_error(found.error)}
    if found.kind is not OutcomeKind.VALUE:
        raise _LeftOutError(f"it ended as {found.kind.value}")
    return _value(found, op)


def _value(found: Outcome, op: Op) -> dict[str, JSON]:
    stream = op.options.stream
    results: list[Any] = [*found.value] if stream and is_list(found.value) else [found.value]
    wrong = problems([error for each in results for error in op.output.errors(each)])
    if wrong:
        raise _LeftOutError(f"its result does not fit the declaration: {wrong}")
    return {"kind": "value", "items": results} if stream else {"kind": "value", "value": found.value}


def _says_something(error: ErrorInfo, op: Op) -> bool:
    """Whether the error is an outcome of the op, and not of the world around it."""
    listed = any((each.__module__, each.__qualname__) == (error.module, error.class_name) for each in op.options.errors)
    return error.status is not None or listed or is_registered_name(error.module or "", error.class_name)


def _time(ns: int) -> str:
    return datetime.fromtimestamp(ns / 1e9, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def _milliseconds(node: Node) -> float:
    return round(((node.ended_at or node.started_at) - node.started_at) / 1e6, 1)
