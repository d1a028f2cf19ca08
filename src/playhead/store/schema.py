"""The tables, for migrations and their tests. Opening a current store needs none of this: see `ddl.sql`.

A row holds what listings filter and order by; the whole value is in ``doc``: zstd-compressed JSON of `core.codec`.
"""

from sqlalchemy import (
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

metadata = MetaData()


def _session_key(*, primary_key: bool = False) -> Column[int]:
    reference = ForeignKey("sessions.pk", ondelete="CASCADE")
    return Column("session", Integer, reference, nullable=False, primary_key=primary_key)


sessions = Table(
    "sessions",
    metadata,
    Column("pk", Integer, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("agent", Text, nullable=False),
    Column("agent_version", Text),
    Column("project", Text, nullable=False, server_default=text("'default'")),
    Column("origin", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("started_at", Integer, nullable=False),
    Column("conversation", Text),
    Column("baseline_id", Text),
    Column("external_format", Text),
    Column("external_instance", Text),
    Column("external_id", Text),
    Column("revision", Integer, nullable=False),
    Column("metadata", Text, nullable=False),
    Column("digest", Text),  # of the content that a put stored
    Column("epoch", Integer, nullable=False, server_default=text("0")),  # counts compactions: numbers start anew
    Column("format", Integer, nullable=False),
    Column("doc", LargeBinary, nullable=False),
    sqlite_autoincrement=True,  # a key is never given twice, so what a writer remembers of one stays true
)
Index("sessions_by_time", sessions.c.started_at, sessions.c.id)
Index("sessions_by_agent", sessions.c.agent, sessions.c.started_at, sessions.c.id)
for _name in ("conversation", "baseline_id"):
    Index(
        f"sessions_by_{_name}",
        sessions.c[_name],
        sessions.c.started_at,
        sqlite_where=sessions.c[_name].is_not(None),
    )
Index(
    "sessions_by_external",
    sessions.c.external_id,
    sessions.c.external_format,
    sqlite_where=sessions.c.external_id.is_not(None),
)

session_tags = Table(
    "session_tags",
    metadata,
    Column("tag", Text, primary_key=True, nullable=False),
    _session_key(primary_key=True),
    sqlite_with_rowid=False,
)
Index("session_tags_by_session", session_tags.c.session)

segments = Table(
    "segments",
    metadata,
    Column("pk", Integer, primary_key=True),
    _session_key(),
    Column("n", Integer, nullable=False),
    Column("final", Integer, nullable=False),
    Column("nodes", Integer, nullable=False),
    Column("first_message", Integer, nullable=False),
    Column("messages", Integer, nullable=False),
    Column("first_list", Integer, nullable=False),
    Column("lists", Integer, nullable=False),
    Column("format", Integer, nullable=False),
    Column("heads", LargeBinary, nullable=False),
    Column("body", LargeBinary, nullable=False),  # last: a row is read up to the last column that is asked for
    UniqueConstraint("session", "n"),
)

shared = Table(
    "shared",
    metadata,
    Column("pk", Integer, primary_key=True),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("size", Integer, nullable=False),
    Column("data", LargeBinary, nullable=False),
)

session_shared = Table(
    "session_shared",
    metadata,
    _session_key(primary_key=True),
    Column("shared", Integer, ForeignKey("shared.pk"), primary_key=True, nullable=False),
    sqlite_with_rowid=False,
)
Index("session_shared_by_shared", session_shared.c.shared)

names = Table(
    "names",
    metadata,
    Column("pk", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
)

# The newest call with a value of each key in each session that history may be taken from.
calls = Table(
    "calls",
    metadata,
    Column("agent", Integer, primary_key=True, nullable=False),
    Column("tool", Integer, primary_key=True, nullable=False),
    Column("key", LargeBinary, primary_key=True, nullable=False),
    Column("session", Integer, primary_key=True, nullable=False),
    Column("ended_at", Integer, nullable=False),
    sqlite_with_rowid=False,
)

verdicts = Table(
    "verdicts",
    metadata,
    Column("pk", Integer, primary_key=True),
    _session_key(),
    Column("evaluator", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("format", Integer, nullable=False),
    Column("doc", LargeBinary, nullable=False),
    UniqueConstraint("session", "evaluator", "name"),
)

agent_versions = Table(
    "agent_versions",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("agent", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("state", LargeBinary, nullable=False),  # digest of run spec and fingerprint
    Column("format", Integer, nullable=False),
    Column("doc", LargeBinary, nullable=False),
    UniqueConstraint("agent", "number"),
    UniqueConstraint("agent", "state"),
)

replays = Table(
    "replays",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("baseline_session_id", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("created_at", Integer, nullable=False),
    Column("idempotency_key", Text, unique=True),
    Column("format", Integer, nullable=False),
    Column("doc", LargeBinary, nullable=False),
)
Index("replays_by_time", replays.c.created_at, replays.c.id)
Index("replays_by_baseline", replays.c.baseline_session_id, replays.c.created_at)

jobs = Table(
    "jobs",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("kind", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("created_at", Integer, nullable=False),
    Column("idempotency_key", Text, unique=True),
    Column("format", Integer, nullable=False),
    Column("doc", LargeBinary, nullable=False),
)
Index("jobs_by_time", jobs.c.created_at, jobs.c.id)

tasks = Table(
    "tasks",
    metadata,
    Column("pk", Integer, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("job", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("rank", Integer, nullable=False),  # the priority, negated: claims go upwards through one index
    Column("created_at", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("on_failure", Text, nullable=False),
    Column("agent_version", Text),
    Column("labels", Text, nullable=False),  # a JSON array
    Column("worker", Text),
    Column("token", Text),
    Column("lease_until", Integer),
    Column("claimed_at", Integer),
    Column("started_at", Integer),
    Column("ended_at", Integer),
    Column("cancel", Integer, nullable=False),
    Column("format", Integer, nullable=False),
    Column("doc", LargeBinary, nullable=False),  # payload, error and result
)
Index("tasks_by_status", tasks.c.status, tasks.c.rank, tasks.c.created_at, tasks.c.id)
Index("tasks_by_job", tasks.c.job, tasks.c.status)

task_needs = Table(
    "task_needs",
    metadata,
    Column("pk", Integer, primary_key=True),
    Column("task", Text, nullable=False),
    Column("needs", Text, nullable=False),
    UniqueConstraint("task", "needs"),
)
Index("task_needs_by_needs", task_needs.c.needs)

evaluators = Table(
    "evaluators",
    metadata,
    Column("name", Text, primary_key=True, nullable=False),
    Column("version", Integer, primary_key=True, nullable=False),
    Column("format", Integer, nullable=False),
    Column("doc", LargeBinary, nullable=False),
)

suites = Table(
    "suites",
    metadata,
    Column("name", Text, primary_key=True, nullable=False),
    Column("format", Integer, nullable=False),
    Column("doc", LargeBinary, nullable=False),
)

suite_cases = Table(
    "suite_cases",
    metadata,
    Column("pk", Integer, primary_key=True),
    Column("suite", Text, nullable=False),
    Column("case_id", Text, nullable=False),
    Column("format", Integer, nullable=False),
    Column("doc", LargeBinary, nullable=False),
    UniqueConstraint("suite", "case_id"),
)

# Logs that only grow: of labels, and of who read what is held back.
suite_lines = Table(
    "suite_lines",
    metadata,
    Column("pk", Integer, primary_key=True),
    Column("suite", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("format", Integer, nullable=False),
    Column("doc", LargeBinary, nullable=False),
)
Index("suite_lines_by_suite", suite_lines.c.suite, suite_lines.c.kind)

suite_runs = Table(
    "suite_runs",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("suite", Text, nullable=False),
    Column("created_at", Integer, nullable=False),
    Column("format", Integer, nullable=False),
    Column("doc", LargeBinary, nullable=False),
)
Index("suite_runs_by_time", suite_runs.c.created_at, suite_runs.c.id)

trials = Table(
    "trials",
    metadata,
    Column("run", Text, primary_key=True, nullable=False),
    Column("case_id", Text, primary_key=True, nullable=False),
    Column("n", Integer, primary_key=True, nullable=False),
    Column("format", Integer, nullable=False),
    Column("doc", LargeBinary, nullable=False),
)

# Requests of trials by the digest of their canonical text: the runs of a case, and models, share them.
trial_requests = Table(
    "trial_requests",
    metadata,
    Column("digest", Text, primary_key=True, nullable=False),
    Column("doc", LargeBinary, nullable=False),
)

cohorts = Table(
    "cohorts",
    metadata,
    Column("name", Text, primary_key=True, nullable=False),
    Column("version", Integer, primary_key=True, nullable=False),
    Column("format", Integer, nullable=False),
    Column("doc", LargeBinary, nullable=False),
)

# The members of cohort versions once more: deleting a session asks who needs it.
cohort_sessions = Table(
    "cohort_sessions",
    metadata,
    Column("session", Text, primary_key=True, nullable=False),
    Column("cohort", Text, primary_key=True, nullable=False),
    Column("version", Integer, primary_key=True, nullable=False),
)

experiments = Table(
    "experiments",
    metadata,
    Column("name", Text, primary_key=True, nullable=False),
    Column("format", Integer, nullable=False),
    Column("doc", LargeBinary, nullable=False),
)

experiment_runs = Table(
    "experiment_runs",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("experiment", Text, nullable=False),
    Column("created_at", Integer, nullable=False),
    Column("format", Integer, nullable=False),
    Column("doc", LargeBinary, nullable=False),
)
Index("experiment_runs_by_time", experiment_runs.c.created_at, experiment_runs.c.id)


def ddl() -> str:
    """The text of `ddl.sql`."""
    dialect = sqlite.dialect()
    statements: list[str] = []
    for table in metadata.sorted_tables:
        indexes = sorted(table.indexes, key=lambda index: index.name or "")
        made = [CreateTable(table), *map(CreateIndex, indexes)]
        statements += [str(one.compile(dialect=dialect)).strip() for one in made]
    return "\n\n".join(f"{statement};" for statement in statements) + "\n"


if __name__ == "__main__":
    import sys

    sys.stdout.write(ddl())
