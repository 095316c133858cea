"""The script that alembic runs; the connection comes from `toolkit.store.schema`."""

from alembic import context

from toolkit.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
