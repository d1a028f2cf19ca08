"""Recorded tool calls as the tape sees them: in recorded order, with a key under today's rules, and grouped.

An `Occurrence` is one recorded call with all its attempts. Its place in the order is where the model asked for it: by
the number that the recorder gave it, else by the response that announced it and its index there, else by its start.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from playhead.core.match import equal
from playhead.core.values import (
    JSON,
    SERVED_MARKS,
    Mark,
    Node,
    NodeKind,
    NodeStatus,
    NoKey,
    Outcome,
    OutcomeKind,
    ToolCall,
    path_step,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One recorded attempt of a tool call. ``position`` is its place in the recorded order of the tape."""

    node_id: str
    session_id: str
    tool: str
    arguments: JSON
    key: str | None
    no_key: NoKey | None
    path: tuple[str, ...]
    occurrence: int
    attempt: int
    outcome: Outcome | None
    mark: Mark
    overlapped: bool
    call_id: str | None
    model_call: str | None
    index: int | None
    source: str
    status: NodeStatus
    scope: JSON
    position: int
    started_at: int
    ended_at: int | None
    not_stored: str | None = None  # why there is no result to serve, where our own recorder knew

    @property
    def child_path(self) -> tuple[str, ...]:
        """The path that recorded calls below this one have."""
        return (*self.path, path_step(self.tool, self.key, self.occurrence))


class Unservable(NamedTuple):
    """Why a recording is never served: a stable ``reason`` and words for people."""

    reason: str
    words: str


def unservable(recording: Recording) -> Unservable | None:
    """Why the outcome cannot be served, None when it can."""
    outcome = recording.outcome
    if outcome is None:
        never = recording.status is NodeStatus.NEVER_RAN
        return Unservable("no_outcome", "was asked for and never ran" if never else "has no outcome: it was cancelled")
    if outcome.kind is OutcomeKind.INVALID_ARGS:
        return Unservable("invalid_args", "was recorded as invalid arguments: the tool did not run")
    if outcome.truncated is not None:
        return Unservable("truncated", f"was cut when it was recorded (full size {outcome.truncated.bytes:,} bytes)")
    if recording.mark not in SERVED_MARKS:
        own = recording.not_stored
        return Unservable("mark", _MARK_WORDS[recording.mark] if own is None else f"has no result to serve: {own}")
    return None


_MARK_WORDS = {
    Mark.REPR: "has the mark repr: only the Python text of the result was captured",
    Mark.REDACTED: "has the mark redacted: the source hid the result",
    Mark.TRUNCATED: "has the mark truncated: the source cut the result",
    Mark.MISSING: "has the mark missing: no result was captured; turn on capturing of tool results at the source",
}


def recordings(nodes: Sequence[Node]) -> list[Recording]:
    """The tool calls among ``nodes`` in recorded order, without those that the model's provider executed."""
    ordered = sorted(nodes, key=lambda n: n.seq)
    starts = {n.id: n.seq for n in ordered if n.kind is NodeKind.MODEL_CALL}
    paths = enclosing_paths(ordered)
    calls = [(n, n.call) for n in ordered if n.call is not None and n.call.source != "provider"]
    calls.sort(key=lambda pair: _rank(pair[0], pair[1], starts))
    return [_recording(node, call, paths[node.id], place) for place, (node, call) in enumerate(calls)]


def _rank(node: Node, call: ToolCall, starts: dict[str, int]) -> tuple[int, int, int, int]:
    asked = starts.get(call.model_call) if call.model_call is not None else None
    if asked is None or call.index is None:
        return (node.seq, 0, 0, call.attempt)
    return (asked, 1, call.index, call.attempt)


def _not_stored(node: Node) -> str | None:
    if (problem := node.attributes.get("not_stored")) is not None:
        return f"{problem}; playhead.register_type gives a type a stored form"
    served = node.attributes.get("not_served")
    return None if served is None else str(served)


def _recording(node: Node, call: ToolCall, path: tuple[str, ...], position: int) -> Recording:
    return Recording(
        node_id=node.id,
        session_id=node.session_id,
        tool=call.tool,
        arguments=call.arguments,
        key=call.key,
        no_key=call.no_key,
        path=path,
        occurrence=call.occurrence,
        attempt=call.attempt,
        outcome=node.outcome,
        mark=call.mark,
        overlapped=call.overlapped,
        call_id=call.call_id,
        model_call=call.model_call,
        index=call.index,
        source=call.source,
        status=node.status,
        scope=node.attributes.get("scope"),
        not_stored=_not_stored(node),
        position=position,
        started_at=node.started_at,
        ended_at=node.ended_at,
    )


def enclosing_paths(ordered: Iterable[Node]) -> dict[str, tuple[str, ...]]:
    """For each node its path of enclosing tool calls; a tool call's own recorded path counts before its parents'."""
    paths: dict[str, tuple[str, ...]] = {}
    below: dict[str, tuple[str, ...]] = {}
    for node in ordered:
        path = below.get(node.parent_id, ()) if node.parent_id is not None else ()
        call = node.call
        if call is None:
            paths[node.id] = below[node.id] = path
            continue
        paths[node.id] = call.path or path
        below[node.id] = (*paths[node.id], path_step(call.tool, call.key, call.occurrence))
    return paths


class Occurrence:
    """One recorded call with its attempts, and what became of it in this replay."""

    __slots__ = ("ambiguous", "attempts", "claimed", "covered", "key")

    def __init__(self, first: Recording, key: str) -> None:
        self.attempts = [first]
        self.key = key  # the matching key: stripped of what the policy ignores
        self.claimed: str | None = None  # slot of the call that claimed it
        self.covered = False
        self.ambiguous = False

    @property
    def first(self) -> Recording:
        return self.attempts[0]

    @property
    def free(self) -> bool:
        return self.claimed is None and not self.covered


class Group:
    """Equal recorded calls in their order; remembers where the unclaimed ones begin."""

    __slots__ = ("_next", "members")

    def __init__(self) -> None:
        self.members: list[Occurrence] = []
        self._next = 0

    def first_free(self, asked_by: str | None = None) -> Occurrence | None:
        """The first unclaimed member; before it the first of those that the model call ``asked_by`` asked for."""
        while self._next < len(self.members) and not self.members[self._next].free:
            self._next += 1  # claims are never given back, so nothing before this becomes free again
        free = self.members[self._next :]
        if asked_by is not None:
            own = (m for m in free if m.free and m.first.model_call == asked_by)
            return next(own, free[0] if free else None)
        return free[0] if free else None

    def settle(self) -> None:
        """Puts the members in order and finds those whose order nothing tells."""
        if len({m.first.key for m in self.members}) == 1 and len({m.first.path for m in self.members}) == 1:
            self.members.sort(key=lambda m: (m.first.occurrence, m.first.position))
        else:  # numbers of different keys say nothing about each other
            self.members.sort(key=lambda m: m.first.position)
        for cluster in _clusters([m for m in self.members if m.first.overlapped]):
            if any(not same_answer(cluster[0].first, other.first) for other in cluster[1:]):
                for member in cluster:
                    member.ambiguous = True


def _clusters(overlapped: list[Occurrence]) -> list[list[Occurrence]]:
    """Calls that ran beside each other, directly or through a third; one without an end runs on."""
    clusters: list[list[Occurrence]] = []
    end: int | None = -1
    for member in sorted(overlapped, key=lambda m: (m.first.started_at, m.first.position)):
        call = member.attempts[-1]
        if clusters and (end is None or member.first.started_at <= end):
            clusters[-1].append(member)
            end = None if end is None or call.ended_at is None else max(end, call.ended_at)
        else:
            clusters.append([member])
            end = call.ended_at
    return clusters


def same_answer(a: Recording, b: Recording) -> bool:
    """Whether it makes no difference which of the two answers."""
    return a.mark is b.mark and same_outcome(a.outcome, b.outcome)


def same_outcome(a: Outcome | None, b: Outcome | None) -> bool:
    """Whether two outcomes are equal for whoever gets them. Framework envelopes are not compared."""
    if a is None or b is None:
        return a is b
    if a.kind is not b.kind or a.truncated != b.truncated or not equal(a.value, b.value):
        return False
    x, y = a.error, b.error
    if x is None or y is None:
        return x is y
    return (
        (x.class_name, x.message, x.status, x.retry_after) == (y.class_name, y.message, y.status, y.retry_after)
        and equal(x.code, y.code)
        and equal(x.args, y.args)
    )
