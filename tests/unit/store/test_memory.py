"""What the store in memory must not do again for every session."""

from typing import Any

import pytest

from playhead.core.values import Imported, Origin
from playhead.store import memory
from playhead.store.memory import MemoryStore
from playhead.store.ports import SessionQuery
from playhead.testing.conformance.builders import a_session, session_id


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Texts of values that were parsed."""
    texts: list[Any] = []
    decode = memory.decode

    def counting(text: bytes) -> Any:
        texts.append(text)
        return decode(text)

    monkeypatch.setattr(memory, "decode", counting)
    return texts


def test_looking_for_one_session_parses_no_other(parsed: list[Any]) -> None:
    store = MemoryStore()
    for number in range(100):
        imported = Imported(format="f", instance="i", external_id=str(number))
        store.sessions.put(a_session(number, imported=imported, origin=Origin.IMPORT), [])
    parsed.clear()
    found = store.sessions.by_external("f", "i", "7")
    assert found is not None
    assert found.id == session_id(7)
    assert store.sessions.by_external("f", "i", "none") is None
    assert store.sessions.resolve("last") == session_id(99)
    assert len(store.sessions.find(SessionQuery(), limit=3).items) == 3
    assert len(parsed) == 4


def test_what_was_found_is_not_what_is_kept() -> None:
    store = MemoryStore()
    store.sessions.put(a_session(metadata={"a": [1]}), [])
    for found in (store.sessions.get(session_id(1)), *store.sessions.find(SessionQuery()).items):
        found.metadata["a"].append(2)
    assert store.sessions.count(SessionQuery(metadata={"a": [1]})) == 1
