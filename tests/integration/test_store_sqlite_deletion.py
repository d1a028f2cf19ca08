"""What is deleted is gone from the files, not only from the tables."""

import random
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from playhead.core.values import SessionStatus, Verdict
from playhead.store.sqlite import SqliteStore
from playhead.testing.conformance.builders import a_session, message, model_call, session_id, tool_call

PIECE = 24


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "store.db", busy_timeout=2)
    yield store
    store.close()


def record(store: SqliteStore, number: int) -> None:
    """A session of several segments that are compacted at the end, with small, large and shared values."""
    rng = random.Random(number)
    words = ["".join(rng.choices("abcdefghijklmnop", k=8)) for _ in range(400)]
    id = session_id(number)
    store.sessions.begin(a_session(number, inputs={"prompt": " ".join(rng.choices(words, k=60))}))
    messages = [message("user", " ".join(rng.choices(words, k=40)))]
    for seq in range(0, 20, 2):
        size = 6000 if seq == 10 else 30
        result = " ".join(rng.choices(words, k=size))
        store.sessions.append(id, [model_call(id, seq, messages), tool_call(id, seq + 1, value=result)])
        messages = [*messages, message("tool", result)]
    store.sessions.add_verdicts(id, [Verdict(name="v", explanation=" ".join(rng.choices(words, k=80)))])
    store.sessions.update(id, add_tags=[f"tag-{number}"], metadata={"note": " ".join(words[:5])})
    store.sessions.finish(a_session(number, status=SessionStatus.COMPLETED))


def stored(store: SqliteStore, number: int) -> list[bytes]:
    """What belongs to a session alone, as its bytes stand in the file."""
    connection = sqlite3.connect(store.path)
    (pk,) = connection.execute("SELECT pk FROM sessions WHERE id = ?", (session_id(number),)).fetchone()
    blobs = [
        blob
        for query in (
            "SELECT doc FROM sessions WHERE pk = ?",
            "SELECT heads, body FROM segments WHERE session = ?",
            "SELECT doc FROM verdicts WHERE session = ?",
            "SELECT data FROM shared JOIN session_shared ON shared = shared.pk WHERE session = ?",
        )
        for row in connection.execute(query, (pk,))
        for blob in row
    ]
    connection.close()
    return [*blobs, session_id(number).encode()]


def pieces(blobs: list[bytes], others: list[bytes]) -> set[bytes]:
    """Short pieces of values that others, which look alike in places, do not have."""
    apart = b"".join(others)
    cut = {blob[at : at + PIECE] for blob in blobs for at in range(0, len(blob) - PIECE, PIECE)}
    return {piece for piece in cut if piece not in apart}


def found_in_files(store: SqliteStore, pieces: set[bytes]) -> int:
    raw = b"".join(file.read_bytes() for file in store.path.parent.iterdir() if file.name.startswith(store.path.name))
    return sum(piece in raw for piece in pieces)


def test_a_deleted_session_leaves_no_bytes_in_the_files(store: SqliteStore) -> None:
    for number in (1, 2, 3):
        record(store, number)
    others = stored(store, 1) + stored(store, 3)
    gone, kept = pieces(stored(store, 2), others), pieces(others, [])
    assert len(gone) > 400
    assert found_in_files(store, gone) > len(gone) * 0.9, "all but those across the edge of a page"
    store.sessions.delete(session_id(2))
    assert found_in_files(store, gone) == 0
    assert found_in_files(store, kept) > len(kept) * 0.9
    assert list(store.check()) == []
    assert len(store.sessions.nodes(session_id(3))) == 20


def test_what_a_session_was_before_it_was_compacted_goes_too(store: SqliteStore) -> None:
    id = session_id(1)
    store.sessions.begin(a_session(1))
    store.sessions.append(id, [tool_call(id, 0, value=random.Random(1).randbytes(3000).hex())])
    before = pieces(stored(store, 1), [])
    store.sessions.append(id, [tool_call(id, 1)])
    store.sessions.finish(a_session(1))
    store.sessions.delete(id)
    assert found_in_files(store, before) == 0


def test_a_deletion_does_not_wait_for_readers_and_the_next_one_finishes_it(store: SqliteStore) -> None:
    for number in (1, 2):
        record(store, number)
    gone = pieces(stored(store, 1), stored(store, 2))
    reader = sqlite3.connect(store.path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM sessions").fetchone()
    deleting = threading.Thread(target=store.sessions.delete, args=(session_id(1),))
    deleting.start()
    deleting.join(1.5)
    assert not deleting.is_alive(), "it waits for the reader"
    reader.execute("ROLLBACK")
    reader.close()
    store.sessions.delete(session_id(2))
    assert found_in_files(store, gone) == 0
