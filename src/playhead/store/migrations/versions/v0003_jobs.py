"""Jobs, their tasks, and which task needs which."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Integer(), nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.Column("format", sa.Integer(), nullable=False),
        sa.Column("doc", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("idempotency_key"),
    )
    op.create_index("jobs_by_time", "jobs", ["created_at", "id"])
    _create_tasks()


def _create_tasks() -> None:
    op.create_table(
        "tasks",
        sa.Column("pk", sa.Integer(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("on_failure", sa.Text(), nullable=False),
        sa.Column("agent_version", sa.Text(), nullable=True),
        sa.Column("labels", sa.Text(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("token", sa.Text(), nullable=True),
        *(sa.Column(f"{name}", sa.Integer(), nullable=True)
          for name in ("lease_until", "claimed_at", "started_at", "ended_at")),
        sa.Column("cancel", sa.Integer(), nullable=False),
        sa.Column("format", sa.Integer(), nullable=False),
        sa.Column("doc", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("pk"),
        sa.UniqueConstraint("id"),
    )  # fmt: skip
    op.create_index("tasks_by_status", "tasks", ["status", "rank", "created_at", "id"])
    op.create_index("tasks_by_job", "tasks", ["job", "status"])
    op.create_table(
        "task_needs",
        sa.Column("pk", sa.Integer(), nullable=False),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("needs", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("pk"),
        sa.UniqueConstraint("task", "needs"),
    )
    op.create_index("task_needs_by_needs", "task_needs", ["needs"])


def downgrade() -> None:
    for table in ("task_needs", "tasks", "jobs"):
        op.drop_table(table)
