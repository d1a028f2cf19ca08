"""The short form of `make chaos`."""

import importlib.util
import sys
from pathlib import Path

_spec = importlib.util.spec_from_file_location("chaos_kills", Path(__file__).with_name("kills.py"))
assert _spec is not None
assert _spec.loader is not None
kills = importlib.util.module_from_spec(_spec)
sys.modules["chaos_kills"] = kills
_spec.loader.exec_module(kills)


def test_every_replay_ends_exactly_once_whatever_is_killed(tmp_path: Path) -> None:
    tally = kills.storm(tmp_path / "arena", replays=10, seed=7, most=120.0)
    assert tally.wrong == [], tally.text()
    assert sum(tally.ended.values()) >= 10
    assert sum(tally.kills.values()) > 0
