"""`playhead fixtures doctor` finds what is wrong with a folder, and changes nothing."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.cli.start import main

from .conftest import counted, files


def examined(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, dict[str, str]]:
    """Exit code, and level by check."""
    capsys.readouterr()
    code = main(["fixtures", "doctor", "--output", "json", *options])
    rows: Any = json.loads(capsys.readouterr().out)
    return code, {row["check"]: row["level"] for row in rows["items"]}


def recorded(*asked: str) -> None:
    poll = counted()
    with playhead.fixtures("record"):
        for q in asked:
            poll(q)


def test_a_good_folder(capsys: pytest.CaptureFixture[str]) -> None:
    recorded("a", "b")
    assert examined(capsys, "--strict", "--max-age", "90d") == (0, {"op.recorded": "pass"})


def test_nothing_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    assert examined(capsys) == (1, {"set.missing": "fail"})


@pytest.mark.parametrize(
    ("old", "new", "check"),
    [
        ('"q": "a"', '"q": "z"', "file.damaged"),
        ('"fixture/1"', '"fixture/2"', "file.version"),
        ('"kind": "value"', '"kind": "val', "file.damaged"),
        ('"n": 1', '"n": "hunter2-hunter2"', "file.secret"),
    ],
)
def test_r41_damaged_and_unsafe_files(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, old: str, new: str, check: str
) -> None:
    recorded("a")
    monkeypatch.setenv("STRIPE_SECRET", "hunter2-hunter2")
    (path,) = files(here)
    edited = path.read_text().replace(old, new)
    path.write_text(edited)
    code, found = examined(capsys)
    assert (code, found[check]) == (1, "fail")
    assert path.read_text() == edited


def test_a_missing_occurrence_and_a_wrong_count(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded("a", "a", "a")
    next(path for path in files(here) if path.name.endswith(".2.json")).unlink()
    code, found = examined(capsys)
    assert (code, found["file.gap"], found["set.count"]) == (1, "fail", "fail")


def test_r38_old_recordings_warn_and_fail_when_strict(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded("a")
    (path,) = files(here)
    document = json.loads(path.read_text())
    document["recorded"]["at"] = "2020-01-01T00:00:00.000Z"
    path.write_text(json.dumps(document))
    assert examined(capsys, "--max-age", "90d") == (0, {"file.age": "warn", "op.recorded": "pass"})
    assert examined(capsys, "--max-age", "90d", "--strict")[0] == 1


def test_r39_a_failed_recording_run(capsys: pytest.CaptureFixture[str]) -> None:
    recorded("a")
    poll = counted(lambda n: ConnectionRefusedError("no"))
    with playhead.fixtures("record"), suppress(ConnectionRefusedError):
        poll("a")
    assert examined(capsys)[1]["file.superseded"] == "warn"
