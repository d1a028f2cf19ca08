"""Steps and sessions to stored values: the writer's work.

Redaction of every value happens here, before anything leaves the process's memory, the spool included. Keys are made
before it, from the raw arguments with only the configured secrets replaced.
"""

import hashlib
from dataclasses import dataclass, field, replace

from playhead.core.canonical import NoKeyError, digest
from playhead.core.codec import encode
from playhead.core.redaction.redact import Redactor
from playhead.core.totals import add_cost, add_usage, remainder
from playhead.core.values import (
    JSON,
    OUTPUT_NOT_STORED,
    Cost,
    Encoded,
    ErrorInfo,
    Mark,
    ModelCall,
    Native,
    Node,
    NodeKind,
    NodeStatus,
    NoKey,
    Outcome,
    Session,
    ToolCall,
    Truncated,
    Turn,
    Usage,
)
from playhead.engine.active import ActiveSession, OpenTurn
from playhead.engine.model_step import ModelStep
from playhead.engine.pricing import price
from playhead.engine.snapshot import Snapshot, thaw, weight
from playhead.engine.steps import Step, ToolStep
from playhead.engine.transcript import Cell

_GROWTH = 6  # JSON text is at most so much longer than a snapshot (control characters as escapes)


@dataclass(slots=True)
class SessionTotals:
    """What the writer sums up over a session's model calls."""

    usages: list[Usage] = field(default_factory=list[Usage])
    costs: list[Cost] = field(default_factory=list[Cost])
    ids: dict[int, str] = field(default_factory=dict[int, str])  # node ids by place in the order, for turns
    warnings: list[str] = field(default_factory=list[str])


class Encoder:
    """Makes nodes and sessions. Used by one thread at a time."""

    def __init__(self, *, size_limit: int | None, owner: str, project: str = "default") -> None:
        self._redactor = Redactor()
        self._limit = size_limit
        self._owner = owner
        self._project = project

    def use(self, active: ActiveSession) -> None:
        """Turns to a session: its redactor counts from now on."""
        self._redactor = active.redactor

    # nodes

    def node(self, step: Step, totals: SessionTotals, *, closing: int | None = None) -> Node:
        """The node of a step as it stands. ``closing``: when its session ended although the step had not."""
        left_open = closing is not None and step.ended_at is None
        attributes = self._redact(dict(step.attributes or {}))
        outcome = self._outcome(step, attributes)
        call: ToolCall | None = None
        model: ModelCall | None = None
        inputs: JSON = None
        if isinstance(step, ToolStep):
            call = self._tool_call(step, missing="not_stored" in attributes)
        elif isinstance(step, ModelStep):
            inputs, model = self._request(step), self._model_call(step, totals)
        elif step.inputs is not None:
            inputs = self._value(step.inputs, attributes, "inputs")
        if "not_stored" in attributes:
            totals.warnings.append(f"the result of {step.name!r} is not stored: {attributes['not_stored']}")
        made = Node(
            id=step.id,
            session_id=step.active.session_id,
            seq=step.seq,
            kind=step.kind,
            name=step.name,
            started_at=step.started_at,
            parent_id=step.parent.id if step.parent is not None else None,
            ended_at=closing if left_open else step.ended_at,
            status=NodeStatus.CANCELLED if left_open else step.status,
            inputs=inputs,
            outcome=outcome,
            attributes=attributes,
            call=call,
            model=model,
        )
        totals.ids[step.seq] = made.id
        return made

    def bare_node(self, step: Step, problem: Exception) -> Node:
        """What is kept of a step that could not be encoded: that it happened, and why there is no more."""
        text = f"{type(problem).__name__}: {self._redactor.redact_text(str(problem))[:300]}"
        call = None
        if isinstance(step, ToolStep):
            call = ToolCall(tool=step.tool, arguments=None, no_key=NoKey(reason="not_recorded", detail=text))
        return Node(
            id=step.id,
            session_id=step.active.session_id,
            seq=step.seq,
            kind=step.kind,
            name=step.name,
            started_at=step.started_at,
            ended_at=step.ended_at,
            status=step.status,
            call=call,
            model=ModelCall(capture="none") if step.kind is NodeKind.MODEL_CALL else None,
            attributes={"not_recorded": text},
        )

    def _tool_call(self, step: ToolStep, *, missing: bool) -> ToolCall:
        own, slot = step.identity, step.slot
        return ToolCall(
            tool=step.tool,
            arguments=self._redact(own.arguments),
            call_id=step.call_id,
            key=own.key,
            no_key=own.no_key,
            path=own.path,
            occurrence=own.occurrence,
            attempt=step.attempt,
            model_call=slot.model.id if slot is not None else None,
            index=slot.index if slot is not None else None,
            effect=step.effect,
            source=step.source,
            mark=Mark.MISSING if missing else step.mark,
            overlapped=step.overlapped,
            provenance=step.provenance,
        )

    def _request(self, step: ModelStep) -> JSON:
        return {
            "messages": [part for cell in step.cells for part in self._cell(cell)],
            "tools": [part for cell in step.tool_cells for part in self._cell(cell)],
            **self._redact(thaw(step.params)),
        }

    def _cell(self, cell: Cell) -> list[Encoded]:
        if cell.encoded is None:
            cell.encoded = [self._encoded(message) for message in cell.plain]
        return cell.encoded

    def _encoded(self, message: JSON) -> Encoded:
        if self._limit is not None and isinstance(message.get("parts"), list):
            message = {**message, "parts": [self._cut(part) for part in message["parts"]]}
        stored = self._redact(message)
        text = encode(stored)
        try:
            return Encoded(text, digest(stored))
        except NoKeyError:  # such as NaN: no canonical text, so its own text stands for it
            return Encoded(text, hashlib.sha256(text).digest())

    def _cut(self, part: JSON) -> JSON:
        """A part of a message within the size limit; of a larger one its kind, size and digest stay."""
        assert self._limit is not None
        text = encode(part)
        if len(text) <= self._limit:
            return part
        kept = {name: part[name] for name in ("type", "id", "name", "media_type") if name in part}
        empty: JSON = {"content": None} if part["type"] == "tool_result" else {"text": ""}
        return {**kept, **empty, "truncated": {"bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()}}

    def _model_call(self, step: ModelStep, totals: SessionTotals) -> ModelCall:
        request, result, key = step.request, step.result, step.key
        served = result.served if result is not None else None
        usage = result.usage if result is not None else None
        replayed = step.provenance is not None and step.provenance.by == "served"
        cost = result.cost if result is not None else None
        if replayed:
            cost = Cost(amount="0", source="replayed")
        elif cost is None:
            cost = price(usage, served or request.model, request.provider)
        if step.ended_at is not None:
            totals.usages += [usage] if usage is not None else []
            totals.costs += [cost] if cost is not None else []
        return ModelCall(
            requested=request.model,
            served=served,
            provider=request.provider,
            protocol=request.protocol,
            response_id=result.response_id if result is not None else None,
            key=key.key,
            no_key=key.no_key,
            occurrence=step.occurrence,
            usage=usage,
            cost=cost,
            streamed=result.streamed if result is not None else False,
            partial=result.partial if result is not None else False,
            first_chunk_at=result.first_chunk_at if result is not None else None,
            missing=request.missing,
            provenance=step.provenance,
        )

    # values

    def _outcome(self, step: Step, attributes: dict[str, JSON]) -> Outcome | None:
        if step.outcome is None:
            return None
        kind, snapshot, native = step.outcome
        error = self.error(step.error)
        cut = self._too_large(snapshot)
        if cut is not None:
            return Outcome(kind=kind, truncated=cut, error=error)
        try:
            value = self._redact(thaw(snapshot), outcome=True)
        except NoKeyError as problem:
            attributes["not_stored"] = str(problem)
            return Outcome(kind=kind, error=error)
        return Outcome(kind=kind, value=value, error=error, native=self._native(native))

    def _too_large(self, snapshot: Snapshot) -> Truncated | None:
        if self._limit is None or weight(snapshot) * _GROWTH <= self._limit:
            return None
        try:
            text = encode(thaw(snapshot))
        except NoKeyError:
            return None
        if len(text) <= self._limit:
            return None
        return Truncated(bytes=len(text), sha256=hashlib.sha256(text).hexdigest())

    def _native(self, native: Native | None) -> Native | None:
        return None if native is None else replace(native, data=self._redact(native.data, outcome=True))

    def _value(self, snapshot: Snapshot, attributes: dict[str, JSON], what: str) -> JSON:
        try:
            return self._redact(thaw(snapshot))
        except NoKeyError as problem:
            attributes[f"{what}_not_stored"] = str(problem)
            return None

    def _redact(self, stored: JSON, *, outcome: bool = False) -> JSON:
        return stored if stored is None else self._redactor.redact(stored, outcome=outcome)[0]

    def error(self, error: ErrorInfo | None) -> ErrorInfo | None:
        """An error with the secrets out of all its texts."""
        if error is None:
            return None
        return replace(
            error,
            message=self._redactor.redact_text(error.message),
            repr=self._redactor.redact_text(error.repr) if error.repr is not None else None,
            args=self._redact(error.args, outcome=True),
            code=self._redact(error.code),
            attributes=self._redact(error.attributes, outcome=True),
            cause=self.error(error.cause),
            members=tuple(e for e in map(self.error, error.members) if e is not None),
        )

    # sessions

    def opening(self, active: ActiveSession) -> Session:
        """The session as it is when it opens."""
        problems: dict[str, JSON] = {}
        inputs = self._value(active.inputs, problems, "inputs")
        unstored = ("inputs",) if problems and "inputs" not in active.not_replayable else ()
        state = active.replay
        return Session(
            id=active.session_id,
            agent=active.agent,
            started_at=active.started_at,
            origin=active.origin,
            name=active.name,
            inputs=inputs,
            tags=active.tags,
            metadata=self._redact(active.metadata),
            not_replayable=(*active.not_replayable, *unstored),
            baseline_id=state.baseline.id if state is not None and state.baseline is not None else None,
            replay_id=state.replay_id if state is not None else None,
            owner=self._owner,
            project=self._project,
        )

    def closing(self, opened: Session, active: ActiveSession, totals: SessionTotals) -> Session:
        """The session as it ended."""
        problems: dict[str, JSON] = {}
        output = self._value(active.output, problems, "output")
        counted = add_usage(totals.usages)
        usage = counted
        if active.usage_total is not None:
            rest = remainder(active.usage_total, counted)
            usage = add_usage((counted, rest))
        usage = add_usage((usage, *active.usage_beside)) if active.usage_beside else usage
        warnings = [*totals.warnings, *(f"{OUTPUT_NOT_STORED}: {text}" for text in problems.values())]
        return replace(
            self.opening(active) if active.inputs_changed else opened,
            status=active.status,
            ended_at=active.ended_at,
            output=output,
            error=self.error(active.error),
            turns=tuple(self._turn(turn, totals) for turn in active.turns),
            usage=usage,
            cost=add_cost(active.costs_reported or totals.costs),
            metadata=self._redact(active.metadata),
            tags=active.tags,
            effective_prompt=self._redact(active.effective_prompt),
            effective_system_prompt=self._redact(active.effective_system_prompt),
            warnings=tuple(warnings),
            owner=None,
        )

    def _turn(self, turn: OpenTurn, totals: SessionTotals) -> Turn:
        inside = sorted(seq for seq in totals.ids if turn.first <= seq <= turn.last)
        ignored: dict[str, JSON] = {}
        return Turn(
            input=self._value(turn.input, ignored, "input"),
            output=self._value(turn.output, ignored, "output"),
            first_node=totals.ids[inside[0]] if inside else None,
            last_node=totals.ids[inside[-1]] if inside else None,
        )
