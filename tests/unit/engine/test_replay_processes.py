import os
from pathlib import Path

from playhead.engine.replay_processes import _sweep

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
