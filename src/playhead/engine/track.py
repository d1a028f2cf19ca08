"""The bookkeeping of one session: order, announced calls, occurrence numbers, the way to the recorder.

Identity of a call (key, path, occurrence) is made when somebody needs it: in a replay before the decision, on the
agent's thread; otherwise by the writer thread, which meets calls in the order in which they started.
"""

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from playhead.core.canonical import NoKeyError
from playhead.core.keys import call_key
from playhead.core.occurrence import Occurrences
from playhead.core.values import JSON, NoKey, path_step
from playhead.engine.replaying import ReplayState
from playhead.engine.snapshot import Snapshot, thaw


class Sink(Protocol):
    """What a track needs of the recorder."""

    clock: Any
    ids: Callable[[], str]
    secrets: Any
    seen: Any

    def push(self, item: Any) -> None: ...

    def push_heavy(self, item: Any, size: int) -> None: ...

    def count(self, what: str, error: BaseException | None = None) -> None: ...


@dataclass(frozen=True, slots=True)
class Requested:
    """One tool call of a model's response: arguments as emitted, JSON text or plain data."""

    call_id: str | None
    tool: str
    arguments: JSON = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What a call is: stored arguments, key and place."""

    arguments: JSON
    key: str | None
    no_key: NoKey | None
    path: tuple[str, ...]
    occurrence: int


class Slot:
    """The place of one announced call. ``attempts`` counts the steps that were opened for it.

    ``given`` is the id that the model sent; ``call_id`` is made up from the position where that is missing or repeated.
    """

    __slots__ = ("_identity", "arguments", "attempts", "call_id", "given", "index", "model", "seq", "settled", "tool")

    def __init__(self, model: Any, call: Requested, call_id: str, index: int, seq: int, arguments: Snapshot) -> None:
        self.model = model
        self.given = call.call_id
        self.call_id = call_id
        self.tool = call.tool
        self.index = index
        self.seq = seq
        self.arguments = arguments
        self.attempts = 0
        self.settled = False
        self._identity: Identity | None = None

    @property
    def scope(self) -> Any:
        return self.model.scope

    @property
    def identity(self) -> Identity:
        if self._identity is None:
            track: Track = self.model.active
            with track.lock:
                if self._identity is None:
                    self._identity = track.identify(self.tool, self.arguments, self.model.parent)
        return self._identity


@dataclass(slots=True)
class Slots:
    """Announced calls by the id that the model gave, oldest first."""

    by_id: dict[str, list[Slot]] = field(default_factory=dict[str, list[Slot]])
    undecided: dict[int, Slot] = field(default_factory=dict[int, Slot])

    def add(self, slot: Slot) -> None:
        if slot.given is not None:
            self.by_id.setdefault(slot.given, []).append(slot)
        self.undecided[slot.seq] = slot

    def take(self, slot: Slot) -> int:
        """Opens the slot's next attempt and gives its number."""
        slot.attempts += 1
        self.undecided.pop(slot.seq, None)
        return slot.attempts

    def find(self, call_id: str, tool: str, scope: Any) -> Slot | None:
        """The slot of a call that starts: in its own scope first, of the newest model call that used the id; there the
        first that nobody decided, else the last (a retry)."""
        known = [slot for slot in self.by_id.get(call_id, ()) if slot.tool == tool]
        return _newest([slot for slot in known if slot.scope is scope]) or _newest(known)

    def waiting(self, tool: str, scope: Any) -> list[Slot]:
        """Undecided slots of a tool, oldest first, those of the scope before others."""
        found = [slot for slot in self.undecided.values() if slot.tool == tool]
        return sorted(found, key=lambda slot: slot.scope is not scope)


def _newest(slots: list[Slot]) -> Slot | None:
    if not slots:
        return None
    same = [slot for slot in slots if slot.model is slots[-1].model]
    return next((slot for slot in same if not slot.attempts and not slot.settled), same[-1])


class Track:
    """One session's bookkeeping. `engine.active.ActiveSession` adds what adapters call."""

    def __init__(self, session_id: str, recorder: Sink, replay: ReplayState | None) -> None:
        self.session_id = session_id
        self.recorder = recorder
        self.replay = replay
        self.lock = threading.RLock()
        self.slots = Slots()
        self.redactor = recorder.secrets.for_run()
        self.closed = False
        self.detached = False  # in a forked child: the session belongs to the parent process
        self.next_seq = itertools.count(1).__next__
        self._occurrences = Occurrences()
        self._identities = 0

    def identify(self, tool: str, snapshot: Snapshot, parent: Any) -> Identity:
        """Makes the identity of a call and counts its occurrence."""
        path = path_of(parent)
        arguments: JSON = None
        key, no_key = None, None
        try:
            arguments = thaw(snapshot)
            key = call_key(tool, arguments, secrets=self.redactor)
        except NoKeyError as error:
            no_key = error.no_key
        with self.lock:
            self._identities += 1
            occurrence = self._occurrences.reserve(str(self._identities), tool=tool, key=key, path=path)
        return Identity(arguments=arguments, key=key, no_key=no_key, path=path, occurrence=occurrence)


def path_of(frame: Any) -> tuple[str, ...]:
    """The path of calls that run directly in a frame: the enclosing tool calls, outermost first."""
    while frame is not None:
        if getattr(frame, "tool", None) is not None:
            identity: Identity = frame.identity
            return (*identity.path, path_step(frame.tool, identity.key, identity.occurrence))
        frame = frame.parent
    return ()
