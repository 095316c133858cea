"""Access to the SQLite database of a store, for tests that damage it."""

from toolkit.store import Store
from toolkit.store.sqlite.database import SqliteDatabase


def get_sqlite(store: Store) -> SqliteDatabase:
    """Return the SQLite database of a store."""
    assert isinstance(store._database, SqliteDatabase)
    return store._database
