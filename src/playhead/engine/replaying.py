"""What a replay adds to a session that is being recorded.

The replay engine makes a `ReplayState` and reads it again when the run is over; in between the seam works on it.
"""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from playhead.core.model_failure import ModelFailures
from playhead.core.policy import HistoryConfig, LiveModel, ModelPolicy, ReplayOverride, RunLive, Serve, Stop, ToolPolicy
from playhead.core.values import JSON, LedgerRow, Node, NoKey, Origin, Session, SessionStatus
from playhead.errors import PlayheadError, RecordingError, ReplayStop

if TYPE_CHECKING:
    from playhead.engine.models import ToolWriter


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelView:
    """What the model policy knows of one request. ``ref`` is the id of the model call's node."""

    ref: str
    requested: str | None
    request: JSON  # {"messages", "tools", "tool_choice", "params"}, plain stored form
    key: str | None
    no_key: NoKey | None = None
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The recording ends where this request would be sent: the replay ends too, as the baseline did."""

    status: SessionStatus
    output: JSON = None
    detail: str = "ended with the recording"


ModelDecision: TypeAlias = Serve | RunLive | Stop | Ended


class ModelAnswers(Protocol):
    """The model's side of the tape. `decide` claims and answers in one step, under the replay's lock.

    `cover` is told the recorded path of a tool call whose inside does not happen.
    """

    def decide(self, view: ModelView) -> ModelDecision: ...

    def hides(self, view: ModelView) -> Node | None:
        """The recorded call that would answer, without claiming it."""
        ...

    def cover(self, path: tuple[str, ...]) -> Sequence[Any]:
        """Marks what was recorded below a tool call (its ``child_path``) as covered; gives what is newly so."""
        ...

    def leftovers(self) -> Sequence[Any]: ...


class RecordingEnded(ReplayStop):
    """Latched when a replay ends where its recording does. Leaves the boundary unchanged; it is no miss."""

    def __init__(self, ended: Ended) -> None:
        super().__init__(PlayheadError(ended.detail))
        self.ended = ended


def _running_threads() -> frozenset[int]:
    return frozenset(t.ident for t in threading.enumerate() if t.ident is not None)


@dataclass(slots=True, kw_only=True)
class ReplayState:
    """Everything a replay adds to recording. The replay engine makes it; the seam works on it under ``lock``.

    Attributes:
        tape: a `core.tape.Tape`; ``answers`` is the model's side, None under a live model.
        model_failures: scripted failures of model requests; made of the model policy at the first request.
        widen: gives the newest calls of a tool for a config with a wide scope; asked once per tool.
        twin_of: the recorded model call that asked what a live one asks, each only once.
        writer: executes the llm policy. ``examples`` gives it (arguments, result) pairs of a tool.
        latch: the stop, once there is one; every later decision and model call raises it again.
        override_hits: for each override field, how many model calls it changed (adapters count).
        listings: recorded spans, from which servers of tools are answered; None where some tool may go live.
        servers: those whose recorded answers are in use.
        output_schemas: the declared output schema of a tool, where known.
        live_models: whether requests go out for real; False under model history.
        other_threads: threads that ran before the replay began; without its context they are no part of it.
        sessions: ids of the sessions recorded under this state, first the result session.
        stand_ins: what adapters put in the place of memories of the user's, by what tells those apart.
        thread: the thread in which it runs.
        over: the replay has ended: what its agent left running gets no answers any more.
        detached: this is a forked child; the replay goes on in its parent.
    """

    tape: Any
    baseline: Session | None = None
    replay_id: str | None = None
    policy: ToolPolicy = field(default_factory=ToolPolicy)
    model_policy: ModelPolicy = field(default_factory=LiveModel)
    answers: ModelAnswers | None = None
    twin_of: Callable[[ModelView], str | None] | None = None
    model_failures: ModelFailures | None = None
    override: ReplayOverride | None = None
    override_hits: Counter[str] = field(default_factory=Counter[str])
    widen: Callable[[str, HistoryConfig], Sequence[Node]] | None = None
    widened: set[str] = field(default_factory=set[str])
    writer: "ToolWriter | None" = None
    examples: Callable[[str], Sequence[tuple[JSON, JSON]]] | None = None
    output_schemas: dict[str, JSON] = field(default_factory=dict[str, JSON])
    parameters: dict[str, JSON] = field(default_factory=dict[str, JSON])
    listings: Sequence[Node] | None = None
    servers: set[JSON] = field(default_factory=set[JSON])
    origin: Origin = Origin.REPLAY
    redact: Callable[[JSON], JSON] | None = None  # what of arguments may stand in a ledger
    latch: ReplayStop | None = None
    on_latch: Callable[[ReplayStop], None] | None = None  # such as: the egress guard refuses everything from now on
    on_end: Callable[[Any], None] | None = None  # told of each session that has closed
    ledger: list[LedgerRow] = field(default_factory=list[LedgerRow])
    other_threads: frozenset[int] = field(default_factory=lambda: _running_threads())
    sessions: list[str] = field(default_factory=list[str])
    stand_ins: dict[Any, tuple[Any, Any]] = field(default_factory=dict[Any, tuple[Any, Any]])
    thread: int = field(default_factory=threading.get_ident)
    over: bool = False
    detached: bool = False
    lock: threading.RLock = field(default_factory=threading.RLock)

    def stop(self, error: PlayheadError) -> ReplayStop:
        """Latches a stop (the first one stays) and gives the one to raise."""
        return self.latch_with(ReplayStop(error))

    def latch_with(self, stop: ReplayStop) -> ReplayStop:
        with self.lock:
            if self.latch is None:
                self.latch = stop
                if self.on_latch is not None:
                    self.on_latch(stop)
            return self.latch

    def stand_in(self, key: Any, original: Any, make: Callable[[], Any]) -> Any:
        """What this replay has in the place of a memory of the user's (a checkpointer, a cache, a conversation), which
        it must not write to: made at first need, the same for the same key. The original is kept: ids go by it.
        """
        with self.lock:
            if key not in self.stand_ins:
                self.stand_ins[key] = (original, make())
            return self.stand_ins[key][1]

    def refuse(self, error: PlayheadError, tool: str | None = None) -> ReplayStop:
        """`stop`, for a call that nothing decides: the ledger shows it."""
        if not self.over:
            self.note(LedgerRow(kind="tool", by="stopped", tool=tool, detail=error.message))
        return self.stop(error)

    def check(self) -> None:
        """Raises the latched stop, if there is one, and when the replay is over."""
        if self.latch is not None:
            raise self.latch
        if self.over:
            raise self.stop(RecordingError("a call was made after the replay had ended, where nothing can answer it"))

    def note(self, row: LedgerRow) -> int:
        """Adds a ledger row and gives its index."""
        if self.redact is not None and row.arguments is not None:
            row = replace(row, arguments=self.redact(row.arguments))
        with self.lock:
            self.ledger.append(row)
            return len(self.ledger) - 1
