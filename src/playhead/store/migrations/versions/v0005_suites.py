"""Suites, their runs and trials."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def _doc() -> tuple[sa.Column[int], sa.Column[bytes]]:
    return sa.Column("format", sa.Integer(), nullable=False), sa.Column("doc", sa.LargeBinary(), nullable=False)


def upgrade() -> None:
    op.create_table("suites", sa.Column("name", sa.Text(), nullable=False), *_doc(), sa.PrimaryKeyConstraint("name"))
    op.create_table(
        "suite_cases",
        sa.Column("pk", sa.Integer(), nullable=False),
        sa.Column("suite", sa.Text(), nullable=False),
        sa.Column("case_id", sa.Text(), nullable=False),
        *_doc(),
        sa.PrimaryKeyConstraint("pk"),
        sa.UniqueConstraint("suite", "case_id"),
    )
    op.create_table(
        "suite_lines",
        sa.Column("pk", sa.Integer(), nullable=False),
        sa.Column("suite", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        *_doc(),
        sa.PrimaryKeyConstraint("pk"),
    )
    op.create_index("suite_lines_by_suite", "suite_lines", ["suite", "kind"])
    op.create_table(
        "suite_runs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("suite", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Integer(), nullable=False),
        *_doc(),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("suite_runs_by_time", "suite_runs", ["created_at", "id"])
    op.create_table(
        "trials",
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("case_id", sa.Text(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        *_doc(),
        sa.PrimaryKeyConstraint("run", "case_id", "n"),
    )
    op.create_table(
        "trial_requests",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("doc", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("digest"),
    )


def downgrade() -> None:
    for name in ("trial_requests", "trials", "suite_runs", "suite_lines", "suite_cases", "suites"):
        op.drop_table(name)
