"""A lock of another program that blocks all writes to a database."""

import sqlite3
from pathlib import Path

import psycopg


class WriteLock:
    """A lock that blocks all other writers of an open database."""

    def __init__(self, folder: Path, url: str | None) -> None:
        self._url = url
        if url is None:
            self._file = sqlite3.connect(folder / "state.db", isolation_level=None)
        else:
            self._session = psycopg.connect(url, autocommit=True)

    def take(self) -> None:
        """Begin a transaction that other writers wait for."""
        if self._url is None:
            self._file.execute("BEGIN IMMEDIATE")
        else:
            self._session.execute("BEGIN")
            self._session.execute("LOCK TABLE jobs, roots IN EXCLUSIVE MODE")

    def release(self) -> None:
        """End the transaction."""
        (self._file if self._url is None else self._session).execute("ROLLBACK")

    def close(self) -> None:
        """Close the connection."""
        (self._file if self._url is None else self._session).close()
