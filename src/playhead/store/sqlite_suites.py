"""Suites, runs and trials in SQLite."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from playhead.core.access_log import chained
from playhead.core.codec import FORMAT, decode, encode
from playhead.core.suites.contents import Contents
from playhead.core.suites.label_log import LabelEntry
from playhead.core.suites.suite import Case, Suite, ToolSchema
from playhead.core.suites.trials import SuiteRun, Trial
from playhead.core.values import JSON
from playhead.errors import NotFoundError
from playhead.store import lookup, suite_rows
from playhead.store.compression import compress, decompress
from playhead.store.connection import Connections
from playhead.store.queries import column_text
from playhead.store.sqlite_rows import of_doc, to_doc

_HEAD: Final = "SELECT doc FROM suites WHERE name = ?"
_SET_HEAD: Final = (
    "INSERT INTO suites (name, format, doc) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET doc = excluded.doc"
)
_SET_CASE: Final = (
    "INSERT INTO suite_cases (suite, case_id, format, doc) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (suite, case_id) DO UPDATE SET doc = excluded.doc"
)
_ADD_LINE: Final = "INSERT INTO suite_lines (suite, kind, format, doc) VALUES (?, ?, ?, ?)"
_LINES: Final = "SELECT doc FROM suite_lines WHERE suite = ? AND kind = ? ORDER BY pk"
_SET_RUN: Final = (
    "INSERT INTO suite_runs (id, suite, created_at, format, doc) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (id) DO UPDATE SET doc = excluded.doc"
)
_SET_TRIAL: Final = (
    "INSERT INTO trials (run, case_id, n, format, doc) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (run, case_id, n) DO UPDATE SET doc = excluded.doc"
)

_ADD_REQUEST: Final = "INSERT OR IGNORE INTO trial_requests (digest, doc) VALUES (?, ?)"


class SqliteSuites:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def names(self) -> list[str]:
        with self._connections.reading() as c:
            return _names(c)

    def put(self, contents: Contents) -> None:
        name = column_text(contents.suite.name)
        with self._connections.writing() as c:
            for table, column in (("suites", "name"), ("suite_cases", "suite"), ("suite_lines", "suite")):
                c.execute(f"DELETE FROM {table} WHERE {column} = ?", (name,))
            c.execute(_SET_HEAD, (name, FORMAT, _packed(suite_rows.head_row(contents.suite, contents.tools))))
            _set_cases(c, name, contents.cases)
            _add_lines(c, name, "label", suite_rows.label_rows(contents.labels))
            _add_lines(c, name, "access", contents.accesses)

    def get(self, name: str) -> Contents:
        with self._connections.reading() as c:
            head = _head(c, name)
            given = column_text(name)
            cases = c.execute("SELECT doc FROM suite_cases WHERE suite = ? ORDER BY pk", (given,)).fetchall()
            labels = c.execute(_LINES, (given, "label")).fetchall()
            accesses = c.execute(_LINES, (given, "access")).fetchall()
        return suite_rows.contents_of(
            head, *([_unpacked(row[0]) for row in rows] for rows in (cases, labels, accesses))
        )

    def change(
        self, name: str, *, suite: Suite | None = None, cases: Sequence[Case] = (),
        tools: Mapping[str, ToolSchema] | None = None, labels: Sequence[LabelEntry] = (),
    ) -> None:  # fmt: skip
        with self._connections.writing() as c:
            head = _head(c, name)
            given = column_text(name)
            if suite is not None or tools:
                c.execute(_SET_HEAD, (given, FORMAT, _packed(suite_rows.merged_head(head, suite, tools or {}))))
            _set_cases(c, given, cases)
            _add_lines(c, given, "label", suite_rows.label_rows(labels))

    def add_access(self, name: str, entry: Mapping[str, JSON]) -> JSON:
        with self._connections.writing() as c:
            _head(c, name)
            given = column_text(name)
            before = c.execute(f"{_LINES} DESC LIMIT 1", (given, "access")).fetchall()
            line = chained([_unpacked(row[0]) for row in before], entry)
            _add_lines(c, given, "access", [line])
            return line

    def remove(self, name: str) -> None:
        with self._connections.writing() as c:
            _head(c, name)
            for table, column in (("suites", "name"), ("suite_cases", "suite"), ("suite_lines", "suite")):
                c.execute(f"DELETE FROM {table} WHERE {column} = ?", (column_text(name),))

    # runs

    def save_run(self, run: SuiteRun) -> None:
        with self._connections.writing() as c:
            c.execute(_SET_RUN, (run.id, column_text(run.suite), run.created_at, FORMAT, to_doc(run)))

    def run(self, run_id: str) -> SuiteRun:
        with self._connections.reading() as c:
            row = c.execute("SELECT format, doc FROM suite_runs WHERE id = ?", (column_text(run_id),)).fetchone()
        if row is None:
            raise NotFoundError(f"no suite run {run_id!r}")
        return of_doc(SuiteRun, *row)

    def resolve_run(self, text: str) -> str:
        with self._connections.reading() as c:
            rows = c.execute("SELECT id FROM suite_runs ORDER BY created_at DESC, id DESC").fetchall()
        ids = [row[0] for row in rows]
        return lookup.resolve(
            text,
            "suite run",
            nth_newest=lambda n: ids[n] if n < len(ids) else None,
            fitting=lambda part: [id for id in ids if id.startswith(part) or id.endswith(part)],
        )

    def runs(self, suite: str | None = None) -> list[SuiteRun]:
        where, given = ("", ()) if suite is None else ("WHERE suite = ?", (column_text(suite),))
        with self._connections.reading() as c:
            query = f"SELECT format, doc FROM suite_runs {where} ORDER BY created_at DESC, id DESC"
            return [of_doc(SuiteRun, *row) for row in c.execute(query, given).fetchall()]

    def add_trial(self, trial: Trial, requests: Mapping[str, JSON] | None = None) -> None:
        with self._connections.writing() as c:
            place = (trial.run, column_text(trial.case), trial.n)
            c.execute(_SET_TRIAL, (*place, FORMAT, to_doc(trial)))
            for digest, body in (requests or {}).items():
                c.execute(_ADD_REQUEST, (digest, _packed(body)))

    def trials(self, run_id: str) -> list[Trial]:
        with self._connections.reading() as c:
            query = "SELECT format, doc FROM trials WHERE run = ? ORDER BY case_id, n"
            return [of_doc(Trial, *row) for row in c.execute(query, (run_id,)).fetchall()]

    def add_request(self, digest: str, body: JSON) -> None:
        with self._connections.writing() as c:
            c.execute(_ADD_REQUEST, (digest, _packed(body)))

    def request(self, digest: str) -> JSON:
        with self._connections.reading() as c:
            row = c.execute("SELECT doc FROM trial_requests WHERE digest = ?", (digest,)).fetchone()
        if row is None:
            raise NotFoundError(f"no request {digest!r} is stored")
        return _unpacked(row[0])


def _names(c: sqlite3.Connection) -> list[str]:
    return [row[0] for row in c.execute("SELECT name FROM suites ORDER BY name").fetchall()]


def _head(c: sqlite3.Connection, name: str) -> Any:
    row = c.execute(_HEAD, (column_text(name),)).fetchone()
    if row is None:
        raise suite_rows.missing(name, _names(c))
    return _unpacked(row[0])


def _set_cases(c: sqlite3.Connection, name: str, cases: Iterable[Case]) -> None:
    rows = [(name, column_text(id), FORMAT, _packed(row)) for id, row in suite_rows.case_rows(cases)]
    c.executemany(_SET_CASE, rows)


def _add_lines(c: sqlite3.Connection, name: str, kind: str, lines: Iterable[JSON]) -> None:
    c.executemany(_ADD_LINE, [(name, kind, FORMAT, _packed(line)) for line in lines])


def _packed(value: JSON) -> bytes:
    return compress(encode(value))


def _unpacked(doc: bytes) -> JSON:
    return decode(decompress(doc))
