"""Every backend does what the port says."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from playhead.store.memory import MemoryStore
from playhead.store.ports import Store
from playhead.store.sqlite import SqliteStore
from playhead.testing.conformance.store import StoreConformance


class TestMemoryStore(StoreConformance):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


class TestSqliteStore(StoreConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        store = SqliteStore(tmp_path / "store.db")
        yield store
        store.close()
