"""A store that only reads: it creates, migrates, locks and writes nothing in the data directory."""

import asyncio
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from sqlalchemy import Delete, Update

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.blobs import BlobStore, open_place
from toolkit.store.changes import Change, Lease
from toolkit.store.content import Content
from toolkit.store.data_dir.location import find_database, is_copy
from toolkit.store.data_dir.owners import LeaseOwner, find_active_owners
from toolkit.store.event_waiters import EventWaiters
from toolkit.store.leases.clock import MachineClock
from toolkit.store.leases.lease_store import LeaseStore
from toolkit.store.limits.limit_store import LimitStore
from toolkit.store.read_connection import Row
from toolkit.store.reader import RowReader
from toolkit.store.sqlite.connections import open_read_only, translate_errors
from toolkit.store.sqlite.reads import SqliteReadConnection
from toolkit.store.store import Store
from toolkit.store.writing.direct_writer import DirectWriter
from toolkit.store.writing.writer import ChangeWriter

READ_ONLY_ACCOUNT_ID: Final = (
    f"acc_{'0' * 26}"  # the account of the directory's owner, who sees all rows
)
_ACCOUNT_CONDITION = re.compile(r"(\w+\.)?account_id = :account_id")


class ReadOnlyStore(Store):
    """A reader of the rows, events and bytes of a data directory, those of all accounts as one.

    Args:
        data_dir: where `state.db` is; of the newest revision.
        artifact_url: where artifacts' bytes are; in `data_dir` by default.
        artifact_endpoint_url: of a service that speaks S3, where it is not AWS.

    Raises:
        ServiceError: `UNAVAILABLE` when it is no data directory, or of another version.
    """

    def __init__(
        self, data_dir: Path, artifact_url: str | None, artifact_endpoint_url: str | None = None
    ) -> None:
        database = find_database(data_dir, newest=True)
        with translate_errors():
            self._connection = open_read_only(database)
            self.is_copy = is_copy(data_dir, self._connection)
        reads = _AllAccountsReadConnection(self._connection)
        self._reader = RowReader(reads)
        place = open_place(data_dir, artifact_url, endpoint_url=artifact_endpoint_url)
        self._blobs = BlobStore(place, synced=False)
        self._waiters = EventWaiters(self._reader, reads.get_data_version)
        self._writer = _RefusingWriter()
        self._changes = _RefusingDirectWriter()
        self._owner = _Onlooker(data_dir)
        self.leases = _ReadOnlyLeases(
            self._reader, self._writer, self._changes, self._owner, MachineClock(), 0
        )
        self.limits = LimitStore(reads, self._changes, self._owner, MachineClock(), frozenset)

    async def close(self) -> None:
        """Close the database."""
        await self._blobs.close()
        self._waiters.close()
        self._connection.close()

    async def put_blob(self, sha256: str, data: Content) -> None:  # noqa: ARG002 - a store's
        """Refuse to store anything."""
        raise _make_read_only_error()

    async def delete_blob(self, sha256: str, *, stored_before_s: float) -> bool:  # noqa: ARG002
        """Delete nothing."""
        return False


class _Onlooker(LeaseOwner):
    """An opening of the store that owns nothing."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self.id = secrets.token_hex(8)

    def is_stale(self, owner: str) -> bool:
        return owner not in find_active_owners(self._data_dir)


class _ReadOnlyLeases(LeaseStore):
    """The leases of others."""

    async def claim(
        self,
        limit: int,  # noqa: ARG002 - a store's
        wanted: Callable[[Row], Awaitable[bool]] | None = None,  # noqa: ARG002 - a store's
    ) -> list[Lease]:
        """Claim nothing."""
        return []


class _RefusingWriter(ChangeWriter):
    """A writer that refuses to write anything."""

    def __init__(self) -> None:
        pass

    def submit(
        self,
        changes: Sequence[Change],
        lease: Lease | None,  # noqa: ARG002 - a writer's
        *,
        eager: bool = True,  # noqa: ARG002 - a writer's
        max_wait_s: float | None = None,  # noqa: ARG002 - a writer's
    ) -> "asyncio.Future[None]":
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if changes:
            done.set_exception(_make_read_only_error())
            done.exception()  # marks it as retrieved, as a caller need not look
        else:
            done.set_result(None)
        return done


class _RefusingDirectWriter(DirectWriter):
    """A writer that refuses to change anything."""

    def __init__(self) -> None:
        self._running = set()

    def execute_now(self, statement: Update | Delete) -> int:  # noqa: ARG002 - a writer's
        raise _make_read_only_error()


class _AllAccountsReadConnection(SqliteReadConnection):
    """A reader of the rows of all accounts as if they were `READ_ONLY_ACCOUNT_ID`'s."""

    def read_rows(self, sql: str, given: Mapping[str, object]) -> list[Row]:
        if given.get("account_id") == READ_ONLY_ACCOUNT_ID:
            # Here, as all statements for rows go through this method.
            sql = _ACCOUNT_CONDITION.sub(":account_id IS NOT NULL", sql)
        rows = super().read_rows(sql, given)
        return [
            {**row, "account_id": READ_ONLY_ACCOUNT_ID} if "account_id" in row else row
            for row in rows
        ]


def _make_read_only_error() -> ServiceError:
    return ServiceError(
        ErrorCode.UNAVAILABLE, "The data directory was opened to be looked at, and no more."
    )
