"""Agent versions and replays in SQLite."""

import hashlib
import sqlite3
from collections.abc import Mapping
from dataclasses import replace

from playhead.core.codec import FORMAT
from playhead.core.values import JSON, AgentVersion, Replay
from playhead.errors import ConflictError, NotFoundError
from playhead.store import lookup
from playhead.store.connection import Connections
from playhead.store.ports import Page
from playhead.store.queries import column_text
from playhead.store.sqlite_rows import of_doc, to_doc

_ADD_VERSION = "INSERT INTO agent_versions (id, agent, number, state, format, doc) VALUES (?, ?, ?, ?, ?, ?)"
_ADD_REPLAY = """
    INSERT INTO replays (id, baseline_session_id, status, created_at, idempotency_key, format, doc)
    VALUES (:id, :baseline_session_id, :status, :created_at, :idempotency_key, :format, :doc)
"""
_SET_REPLAY = """
    UPDATE replays SET baseline_session_id = :baseline_session_id, status = :status, created_at = :created_at,
        idempotency_key = :idempotency_key, format = :format, doc = :doc
    WHERE id = :id
"""
_FITTING_REPLAYS = """
    SELECT id FROM replays WHERE id = :text OR substr(id, 1, :size) = :text OR substr(id, -:size) = :text
    ORDER BY id = :text DESC LIMIT 20
"""


class SqliteAgents:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def register(self, version: AgentVersion) -> AgentVersion:
        agent, state = column_text(version.agent), hashlib.sha256(lookup.state(version)).digest()
        with self._connections.writing() as c:
            known = c.execute(
                "SELECT format, doc FROM agent_versions WHERE agent = ? AND state = ?", (agent, state)
            ).fetchone()
            if known is not None:
                return of_doc(AgentVersion, *known)
            if c.execute("SELECT 1 FROM agent_versions WHERE id = ?", (column_text(version.id),)).fetchone():
                raise ConflictError(f"agent version {version.id!r} exists with another run spec or fingerprint")
            number = c.execute(
                "SELECT coalesce(max(number), 0) + 1 FROM agent_versions WHERE agent = ?", (agent,)
            ).fetchone()[0]
            doc = to_doc(replace(version, number=number))
            c.execute(_ADD_VERSION, (column_text(version.id), agent, number, state, FORMAT, doc))
            return of_doc(AgentVersion, FORMAT, doc)

    def get(self, version_id: str) -> AgentVersion:
        with self._connections.reading() as c:
            row = c.execute(
                "SELECT format, doc FROM agent_versions WHERE id = ?", (column_text(version_id),)
            ).fetchone()
        if row is None:
            raise NotFoundError(f"no agent version {version_id!r}")
        return of_doc(AgentVersion, *row)

    def find(self, agent: str, number: int | None = None) -> AgentVersion:
        known = self.versions(agent)
        fitting = [version for version in known if number is None or version.number == number]
        if not fitting:
            raise lookup.no_version(agent, number, known)
        return fitting[-1]

    def names(self) -> list[str]:
        with self._connections.reading() as c:
            rows = c.execute("SELECT format, doc FROM agent_versions WHERE number = 1").fetchall()
        return sorted(of_doc(AgentVersion, *row).agent for row in rows)

    def versions(self, agent: str) -> list[AgentVersion]:
        with self._connections.reading() as c:
            rows = c.execute(
                "SELECT format, doc FROM agent_versions WHERE agent = ? ORDER BY number", (column_text(agent),)
            ).fetchall()
        return [of_doc(AgentVersion, *row) for row in rows]

    def set_capabilities(self, version_id: str, capabilities: Mapping[str, JSON]) -> AgentVersion:
        with self._connections.exclusive():
            doc = to_doc(replace(self.get(version_id), capabilities=dict(capabilities)))
            with self._connections.writing() as c:
                c.execute(
                    "UPDATE agent_versions SET format = ?, doc = ? WHERE id = ?",
                    (FORMAT, doc, column_text(version_id)),
                )
        return of_doc(AgentVersion, FORMAT, doc)


class SqliteReplays:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def create(self, replay: Replay) -> Replay:
        with self._connections.writing() as c:
            if replay.idempotency_key is not None:
                known = c.execute(
                    "SELECT format, doc FROM replays WHERE idempotency_key = ?",
                    (column_text(replay.idempotency_key),),
                ).fetchone()
                if known is not None:
                    return of_doc(Replay, *known)
            if c.execute("SELECT 1 FROM replays WHERE id = ?", (column_text(replay.id),)).fetchone():
                raise ConflictError(f"replay {replay.id!r} exists")
            return add_replay(c, replay)

    def save(self, replay: Replay) -> None:
        with self._connections.writing() as c:
            set_replay(c, replay)

    def get(self, replay_id: str) -> Replay:
        with self._connections.reading() as c:
            found = replay_row(c, replay_id)
        if found is None:
            raise NotFoundError(f"no replay {replay_id!r}")
        return found

    def resolve(self, text: str) -> str:
        def nth_newest(n: int) -> str | None:
            row = c.execute(
                "SELECT id FROM replays ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET ?", (n,)
            ).fetchone()
            return None if row is None else row[0]

        def fitting(part: str) -> list[str]:
            return [row[0] for row in c.execute(_FITTING_REPLAYS, {"text": column_text(part), "size": len(part)})]

        with self._connections.reading() as c:
            return lookup.resolve(text, "replay", nth_newest=nth_newest, fitting=fitting)

    def find(
        self, *, baseline_session_id: str | None = None, status: str | None = None, limit: int = 50,
        cursor: str | None = None,
    ) -> Page:  # fmt: skip
        after = lookup.Place((1 << 63) - 1, "") if cursor is None else lookup.place_of(cursor)
        values = {
            "baseline": None if baseline_session_id is None else column_text(baseline_session_id),
            "status": None if status is None else column_text(status),
            "at": after.at,
            "id": after.id,
            "limit": max(limit, 0) + 1,
        }
        with self._connections.reading() as c:
            rows = c.execute(_PAGE, values).fetchall()
        shown = rows[: max(limit, 0)]
        more = len(rows) > len(shown) and shown
        return Page(
            items=tuple(of_doc(Replay, format, doc) for _, _, format, doc in shown),
            next_cursor=lookup.cursor_of(lookup.Place(*shown[-1][:2])) if more else None,
        )


_PAGE = """
    SELECT created_at, id, format, doc FROM replays
    WHERE (:baseline IS NULL OR baseline_session_id = :baseline) AND (:status IS NULL OR status = :status)
        AND (created_at, id) < (:at, :id)
    ORDER BY created_at DESC, id DESC LIMIT :limit
"""


def add_replay(c: sqlite3.Connection, replay: Replay) -> Replay:
    row = _columns(replay)
    c.execute(_ADD_REPLAY, row)
    return of_doc(Replay, FORMAT, row["doc"])


def set_replay(c: sqlite3.Connection, replay: Replay) -> None:
    if not c.execute(_SET_REPLAY, _columns(replay)).rowcount:
        raise NotFoundError(f"no replay {replay.id!r}")


def replay_row(c: sqlite3.Connection, replay_id: str) -> Replay | None:
    row = c.execute("SELECT format, doc FROM replays WHERE id = ?", (column_text(replay_id),)).fetchone()
    return None if row is None else of_doc(Replay, *row)


def _columns(replay: Replay) -> dict[str, JSON]:
    key = replay.idempotency_key
    return {
        "id": column_text(replay.id),
        "baseline_session_id": column_text(replay.baseline_session_id),
        "status": replay.status.value,
        "created_at": replay.created_at,
        "idempotency_key": None if key is None else column_text(key),
        "format": FORMAT,
        "doc": to_doc(replay),
    }
