"""Rows of the SQLite store to values and back. Every function runs inside the caller's transaction."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from playhead.core.codec import FORMAT, decode, dump, encode, load
from playhead.core.values import JSON, Node, Origin, Session, Verdict
from playhead.errors import FormatError, NotFoundError, StoreDamagedError
from playhead.store import lookup, queries
from playhead.store.compression import compress, decompress
from playhead.store.queries import column_text
from playhead.store.segments import Segment, Stored, read

V = TypeVar("V")

CHECK = "playhead doctor lists what is damaged"

HISTORY = (Origin.LIVE, Origin.IMPORT)
"""Origins whose calls the history of an agent is made of."""


class State(NamedTuple):
    """A session's row as a writer needs it."""

    pk: int
    epoch: int
    agent: str
    origin: str
    digest: str | None


class StreamEnd(NamedTuple):
    """Numbers that the next segment of a stream begins with."""

    n: int
    message: int
    list: int


def to_doc(value: Any) -> bytes:
    return compress(encode(dump(value)))


def of_doc(cls: type[V], format: int, doc: bytes) -> V:
    """
    Raises:
        StoreDamagedError: not what was stored.
        FormatError: stored by a newer playhead.
    """
    if format > FORMAT:
        return load(cls, None, format=format)
    try:
        return load(cls, decode(decompress(doc)), format=format, trusted=True)
    except (FormatError, LookupError, TypeError, ValueError) as error:
        raise StoreDamagedError(f"a stored {cls.__name__.lower()} is damaged: {error}") from error


# Sessions


def state(c: sqlite3.Connection, session_id: str) -> State:
    row = c.execute(queries.SESSION_STATE, (column_text(session_id),)).fetchone()
    if row is None:
        raise NotFoundError(f"no session {session_id!r}")
    return State(*row)


def session(c: sqlite3.Connection, session_id: str) -> Session:
    row = c.execute(queries.SESSION, (column_text(session_id),)).fetchone()
    if row is None:
        raise NotFoundError(f"no session {session_id!r}")
    return of_doc(Session, *row)


def add_session(c: sqlite3.Connection, added: Session) -> int:
    """Store a session that may be there already; then nothing changes. Its key."""
    made = c.execute(queries.ADD_SESSION, _columns(added)).rowcount
    pk = state(c, added.id).pk
    if made:
        _set_tags(c, pk, added.tags)
    return pk


def set_session(c: sqlite3.Connection, pk: int, changed: Session) -> None:
    c.execute(queries.SET_SESSION, {**_columns(changed), "pk": pk})
    c.execute("DELETE FROM session_tags WHERE session = ?", (pk,))
    _set_tags(c, pk, changed.tags)


def forget_digest(c: sqlite3.Connection, of: State) -> None:
    """The content is no longer the one that a put stored."""
    if of.digest is not None:
        c.execute("UPDATE sessions SET digest = NULL WHERE pk = ?", (of.pk,))


def refuse_needed(c: sqlite3.Connection, session_id: str) -> None:
    """Raises `ConflictError` for a session that cohort versions need."""
    holders = [f"{name}@{version}" for name, version in c.execute(queries.HOLDING_COHORTS, (column_text(session_id),))]
    if holders:
        from playhead.store.cohort_rules import needed

        raise needed(session_id, holders)


def delete_session(c: sqlite3.Connection, session_id: str) -> None:
    """Remove a session with all that is only its own."""
    found = state(c, session_id)
    referred = c.execute(queries.REFERRED, (found.pk,)).fetchall()
    c.execute(queries.DROP_CALLS, (found.agent, found.pk))
    c.execute("DELETE FROM sessions WHERE pk = ?", (found.pk,))
    c.executemany(queries.DROP_UNREFERRED, referred)


def _columns(value: Session) -> dict[str, JSON]:
    imported = value.imported
    texts = {
        "id": value.id,
        "agent": value.agent,
        "agent_version": value.agent_version,
        "project": value.project,
        "conversation": value.conversation.id if value.conversation else None,
        "baseline_id": value.baseline_id,
        "external_format": imported.format if imported else None,
        "external_instance": imported.instance if imported else None,
        "external_id": imported.external_id if imported else None,
    }
    return {
        **{name: None if text is None else column_text(text) for name, text in texts.items()},
        "origin": value.origin.value,
        "status": value.status.value,
        "started_at": value.started_at,
        "revision": value.revision,
        "metadata": encode(value.metadata).decode(),
        "format": FORMAT,
        "doc": to_doc(value),
    }


def _set_tags(c: sqlite3.Connection, pk: int, tags: Iterable[str]) -> None:
    c.executemany(
        "INSERT INTO session_tags (tag, session) VALUES (?, ?) ON CONFLICT DO NOTHING",
        [(column_text(tag), pk) for tag in tags],
    )


# Verdicts


def add_verdicts(c: sqlite3.Connection, pk: int, verdicts: Iterable[Verdict]) -> None:
    rows = [(pk, column_text(v.evaluator or ""), column_text(v.name), FORMAT, to_doc(v)) for v in verdicts]
    c.executemany(queries.ADD_VERDICT, rows)


def verdicts(c: sqlite3.Connection, session_id: str) -> list[Verdict]:
    rows = c.execute(queries.VERDICTS, (state(c, session_id).pk,))
    return [of_doc(Verdict, *row) for row in rows]


# Nodes


def nodes(
    c: sqlite3.Connection,
    session_id: str,
    *,
    payloads: bool = True,
    wanted: Callable[[Mapping[str, JSON]], bool] | None = None,
) -> list[Node]:
    pk = state(c, session_id).pk
    try:
        return read(session_id, stored(c, pk, payloads=payloads), fetch(c), wanted=wanted)
    except FormatError as error:
        raise StoreDamagedError(f"session {session_id} is damaged: {error.message}", hint=CHECK) from error


def stored(c: sqlite3.Connection, pk: int, *, payloads: bool = True) -> Iterator[Stored]:
    for row in c.execute(queries.SEGMENTS if payloads else queries.HEADS, (pk,)):
        yield Stored(*row)


def fetch(c: sqlite3.Connection) -> Callable[[bytes], bytes]:
    """Reads shared values."""

    def text(digest: bytes) -> bytes:
        row = c.execute(queries.SHARED, (digest,)).fetchone()
        if row is None:
            raise StoreDamagedError(f"a shared value is missing: {digest.hex()}")
        return decompress(row[0])

    return text


class Mark(NamedTuple):
    n: int
    final: bool
    format: int


def marks(c: sqlite3.Connection, pk: int) -> list[Mark]:
    """What segments a session has."""
    return [Mark(*row) for row in c.execute(queries.SEGMENT_MARKS, (pk,))]


def add_segment(c: sqlite3.Connection, pk: int, segment: Segment, *, final: bool = False) -> StreamEnd:
    """Put a segment at the end of a session's stream. Where it begins."""
    row = c.execute(queries.END_OF_STREAM, (pk,)).fetchone()
    end = StreamEnd(0, 0, 0) if row is None else StreamEnd(row[0] + 1, row[1], row[2])
    c.execute(
        queries.ADD_SEGMENT,
        (
            pk,
            end.n,
            final,
            segment.nodes,
            end.message,
            len(segment.messages),
            end.list,
            len(segment.lists),
            FORMAT,
            segment.heads,
            segment.body,
        ),
    )
    for digest, text in segment.shared.items():
        if c.execute(queries.HAS_SHARED, (digest,)).fetchone() is None:
            c.execute(queries.ADD_SHARED, (digest, len(text), compress(text, hard=True)))
        c.execute(queries.REFER_SHARED, (pk, digest))
    return end


def replace_segments(c: sqlite3.Connection, pk: int, merged: Segment) -> None:
    """Put one segment in the place of all. Numbers start anew, which the epoch tells other writers."""
    c.execute("DELETE FROM segments WHERE session = ?", (pk,))
    add_segment(c, pk, merged, final=True)
    c.execute("UPDATE sessions SET epoch = epoch + 1 WHERE pk = ?", (pk,))


# History


def pack_key(key: str) -> bytes:
    """A call key as it is indexed: version and digest in binary where it has the usual form."""
    version, colon, digest = key.partition(":")
    if colon and version.isdecimal() and len(version) < 4 and len(digest) == 64:
        try:
            packed = bytes.fromhex(digest)
        except ValueError:
            return b"=" + key.encode("utf-8", "backslashreplace")
        if packed.hex() == digest and str(int(version)) == version:
            return version.encode() + b":" + packed
    return b"=" + key.encode("utf-8", "backslashreplace")


def add_calls(c: sqlite3.Connection, of: State, added: Iterable[Node]) -> None:
    """Index the calls among ``added`` that history may serve."""
    if of.origin not in HISTORY:
        return
    rows: list[tuple[int, int, bytes, int, int]] = []
    names: dict[str, int] = {}
    for node in added:
        call = node.call
        if call is None or call.key is None or not lookup.gave_value(node):
            continue
        for name in (of.agent, call.tool):
            if name not in names:
                names[name] = _name(c, name)
        rows.append((names[of.agent], names[call.tool], pack_key(call.key), of.pk, lookup.recency(node)[0]))
    if rows:
        c.executemany(queries.ADD_CALL, rows)


def _name(c: sqlite3.Connection, name: str) -> int:
    text = column_text(name)
    row = c.execute(queries.NAME, (text,)).fetchone()
    if row is not None:
        return row[0]
    made = c.execute(queries.ADD_NAME, (text,)).lastrowid
    assert made is not None
    return made


def last_of_each(given: Sequence[Node]) -> list[Node]:
    """Without nodes that a later one of the same id replaces."""
    return list({node.id: node for node in given}.values())
