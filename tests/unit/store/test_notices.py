"""Waiting for writes to a file."""

import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from playhead.store.notices import Notices

LONG = 30.0


def woken_by(notices: Notices, act: object) -> float:
    """Seconds that a wait of at most `LONG` took while something happens in another thread."""
    timer = threading.Timer(0.01, act)  # type: ignore[arg-type]
    begun = time.monotonic()
    timer.start()
    told = notices.wait(LONG)
    timer.join()
    assert told
    return time.monotonic() - begun


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the system tells nothing of writes")
def test_a_write_ends_the_wait(tmp_path: Path):
    path = tmp_path / "log"
    path.write_bytes(b"")
    with closing(Notices(path)) as notices:
        assert notices.tells
        assert not notices.wait(0.0)
        assert woken_by(notices, lambda: path.write_bytes(b"x")) < LONG
        path.write_bytes(b"y")
        assert notices.wait(LONG)
        assert not notices.wait(0.0)


def test_without_a_file_that_is_there_nothing_is_told_and_it_says_so(tmp_path: Path):
    with closing(Notices(tmp_path / "none")) as notices:
        assert not notices.tells
        assert not notices.wait(0.0)


@pytest.mark.parametrize("with_file", [True, False])
def test_a_wake_ends_the_wait_also_one_that_has_not_begun(tmp_path: Path, with_file: bool):
    path = tmp_path / "log"
    path.write_bytes(b"")
    with closing(Notices(path if with_file else None)) as notices:
        assert woken_by(notices, notices.wake) < LONG
        notices.wake()
        assert notices.wait(LONG)
        assert not notices.wait(0.0)
    notices.wake()
