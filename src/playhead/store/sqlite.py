"""The embedded store: one SQLite file, many threads, several processes.

Opening a current store imports neither SQLAlchemy nor Alembic: the version is read by plain SQL, a new store is made
from `ddl.sql`, and the migrations are loaded when there is one to do.
"""

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from playhead.errors import NotFoundError, StoreDamagedError, StoreVersionError
from playhead.store.checks import problems
from playhead.store.connection import Connections, translated
from playhead.store.ports import (
    AgentPort,
    CohortPort,
    EvaluatorPort,
    ExperimentPort,
    JobPort,
    ReplayPort,
    SessionPort,
    SuitePort,
)
from playhead.store.sqlite_evaluators import SqliteEvaluators
from playhead.store.sqlite_jobs import SqliteJobs
from playhead.store.sqlite_records import SqliteAgents, SqliteReplays
from playhead.store.sqlite_sessions import SqliteSessions

SCHEMA = "0006"
"""The version of the schema that this playhead reads and writes."""

OLDER = ("0001", "0002", "0003", "0004", "0005")
"""Versions that are migrated when they are opened."""

_VERSION_TABLE = "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"


class SqliteStore:
    """A store in one file.

    Args:
        path: the file.
        create: make the file and its folder where there is none.
        busy_timeout: seconds to wait for a lock of another process before `StoreBusyError`.

    Raises:
        StoreVersionError: written by a newer playhead.
        StoreDamagedError: truncated, or not a store.
    """

    def __init__(self, path: Path | str, *, create: bool = True, busy_timeout: float = 5.0) -> None:
        self.path = Path(path).absolute()  # a child process may work in another folder
        self.url = f"sqlite:///{self.path}"
        self._connections = Connections(self.path, busy_timeout=busy_timeout)
        try:
            with translated(self.path):
                _make_file(self.path, create)
            self._ensure_schema()
        except BaseException:
            self._connections.close()
            raise
        self.sessions: SessionPort = SqliteSessions(self._connections)
        self.agents: AgentPort = SqliteAgents(self._connections)
        self.replays: ReplayPort = SqliteReplays(self._connections)
        self._jobs = SqliteJobs(self._connections)
        self.jobs: JobPort = self._jobs
        self.evaluators: EvaluatorPort = SqliteEvaluators(self._connections)
        self._suites: SuitePort | None = None

    @property
    def suites(self) -> SuitePort:
        if self._suites is None:
            from playhead.store.sqlite_suites import SqliteSuites

            self._suites = SqliteSuites(self._connections)
        return self._suites

    @property
    def cohorts(self) -> CohortPort:
        from playhead.store.sqlite_experiments import SqliteCohorts

        return SqliteCohorts(self._connections)

    @property
    def experiments(self) -> ExperimentPort:
        from playhead.store.sqlite_experiments import SqliteExperiments

        return SqliteExperiments(self._connections)

    def check(self) -> Iterator[str]:
        return problems(self._connections)

    def close(self) -> None:
        self._jobs.close()
        self._connections.close()

    def _ensure_schema(self) -> None:
        with self._connections.reading() as c:
            version = schema_version(c, self.path)
        if version == SCHEMA:
            return
        if version is None:
            self._create()
        elif version in OLDER:
            from playhead.store.migrations.run import migrate

            with translated(self.path):
                migrate(self.path, to=SCHEMA, busy_timeout=self._connections.busy_timeout)
        else:
            raise StoreVersionError(
                f"store {self.path} has schema {version!r}; this playhead knows up to {SCHEMA!r}",
                hint="it was written by a newer playhead: upgrade, or choose another store with --url",
            )

    def _create(self) -> None:
        from importlib import resources

        self._connections.execute_alone("PRAGMA journal_mode = WAL")
        statements = resources.files("playhead.store").joinpath("ddl.sql").read_text(encoding="utf-8").split(";\n")
        with self._connections.writing() as c:
            if schema_version(c, self.path) is not None:
                return  # another process was first
            for statement in (*statements, _VERSION_TABLE):
                c.execute(statement)
            c.execute("INSERT INTO alembic_version VALUES (?)", (SCHEMA,))


def schema_version(c: sqlite3.Connection, path: Path) -> str | None:
    """The version of the schema, None for an empty database.

    Raises:
        StoreDamagedError: a database of something else.
    """
    tables = {row[0] for row in c.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables:
        return None
    if "alembic_version" not in tables or "sessions" not in tables:
        raise StoreDamagedError(f"{path} is a database, but not a store of playhead", hint="choose another file")
    row = c.execute("SELECT version_num FROM alembic_version").fetchone()
    if row is None:
        raise StoreDamagedError(f"store {path} does not say which version it is")
    return row[0]


def _make_file(path: Path, create: bool) -> None:
    """The file with mode 0600, so that SQLite gives its companions the same; new folders with 0700."""
    if path.exists():
        return
    if not create:
        raise NotFoundError(f"there is no store {path}", hint="record something first, or choose another with --url")
    missing = [folder for folder in path.parents if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
