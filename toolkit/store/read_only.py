"""A store that only reads: it creates, migrates, locks and writes nothing."""

import asyncio
from collections.abc import Container, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Self

from sqlalchemy import Connection

from toolkit.contract.errors import ServiceError
from toolkit.store.blobs import BlobStore, open_place
from toolkit.store.changes import Change, Lease, make_unusable_error
from toolkit.store.content import Content
from toolkit.store.data_dir.location import find_database, is_copy
from toolkit.store.data_dir.owners import Onlooker
from toolkit.store.database import ViewedDatabase
from toolkit.store.dialects import needs_postgres
from toolkit.store.event_waiters import POLL_INTERVAL_S, EventWaiters
from toolkit.store.leases.clock import SharedClock
from toolkit.store.leases.lease_store import LeaseStore
from toolkit.store.limits.limit_store import LimitStore
from toolkit.store.read_connection import Row
from toolkit.store.reader import RowReader
from toolkit.store.sqlite.connections import open_read_only, translate_errors
from toolkit.store.sqlite.database import SqliteReadConnection
from toolkit.store.store import Store
from toolkit.store.writing.direct_writer import DirectWriter
from toolkit.store.writing.writer import ChangeWriter


class ReadOnlyStore(Store):
    """A reader of the rows, events and bytes of a store."""

    def __init__(self, view: ViewedDatabase, blobs: BlobStore) -> None:
        RowReader.__init__(self, view.reads)
        self._view = view
        self.is_copy = view.is_copy
        reader = RowReader(view.reads)
        self.blobs = blobs
        self._waiters = EventWaiters(reader, view.get_version, view.poll_interval_s)
        self.writer = _RefusingWriter()
        self._changes = DirectWriter(_refuse_transaction)
        self._owner = view.owner
        self.leases = _ReadOnlyLeases(
            reader, self.writer, self._changes, self._owner, view.clock, 0
        )
        self.limits = LimitStore(view.reads, self._changes, self._owner, view.clock, frozenset)

    @classmethod
    async def view(
        cls,
        data_dir: Path,
        artifact_url: str | None,
        artifact_endpoint_url: str | None = None,
        database: str | None = None,
    ) -> Self:
        """Open a data directory, or a database, for viewing.

        Raises:
            ServiceError: `UNAVAILABLE` if there is none, or it is of another version.
        """
        if database is None:
            view = _view_data_dir(data_dir)
        else:
            with needs_postgres():
                from toolkit.store.postgres.database import view_postgres
            view = await view_postgres(database)
        place = open_place(data_dir, artifact_url, endpoint_url=artifact_endpoint_url)
        return cls(view, BlobStore(place, synced=False))

    async def close(self) -> None:
        """Close the database."""
        await self.blobs.close()
        self._waiters.close()
        await self._view.close()

    async def put_blob(self, sha256: str, data: Content) -> None:  # noqa: ARG002 - a store's
        """Refuse to store anything."""
        raise _make_read_only_error()

    async def delete_blob(self, sha256: str, *, stored_before_s: float) -> bool:  # noqa: ARG002
        """Delete nothing, and return False."""
        return False


def _view_data_dir(data_dir: Path) -> ViewedDatabase:
    """Open the database of a data directory for reading."""
    database = find_database(data_dir, newest=True)
    with translate_errors():
        connection = open_read_only(database)
        is_a_copy = is_copy(data_dir, connection)
    reads = SqliteReadConnection(connection)

    async def close() -> None:
        connection.close()

    return ViewedDatabase(
        reads,
        SharedClock(),
        Onlooker(data_dir),
        is_a_copy,
        reads.get_data_version,
        POLL_INTERVAL_S,
        close,
    )


class _ReadOnlyLeases(LeaseStore):
    """The leases of other processes, as a reader sees them; it claims none."""

    async def claim(self, *_arguments: object, **_options: object) -> list[Lease]:
        """Claim nothing."""
        return []

    def _may_be_renewed(self, row: Row, dead_owners: Container[str]) -> bool:  # noqa: ARG002 - a store's
        """Return False: a reader cannot find out by a write whether others can renew their leases.

        It takes nothing over, so work with an ended lease counts as abandoned.
        """
        return False


class _RefusingWriter(ChangeWriter):
    """A writer that refuses each change: the returned future has an error."""

    def __init__(self) -> None:
        pass

    def submit(
        self, changes: Sequence[Change], *_arguments: object, **_options: object
    ) -> "asyncio.Future[None]":
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if changes:
            future.set_exception(_make_read_only_error())
            future.exception()  # marks it as retrieved, as a caller need not look
        else:
            future.set_result(None)
        return future


def _refuse_transaction() -> AbstractContextManager[Connection]:
    raise _make_read_only_error()


def _make_read_only_error() -> ServiceError:
    return make_unusable_error(
        "It was opened read-only: open it without read_only (--read-only) to change it."
    )
