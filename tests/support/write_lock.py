"""Somebody else who keeps everybody from writing to a database."""

import sqlite3
from pathlib import Path

import psycopg


class WriteLock:
    """What keeps everybody else from writing to a database that is open."""

    def __init__(self, folder: Path, url: str | None) -> None:
        self._url = url
        if url is None:
            self._file = sqlite3.connect(folder / "state.db", isolation_level=None)
        else:
            self._session = psycopg.connect(url, autocommit=True)

    def take(self) -> None:
        """Begin a transaction that others wait for."""
        if self._url is None:
            self._file.execute("BEGIN IMMEDIATE")
        else:
            self._session.execute("BEGIN")
            self._session.execute("LOCK TABLE jobs, roots IN EXCLUSIVE MODE")

    def release(self) -> None:
        """End it."""
        (self._file if self._url is None else self._session).execute("ROLLBACK")

    def close(self) -> None:
        """Let go of the database."""
        (self._file if self._url is None else self._session).close()
