"""Sessions belong to a project, and are found by conversation and by the id they had where they came from."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    with op.batch_alter_table("sessions", recreate="never") as sessions:
        sessions.add_column(sa.Column("project", sa.Text(), server_default=sa.text("'default'"), nullable=False))
        sessions.create_index(
            "sessions_by_conversation",
            ["conversation", "started_at"],
            sqlite_where=sa.text("conversation IS NOT NULL"),
        )
        sessions.create_index(
            "sessions_by_external",
            ["external_id", "external_format"],
            sqlite_where=sa.text("external_id IS NOT NULL"),
        )


def downgrade() -> None:
    op.drop_index("sessions_by_external", "sessions")
    op.drop_index("sessions_by_conversation", "sessions")
    op.execute("ALTER TABLE sessions DROP COLUMN project")  # keeps the table, and so every reference to it
