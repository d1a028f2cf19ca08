from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from playhead.core.values import Session
from playhead.engine.recorder import Recorder
from playhead.store.memory import MemoryStore
from playhead.store.ports import SessionQuery


@dataclass
class Recorded:
    """What a recorder has written so far."""

    recorder: Recorder

    def sessions(self) -> list[Session]:
        assert self.recorder.flush()
        return list(self.recorder.store.sessions.find(SessionQuery(oldest_first=True)).items)

    def session(self) -> Session:
        (only,) = self.sessions()
        return only

    def nodes(self) -> list[Any]:
        return self.recorder.store.sessions.nodes(self.session().id)

    def node(self, name: str) -> Any:
        (only,) = [node for node in self.nodes() if node.name == name]
        return only


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    made = Recorder(MemoryStore())
    yield made
    made.close()


@pytest.fixture
def recorded(recorder: Recorder) -> Recorded:
    return Recorded(recorder)
