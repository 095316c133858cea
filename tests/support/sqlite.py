"""The SQLite under a store, for tests that spoil it."""

from toolkit.store import Store
from toolkit.store.sqlite.database import SqliteDatabase


def get_sqlite(store: Store) -> SqliteDatabase:
    """Return the database of a store that is one of SQLite."""
    assert isinstance(store._database, SqliteDatabase)
    return store._database
