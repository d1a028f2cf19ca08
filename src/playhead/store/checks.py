"""What may be wrong inside a SQLite store, in words."""

import hashlib
import sqlite3
from collections.abc import Iterator

from playhead.errors import FormatError, StoreError
from playhead.store import sqlite_rows as rows
from playhead.store.compression import decompress
from playhead.store.connection import Connections
from playhead.store.sqlite_jobs import lost_jobs

_ORPHANS = {
    "segments": "SELECT count(*) FROM segments WHERE session NOT IN (SELECT pk FROM sessions)",
    "verdicts": "SELECT count(*) FROM verdicts WHERE session NOT IN (SELECT pk FROM sessions)",
    "tags": "SELECT count(*) FROM session_tags WHERE session NOT IN (SELECT pk FROM sessions)",
    "indexed calls": "SELECT count(*) FROM calls WHERE session NOT IN (SELECT pk FROM sessions)",
    "references to shared values": """
        SELECT count(*) FROM session_shared
        WHERE session NOT IN (SELECT pk FROM sessions) OR shared NOT IN (SELECT pk FROM shared)
    """,
}
_UNREFERRED = "SELECT count(*) FROM shared WHERE pk NOT IN (SELECT shared FROM session_shared)"


def problems(connections: Connections) -> Iterator[str]:
    with connections.reading() as c:
        for (text,) in c.execute("PRAGMA integrity_check(20)").fetchall():
            if text != "ok":
                yield f"the file is damaged: {text}"
        for what, query in _ORPHANS.items():
            (count,) = c.execute(query).fetchone()
            if count:
                yield f"{count} {what} of sessions that do not exist"
        (count,) = c.execute(_UNREFERRED).fetchone()
        if count:
            yield f"{count} shared values that nothing refers to"
        yield from lost_jobs(c)
        yield from _shared(c)
        for pk, id in c.execute("SELECT pk, id FROM sessions ORDER BY pk").fetchall():
            yield from _session(c, pk, id)


def _shared(c: sqlite3.Connection) -> Iterator[str]:
    for (pk,) in c.execute("SELECT pk FROM shared ORDER BY pk").fetchall():
        digest, size, data = c.execute("SELECT digest, size, data FROM shared WHERE pk = ?", (pk,)).fetchone()
        try:
            text = decompress(data)
        except FormatError as error:
            yield f"shared value {digest.hex()}: {error.message}"
            continue
        if hashlib.sha256(text).digest() != digest or len(text) != size:
            yield f"shared value {digest.hex()} has other content"


def _session(c: sqlite3.Connection, pk: int, id: str) -> Iterator[str]:
    try:
        rows.session(c, id)
        rows.verdicts(c, id)
        found = rows.nodes(c, id)
    except (FormatError, StoreError, LookupError, TypeError, ValueError) as error:
        yield str(error) if id in str(error) else f"session {id}: {error}"
        return
    known = {node.id for node in found}
    for node in found:
        if node.parent_id is not None and node.parent_id not in known:
            yield f"session {id}: the parent {node.parent_id} of node {node.id} is not there"
