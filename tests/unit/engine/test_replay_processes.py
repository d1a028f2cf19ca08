import json
import os
from pathlib import Path

import pytest

from playhead.engine import replay_processes
from playhead.engine.replay_processes import _sweep, refuse
from playhead.errors import ReplayStop

DAY = 24 * 3600


def test_what_killed_replays_left_behind_is_removed_but_not_looked_for_each_time(tmp_path: Path):
    def left(name: str, days: int) -> Path:
        path = tmp_path / name
        path.write_text("")
        then = path.stat().st_mtime - days * DAY
        os.utime(path, (then, then))
        return path

    old, young, ours = left("999999999-1", 2), left("999999998-1", 0), left(f"{os.getpid()}-1", 2)
    _sweep(tmp_path)
    assert [path.exists() for path in (old, young, ours)] == [False, True, True]
    old = left("999999999-1", 2)
    _sweep(tmp_path)
    assert old.exists()


def test_files_of_replays_are_looked_for_again_only_when_one_came_or_went(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """What every call outside a session pays for."""
    monkeypatch.setattr(replay_processes, "_folder_of", lambda user: tmp_path)
    monkeypatch.setattr(replay_processes, "_ancestors", lambda pid, parent: ["12-34"])
    monkeypatch.setattr(replay_processes, "_empty", [])
    long_ago = (1, 1)
    os.utime(tmp_path, long_ago)
    assert refuse("a call was made") is False
    (tmp_path / "12-34").write_text(json.dumps({"on": 1, "live": {"default": False, "tools": {}}}))
    os.utime(tmp_path, long_ago)
    assert refuse("a call was made") is False
    os.utime(tmp_path)
    with pytest.raises(ReplayStop):
        refuse("a call was made")
    (tmp_path / "12-34").unlink()
    assert refuse("a call was made") is False


def test_what_was_not_there_a_moment_ago_is_looked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Files that come within one tick of the file system's clock leave the folder's time as it was."""
    monkeypatch.setattr(replay_processes, "_folder_of", lambda user: tmp_path)
    monkeypatch.setattr(replay_processes, "_ancestors", lambda pid, parent: ["12-34"])
    monkeypatch.setattr(replay_processes, "_empty", [])
    changed = tmp_path.stat().st_mtime_ns
    assert refuse("a call was made") is False
    (tmp_path / "12-34").write_text(json.dumps({"on": 1, "live": {"default": False, "tools": {}}}))
    os.utime(tmp_path, ns=(changed, changed))
    with pytest.raises(ReplayStop):
        refuse("a call was made")
