"""Registered evaluators in SQLite."""

import sqlite3

from playhead.core.codec import FORMAT
from playhead.core.evaluation import Evaluator
from playhead.store.connection import Connections
from playhead.store.evaluator_versions import chosen, next_version
from playhead.store.queries import column_text
from playhead.store.sqlite_rows import of_doc, to_doc

_VERSIONS = "SELECT format, doc FROM evaluators WHERE name = ? ORDER BY version"


class SqliteEvaluators:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def register(self, evaluator: Evaluator) -> Evaluator:
        with self._connections.writing() as c:
            known = _versions(c, evaluator.name)
            stored = next_version(known, evaluator)
            if not known or stored.version > known[-1].version:
                c.execute(
                    "INSERT INTO evaluators (name, version, format, doc) VALUES (?, ?, ?, ?)",
                    (column_text(stored.name), stored.version, FORMAT, to_doc(stored)),
                )
            return stored

    def find(self, name: str, version: int | None = None) -> Evaluator:
        known = self.versions(name)
        return chosen(name, version, known, () if known else self.names())

    def names(self) -> list[str]:
        with self._connections.reading() as c:
            return [row[0] for row in c.execute("SELECT DISTINCT name FROM evaluators ORDER BY name")]

    def versions(self, name: str) -> list[Evaluator]:
        with self._connections.reading() as c:
            return _versions(c, name)


def _versions(c: sqlite3.Connection, name: str) -> list[Evaluator]:
    return [of_doc(Evaluator, *row) for row in c.execute(_VERSIONS, (column_text(name),)).fetchall()]
