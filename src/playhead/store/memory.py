"""The store in memory: the reference for every other backend, and a test double for users.

Values are kept as JSON text, so that nobody can change what is stored through a value that was handed in or out, and
what comes back has been through the same form as with any other backend.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from playhead.core.codec import decode, dump, encode, load
from playhead.core.values import JSON, AgentVersion, Imported, Node, Origin, Replay, Session, SessionStatus, Verdict
from playhead.errors import ConflictError, NotFoundError, UsageError
from playhead.store import lookup
from playhead.store.cohort_rules import needed
from playhead.store.content import content_digest, node_of, split
from playhead.store.memory_evaluators import MemoryEvaluators
from playhead.store.memory_experiments import MemoryCohorts, MemoryExperiments
from playhead.store.memory_jobs import MemoryJobs
from playhead.store.ports import (
    AgentPort,
    CohortPort,
    EvaluatorPort,
    ExperimentPort,
    JobPort,
    Page,
    PutResult,
    ReplayPort,
    SessionPort,
    SessionQuery,
    SuitePort,
)

P = TypeVar("P")
T = TypeVar("T", Session, AgentVersion, Replay, Verdict)


def _freeze(value: Any) -> bytes:
    return encode(dump(value))


def _thaw(cls: type[T], text: bytes) -> T:
    return load(cls, decode(text), trusted=True)


@dataclass(slots=True)
class _Held:
    """One session: nodes as (seq, head, payload) by id. ``shown`` is for reading only and never handed out."""

    session: bytes
    shown: Session
    nodes: dict[str, tuple[int, bytes, bytes]] = field(default_factory=dict[str, tuple[int, bytes, bytes]])
    verdicts: dict[tuple[str | None, str], bytes] = field(default_factory=dict[tuple[str | None, str], bytes])
    digest: str | None = None


class MemorySessions:
    def __init__(self, lock: threading.RLock, holding: Callable[[str], list[str]]) -> None:
        self._lock = lock
        self._holding = holding  # the cohort versions that need a session
        self._held: dict[str, _Held] = {}
        self._external: dict[tuple[str, str, str], set[str]] = {}

    def begin(self, session: Session) -> None:
        with self._lock:
            if session.id not in self._held:
                self._set(session)

    def append(self, session_id: str, nodes: Sequence[Node]) -> None:
        with self._lock:
            held = self._get(session_id)
            for node in nodes:
                if node.session_id != session_id:
                    raise UsageError(f"node {node.id!r} belongs to session {node.session_id!r}, not {session_id!r}")
            held.nodes.update((node.id, _frozen_node(node)) for node in nodes)
            held.digest = None

    def finish(self, session: Session) -> None:
        with self._lock:
            held = self._held.get(session.id)
            self._set(session if held is None else lookup.merged(held.shown, session))

    def put(
        self, session: Session, nodes: Sequence[Node], verdicts: Sequence[Verdict] = (), *, on_exists: str = "replace"
    ) -> PutResult:
        digest = content_digest(session, nodes, verdicts)
        with self._lock:
            known = self._held.get(session.id)
            if known is not None:
                stored = self.get(session.id)
                session, verdicts = lookup.replacing(stored, self.verdicts(session.id), session, verdicts)
                digest = content_digest(session, nodes, verdicts)
                kept = lookup.kept(session.id, on_exists, equal=lambda: self._digest(session.id) == digest)
                if kept is not None:
                    return kept
                session = replace(session, revision=stored.revision + 1)
                self._drop(session.id)
            held = self._set(session)
            held.digest = digest
            held.nodes.update((node.id, _frozen_node(node)) for node in nodes)
            held.verdicts.update(((v.evaluator, v.name), _freeze(v)) for v in verdicts)
            return PutResult(session_id=session.id, result="created" if known is None else "updated")

    def get(self, session_id: str) -> Session:
        with self._lock:
            return _thaw(Session, self._get(session_id).session)

    def resolve(self, text: str, *, agent: str | None = None) -> str:
        with self._lock:
            query = SessionQuery(agents=None if agent is None else (agent,))
            sessions = self._matching(query)
            counted = [s.id for s in sessions if s.origin not in lookup.UNCOUNTED]
            return lookup.resolve(
                text,
                "session",
                nth_newest=lambda n: counted[n] if n < len(counted) else None,
                fitting=lambda part: [s.id for s in sessions if s.id.startswith(part) or s.id.endswith(part)],
            )

    def find(self, query: SessionQuery, *, limit: int = 50, cursor: str | None = None) -> Page:
        with self._lock:
            page = _page(self._matching(query), _session_place, limit, cursor, query.oldest_first)
            return replace(page, items=tuple(self.get(session.id) for session in page.items))

    def count(self, query: SessionQuery) -> int:
        with self._lock:
            return len(self._matching(query))

    def nodes(
        self, session_id: str, *, payloads: bool = True, after_seq: int | None = None, limit: int | None = None
    ) -> list[Node]:
        with self._lock:
            held = self._get(session_id).nodes
            rows = sorted((seq, id) for id, (seq, _, _) in held.items() if after_seq is None or seq > after_seq)
            return [_thawed_node(held[id], payloads) for _, id in rows[:limit]]

    def update(
        self,
        session_id: str,
        *,
        status: SessionStatus | None = None,
        add_tags: Sequence[str] = (),
        remove_tags: Sequence[str] = (),
        metadata: Mapping[str, JSON] | None = None,
    ) -> Session:
        with self._lock:
            session = lookup.updated(self._get(session_id).shown, status, add_tags, remove_tags, metadata)
            return _thaw(Session, self._set(session).session)

    def delete(self, session_id: str, *, erase: bool = False) -> None:
        with self._lock:
            if not erase and (holders := self._holding(session_id)):
                raise needed(session_id, holders)
            self._drop(session_id)

    def by_external(self, format: str, instance: str, external_id: str) -> Session | None:
        with self._lock:
            found = [self._held[id].shown for id in self._external.get((format, instance, external_id), ())]
            return self.get(max(found, key=_session_place).id) if found else None

    def newest_calls(
        self, tool: str, *, agent: str | None = None, session_ids: Sequence[str] | None = None
    ) -> list[Node]:
        query = SessionQuery(
            agents=None if agent is None else (agent,),
            ids=None if session_ids is None else tuple(session_ids),
            origins=(Origin.LIVE, Origin.IMPORT) if session_ids is None else None,
        )
        with self._lock:
            ids = [session.id for session in self._matching(query)]
            return lookup.newest_by_key((node for id in ids for node in self.nodes(id)), tool)

    def add_verdicts(
        self, session_id: str, verdicts: Sequence[Verdict], *, instead_of: Sequence[str] = ()
    ) -> None:  # fmt: skip
        with self._lock:
            held = self._get(session_id)
            for place in [place for place in held.verdicts if place[0] in instead_of]:
                del held.verdicts[place]
            held.verdicts.update(((v.evaluator, v.name), _freeze(v)) for v in verdicts)
            held.digest = None

    def verdicts(self, session_id: str) -> list[Verdict]:
        with self._lock:
            return [_thaw(Verdict, text) for text in self._get(session_id).verdicts.values()]

    def _get(self, session_id: str) -> _Held:
        held = self._held.get(session_id)
        if held is None:
            raise NotFoundError(f"no session {session_id!r}")
        return held

    def _set(self, session: Session) -> _Held:
        """Keeps the state of a session, new or not."""
        text = _freeze(session)
        shown = _thaw(Session, text)
        held = self._held.get(session.id)
        if held is None:
            held = self._held[session.id] = _Held(text, shown)
        else:
            self._forget_external(held.shown)
            held.session, held.shown, held.digest = text, shown, None
        if shown.imported is not None:
            self._external.setdefault(_external(shown.imported), set()).add(shown.id)
        return held

    def _drop(self, session_id: str) -> None:
        self._forget_external(self._get(session_id).shown)
        del self._held[session_id]

    def _forget_external(self, shown: Session) -> None:
        if shown.imported is not None:
            self._external[_external(shown.imported)].discard(shown.id)

    def _digest(self, session_id: str) -> str:
        held = self._held[session_id]
        return held.digest or content_digest(self.get(session_id), self.nodes(session_id), self.verdicts(session_id))

    def _matching(self, query: SessionQuery) -> list[Session]:
        """Sessions as they are kept: only to be looked at."""
        found = [held.shown for held in self._held.values() if lookup.fits(held.shown, query)]
        return sorted(found, key=lambda s: (s.started_at, s.id), reverse=not query.oldest_first)


class MemoryAgents:
    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self._held: dict[str, bytes] = {}

    def register(self, version: AgentVersion) -> AgentVersion:
        with self._lock:
            known = self.versions(version.agent)
            for other in known:
                if lookup.state(other) == lookup.state(version):
                    return other
            if version.id in self._held:
                raise ConflictError(f"agent version {version.id!r} exists with another run spec or fingerprint")
            stored = replace(version, number=max((v.number for v in known), default=0) + 1)
            self._held[version.id] = _freeze(stored)
            return stored

    def get(self, version_id: str) -> AgentVersion:
        with self._lock:
            if version_id not in self._held:
                raise NotFoundError(f"no agent version {version_id!r}")
            return _thaw(AgentVersion, self._held[version_id])

    def find(self, agent: str, number: int | None = None) -> AgentVersion:
        known = self.versions(agent)
        fitting = [version for version in known if number is None or version.number == number]
        if not fitting:
            raise lookup.no_version(agent, number, known)
        return fitting[-1]

    def names(self) -> list[str]:
        with self._lock:
            return sorted({_thaw(AgentVersion, text).agent for text in self._held.values()})

    def versions(self, agent: str) -> list[AgentVersion]:
        with self._lock:
            found = [_thaw(AgentVersion, text) for text in self._held.values()]
        return sorted((version for version in found if version.agent == agent), key=lambda v: v.number)

    def set_capabilities(self, version_id: str, capabilities: Mapping[str, JSON]) -> AgentVersion:
        with self._lock:
            self._held[version_id] = _freeze(replace(self.get(version_id), capabilities=dict(capabilities)))
            return self.get(version_id)


class MemoryReplays:
    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self._held: dict[str, bytes] = {}

    def create(self, replay: Replay) -> Replay:
        with self._lock:
            if replay.idempotency_key is not None:
                for other in self._all():
                    if other.idempotency_key == replay.idempotency_key:
                        return other
            if replay.id in self._held:
                raise ConflictError(f"replay {replay.id!r} exists")
            self._held[replay.id] = _freeze(replay)
            return self.get(replay.id)

    def save(self, replay: Replay) -> None:
        with self._lock:
            self.get(replay.id)
            self._held[replay.id] = _freeze(replay)

    def get(self, replay_id: str) -> Replay:
        with self._lock:
            if replay_id not in self._held:
                raise NotFoundError(f"no replay {replay_id!r}")
            return _thaw(Replay, self._held[replay_id])

    def resolve(self, text: str) -> str:
        with self._lock:
            ids = [replay.id for replay in self._all()]
        return lookup.resolve(
            text,
            "replay",
            nth_newest=lambda n: ids[n] if n < len(ids) else None,
            fitting=lambda part: [id for id in ids if id.startswith(part) or id.endswith(part)],
        )

    def find(
        self, *, baseline_session_id: str | None = None, status: str | None = None, limit: int = 50,
        cursor: str | None = None,
    ) -> Page:  # fmt: skip
        with self._lock:
            found = [
                replay
                for replay in self._all()
                if baseline_session_id in (None, replay.baseline_session_id) and status in (None, replay.status)
            ]
        return _page(found, _replay_place, limit, cursor, False)

    def _all(self) -> list[Replay]:
        found = [_thaw(Replay, text) for text in self._held.values()]
        return sorted(found, key=lambda r: (r.created_at, r.id), reverse=True)


class MemoryStore:
    """A store that lives as long as the object. Safe for threads; not shared between processes."""

    def __init__(self) -> None:
        lock = threading.RLock()
        self.url = "memory:"
        self.cohorts: CohortPort = MemoryCohorts(lock)
        self.experiments: ExperimentPort = MemoryExperiments(lock)
        self.sessions: SessionPort = MemorySessions(lock, self.cohorts.holding)
        self.agents: AgentPort = MemoryAgents(lock)
        self.replays: ReplayPort = MemoryReplays(lock)
        self.jobs: JobPort = MemoryJobs(lock, self.replays, _page)
        self.evaluators: EvaluatorPort = MemoryEvaluators(lock)
        self._lock = lock
        self._suites: SuitePort | None = None

    @property
    def suites(self) -> SuitePort:
        with self._lock:
            if self._suites is None:
                from playhead.store.memory_suites import MemorySuites

                self._suites = MemorySuites(self._lock)
            return self._suites

    def check(self) -> Iterator[str]:
        return iter(())

    def close(self) -> None:
        """Nothing to release; what was stored stays."""


def _frozen_node(node: Node) -> tuple[int, bytes, bytes]:
    parts = split(node)
    return node.seq, encode(parts.head), encode(parts.payload)


def _thawed_node(row: tuple[int, bytes, bytes], payloads: bool) -> Node:
    _, head, payload = row
    return node_of(decode(head), decode(payload) if payloads else None)


def _external(imported: Imported) -> tuple[str, str, str]:
    return (imported.format, imported.instance, imported.external_id)


def _session_place(session: Session) -> lookup.Place:
    return lookup.Place(session.started_at, session.id)


def _replay_place(replay: Replay) -> lookup.Place:
    return lookup.Place(replay.created_at, replay.id)


def _page(
    items: Sequence[P], place: Callable[[P], lookup.Place], limit: int, cursor: str | None, oldest_first: bool
) -> Page:
    if cursor is not None:
        after = lookup.place_of(cursor)
        items = [item for item in items if (place(item) > after if oldest_first else place(item) < after)]
    page = tuple(items[: max(limit, 0)])
    more = len(items) > len(page) and page
    return Page(items=page, next_cursor=lookup.cursor_of(place(page[-1])) if more else None)
