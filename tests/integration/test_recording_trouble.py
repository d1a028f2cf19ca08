"""Recording into real stores that are full, read-only or locked; very large, very many and very deep values."""

import logging
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from playhead.adapters.functions import agent, session, tool
from playhead.core.values import Mark, SessionStatus
from playhead.engine import seam
from playhead.engine.recorder import Recorder
from playhead.errors import StoreError, StoreFullError, StoreReadOnlyError
from playhead.store.ports import SessionQuery
from playhead.store.sqlite import SqliteStore


@tool
def echo(value: Any) -> Any:
    return value


def run(recorder: Recorder, values: list[Any]) -> list[Any]:
    @agent("desk", recorder=recorder)
    def desk() -> list[Any]:
        return [echo(value) for value in values]

    return desk()


def read(store: SqliteStore, session_id: str) -> list[Any]:
    return list(store.sessions.nodes(session_id))


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


@pytest.fixture
def store(tmp_path: Path) -> Any:
    made = SqliteStore(tmp_path / "store.db")
    yield made
    made.close()


@pytest.mark.parametrize(
    "error",
    [StoreFullError("the disk is full"), StoreReadOnlyError("the store is read-only")],
    ids=["full", "read-only"],
)
def test_a_store_that_takes_nothing_gives_one_warning_and_the_run_stands(
    error: StoreError,
    store: SqliteStore,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
):
    recorder = Recorder(store, spool=tmp_path / "spool")
    assert run(recorder, [1]) == [1]
    assert recorder.flush()

    def refuse(*args: Any) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(store.sessions, "begin", refuse)
        patched.setattr(store.sessions, "append", refuse)
        assert run(recorder, [2, 3]) == [2, 3]
        assert not recorder.flush()
    assert len(warnings(caplog)) == 1
    assert str(error) in warnings(caplog)[0]
    assert recorder.close()
    assert len(store.sessions.find(SessionQuery()).items) == 2


def test_a_store_that_is_locked_for_a_while_loses_nothing(
    store: SqliteStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    recorder = Recorder(store, spool=tmp_path / "spool")
    with store_locked(tmp_path / "store.db"):
        assert run(recorder, [1, 2]) == [1, 2]
    assert recorder.close(30)
    (only,) = store.sessions.find(SessionQuery()).items
    assert (only.status, only.output) == (SessionStatus.COMPLETED, [1, 2])
    assert len(warnings(caplog)) <= 1


class store_locked:  # noqa: N801 - reads as a phrase
    """Somebody else holds the write lock for the length of the block."""

    def __init__(self, path: Path) -> None:
        self._other = sqlite3.connect(path, isolation_level=None)

    def __enter__(self) -> None:
        self._other.execute("BEGIN IMMEDIATE")

    def __exit__(self, *_: object) -> None:
        self._other.execute("ROLLBACK")
        self._other.close()


def test_five_thousand_calls_are_all_there_in_order(store: SqliteStore):
    recorder = Recorder(store)
    assert run(recorder, list(range(5000)))[-1] == 4999
    assert recorder.close(120)
    (only,) = store.sessions.find(SessionQuery()).items
    found = read(store, only.id)
    assert [n.outcome.value for n in found] == list(range(5000))
    assert [n.call.key is not None for n in found] == [True] * 5000


def test_a_result_of_15_mb_is_recorded_whole(store: SqliteStore):
    recorder = Recorder(store)
    big = {"rows": ["x" * 1000 + str(n) for n in range(15_000)]}
    assert run(recorder, [big])[0] is big
    assert recorder.close(120)
    (only,) = store.sessions.find(SessionQuery()).items
    (node,) = read(store, only.id)
    assert node.outcome.value == big


def deep(levels: int) -> Any:
    value: Any = "end"
    for _ in range(levels):
        value = [value]
    return value


def test_nesting_of_10_000_levels_breaks_nothing(store: SqliteStore):
    recorder = Recorder(store)
    value = deep(10_000)
    with session("desk", inputs=value, recorder=recorder):
        assert echo(value) is value
        active = seam.current()
        assert active is not None
        active.tool_call("emitted", arguments="[" * 10_000 + "]" * 10_000).returned(deep(150))
    assert recorder.close(60)
    (only,) = store.sessions.find(SessionQuery()).items
    assert only.status is SessionStatus.COMPLETED
    assert only.not_replayable
    echoed, emitted = read(store, only.id)
    assert (echoed.call.no_key.reason, echoed.call.mark) == ("too_deep", Mark.MISSING)
    assert emitted.call.no_key.reason == "too_deep"
    assert emitted.outcome.value == deep(150)
