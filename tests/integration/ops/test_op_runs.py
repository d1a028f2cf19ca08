"""Ops and their fixtures: which outcomes are recorded, and what the modes do."""
# ruff: noqa: PT012, SIM117 - the block is what is tested

import asyncio
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead import OpError
from playhead.errors import (
    FixtureFormatError,
    FixtureRunError,
    MissingFixtureError,
    NoFixturesError,
    ReplayedToolError,
)

from .conftest import counted, files

# errors


class ApiError(Exception):
    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class OrderGoneError(Exception):
    pass


@pytest.mark.parametrize("status", [404, 429, 503])
def test_r39_errors_with_a_status_are_outcomes(status: int) -> None:
    def answer(n: int) -> Exception:
        error = ApiError("no such order", status)
        error.__cause__ = KeyError("4821")
        return error

    poll = counted(answer)
    with playhead.fixtures("record"):
        with pytest.raises(ApiError):
            poll("q")
    with playhead.fixtures("replay"):
        with pytest.raises(ReplayedToolError, match="no such order") as caught:
            poll("q")
    assert (caught.value.original_class, caught.value.status) == ("ApiError", status)
    assert (type(caught.value.__cause__), str(caught.value.__cause__)) == (KeyError, "'4821'")


def test_listed_classes_are_outcomes_and_come_back_as_themselves() -> None:
    poll = counted(lambda n: OrderGoneError("gone"), errors=[OrderGoneError])
    for mode in ("record", "replay"):
        with playhead.fixtures(mode):
            with pytest.raises(OrderGoneError, match="gone"):
                poll("q")
    assert len(poll.seen) == 1


@pytest.mark.parametrize(
    "error", [ConnectionRefusedError("no"), ImportError("no"), OpError("late", code="timeout"), KeyError("no")]
)
def test_r39_errors_that_say_nothing_are_not_recorded_and_the_miss_says_why(here: Path, error: Exception) -> None:
    poll = counted(lambda n: error if n == 1 else {"n": n})
    with playhead.fixtures("record"):
        with pytest.raises(type(error)):
            poll("q")
    assert files(here) == []
    with pytest.raises(MissingFixtureError, match=type(error).__name__) as caught:
        with playhead.fixtures("replay", allow_empty=True):
            poll("q")
    assert caught.value.details["reason"] == "not_recorded"
    with playhead.fixtures("record"):
        poll("q")
    with playhead.fixtures("replay"):
        assert poll("q") == {"n": 2}


def test_a_class_that_one_op_lists_says_nothing_about_another(here: Path) -> None:
    @playhead.op("other", effect="read", errors=[LookupError])
    def other() -> None: ...

    poll = counted(lambda n: LookupError("no"))
    with playhead.fixtures("record"):
        with pytest.raises(LookupError):
            poll("q")
    assert files(here) == []


def test_a_timeout_is_not_recorded(here: Path) -> None:
    @playhead.op("slow", effect="read", timeout=0.01)
    async def slow() -> None:
        await asyncio.Event().wait()

    async def run() -> None:
        async with playhead.fixtures("record"):
            with pytest.raises(OpError) as caught:
                await slow()
            assert caught.value.code == "timeout"

    asyncio.run(run())
    assert files(here) == []


def test_a_timeout_holds_for_a_blocking_op() -> None:
    import threading

    never = threading.Event()

    @playhead.op("slow", effect="read", timeout=0.01)
    def slow() -> None:
        never.wait(60)

    with pytest.raises(OpError, match="took longer"):
        slow()
    never.set()


@pytest.mark.parametrize(("effect", "runs"), [("read", 3), ("write", 1)])
def test_only_read_ops_are_run_again(effect: str, runs: int) -> None:
    seen: list[int] = []

    @playhead.op("f", effect=effect, retries=2)
    def f() -> str:
        seen.append(1)
        if len(seen) < 3:
            raise OpError("busy", code="failed", status=503, retryable=True)
        return "ok"

    with playhead.fixtures("record"):
        if runs == 3:
            assert f() == "ok"
        else:
            with pytest.raises(OpError):
                f()
    assert len(seen) == runs


@pytest.mark.parametrize("kind", ["cycle", "file", "class"])
def test_r42_results_that_cannot_be_stored(here: Path, kind: str) -> None:
    class Opaque:
        pass

    cycle: list[Any] = []
    cycle.append(cycle)
    with open(here / "x", "w") as file:  # noqa: PTH123
        value: Any = {"cycle": cycle, "file": {"f": file}, "class": Opaque()}[kind]
        poll = counted(lambda n: value)
        with pytest.raises(FixtureRunError, match="poll is not recorded: it has no stored form"):
            with playhead.fixtures("record"):
                assert poll("q") is value
    assert files(here) == []


def test_r42_a_long_integer_and_a_datetime_are_equal_in_both_runs() -> None:
    poll = counted(lambda n: [10**30, datetime(2026, 1, 2, tzinfo=UTC), (1, 2)])
    results: list[Any] = []
    for mode in ("record", "replay"):
        with playhead.fixtures(mode):
            results.append(poll("q"))
    assert results[0] == results[1] == [10**30, datetime(2026, 1, 2, tzinfo=UTC), [1, 2]]


# modes


def test_r21_replay_without_recordings_stops_before_anything_runs(here: Path) -> None:
    with pytest.raises(NoFixturesError):
        with playhead.fixtures("replay"):
            pytest.fail("ran")
    assert not (here / ".playhead/fixtures").exists()


def test_r21_auto_in_ci_is_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    poll = counted()
    with playhead.fixtures("record"):
        poll("a")
    with playhead.fixtures("auto"):
        poll("b")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(MissingFixtureError):
        with playhead.fixtures("auto"):
            poll("c")
    assert poll.seen == ["a", "b"]


def test_what_auto_records_comes_after_what_it_served(here: Path) -> None:
    poll = counted()
    with playhead.fixtures("record"):
        poll("q")
    with playhead.fixtures("auto"):
        assert [poll("q")["n"] for _ in range(3)] == [1, 2, 3]
    with playhead.fixtures("replay", strict=True):
        assert [poll("q")["n"] for _ in range(3)] == [1, 2, 3]
    assert len(files(here)) == 3


def test_auto_does_not_run_what_writes() -> None:
    @playhead.op("send", effect="write")
    def send(to: str) -> str:
        return to

    with playhead.fixtures("record"):
        send("a")
    with pytest.raises(MissingFixtureError):
        with playhead.fixtures("auto"):
            send("b")


def test_record_refuses_what_destroys(here: Path) -> None:
    @playhead.op("drop", effect="destructive")
    def drop() -> str:
        return "done"

    with playhead.fixtures("record"):
        with pytest.raises(OpError) as caught:
            drop()
    assert (caught.value.code, files(here)) == ("permission", [])
    with playhead.fixtures("record", effects="destructive"):
        assert drop() == "done"
    assert len(files(here)) == 1


def test_check_compares_and_writes_nothing(here: Path) -> None:
    poll = counted(lambda n: {"n": 1 if n < 3 else n})
    with playhead.fixtures("record"):
        poll("q")
    before = files(here)[0].read_bytes()
    with playhead.fixtures("check") as tape:
        assert poll("q") == {"n": 1}
    assert [row.status for row in tape.ledger] == ["same"]
    with pytest.raises(FixtureRunError, match="/value/n"):
        with playhead.fixtures("check"):
            assert poll("q") == {"n": 3}
    assert files(here)[0].read_bytes() == before


def test_r23_a_swallowed_miss_fails_the_run() -> None:
    poll = counted()
    with playhead.fixtures("record"):
        poll("q")
    with pytest.raises(MissingFixtureError):
        with playhead.fixtures("replay"):
            with suppress(BaseException):
                poll("other")


def test_r25_a_failed_recording_leaves_the_old_one() -> None:
    poll = counted()
    with playhead.fixtures("record"):
        poll("q")
    with pytest.raises(RuntimeError, match="test failed"):
        with playhead.fixtures("record"):
            poll("q")
            raise RuntimeError("test failed")
    with playhead.fixtures("replay"):
        assert poll("q") == {"n": 1}


def test_r37_leftovers() -> None:
    poll = counted()
    with playhead.fixtures("record"):
        for name in "abc":
            poll(name)
    with playhead.fixtures("replay") as tape:
        poll("a")
    assert len(tape.leftovers) == 2
    with pytest.raises(FixtureRunError, match="not asked for"):
        with playhead.fixtures("replay", strict=True):
            poll("a")


def test_r41_an_edited_file_is_an_error_that_names_it(here: Path) -> None:
    poll = counted()
    with playhead.fixtures("record"):
        poll("q")
    (path,) = files(here)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    with playhead.fixtures("replay"):
        assert poll("q") == {"n": 1}
    for damage in (b"{}", path.read_bytes()[:-30], path.read_bytes().replace(b'"q": "q"', b'"q": "r"')):
        whole = path.read_bytes()
        path.write_bytes(damage)
        with pytest.raises(FixtureFormatError, match=path.name):
            with playhead.fixtures("replay"):
                poll("q")
        path.write_bytes(whole)
    assert len(poll.seen) == 1


def test_a_program_that_is_started_inside_fixtures_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    poll = counted()
    for mode in ("record", "replay"):
        caplog.clear()
        with playhead.fixtures(mode, http=True):
            poll("a")
            for _ in range(2):
                subprocess.run([sys.executable, "-S", "-c", ""], check=True)
        (told,) = [record.getMessage() for record in caplog.records if record.name == "playhead"]
        assert f"{sys.executable} was started while fixtures were in force" in told
