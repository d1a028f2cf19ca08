"""Steps: one node each while it happens. What adapters get from an `ActiveSession` and tell what came of it.

A step is pushed to the recorder when it starts and again when it ends; everything else about it is made by the writer.
In a replay a step's `decide` asks the tape first. Outside one it answers None at once.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from threading import get_ident
from typing import Any, ClassVar, Literal

from playhead.core.occurrence import call_ref, start_ref
from playhead.core.policy import CallView
from playhead.core.values import (
    JSON,
    Cost,
    Effect,
    ErrorInfo,
    Mark,
    Native,
    NodeKind,
    NodeStatus,
    Outcome,
    OutcomeKind,
    Provenance,
    Usage,
)
from playhead.engine import gating
from playhead.engine.egress import model_traffic
from playhead.engine.failures import capture
from playhead.engine.frames import Inside
from playhead.engine.models import ToolRequest
from playhead.engine.replaying import ModelView, RecordingEnded, ReplayState
from playhead.engine.snapshot import Snapshot, freeze, freeze_emitted, freeze_stored, thaw, weight
from playhead.engine.track import Identity, Requested, Slot, Track, path_of
from playhead.engine.transcript import Cell, Conversation, ModelKey, ToNormal
from playhead.errors import ReplayStop

HEAVY = 64 * 1024
"""Values from this size on count against the recorder's bound in bytes."""

_NOTHING: dict[str, JSON] = {}
_STATUS = {
    OutcomeKind.VALUE: NodeStatus.COMPLETED,
    OutcomeKind.INTERRUPT: NodeStatus.COMPLETED,
}


class Step:
    """What every step has. ``began`` and ``written`` belong to the writer."""

    kind: ClassVar[NodeKind]
    silent: ClassVar[bool] = False

    __slots__ = (
        "_id", "active", "attributes", "began", "ended_at", "error", "heavy", "inputs", "name", "outcome", "parent",
        "provenance", "seq", "started_at", "status", "written",
    )  # fmt: skip

    def __init__(self, active: Track, parent: "Step | None", name: str, seq: int, inputs: Snapshot | None) -> None:
        self.active = active
        self.parent = parent
        self.name = name
        self.seq = seq
        self.inputs = inputs
        self.started_at: int = active.recorder.clock.now()
        self.ended_at: int | None = None
        self.status = NodeStatus.OPEN
        self.outcome: tuple[OutcomeKind, Snapshot, Native | None] | None = None
        self.error: ErrorInfo | None = None
        self.attributes: dict[str, JSON] | None = None
        self.provenance: Provenance | None = None
        self._id: str | None = None
        self.began = False
        self.written = False
        self.heavy = 0

    @property
    def id(self) -> str:
        """The node's id, made when first asked for."""
        if self._id is None:
            with self.active.lock:
                if self._id is None:
                    self._id = self.active.recorder.ids()
        return self._id

    @property
    def scope(self) -> "Step | None":
        """The nearest enclosing run or call: steps of one scope share a conversation."""
        found = self.parent
        while found is not None and found.kind in (NodeKind.SPAN, NodeKind.MODEL_CALL):
            found = found.parent
        return found

    def inside(self) -> AbstractContextManager[None]:
        """A context manager in which what happens is a child of this step."""
        return Inside(self)

    def note(self, **attributes: JSON) -> None:
        """Adds attributes (stored form) to the node."""
        if self.attributes is None:
            self.attributes = {}
        self.attributes.update(attributes)

    def observe(self, outcome: Outcome) -> None:
        """Ends the step with an outcome in stored form; the first ending counts."""
        self._end(_STATUS.get(outcome.kind, NodeStatus.FAILED), outcome.kind, freeze_stored(outcome.value), outcome)

    def returned(self, value: Any, native: Native | None = None) -> None:
        """Ends the step with the Python value that it gave."""
        self.returned_as(freeze(value), native)

    def fail(self, error: BaseException) -> None:
        """Ends the step with an exception. Cancellation and the like end it as cancelled, without an outcome."""
        if isinstance(error, Exception):
            self._end(
                NodeStatus.FAILED, OutcomeKind.ERROR, ("value", None),
                Outcome(kind=OutcomeKind.ERROR, error=capture(error)),
            )  # fmt: skip
        else:
            self.cancel(error)

    def cancel(self, error: BaseException | None = None) -> None:
        """Ends the step as cancelled: nobody knows what it would have given."""
        if self.ended_at is None:
            if error is not None:
                self.note(cancelled_by=type(error).__name__)
            self._close(NodeStatus.CANCELLED)

    def returned_as(self, snapshot: Snapshot, native: Native | None = None) -> None:
        """`returned`, for a value of which there is a snapshot already."""
        if self.ended_at is None:
            self.outcome = (OutcomeKind.VALUE, snapshot, native)
            self._close(NodeStatus.COMPLETED)

    def _end(self, status: NodeStatus, kind: OutcomeKind, value: Snapshot, outcome: Outcome) -> None:
        if self.ended_at is None:
            self.outcome = (kind, value, outcome.native)
            self.error = outcome.error
            self._close(status)

    def _close(self, status: NodeStatus) -> None:
        self.status = status
        self.ended_at = self.active.recorder.clock.now()
        size = weight(self.outcome[1]) if self.outcome is not None else 0
        if size > HEAVY:
            self.active.recorder.push_heavy(self, size)
        else:
            self.active.recorder.push(self)


class SpanStep(Step):
    """Something that took time and is neither a model, a tool nor an agent."""

    kind = NodeKind.SPAN
    __slots__ = ()


class AgentStep(Step):
    """A run inside the session: a sub-agent, a handoff. Never decided."""

    kind = NodeKind.AGENT_CALL
    __slots__ = ()


class SilentStep:
    """Stands in where an outer seam owns the call: it asks nothing, records nothing, and lets things happen."""

    silent = True

    def __init__(self, owner: Step) -> None:
        self.owner = owner
        self.id = owner.id
        self.ended_at = None

    def decide(self) -> None:
        return None

    async def decide_async(self) -> None:
        return None

    def inside(self) -> AbstractContextManager[None]:
        return nullcontext()

    def note(self, **attributes: JSON) -> None:
        """Adds attributes to the node of the seam that owns the call (a status, a request id)."""
        self.owner.note(**attributes)

    def announce(self, calls: Sequence[Requested]) -> list[Slot]:
        return []

    def observe(self, outcome: object) -> None: ...

    def returned(self, value: Any, native: Native | None = None) -> None: ...

    def fail(self, error: BaseException) -> None: ...

    def cancel(self, error: BaseException | None = None) -> None: ...


class ToolStep(Step):
    """One attempt of a tool call."""

    kind = NodeKind.TOOL_CALL
    __slots__ = (
        "_identity", "answer", "arguments", "attempt", "call_id", "effect", "mark", "output_schema", "overlapped",
        "own_calls", "slot", "source", "thread", "tool",
    )  # fmt: skip

    def __init__(
        self, active: Track, parent: Step | None, tool: str, seq: int, arguments: Snapshot, slot: Slot | None,
        attempt: int, call_id: str | None,
    ) -> None:  # fmt: skip
        Step.__init__(self, active, parent, tool, seq, None)
        self.tool = tool
        self.arguments = arguments
        self.slot = slot
        self.attempt = attempt
        self.call_id = call_id
        self.effect = Effect.UNKNOWN
        self.source: Literal["seam", "transcript", "provider"] = "seam"
        self.mark = Mark.NATIVE
        self.output_schema: JSON = None
        self.answer: gating.Answer | None = None
        self.thread = get_ident()
        self.overlapped = False  # set by the writer
        self.own_calls = 0  # tool calls decided directly or deeper inside
        self._identity: Identity | None = None

    @property
    def identity(self) -> Identity:
        """Arguments, key and place; of the announced call where there is one."""
        if self.slot is not None:
            return self.slot.identity
        if self._identity is None:
            with self.active.lock:
                if self._identity is None:
                    self._identity = self.active.identify(self.tool, self.arguments, self.parent)
        return self._identity

    @property
    def ref(self) -> str:
        """The call's name for the tape."""
        if self.slot is not None:
            return call_ref(self.slot.model.id, self.slot.call_id, self.attempt)
        return start_ref(self.seq)

    def decide(self) -> Outcome | None:
        """What answers the call: an outcome to give to the framework, or None for the live tool.

        Raises:
            ReplayStop: the replay ends here.
        """
        state = self.active.replay
        if state is None:
            return None
        answer = self._ask()
        if answer.outcome is None and answer.config is None:
            return None
        return gating.generate(state, answer, self._request())

    async def decide_async(self) -> Outcome | None:
        """`decide`, for asyncio: models and waits do not block the loop."""
        state = self.active.replay
        if state is None:
            return None
        answer = self._ask()
        if answer.outcome is None and answer.config is None:
            return None
        return await gating.generate_async(state, answer, self._request())

    def _ask(self) -> gating.Answer:
        state = self.active.replay
        assert state is not None
        try:
            self.answer = gating.answer_tool(state, self.view(), lambda: self.id)
        except ReplayStop:
            self.provenance = Provenance(by="stopped")
            self.cancel()
            raise
        self.provenance = self.answer.provenance
        self._tell_outer_calls()
        return self.answer

    def view(self) -> CallView:
        """The call as the policy sees it."""
        state, own = self.active.replay, self.identity
        assert state is not None
        return CallView(
            ref=self.ref,
            tool=self.tool,
            arguments=own.arguments,
            key=own.key,
            no_key=own.no_key,
            path=own.path,
            output_schema=self._output_schema(),
            parameters=self._parameters(),
        )

    def _output_schema(self) -> JSON:
        state = self.active.replay
        if self.output_schema is not None or state is None:
            return self.output_schema
        return state.output_schemas.get(self.tool)

    def _parameters(self) -> JSON:
        state = self.active.replay
        offered = self.slot.model.offered.get(self.tool) if self.slot is not None else None
        if offered is not None:
            return offered.get("parameters")
        return state.parameters.get(self.tool) if state is not None else None

    def _request(self) -> ToolRequest:
        state = self.active.replay
        assert state is not None
        offered: Any = (self.slot.model.offered.get(self.tool) if self.slot is not None else None) or {}
        return ToolRequest(
            tool=self.tool,
            arguments=self.identity.arguments,
            description=offered.get("description") or "",
            parameters=self._parameters(),
            output_schema=self._output_schema(),
            examples=state.examples(self.tool) if state.examples is not None else (),
        )

    def _tell_outer_calls(self) -> None:
        outer = self.parent
        while outer is not None:
            if isinstance(outer, ToolStep):
                outer.own_calls += 1
                answer, state = outer.answer, self.active.replay
                if outer.own_calls == 1 and answer is not None and answer.outcome is None and state is not None:
                    gating.mark(state, answer.row, "decided inside")
            outer = outer.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """A model request as an adapter has it.

    ``messages`` are the framework's own with ``to_normal`` giving the normal messages of one, or normal ones. ``tools``
    are schemas in normal form; both lists may be the framework's live ones, they are only read.
    """

    messages: Sequence[Any]
    to_normal: ToNormal | None = None
    tools: Sequence[Any] = ()
    tool_choice: JSON = None
    params: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    model: str | None = None
    provider: str | None = None
    protocol: str | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResult:
    """A model's answer: the assistant message in normal form and what the provider said beside it."""

    message: JSON = None
    native: Native | None = None
    usage: Usage | None = None
    served: str | None = None
    response_id: str | None = None
    cost: Cost | None = None
    streamed: bool = False
    partial: bool = False
    first_chunk_at: int | None = None


@contextmanager
def _asking(step: Step) -> Generator[None]:
    with Inside(step), model_traffic():
        yield


class ModelStep(Step):
    """One request to a model."""

    kind = NodeKind.MODEL_CALL
    __slots__ = ("_key", "cells", "conversation", "occurrence", "params", "request", "result", "slots", "tool_cells")

    def __init__(
        self, active: Track, parent: Step | None, name: str, seq: int, request: ModelRequest,
        cells: tuple[Cell, ...], tool_cells: tuple[Cell, ...], conversation: Conversation,
    ) -> None:  # fmt: skip
        Step.__init__(self, active, parent, name, seq, None)
        self.request = request
        self.params = freeze_stored({"tool_choice": request.tool_choice, "params": dict(request.params)})
        self.cells = cells
        self.tool_cells = tool_cells
        self.conversation = conversation
        self.result: ModelResult | None = None
        self.slots: list[Slot] = []
        self._key: ModelKey | None = None
        self.occurrence = 1  # set by the writer

    def inside(self) -> AbstractContextManager[None]:
        """As of any step; what connects inside is the model's endpoint, which the egress guard lets through."""
        return super().inside() if self.active.replay is None else _asking(self)

    @property
    def offered(self) -> dict[str, JSON]:
        """The offered tools by name."""
        return {tool.get("name"): tool for cell in self.tool_cells for tool in cell.plain}

    def decide(self) -> Outcome | None:
        """The recorded response under model history, None when the model has to be asked.

        Raises:
            ReplayStop: the replay ends here.
        """
        state = self.active.replay
        if state is None:
            return None
        try:
            answer = gating.answer_model(state, self.view())
        except RecordingEnded:  # no call of the replay: it ended before it would be made
            self._close(NodeStatus.NEVER_RAN)
            raise
        except ReplayStop:
            self.provenance = Provenance(by="stopped")
            self.cancel()
            raise
        self.provenance = answer.provenance
        return answer.outcome

    async def decide_async(self) -> Outcome | None:
        """`decide`, for asyncio; nothing in it waits."""
        return self.decide()

    def announce(self, calls: Sequence[Requested]) -> list[Slot]:
        """Reserves the tool calls of the response, in its order. May be called again for calls that come later."""
        active, made = self.active, list[Slot]()
        with active.lock:
            for call in calls:
                made.append(self._reserve(call))
            if active.replay is not None and made:
                self._claim(active.replay, made)
        for slot in made:
            active.recorder.push(slot)
        return made

    def _reserve(self, call: Requested) -> Slot:
        index, taken = len(self.slots), {slot.call_id for slot in self.slots}
        call_id = call.call_id if call.call_id and call.call_id not in taken else f"@{index}"
        slot = Slot(self, call, call_id, index, self.active.next_seq(), freeze_emitted(call.arguments))
        self.slots.append(slot)
        self.active.slots.add(slot)
        return slot

    def _claim(self, state: ReplayState, slots: Sequence[Slot]) -> None:
        offered = self.offered
        try:
            with state.lock:
                for slot in slots:
                    own = slot.identity
                    state.tape.claim(
                        CallView(
                            ref=call_ref(self.id, slot.call_id),
                            tool=slot.tool,
                            arguments=own.arguments,
                            key=own.key,
                            no_key=own.no_key,
                            path=own.path,
                            parameters=offered.get(slot.tool, _NOTHING).get("parameters"),
                        )
                    )
        except Exception as error:
            raise gating.broken(state, error, "announcing tool calls") from error

    def observe(self, outcome: Outcome | ModelResult) -> None:
        """Ends the call with the response (or, for an injected failure, with an outcome)."""
        if isinstance(outcome, Outcome):
            super().observe(outcome)
            return
        if self.ended_at is None:
            self.result = outcome
            self.outcome = (OutcomeKind.VALUE, freeze_stored(outcome.message), outcome.native)
            self._close(NodeStatus.COMPLETED)

    def view(self) -> ModelView:
        """The request as the model policy sees it, in stored form."""
        key = self.key
        return ModelView(
            ref=self.id,
            requested=self.request.model,
            request=self.plain_inputs(),
            key=key.key,
            no_key=key.no_key,
            path=path_of(self.parent),
        )

    def plain_inputs(self) -> JSON:
        """The whole request, nothing shared and nothing redacted."""
        return {
            "messages": [message for cell in self.cells for message in cell.plain],
            "tools": [tool for cell in self.tool_cells for tool in cell.plain],
            **thaw(self.params),
        }

    @property
    def key(self) -> ModelKey:
        """The request's key; read once, in a replay before the decision, else by the writer.

        Under the conversation's lock: the agent's thread and the writer may both be the first to ask.
        """
        if self._key is None:
            with self.conversation.lock:
                if self._key is None:
                    self._key = self._made_key()
        return self._key

    def _made_key(self) -> ModelKey:
        return self.conversation.key(
            self.request.model,
            self.cells,
            self.tool_cells,
            thaw(self.params),
            missing=self.request.missing,
            key_view=self.active.redactor.key_view,
        )
