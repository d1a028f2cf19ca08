"""Cohorts, experiments and their runs in SQLite."""

import sqlite3

from playhead.core.codec import FORMAT
from playhead.core.cohorts import Cohort, next_version
from playhead.core.experiments.runs import Experiment, ExperimentRun
from playhead.errors import NotFoundError
from playhead.store import cohort_rules, lookup
from playhead.store.connection import Connections
from playhead.store.queries import HOLDING_COHORTS, column_text
from playhead.store.sqlite_rows import of_doc, to_doc

_VERSIONS = "SELECT format, doc FROM cohorts WHERE name = ? ORDER BY version"
_SET_RUN = (
    "INSERT INTO experiment_runs (id, experiment, created_at, format, doc) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (id) DO UPDATE SET format = excluded.format, doc = excluded.doc"
)
_RUNS = (
    "SELECT format, doc FROM experiment_runs WHERE :of IS NULL OR experiment = :of ORDER BY created_at DESC, id DESC"
)


class SqliteCohorts:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def create(self, cohort: Cohort) -> Cohort:
        with self._connections.writing() as c:
            known = _versions(c, cohort.name)
            stored = next_version(known, cohort)
            if stored.version > len(known):
                name = column_text(stored.name)
                c.execute(
                    "INSERT INTO cohorts (name, version, format, doc) VALUES (?, ?, ?, ?)",
                    (name, stored.version, FORMAT, to_doc(stored)),
                )
                c.executemany(
                    "INSERT INTO cohort_sessions (session, cohort, version) VALUES (?, ?, ?)",
                    [(column_text(member), name, stored.version) for member in stored.members],
                )
            return stored

    def find(self, name: str, version: int | None = None) -> Cohort:
        known = self.versions(name)
        return cohort_rules.chosen(name, version, known, () if known else self.names())

    def names(self) -> list[str]:
        with self._connections.reading() as c:
            return [row[0] for row in c.execute("SELECT DISTINCT name FROM cohorts ORDER BY name")]

    def versions(self, name: str) -> list[Cohort]:
        with self._connections.reading() as c:
            return _versions(c, name)

    def holding(self, session_id: str) -> list[str]:
        with self._connections.reading() as c:
            return [f"{name}@{version}" for name, version in c.execute(HOLDING_COHORTS, (column_text(session_id),))]


def _versions(c: sqlite3.Connection, name: str) -> list[Cohort]:
    return [of_doc(Cohort, *row) for row in c.execute(_VERSIONS, (column_text(name),)).fetchall()]


class SqliteExperiments:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def create(self, experiment: Experiment) -> Experiment:
        with self._connections.writing() as c:
            known = _experiment(c, experiment.name)
            if known is not None:
                return cohort_rules.same_or_conflict(known, experiment)
            c.execute(
                "INSERT INTO experiments (name, format, doc) VALUES (?, ?, ?)",
                (column_text(experiment.name), FORMAT, to_doc(experiment)),
            )
            return experiment

    def get(self, name: str) -> Experiment:
        with self._connections.reading() as c:
            found = _experiment(c, name)
        if found is None:
            raise cohort_rules.missing("experiment", name, self.names())
        return found

    def names(self) -> list[str]:
        with self._connections.reading() as c:
            return [row[0] for row in c.execute("SELECT name FROM experiments ORDER BY name")]

    def save_run(self, run: ExperimentRun) -> None:
        row = (column_text(run.id), column_text(run.experiment), run.created_at, FORMAT, to_doc(run))
        with self._connections.writing() as c:
            c.execute(_SET_RUN, row)

    def run(self, run_id: str) -> ExperimentRun:
        with self._connections.reading() as c:
            row = c.execute("SELECT format, doc FROM experiment_runs WHERE id = ?", (column_text(run_id),)).fetchone()
        if row is None:
            raise NotFoundError(f"no experiment run {run_id!r}")
        return of_doc(ExperimentRun, *row)

    def resolve_run(self, text: str) -> str:
        with self._connections.reading() as c:
            rows = c.execute("SELECT id FROM experiment_runs ORDER BY created_at DESC, id DESC").fetchall()
        ids = [row[0] for row in rows]
        return lookup.resolve(
            text,
            "experiment run",
            nth_newest=lambda n: ids[n] if n < len(ids) else None,
            fitting=lambda part: [id for id in ids if id.startswith(part) or id.endswith(part)],
        )

    def runs(self, experiment: str | None = None) -> list[ExperimentRun]:
        with self._connections.reading() as c:
            rows = c.execute(_RUNS, {"of": None if experiment is None else column_text(experiment)}).fetchall()
        return [of_doc(ExperimentRun, *row) for row in rows]


def _experiment(c: sqlite3.Connection, name: str) -> Experiment | None:
    row = c.execute("SELECT format, doc FROM experiments WHERE name = ?", (column_text(name),)).fetchone()
    return None if row is None else of_doc(Experiment, *row)
