from collections.abc import Iterator

import pytest

from playhead.engine.project import use_recorder
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
