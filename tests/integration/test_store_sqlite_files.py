"""The SQLite store and what may happen to its file."""

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from playhead.core.values import SessionStatus
from playhead.errors import (
    NotFoundError,
    StoreBusyError,
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreVersionError,
)
from playhead.store.ports import SessionQuery
from playhead.store.sqlite import SqliteStore
from playhead.testing.conformance.builders import a_session, message, model_call, schemas, session_id, tool_call


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "project" / ".playhead" / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(path, busy_timeout=0.05)
    yield store
    store.close()


def recorded(store: SqliteStore, number: int = 1, size: int = 20) -> None:
    store.sessions.begin(a_session(number))
    store.sessions.append(
        session_id(number), [tool_call(session_id(number), seq, value="v" * 50) for seq in range(size)]
    )
    store.sessions.finish(a_session(number, status=SessionStatus.COMPLETED))


def read_all(path: Path, count: int) -> None:
    store = SqliteStore(path)
    try:
        for number in range(count):
            store.sessions.nodes(session_id(number))
    finally:
        store.close()


def append_until_refused(store: SqliteStore, kept: list[int]) -> None:
    for seq in range(1000):
        store.sessions.append(session_id(2), [tool_call(session_id(2), seq, value=os.urandom(4000).hex())])
        kept.append(seq)


def test_files_and_folders_are_the_owners_only(path: Path, store: SqliteStore) -> None:
    recorded(store)
    assert {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {
        "store.db": 0o600,
        "store.db-wal": 0o600,
        "store.db-shm": 0o600,
    }
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_what_was_stored_is_there_when_opened_again(path: Path, store: SqliteStore) -> None:
    recorded(store)
    store.close()
    again = SqliteStore(path)
    assert again.sessions.count(SessionQuery()) == 1
    assert len(again.sessions.nodes(session_id(1))) == 20
    again.close()


def test_a_store_that_is_not_there_is_not_made_when_that_is_not_wanted(path: Path) -> None:
    with pytest.raises(NotFoundError):
        SqliteStore(path, create=False)
    assert not path.parent.exists()


def test_a_closed_store_says_so(store: SqliteStore) -> None:
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.sessions.count(SessionQuery())


def test_a_locked_store_is_busy_after_the_timeout_and_fine_later(path: Path, store: SqliteStore) -> None:
    store.sessions.begin(a_session())
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusyError, match="locked"):
        store.sessions.append(session_id(1), [tool_call(session_id(1), 0)])
    assert store.sessions.nodes(session_id(1)) == [], "readers are not kept out"
    other.execute("ROLLBACK")
    other.close()
    store.sessions.append(session_id(1), [tool_call(session_id(1), 0)])
    assert len(store.sessions.nodes(session_id(1))) == 1


@pytest.mark.parametrize(
    "content", [b"not a database, but a longer text" * 100, b"SQLite format 3\x00" + b"\xff" * 3000]
)
def test_a_file_that_is_no_database_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(content)
    with pytest.raises(StoreDamagedError):
        SqliteStore(path)
    assert path.read_bytes() == content


def test_a_database_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE sessions (id)")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreDamagedError, match="not a store of playhead"):
        SqliteStore(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_a_truncated_store_is_damaged(path: Path, store: SqliteStore, part: float) -> None:
    for number in range(30):
        recorded(store, number)
    store.close()
    os.truncate(path, int(path.stat().st_size * part))
    with pytest.raises(StoreDamagedError):
        read_all(path, 30)


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.touch()
    store = SqliteStore(path)
    recorded(store)
    store.close()


def test_a_store_of_a_newer_version_is_refused_and_left_alone(path: Path, store: SqliteStore) -> None:
    recorded(store)
    store.close()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreVersionError, match="9999"):
        SqliteStore(path)
    assert path.read_bytes() == before


def test_a_full_disk_is_one_clear_error_and_what_was_stored_stays(store: SqliteStore) -> None:
    recorded(store)
    store.sessions.begin(a_session(2))
    with store._connections.reading() as connection:  # the only one, and so the next writer's
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
    store._connections.execute_alone(f"PRAGMA max_page_count = {pages + 20}")
    stored: list[int] = []
    with pytest.raises(StoreFullError, match="no space"):
        append_until_refused(store, stored)
    kept = len(stored)
    assert 0 < kept < 100
    assert len(store.sessions.nodes(session_id(2))) == kept
    assert list(store.check()) == []
    store._connections.execute_alone("PRAGMA max_page_count = 100000")
    store.sessions.append(session_id(2), [tool_call(session_id(2), kept)])
    store.sessions.finish(a_session(2))
    assert len(store.sessions.nodes(session_id(2))) == kept + 1


def test_a_file_that_cannot_be_written_is_read_only(path: Path, store: SqliteStore) -> None:
    recorded(store)
    store._connections.execute_alone("PRAGMA query_only = ON")  # tests may run as root, whom no mode stops
    with pytest.raises(StoreReadOnlyError):
        store.sessions.begin(a_session(2))
    assert store.sessions.count(SessionQuery()) == 1


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (PermissionError(13, "Permission denied"), StoreReadOnlyError),
        (OSError(30, "Read-only file system"), StoreReadOnlyError),
        (OSError(28, "No space left on device"), StoreFullError),
        (OSError(5, "Input/output error"), StoreError),
    ],
)
def test_a_folder_that_cannot_be_made_is_one_clear_error(
    path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, expected: type[StoreError]
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(expected, match=error.strerror):
        SqliteStore(path)


def test_check_finds_what_is_wrong(path: Path, store: SqliteStore) -> None:
    for number in (1, 2):
        store.sessions.begin(a_session(number))
        nodes = [model_call(session_id(number), 0, [message("user", "hi")], tools=schemas(20 + number))]
        store.sessions.append(session_id(number), [*nodes, tool_call(session_id(number), 1, parent_id="gone")])
        store.sessions.finish(a_session(number))
    assert list(store.check()) == [
        f"session {session_id(n)}: the parent gone of node {session_id(n)}-n1 is not there" for n in (1, 2)
    ]
    connection = sqlite3.connect(path)
    connection.execute("UPDATE segments SET body = substr(body, 1, 40) WHERE session = 1")
    connection.execute("UPDATE shared SET size = 1 WHERE pk = 1")
    connection.execute("DELETE FROM session_shared WHERE session = 2")
    connection.execute("INSERT INTO calls VALUES (1, 1, x'00', 77, 1)")
    connection.execute("INSERT INTO verdicts (session, evaluator, name, format, doc) VALUES (78, '', 'n', 1, x'00')")
    connection.execute("DELETE FROM shared WHERE pk = 2")
    connection.commit()
    connection.close()
    found = "\n".join(store.check())
    assert f"session {session_id(1)} is damaged: compressed data is damaged" in found
    assert f"session {session_id(2)}: a shared value is missing" in found
    assert "1 indexed calls of sessions that do not exist" in found
    assert "1 verdicts of sessions that do not exist" in found
    assert "has other content" in found
    with pytest.raises(StoreDamagedError, match="missing"):
        store.sessions.nodes(session_id(2))


def test_a_damaged_segment_is_an_error_and_never_absent(path: Path, store: SqliteStore) -> None:
    recorded(store)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE segments SET body = x'28b52ffd00'")
    connection.commit()
    connection.close()
    with pytest.raises(StoreDamagedError, match=session_id(1)):
        store.sessions.nodes(session_id(1))
    assert len(store.sessions.nodes(session_id(1), payloads=False)) == 20, "listings read no payload"


def test_listing_sessions_reads_no_segment(path: Path, store: SqliteStore) -> None:
    recorded(store)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE segments SET body = x'00', heads = x'00'")
    connection.commit()
    connection.close()
    assert [session.id for session in store.sessions.find(SessionQuery()).items] == [session_id(1)]


def test_a_large_result_and_many_calls_fit_in_one_session(store: SqliteStore) -> None:
    store.sessions.begin(a_session())
    store.sessions.append(session_id(1), [tool_call(session_id(1), 0, value="x" * 15_000_000)])
    for start in range(1, 5001, 250):
        calls = [tool_call(session_id(1), seq, key=f"1:{seq}") for seq in range(start, start + 250)]
        store.sessions.append(session_id(1), calls)
    store.sessions.finish(a_session())
    nodes = store.sessions.nodes(session_id(1))
    assert len(nodes) == 5001
    assert nodes[0].outcome is not None
    assert len(nodes[0].outcome.value) == 15_000_000
    assert [node.seq for node in store.sessions.nodes(session_id(1), after_seq=4990, limit=3)] == [4991, 4992, 4993]
    assert len(store.sessions.newest_calls("lookup")) == 5000


def test_a_hundred_turns_do_not_store_the_history_a_hundred_times(path: Path, store: SqliteStore) -> None:
    store.sessions.begin(a_session())
    history = [message("user", f"{n} {os.urandom(300).hex()}") for n in range(100)]
    for seq in range(100):
        store.sessions.append(session_id(1), [model_call(session_id(1), seq, history[: seq + 1], tools=schemas())])
    store.sessions.finish(a_session())
    assert len(store.sessions.nodes(session_id(1))[99].inputs["messages"]) == 100
    store.close()
    bare = SqliteStore(path.with_name("bare.db"))
    bare.close()
    tables = bare.path.stat().st_size  # a page for each table and index
    assert path.stat().st_size - tables < 100 * 600 * 4


def test_a_forked_child_uses_a_connection_of_its_own(store: SqliteStore) -> None:
    recorded(store)
    child = os.fork()
    if child == 0:
        try:
            recorded(store, 2)
            os._exit(0 if store.sessions.count(SessionQuery()) == 2 else 1)
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    recorded(store, 3)
    assert store.sessions.count(SessionQuery()) == 3
    assert list(store.check()) == []


def test_opening_a_current_store_loads_no_migration_machinery(path: Path, store: SqliteStore) -> None:
    store.close()
    code = (
        "import sys; from playhead.store.open import open_store; s = open_store(sys.argv[1]);"
        "s.sessions.resolve; s.sessions.count; s.close();"
        "print(sorted({'sqlalchemy', 'alembic', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
