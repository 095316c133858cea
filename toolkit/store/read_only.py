"""A store that only reads: it creates, migrates, locks and writes nothing in the data directory."""

import asyncio
import re
import secrets
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from sqlalchemy import Delete, Update

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.blobs import BlobStore
from toolkit.store.changes import Change, Lease
from toolkit.store.content import Content
from toolkit.store.data_dir.location import find_database, is_copy
from toolkit.store.data_dir.owners import find_active_owners
from toolkit.store.reader import Row, RowReader
from toolkit.store.sqlite.connections import open_read_only, translate_errors
from toolkit.store.store import EventWaiter, Store

READ_ONLY_ACCOUNT_ID: Final = (
    f"acc_{'0' * 26}"  # the account of the directory's owner, who sees all rows
)
_ACCOUNT_CONDITION = re.compile(r"(\w+\.)?account_id = :account_id")


class ReadOnlyStore(Store):
    """A reader of the rows, events and bytes of a data directory, those of all accounts as one.

    Args:
        data_dir: where `state.db` is; of the newest revision.
        artifact_url: where artifacts' bytes are; in `data_dir` by default.

    Raises:
        ServiceError: `UNAVAILABLE` when it is no data directory, or of another version.
    """

    def __init__(self, data_dir: Path, artifact_url: str | None) -> None:
        database = find_database(data_dir, newest=True)
        with translate_errors():
            self._connection = open_read_only(database)
            self.is_copy = is_copy(data_dir, self._connection)
        self._reader = _AllAccountsReader(self._connection)
        self._blobs = BlobStore(artifact_url or str(data_dir / "artifacts"), synced=False)
        self._data_dir = data_dir
        self._waiters: dict[str, set[EventWaiter]] = {}
        self._running_changes = set()
        self._id = secrets.token_hex(8)

    async def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def write(
        self,
        changes: Sequence[Change],
        *,
        lease: Lease | None = None,  # noqa: ARG002 - a store's
        eager: bool = True,  # noqa: ARG002 - a store's
        max_wait_s: float | None = None,  # noqa: ARG002 - a store's
    ) -> "asyncio.Future[None]":
        """Refuse to write anything."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if changes:
            done.set_exception(_make_read_only_error())
            done.exception()  # marks it as retrieved, as a caller need not look
        else:
            done.set_result(None)
        return done

    async def claim_leases(
        self,
        limit: int,  # noqa: ARG002 - a store's
        wanted: Callable[[Row], Awaitable[bool]] | None = None,  # noqa: ARG002 - a store's
    ) -> list[Lease]:
        """Claim nothing."""
        return []

    def _execute_change(self, statement: Update | Delete, timeout_ms: int = 0) -> int:  # noqa: ARG002
        raise _make_read_only_error()

    async def put_blob(self, sha256: str, data: Content) -> None:  # noqa: ARG002 - a store's
        """Refuse to store anything."""
        raise _make_read_only_error()

    async def delete_blob(self, sha256: str, *, stored_before_s: float) -> bool:  # noqa: ARG002
        """Delete nothing."""
        return False

    @property
    def owner(self) -> str:
        """An id that owns nothing."""
        return self._id

    def is_stale_owner(self, owner: str) -> bool:
        """Tell whether the process of an owner has ended, as far as this machine knows."""
        return owner not in find_active_owners(self._data_dir)


class _AllAccountsReader(RowReader):
    """A reader of the rows of all accounts as if they were `READ_ONLY_ACCOUNT_ID`'s."""

    def _fetch_rows(self, sql: str, given: dict[str, object]) -> list[Row]:
        if given.get("account_id") == READ_ONLY_ACCOUNT_ID:
            # Here, as all statements go through this method.
            sql = _ACCOUNT_CONDITION.sub(":account_id IS NOT NULL", sql)
        rows = super()._fetch_rows(sql, given)
        return [
            {**row, "account_id": READ_ONLY_ACCOUNT_ID} if "account_id" in row else row
            for row in rows
        ]


def _make_read_only_error() -> ServiceError:
    return ServiceError(
        ErrorCode.UNAVAILABLE, "The data directory was opened to be looked at, and no more."
    )
