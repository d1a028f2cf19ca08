"""Sessions and nodes in SQLite."""

import sqlite3
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from playhead.core.codec import FORMAT
from playhead.core.values import JSON, Node, Session, SessionStatus, Verdict
from playhead.errors import NotFoundError, UsageError
from playhead.store import lookup, queries
from playhead.store import sqlite_rows as rows
from playhead.store.connection import Connections
from playhead.store.content import content_digest, is_current
from playhead.store.history import newest_calls
from playhead.store.ports import Page, PutResult, SessionQuery
from playhead.store.queries import column_text
from playhead.store.segments import Known, Segment, build, learn, merge

_REMEMBERED = 128
"""Open sessions of which the writer remembers what their stream holds."""


@dataclass(slots=True)
class _Stream:
    """What the writer remembers of a session's stream, and of which state of it."""

    known: Known = field(default_factory=Known)
    mark: tuple[int, int] | None = None


class SqliteSessions:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._streams: OrderedDict[str, _Stream] = OrderedDict()

    # Writing

    def begin(self, session: Session) -> None:
        with self._connections.writing() as c:
            rows.add_session(c, session)

    def append(self, session_id: str, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if node.session_id != session_id:
                raise UsageError(f"node {node.id!r} belongs to session {node.session_id!r}, not {session_id!r}")
        with self._connections.exclusive():
            stream = self._stream(session_id)
            segment = build(nodes, stream.known)
            with self._connections.writing() as c:
                state = rows.state(c, session_id)
                if stream.mark not in (None, state[:2]):  # compacted or stored anew by somebody else meanwhile
                    stream = self._streams[session_id] = _Stream()
                    segment = build(nodes, stream.known)
                if not nodes:
                    return
                end = rows.add_segment(c, state.pk, segment)
                rows.add_calls(c, state, nodes)
                rows.forget_digest(c, state)
            stream.mark = (state.pk, state.epoch)
            learn(stream.known, segment, end.message, end.list)

    def finish(self, session: Session) -> None:
        with self._connections.exclusive():
            self._streams.pop(session.id, None)
            marks, merged = self._merged(session.id)
            with self._connections.writing() as c:
                pk = rows.add_session(c, session)
                rows.set_session(c, pk, lookup.merged(rows.session(c, session.id), session))
                if merged is not None and marks == rows.marks(c, pk):
                    rows.replace_segments(c, pk, merged)

    def put(
        self, session: Session, nodes: Sequence[Node], verdicts: Sequence[Verdict] = (), *, on_exists: str = "replace"
    ) -> PutResult:
        digest = content_digest(session, nodes, verdicts)
        segment = build(rows.last_of_each(nodes), Known(), final=True)
        with self._connections.writing() as c:
            row = c.execute("SELECT revision, digest FROM sessions WHERE id = ?", (column_text(session.id),)).fetchone()
            if row is not None:
                given = lookup.Replacing(session, tuple(verdicts))
                stored = rows.session(c, session.id), rows.verdicts(c, session.id)
                session, verdicts = made = lookup.replacing(*stored, session, verdicts)
                if made != given:
                    digest = content_digest(session, nodes, verdicts)
                kept = lookup.kept(session.id, on_exists, equal=lambda: _digest(c, session.id, row[1]) == digest)
                if kept is not None:
                    return kept
                rows.delete_session(c, session.id)
                session = replace(session, revision=row[0] + 1)
            pk = rows.add_session(c, session)
            c.execute("UPDATE sessions SET digest = ? WHERE pk = ?", (digest, pk))
            rows.add_segment(c, pk, segment, final=True)
            rows.add_calls(c, rows.state(c, session.id), nodes)
            rows.add_verdicts(c, pk, verdicts)
        self._streams.pop(session.id, None)
        return PutResult(session_id=session.id, result="created" if row is None else "updated")

    def update(
        self,
        session_id: str,
        *,
        status: SessionStatus | None = None,
        add_tags: Sequence[str] = (),
        remove_tags: Sequence[str] = (),
        metadata: Mapping[str, JSON] | None = None,
    ) -> Session:
        with self._connections.writing() as c:
            session = lookup.updated(rows.session(c, session_id), status, add_tags, remove_tags, metadata)
            rows.set_session(c, rows.state(c, session_id).pk, session)
            return rows.session(c, session_id)

    def delete(self, session_id: str, *, erase: bool = False) -> None:
        with self._connections.writing() as c:
            if not erase:
                rows.refuse_needed(c, session_id)
            rows.delete_session(c, session_id)
        self._streams.pop(session_id, None)
        self._connections.forget_history()

    def add_verdicts(
        self, session_id: str, verdicts: Sequence[Verdict], *, instead_of: Sequence[str] = ()
    ) -> None:  # fmt: skip
        with self._connections.writing() as c:
            state = rows.state(c, session_id)
            for evaluator in instead_of:
                c.execute(queries.DROP_VERDICTS, (state.pk, column_text(evaluator)))
            rows.add_verdicts(c, state.pk, verdicts)
            rows.forget_digest(c, state)

    # Reading

    def get(self, session_id: str) -> Session:
        with self._connections.reading() as c:
            return rows.session(c, session_id)

    def resolve(self, text: str, *, agent: str | None = None) -> str:
        named = None if agent is None else column_text(agent)

        def nth_newest(n: int) -> str | None:
            row = c.execute(queries.NTH_SESSION, {"agent": named, "n": n}).fetchone()
            return None if row is None else row[0]

        def fitting(part: str) -> list[str]:
            values = {"text": column_text(part), "size": len(part), "agent": named}
            return [row[0] for row in c.execute(queries.FITTING_SESSIONS, values)]

        with self._connections.reading() as c:
            return lookup.resolve(text, "session", nth_newest=nth_newest, fitting=fitting)

    def find(self, query: SessionQuery, *, limit: int = 50, cursor: str | None = None) -> Page:
        after = None if cursor is None else lookup.place_of(cursor)
        where = queries.page(queries.condition(query, after), oldest_first=query.oldest_first, limit=max(limit, 0) + 1)
        with self._connections.reading() as c:
            found = c.execute(*where).fetchall()
        shown = found[: max(limit, 0)]
        more = len(found) > len(shown) and shown
        return Page(
            items=tuple(rows.of_doc(Session, format, doc) for _, _, format, doc in shown),
            next_cursor=lookup.cursor_of(lookup.Place(*shown[-1][:2])) if more else None,
        )

    def count(self, query: SessionQuery) -> int:
        where = queries.condition(query)
        with self._connections.reading() as c:
            return c.execute(f"SELECT count(*) FROM sessions WHERE {where.text}", where.values).fetchone()[0]

    def nodes(
        self, session_id: str, *, payloads: bool = True, after_seq: int | None = None, limit: int | None = None
    ) -> list[Node]:
        def wanted(head: Mapping[str, JSON]) -> bool:
            return after_seq is None or head["seq"] > after_seq

        with self._connections.reading() as c:
            nodes = rows.nodes(c, session_id, payloads=payloads, wanted=None if after_seq is None else wanted)
        return nodes[:limit]

    def by_external(self, format: str, instance: str, external_id: str) -> Session | None:
        values = [column_text(text) for text in (format, instance, external_id)]
        with self._connections.reading() as c:
            row = c.execute(queries.BY_EXTERNAL, values).fetchone()
        return None if row is None else rows.of_doc(Session, *row)

    def newest_calls(
        self, tool: str, *, agent: str | None = None, session_ids: Sequence[str] | None = None
    ) -> list[Node]:
        with self._connections.reading() as c:
            return newest_calls(c, tool, agent, session_ids)

    def verdicts(self, session_id: str) -> list[Verdict]:
        with self._connections.reading() as c:
            return rows.verdicts(c, session_id)

    # Inside

    def _stream(self, session_id: str) -> _Stream:
        stream = self._streams.pop(session_id, None) or _Stream()
        self._streams[session_id] = stream
        while len(self._streams) > _REMEMBERED:
            self._streams.popitem(last=False)
        return stream

    def _merged(self, session_id: str) -> tuple[list[rows.Mark], Segment | None]:
        """All of a session in one segment, made while nobody is kept from writing; None when it is one already."""
        with self._connections.reading() as c:
            try:
                pk = rows.state(c, session_id).pk
            except NotFoundError:
                return [], None
            marks = rows.marks(c, pk)
            if not marks or (len(marks) == 1 and marks[0].final):
                return marks, None
            if any(mark.format != FORMAT for mark in marks):
                return marks, build(rows.nodes(c, session_id), Known(), final=True)
            return marks, merge(rows.stored(c, pk), rows.fetch(c))


def _digest(c: sqlite3.Connection, session_id: str, known: str | None) -> str:
    """The digest of what is stored; ``known`` is the one that its put left, unless something changed since."""
    if known is not None and is_current(known):
        return known
    return content_digest(rows.session(c, session_id), rows.nodes(c, session_id), rows.verdicts(c, session_id))
