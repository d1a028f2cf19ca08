"""The session that is being recorded: what adapters hold.

It opens steps, finds the announced call that a tool call belongs to, and settles announced calls that no seam decided.
"""

import logging
import re
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from playhead.core.canonical import NoKeyError
from playhead.core.schema import first_error
from playhead.core.values import (
    JSON,
    Cost,
    Effect,
    ErrorInfo,
    LedgerRow,
    Mark,
    NodeKind,
    NodeStatus,
    Origin,
    Outcome,
    OutcomeKind,
    Provenance,
    SessionStatus,
    Usage,
)
from playhead.engine.failures import capture
from playhead.engine.frames import FRAME
from playhead.engine.model_step import ModelRequest, ModelStep
from playhead.engine.replaying import Ended, ModelAnswers, ModelDecision, ModelView, RecordingEnded, ReplayState
from playhead.engine.snapshot import NOTHING, Snapshot, freeze, freeze_emitted, same_arguments, thaw
from playhead.engine.steps import AgentStep, SilentStep, SpanStep, Step, ToolStep
from playhead.engine.track import Sink, Slot, Track
from playhead.engine.transcript import Cell, Conversations, shared_beginning
from playhead.errors import RecordingError

__all__ = ["ActiveSession", "Ended", "ModelAnswers", "ModelDecision", "ModelView", "RecordingEnded", "ReplayState"]

_MCP = re.compile(r"^mcp__.+?__")

log = logging.getLogger("playhead")
_unseen: set[tuple[str, str]] = set()


class OpenTurn(NamedTuple):
    """A turn of a session, from one number in the order of its steps to another."""

    input: Snapshot
    output: Snapshot
    first: int
    last: int


class ActiveSession(Track):
    """One open session. Safe to use from several threads and tasks."""

    parent = None
    kind = None

    def __init__(
        self, session_id: str, agent: str, recorder: Sink, *, replay: ReplayState | None = None,
        inputs: Snapshot = NOTHING, name: str | None = None, version: Any = None, origin: Origin = Origin.LIVE,
        tags: Sequence[str] = (), metadata: dict[str, JSON] | None = None, not_replayable: Sequence[str] = (),
    ) -> None:  # fmt: skip
        super().__init__(session_id, recorder, replay)
        self.active = self
        self.agent = agent
        self.name = name
        self.version = version
        self.origin = origin if replay is None else replay.origin
        self.inputs = inputs
        self.inputs_changed = False  # since the session was handed to the recorder
        self.tags = tuple(tags)
        self.metadata = dict(metadata or {})
        self.not_replayable = tuple(not_replayable)
        self.started_at: int = recorder.clock.now()
        self.ended_at: int | None = None
        self.status = SessionStatus.OPEN
        self.output: Snapshot = NOTHING
        self.error: ErrorInfo | None = None
        self.turns: list[OpenTurn] = []
        self.usage_total: Usage | None = None
        self.usage_beside: list[Usage] = []  # what a framework reports beyond the usage of its model calls
        self.costs_reported: list[Cost] = []  # a framework's own figures: then they count, not the model calls'
        self.effective_prompt: JSON = None
        self.effective_system_prompt: JSON = None
        self.runs: list[Any] = []  # last message of each finished framework run, to know a next turn
        self.run_count = 0
        self.calls_seen = {NodeKind.MODEL_CALL: 0, NodeKind.TOOL_CALL: 0}  # opened so far, for checks that any were
        self.adoptable = False  # opened by a replay: the agent's own boundary becomes this session
        self._conversations: dict[Step | None, Conversations] = {}
        self._tools: set[str] = set()  # whose calls a seam saw
        self._elsewhere: list[ToolStep] = []
        self.watched: set[str] = set()  # that an adapter sees whenever they run, if it is called at all

    def met(self, adapter: str) -> None:
        """Remembers an adapter that sees something of this session: what it cannot do refuses replays of it."""
        known: Any = self.metadata.setdefault("adapters", [])
        if adapter not in known:
            known.append(adapter)

    # steps

    def tool_call(
        self, tool: str, *, arguments: Any = None, call_id: str | None = None, effect: Effect = Effect.UNKNOWN,
        **attributes: JSON,
    ) -> ToolStep | SilentStep:  # fmt: skip
        """Opens a tool call.

        Args:
            tool: the name that the model saw.
            arguments: as emitted, or as seen where there is no call id; text or plain data.
            attributes: kept on the node, in stored form (``server`` and ``bare_tool`` of an MCP tool).

        Returns:
            A step; a silent one when the call directly around is the same call.
        """
        step = self.open_tool(tool, freeze_emitted(arguments), call_id=call_id)
        if isinstance(step, ToolStep):
            step.effect = effect
            if attributes:
                step.note(**attributes)
        return step

    def open_tool(self, tool: str, arguments: Snapshot, *, call_id: str | None = None) -> ToolStep | SilentStep:
        """`tool_call` for arguments that are a snapshot already."""
        if self.replay is not None:
            self.replay.check()
        frame = FRAME.get()
        parent: Step | None = frame if frame is not None and frame is not self and frame.active is self else None
        if type(parent) is ToolStep and _is_named(parent, tool) and _asks(parent, arguments):
            return SilentStep(parent)
        if self._elsewhere and call_id is None and (around := self._around(tool, arguments)) is not None:
            return SilentStep(around)
        slots = self.slots
        attempt, seq = 1, 0
        with self.lock:  # finding and taking at once: equal calls of two threads get a slot each
            slot = self._find(tool, arguments, call_id, parent) if slots.undecided or call_id is not None else None
            if slot is not None:
                attempt = slots.take(slot)
                seq = slot.seq if attempt == 1 else 0
                call_id = slot.call_id
        step = ToolStep(self, parent, tool, seq or self.next_seq(), arguments, slot, attempt, call_id)
        self.calls_seen[NodeKind.TOOL_CALL] += 1
        self._tools.add(tool)
        self.recorder.push(step)
        return step

    def runs_elsewhere(self, step: ToolStep) -> None:
        """The call runs where no context tells of it (another program asks this one back): the same call of a decorated
        function, made until it ends, is this one."""
        self._elsewhere = [*(one for one in self._elsewhere if one.ended_at is None), step]

    def _around(self, tool: str, arguments: Snapshot) -> ToolStep | None:
        running = (step for step in self._elsewhere if step.ended_at is None and _bare(step.tool) == _bare(tool))
        return next((step for step in running if _asks(step, arguments)), None)

    def _find(self, tool: str, arguments: Snapshot, call_id: str | None, parent: Step | None) -> Slot | None:
        scope = parent if parent is None or parent.kind is not NodeKind.SPAN else parent.scope
        with self.lock:
            if call_id is not None:
                return self.slots.find(call_id, tool, scope)
            for slot in self.slots.waiting(tool, scope):
                if same_arguments(slot.arguments, arguments):
                    return slot
        return None

    def model_call(self, name: str, *, request: ModelRequest, **attributes: JSON) -> ModelStep | SilentStep:
        """Opens a model call, and settles announced calls whose results the request shows.

        Raises:
            ReplayStop: a stop is latched, so nothing more is sent.
        """
        if self.replay is not None:
            self.replay.check()
        parent = self._parent()
        if isinstance(parent, ModelStep):
            return SilentStep(parent)
        scope = parent if parent is None or parent.kind is not NodeKind.SPAN else parent.scope
        with self.lock:
            place = self._conversations.get(scope)
            if place is None:
                place = self._conversations[scope] = Conversations()
            conversation = place.of(request.messages)
            cells = conversation.read(request.messages, request.to_normal)
            tools = place.tools(request.tools)
        if self.slots.undecided:
            self.settle(cells, scope)
        step = ModelStep(self, parent, name, self.next_seq(), request, cells, tools, conversation)
        self.calls_seen[NodeKind.MODEL_CALL] += 1
        if attributes:
            step.note(**attributes)
        self.recorder.push(step)
        return step

    def span(self, name: str, inputs: Any = None, **attributes: JSON) -> SpanStep:
        """Opens a span; ``inputs`` is any Python value."""
        return self._open(SpanStep(self, self._parent(), name, self.next_seq(), freeze(inputs)), attributes)

    def agent_call(self, name: str, inputs: Any = None, **attributes: JSON) -> AgentStep:
        """Opens a run inside this one (a sub-agent, a handoff)."""
        return self._open(AgentStep(self, self._parent(), name, self.next_seq(), freeze(inputs)), attributes)

    def _open(self, step: Any, attributes: dict[str, JSON]) -> Any:
        if attributes:
            step.note(**attributes)
        self.recorder.push(step)
        return step

    def _parent(self) -> Step | None:
        frame = FRAME.get()
        return frame if frame is not None and frame is not self and frame.active is self else None

    def provider_call(
        self, model: ModelStep, tool: str, *, call_id: str | None, arguments: Any, outcome: Outcome | None
    ) -> None:
        """Records a tool that the model's provider executed. Nothing can gate it."""
        step = ToolStep(self, model, tool, self.next_seq(), freeze_emitted(arguments), None, 1, call_id)
        step.source = "provider"
        step.note(executor="provider")
        if self.replay is not None:
            by = model.provenance.by if model.provenance is not None else "live"
            step.provenance = Provenance(by=by)
            self.replay.note(
                LedgerRow(
                    kind="tool", by="served" if by == "served" else "live", tool=tool, node_id=step.id,
                    marks=("provider",),
                )
            )  # fmt: skip
        self.recorder.push(step)
        if outcome is None:
            step.cancel()
        else:
            step.observe(outcome)

    # announced calls that no seam decided

    def settle(self, cells: Sequence[Cell], scope: Step | None = None) -> None:
        """Records announced calls whose results stand in a request although nobody decided them.

        What the request that announced them said already is not their result.
        """
        results: dict[int, dict[str, JSON]] = {}  # by how much of the request was known
        for slot in [slot for slot in self.slots.undecided.values() if slot.scope is scope]:
            known = shared_beginning(slot.model.cells, cells)
            if known not in results:
                results[known] = {id: part for cell in cells[known:] for id, part in cell.results.items()}
            names = (slot.given, slot.call_id, f"call:{slot.index}")
            found = next((results[known][name] for name in names if name in results[known]), None)
            if found is not None:
                self._settle(slot, found)

    def _settle(self, slot: Slot, part: JSON) -> None:
        content, refused = part["content"], _refused(slot, part)
        kind = OutcomeKind.VALUE
        if refused:
            kind = OutcomeKind.INVALID_ARGS if _unreadable(slot) else OutcomeKind.RESULT_ERROR
        step = self._take(slot)
        step.source = "transcript"
        step.mark = Mark.TEXT if isinstance(content, str) else Mark.EXACT
        outcome = Outcome(kind=kind, value=content)
        self.recorder.push(step)
        if self.replay is not None:
            self._settle_replayed(self.replay, step, outcome, refused, own_answer=self._is_own(slot))
        elif not refused and slot.tool not in self._tools and not self._is_own(slot):
            self._note_unseen_tool(slot.tool)
        step.observe(outcome)

    def _is_own(self, slot: Slot) -> bool:
        """Whether an answer that no seam saw is one that the agent gave by itself, without running the tool: there the
        seam has seen another tool of those run, so it would have seen this one.
        """
        seen = slot.tool in self.watched and not self.watched.isdisjoint(self._tools)
        return seen or _misfits(slot)

    def was_run(self, tool: str) -> None:
        """A framework says that it has run a tool; whose models are told so in words that hold no id of a call."""
        if self.replay is None and tool not in self._tools:
            self._note_unseen_tool(tool)

    def _note_unseen_tool(self, tool: str) -> None:
        """Nothing could keep it from running for real in a replay, so preflight asks first."""
        known: Any = self.metadata.setdefault("unseen_tools", [])
        if tool not in known:
            known.append(tool)
        if (self.agent, tool) in _unseen:
            return
        _unseen.add((self.agent, tool))
        log.warning(
            "playhead: tool %r of %r was answered and nothing saw it run: session %s has its result from the next "
            "model request alone, and a replay could not keep it from running for real. Wrap it with @playhead.tool; "
            "where an adapter should have seen it, its framework calls tools in a way that is not known here",
            tool, self.agent, self.session_id,
        )  # fmt: skip

    def _take(self, slot: Slot) -> ToolStep:
        with self.lock:
            attempt = self.slots.take(slot)
        slot.settled = True
        return ToolStep(self, slot.model.parent, slot.tool, slot.seq, slot.arguments, slot, attempt, slot.call_id)

    def _settle_replayed(
        self, state: ReplayState, step: ToolStep, outcome: Outcome, refused: bool, *, own_answer: bool = False
    ) -> None:
        """An answer that does not say that it is a refusal may be one all the same, of a loop that checks calls itself
        (``own_answer``), where a tool that is seen when it runs was not seen. It counts where the recording has it too.
        """
        own = step.identity
        shown = Outcome(kind=outcome.kind, value=state.redact(outcome.value) if state.redact else outcome.value)
        with state.lock:
            rejection = state.tape.reject(step.ref, shown)
            refused = refused or (rejection.same and (own_answer or _is_seen(state, step.tool)))
            by = "rejected" if refused else "live"
            recording = rejection.recording
            step.provenance = Provenance(by=by, node_id=recording.node_id if recording else None)
            state.note(
                LedgerRow(
                    kind="tool", by=by, tool=step.tool, arguments=own.arguments, key=own.key, path=own.path,
                    occurrence=own.occurrence, node_id=step.id,
                    from_session=recording.session_id if recording else None,
                    from_node=recording.node_id if recording else None,
                    marks=("outside the seam",) if not refused else ("rejected again",) if rejection.same else (),
                )
            )  # fmt: skip
        if by == "live" and state.policy.config_for(step.tool).type != "passthrough":
            error = RecordingError(
                f"tool {step.tool!r} ran outside playhead: its result is in the next model request, but nothing asked "
                "for a decision",
                hint="wrap it with @playhead.tool, or let it run live with a passthrough policy",
            )
            raise state.stop(error)

    def refused(self, tool: str, outcome: Outcome, *, arguments: Any = None, call_id: str | None = None) -> None:
        """Records a call that the framework answered before any tool ran: bad arguments, a person's refusal.

        In a replay it claims its recorded occurrence; refused again with the same outcome it counts as served.
        """
        step = self.tool_call(tool, arguments=arguments, call_id=call_id)
        if not isinstance(step, ToolStep):
            return
        step.source = "transcript"
        if self.replay is not None:
            with self.replay.lock:
                self.replay.tape.claim(step.view())
            self._settle_replayed(self.replay, step, outcome, True)
        step.observe(outcome)

    # the end

    def set_output(self, value: Any) -> None:
        """Gives the session's output, a Python value; what the boundary gives later counts instead."""
        self.output = freeze(value)

    def finish(
        self, status: SessionStatus, *, output: Any = None, error: BaseException | ErrorInfo | None = None
    ) -> None:
        """Closes the session; the first closing counts. ``output`` is any Python value."""
        with self.lock:
            if self.closed:
                return
            self.closed = True
            waiting = list(self.slots.undecided.values())
        for slot in waiting:
            step = self._take(slot)
            self.recorder.push(step)
            step._close(NodeStatus.NEVER_RAN)  # pyright: ignore[reportPrivateUsage]
        if output is not None:
            self.set_output(output)
        if isinstance(error, BaseException):
            error = capture(error)
        self.error = error
        self.status = status
        self.ended_at = self.recorder.clock.now()
        self.recorder.push(self)


def _bare(tool: str) -> str:
    return _MCP.sub("", tool) if tool.startswith("mcp__") else tool


def _is_named(outer: ToolStep, tool: str) -> bool:
    """Whether it is the same tool; frameworks put names of their own before those of MCP servers' tools."""
    return _bare(outer.tool) == _bare(tool) or (outer.attributes or {}).get("bare_tool") == tool


def _asks(outer: ToolStep, arguments: Snapshot) -> bool:
    asked = outer.slot.arguments if outer.slot is not None else outer.arguments
    return same_arguments(asked, arguments)


def _refused(slot: Slot, part: JSON) -> bool:
    """Whether a result that no seam gave says that the framework refused the call before any tool ran."""
    offered = slot.model.offered
    return bool(part.get("is_error")) or _unreadable(slot) or (bool(offered) and slot.tool not in offered)


def _is_seen(state: ReplayState, tool: str) -> bool:
    """Whether the recording has a call of the tool that came through the seam."""
    return any(attempt.source == "seam" for call in state.tape.recorded(tool) for attempt in call.attempts)


def _misfits(slot: Slot) -> bool:
    """Whether the arguments do not fit the tool's schema: then a loop of one's own may have answered in its stead."""
    try:
        arguments = thaw(slot.arguments)
    except NoKeyError:
        return False
    return first_error(slot.model.offered.get(slot.tool, {}).get("parameters"), arguments) is not None


def _unreadable(slot: Slot) -> bool:
    """Whether the model's arguments are no JSON. Does not count the call: `Slot.identity` would."""
    try:
        arguments = thaw(slot.arguments)
    except NoKeyError:
        return False
    return isinstance(arguments, dict) and "$invalid" in arguments and len(cast("dict[str, JSON]", arguments)) == 1
