"""Shared by every test: no network but loopback, and the folder of recorded data when it is there."""

import gc
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_LOOPBACK = ("127.", "::1", "localhost")
_connect = socket.socket.connect


def _guarded_connect(self: socket.socket, address: object) -> None:
    host = address[0] if isinstance(address, tuple) else None
    if self.family != socket.AF_UNIX and not str(host).startswith(_LOOPBACK):
        raise AssertionError(f"a test tried to connect to {address!r}")
    return _connect(self, address)  # type: ignore[arg-type]


def pytest_collection_finish() -> None:
    """The frameworks that the tests imported stay, so the garbage collector need not walk them time and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 20, 20)


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket.socket, "connect", _guarded_connect)


@pytest.fixture(autouse=True)
def no_project(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keeps a developer's own store, settings and keys out of the tests."""
    for name in [n for n in os.environ if n.startswith("PLAYHEAD_") and n != "PLAYHEAD_SHARED"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture(autouse=True)
def nothing_stays_installed() -> Iterator[None]:
    """What one test installed into frameworks is gone for the next."""
    yield
    installation = sys.modules.get("playhead.adapters.installation")
    if installation is not None:
        installation.uninstall()


@pytest.fixture(autouse=True)
def no_recorder_stays() -> Iterator[None]:
    """What one test began to record into is closed for the next."""
    project = sys.modules.get("playhead.engine.project")
    before = None if project is None else project.current_recorder()
    yield
    project = sys.modules.get("playhead.engine.project")
    made = None if project is None else project.current_recorder()
    if project is not None and made is not None and made is not before:
        project.use_recorder(before)
        made.close()
        made.store.close()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Recordings made by others; not part of the repository."""
    root = Path(os.environ.get("PLAYHEAD_SHARED", Path(__file__).parents[2] / "shared"))
    if not (root / "data").is_dir():
        pytest.skip("recorded data is not here: set PLAYHEAD_SHARED to the folder that holds data/")
    return root / "data"
