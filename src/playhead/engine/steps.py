"""Steps: one node each while it happens. What adapters get from an `ActiveSession` and tell what came of it.

A step is pushed to the recorder when it starts and again when it ends; everything else about it is made by the writer.
In a replay a step's `decide` asks the tape first. Outside one it answers None at once.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from threading import get_ident
from typing import Any, ClassVar, Literal

from playhead.core.occurrence import call_ref, start_ref
from playhead.core.policy import CallView
from playhead.core.values import (
    JSON,
    Effect,
    ErrorInfo,
    Mark,
    Native,
    NodeKind,
    NodeStatus,
    Outcome,
    OutcomeKind,
    Provenance,
)
from playhead.engine import gating
from playhead.engine.failures import capture
from playhead.engine.frames import Inside
from playhead.engine.models import ToolRequest
from playhead.engine.snapshot import Snapshot, freeze, freeze_stored, weight
from playhead.engine.track import Identity, Requested, Slot, Track
from playhead.errors import ReplayStop

HEAVY = 64 * 1024
"""Values from this size on count against the recorder's bound in bytes."""

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
        return start_ref(f"{self.active.session_id}.{self.seq}")

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
