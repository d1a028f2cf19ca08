from collections.abc import Iterator
from pathlib import Path

import pytest

from playhead.engine.project import current_recorder, use_recorder
from playhead.engine.recorder import Recorder
from playhead.store.memory import MemoryStore


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    """The process's recorder, into a store in memory."""
    made = Recorder(MemoryStore())
    before = use_recorder(made)
    yield made
    made.close()
    use_recorder(before)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a project of its own, which is the current directory; its store is a real SQLite file."""
    folder = tmp_path / "project"
    (folder / ".playhead").mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    before = use_recorder(None)
    yield folder
    made = current_recorder()
    if made is not None:
        made.close()
        made.store.close()
    use_recorder(before)
