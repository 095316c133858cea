"""The script that alembic runs; the connection comes from `toolkit.store.schema`."""

from alembic import context

from toolkit.store.schema import set_oldest
from toolkit.store.tables import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
    set_oldest(connection)
