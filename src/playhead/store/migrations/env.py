"""Run by Alembic; the connection is handed in by `run.migrate`, inside a transaction that `migrate` ends."""

from alembic import context

from playhead.store.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
