"""What a recording run notes beside its files: what failed, what is older for that, what was saved all the same."""
# ruff: noqa: PT012, SIM117 - the block is what is tested

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.errors import FixtureRunError, MissingFixtureError

from .conftest import counted, document, files


def report(here: Path) -> dict[str, Any]:
    return json.loads((here / ".playhead/fixtures/recording.json").read_text())


def test_re_recording_that_fails_keeps_the_old_answer_and_says_so() -> None:
    poll = counted(lambda n: {"n": 1} if n == 1 else ConnectionRefusedError("no"))
    with playhead.fixtures("record"):
        poll("a")
    with playhead.fixtures("record"), suppress(ConnectionRefusedError):
        poll("a")
    with playhead.fixtures("replay") as tape:
        assert poll("a") == {"n": 1}
    assert (tape.ledger[0].marks, tape.ledger[0].note) == (("superseded",), "ConnectionRefusedError")


def test_notes_outlive_runs_that_do_not_settle_them(here: Path) -> None:
    fails = [True]
    poll = counted(lambda n: ConnectionRefusedError("no") if fails[0] else {"n": n})
    with playhead.fixtures("record"), suppress(ConnectionRefusedError):
        poll("a")
    fails[0] = False
    with playhead.fixtures("record"):
        poll("b")
    assert [note["reason"] for note in report(here)["not_recorded"]] == ["ConnectionRefusedError"]
    with pytest.raises(MissingFixtureError, match="ConnectionRefusedError"):
        with playhead.fixtures("replay"):
            poll("a")
    with playhead.fixtures("record"):
        poll("a")
    assert report(here)["not_recorded"] == []


def test_a_failed_run_is_saved_on_request_and_marked(here: Path) -> None:
    poll = counted()
    with pytest.raises(RuntimeError, match="late"):
        with playhead.fixtures("record", save="always"):
            poll("a")
            raise RuntimeError("late")
    assert (report(here)["complete"], report(here)["incomplete"]) == (False, "RuntimeError")
    with playhead.fixtures("replay"):
        assert poll("a") == {"n": 1}
    assert not list((here / ".playhead/fixtures").glob(".partial/*"))


def test_what_a_note_says_holds_no_secret(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRIPE_SECRET", "hunter2-hunter2")
    poll = counted(lambda n: playhead.OpError("hunter2-hunter2 is no key", code="auth"))
    with playhead.fixtures("record"), suppress(playhead.OpError):
        poll("a")
    assert "hunter2" not in (here / ".playhead/fixtures/recording.json").read_text()
    assert "STRIPE_SECRET" in report(here)["not_recorded"][0]["reason"]


def test_check_says_what_it_did_not_ask_for() -> None:
    poll = counted(lambda n: {"n": 0})
    with playhead.fixtures("record"):
        poll("a")
        poll("b")
    with playhead.fixtures("check") as tape:
        poll("a")
    assert [(row.status, row.tool) for row in tape.ledger] == [("same", "poll"), ("gone", "poll")]
    with pytest.raises(FixtureRunError, match="not asked for"):
        with playhead.fixtures("check", strict=True):
            poll("a")


def test_an_outcome_that_was_edited_is_served_as_edited(here: Path) -> None:
    poll = counted()
    with playhead.fixtures("record"):
        poll("a")
    assert document(here)["recorded"]["outcome"].startswith("sha256:")
    (path,) = files(here)
    path.write_text(path.read_text().replace('"n": 1', '"n": 2'))
    with playhead.fixtures("replay"):
        assert poll("a") == {"n": 2}
