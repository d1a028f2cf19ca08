"""Model calls while they happen: the request as an adapter has it, the answer, and the announced tool calls between."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from playhead.core.occurrence import call_ref
from playhead.core.policy import CallView
from playhead.core.values import (
    JSON,
    Cost,
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
from playhead.engine.frames import Inside
from playhead.engine.replaying import ModelView, RecordingEnded, ReplayState
from playhead.engine.snapshot import freeze_emitted, freeze_stored, thaw
from playhead.engine.steps import Step
from playhead.engine.track import Requested, Slot, Track, path_of
from playhead.engine.transcript import Cell, Conversation, ModelKey, ToNormal
from playhead.errors import ReplayStop

_NOTHING: dict[str, JSON] = {}


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
    __slots__ = (
        "_key", "cells", "conversation", "occurrence", "params", "request", "result", "slots", "stands_for",
        "tool_cells",
    )  # fmt: skip

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
        self.stands_for: str | None = None  # in a replay, the recorded model call that it stands for

    def inside(self) -> AbstractContextManager[None]:
        """As of any step; what connects inside is the model's endpoint, which the egress guard lets through."""
        return super().inside() if self.active.replay is None else _asking(self)

    @property
    def offered(self) -> dict[str, JSON]:
        """The offered tools by name; only to be read, requests share them."""
        return self.conversation.offered(self.tool_cells)

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
        self.stands_for = answer.stands_for
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
                            asked_by=self.stands_for,
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
