"""Sessions in segments, shared values, call index, verdicts, agent versions, replays."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    _create_records()
    _create_sessions()
    _create_payloads()
    _create_marks()


def _create_records() -> None:
    op.create_table(
        "agent_versions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("state", sa.LargeBinary(), nullable=False),
        sa.Column("format", sa.Integer(), nullable=False),
        sa.Column("doc", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("agent", "number"),
        sa.UniqueConstraint("agent", "state"),
    )
    op.create_table(
        "calls",
        sa.Column("agent", sa.Integer(), nullable=False),
        sa.Column("tool", sa.Integer(), nullable=False),
        sa.Column("key", sa.LargeBinary(), nullable=False),
        sa.Column("session", sa.Integer(), nullable=False),
        sa.Column("ended_at", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("agent", "tool", "key", "session"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "names",
        sa.Column("pk", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("pk"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "replays",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("baseline_session_id", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Integer(), nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.Column("format", sa.Integer(), nullable=False),
        sa.Column("doc", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("idempotency_key"),
    )
    op.create_index("replays_by_baseline", "replays", ["baseline_session_id", "created_at"], unique=False)
    op.create_index("replays_by_time", "replays", ["created_at", "id"], unique=False)


def _create_sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("pk", sa.Integer(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("agent_version", sa.Text(), nullable=True),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("started_at", sa.Integer(), nullable=False),
        sa.Column("conversation", sa.Text(), nullable=True),
        sa.Column("baseline_id", sa.Text(), nullable=True),
        sa.Column("external_format", sa.Text(), nullable=True),
        sa.Column("external_instance", sa.Text(), nullable=True),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=True),
        sa.Column("epoch", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("format", sa.Integer(), nullable=False),
        sa.Column("doc", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("pk"),
        sa.UniqueConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index("sessions_by_agent", "sessions", ["agent", "started_at", "id"], unique=False)
    op.create_index(
        "sessions_by_baseline_id",
        "sessions",
        ["baseline_id", "started_at"],
        unique=False,
        sqlite_where=sa.text("baseline_id IS NOT NULL"),
    )
    op.create_index("sessions_by_time", "sessions", ["started_at", "id"], unique=False)


def _create_payloads() -> None:
    op.create_table(
        "shared",
        sa.Column("pk", sa.Integer(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("pk"),
        sa.UniqueConstraint("digest"),
    )
    op.create_table(
        "segments",
        sa.Column("pk", sa.Integer(), nullable=False),
        sa.Column("session", sa.Integer(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("final", sa.Integer(), nullable=False),
        sa.Column("nodes", sa.Integer(), nullable=False),
        sa.Column("first_message", sa.Integer(), nullable=False),
        sa.Column("messages", sa.Integer(), nullable=False),
        sa.Column("first_list", sa.Integer(), nullable=False),
        sa.Column("lists", sa.Integer(), nullable=False),
        sa.Column("format", sa.Integer(), nullable=False),
        sa.Column("heads", sa.LargeBinary(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["session"], ["sessions.pk"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("pk"),
        sa.UniqueConstraint("session", "n"),
    )
    op.create_table(
        "session_shared",
        sa.Column("session", sa.Integer(), nullable=False),
        sa.Column("shared", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["session"], ["sessions.pk"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["shared"],
            ["shared.pk"],
        ),
        sa.PrimaryKeyConstraint("session", "shared"),
        sqlite_with_rowid=False,
    )
    op.create_index("session_shared_by_shared", "session_shared", ["shared"], unique=False)


def _create_marks() -> None:
    op.create_table(
        "session_tags",
        sa.Column("tag", sa.Text(), nullable=False),
        sa.Column("session", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["session"], ["sessions.pk"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("tag", "session"),
        sqlite_with_rowid=False,
    )
    op.create_index("session_tags_by_session", "session_tags", ["session"], unique=False)
    op.create_table(
        "verdicts",
        sa.Column("pk", sa.Integer(), nullable=False),
        sa.Column("session", sa.Integer(), nullable=False),
        sa.Column("evaluator", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("format", sa.Integer(), nullable=False),
        sa.Column("doc", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["session"], ["sessions.pk"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("pk"),
        sa.UniqueConstraint("session", "evaluator", "name"),
    )


def downgrade() -> None:
    raise NotImplementedError("there is nothing below the first version")
