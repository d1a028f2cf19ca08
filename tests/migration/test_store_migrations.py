"""Stores of older versions open; a migrated schema is the fresh one."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from alembic import command

from playhead.core.values import AgentVersion, SessionStatus, Verdict
from playhead.errors import StoreBusyError, StoreError
from playhead.store import schema
from playhead.store import sqlite as sqlite_store
from playhead.store.migrations.run import migrate
from playhead.store.ports import SessionQuery
from playhead.store.sqlite import SqliteStore
from playhead.testing.conformance.builders import a_session, message, session_id, tool_call

DATA = Path(__file__).parent / "data"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A store as the first version left it: one finished session, one open."""
    path = tmp_path / "store.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript((DATA / "schema_0001.sql").read_text(encoding="utf-8"))
    connection.close()
    return path


def shape(path: Path) -> dict[str, Any]:
    """Tables, columns and indexes, whatever the order in which they were made."""
    connection = sqlite3.connect(path)
    found: dict[str, Any] = {}
    for kind, name, table, text in connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall():
        if name.startswith("sqlite_") or table == "alembic_version":
            continue
        if kind == "table":
            columns = connection.execute(f"PRAGMA table_xinfo({name})").fetchall()
            keys = connection.execute(f"PRAGMA foreign_key_list({name})").fetchall()
            lists = connection.execute(f"PRAGMA index_list({name})").fetchall()
            unique = sorted(columns_of(connection, index[1]) for index in lists if index[2])
            options = [word for word in ("WITHOUT ROWID", "AUTOINCREMENT") if word in text]
            found[name] = (sorted(column[1:] for column in columns), sorted(keys), unique, options)
        else:
            found[name] = (table, columns_of(connection, name), "WHERE" in text)
    connection.close()
    return found


def columns_of(connection: sqlite3.Connection, index: str) -> list[str]:
    return [column for _, _, column in connection.execute(f"PRAGMA index_info({index})")]


def test_the_text_of_a_fresh_schema_is_that_of_the_tables() -> None:
    text = Path(schema.__file__).with_name("ddl.sql").read_text(encoding="utf-8")
    assert text == schema.ddl(), "run: python -m playhead.store.schema > src/playhead/store/ddl.sql"


def test_a_migrated_schema_is_the_fresh_one(old: Path, tmp_path: Path) -> None:
    SqliteStore(tmp_path / "fresh.db").close()
    assert shape(old) != shape(tmp_path / "fresh.db")
    SqliteStore(old).close()
    assert shape(old) == shape(tmp_path / "fresh.db")


def test_migrations_from_nothing_give_the_fresh_schema(tmp_path: Path) -> None:
    made, fresh = tmp_path / "made.db", tmp_path / "fresh.db"
    connection = sqlite3.connect(made)
    connection.executescript("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
    connection.close()
    SqliteStore(fresh).close()
    migrate(made, to=sqlite_store.SCHEMA)
    assert shape(made) == shape(fresh)


def test_every_version_but_the_last_is_an_older_one() -> None:
    versions = Path(schema.__file__).parent / "migrations" / "versions"
    known = sorted(file.name[1:5] for file in versions.glob("v*.py"))
    assert (*sqlite_store.OLDER, sqlite_store.SCHEMA) == tuple(known)


def test_what_an_older_version_stored_is_read(old: Path) -> None:
    store = SqliteStore(old)
    assert store.sessions.count(SessionQuery()) == 2
    finished, still_open = store.sessions.get(session_id(1)), store.sessions.get(session_id(2))
    assert (finished.status, finished.output, finished.tags) == (SessionStatus.COMPLETED, "done", ("kept",))
    assert finished.metadata == {"n": 1}
    assert still_open.status is SessionStatus.OPEN
    for number in (1, 2):
        first, second, third = store.sessions.nodes(session_id(number))
        assert first.inputs["messages"] == [message("user", "hello")]
        assert [m["role"] for m in second.inputs["messages"]] == ["user", "assistant", "user"]
        assert len(second.inputs["tools"]) == 8
        assert third.outcome is not None
        assert third.outcome.value == {"status": "shipped"}
    assert store.sessions.verdicts(session_id(1)) == [Verdict(name="ok", passed=True, evaluator="e@1")]
    version = store.agents.find("support")
    assert (version.id, version.number) == ("v1", 1)
    assert store.agents.register(AgentVersion(**{**fields_of(version), "id": "v2"})) == version
    assert store.replays.resolve("last") == "r1"
    found = store.sessions.by_external("f", "i", "x1")
    assert found is not None
    assert found.id == session_id(1)
    assert store.sessions.count(SessionQuery(conversation="talk")) == 2
    assert [node.session_id for node in store.sessions.newest_calls("lookup")] == [session_id(2)]
    store.sessions.append(session_id(2), [tool_call(session_id(2), 3)])
    store.sessions.finish(a_session(2))
    assert len(store.sessions.nodes(session_id(2))) == 4
    assert list(store.check()) == []
    store.close()


def fields_of(version: AgentVersion) -> dict[str, Any]:
    return {name: getattr(version, name) for name in version.__slots__}


def test_an_older_store_is_copied_before_it_is_migrated(old: Path) -> None:
    SqliteStore(old).close()
    copy = old.with_name("store.db.v0001.bak")
    assert copy.stat().st_mode & 0o777 == 0o600
    connection = sqlite3.connect(copy)
    assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [("0001",)]
    assert connection.execute("SELECT count(*) FROM sessions").fetchall() == [(2,)]
    connection.close()
    SqliteStore(old).close()
    assert len(list(old.parent.glob("*.bak"))) == 1, "a current store is not copied"


def test_a_copy_that_is_there_already_is_never_overwritten(old: Path) -> None:
    earlier = old.with_name("store.db.v0001.bak")
    earlier.write_text("mine")
    SqliteStore(old).close()
    assert earlier.read_text() == "mine"
    assert old.with_name("store.db.v0001-2.bak").exists()


def test_a_migration_that_fails_changes_nothing(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = shape(old)
    upgrade = command.upgrade

    def fail_late(*args: Any, **kwargs: Any) -> None:
        upgrade(*args, **kwargs)
        raise StoreError("no")

    monkeypatch.setattr(command, "upgrade", fail_late)
    with pytest.raises(StoreError, match="no"):
        SqliteStore(old)
    assert shape(old) == before
    monkeypatch.undo()
    store = SqliteStore(old)
    assert store.sessions.count(SessionQuery()) == 2
    store.close()


def test_a_locked_older_store_is_busy(old: Path) -> None:
    other = sqlite3.connect(old, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusyError):
        SqliteStore(old, busy_timeout=0.05)
    other.execute("ROLLBACK")
    other.close()


def test_who_comes_second_finds_the_store_migrated(old: Path) -> None:
    assert migrate(old, to=sqlite_store.SCHEMA) is not None
    assert migrate(old, to=sqlite_store.SCHEMA) is None


def test_a_migration_can_be_taken_back(old: Path) -> None:
    before = shape(old)
    SqliteStore(old).close()
    migrate(old, to="0001")
    assert shape(old) == before
    SqliteStore(old).close()
