"""The store itself: opened once per engine, used from that engine's event loop."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, Self

from toolkit.contract.errors import ServiceError
from toolkit.store.blobs import REQUEST_LIMIT_S, BlobStore, open_place
from toolkit.store.changes import AppendEvent, Change, Lease, make_unusable_error
from toolkit.store.content import Content
from toolkit.store.data_dir.owners import find_active_owners
from toolkit.store.database import OpenDatabase
from toolkit.store.dialects import needs_postgres
from toolkit.store.event_waiters import EventWaiters
from toolkit.store.leases.lease_store import LeaseStore
from toolkit.store.limits.limit_store import LimitStore
from toolkit.store.private_files import make_data_dir_private, make_private_folder
from toolkit.store.reader import RowReader
from toolkit.store.sqlite.database import SqliteDatabase
from toolkit.store.tables import metadata
from toolkit.store.writing.direct_writer import DirectWriter
from toolkit.store.writing.outages import ARTIFACTS, WriteOutages
from toolkit.store.writing.result_room import ResultRoom
from toolkit.store.writing.writer import ChangeWriter


class Store(RowReader):
    """Rows, events, leases and artifacts' bytes of one data directory or PostgreSQL database.

    Several processes of one machine may have the same directory open.

    Attributes:
        is_copy: whether the directory is a copy of another directory.
        blobs: artifacts' bytes, for reading; only the store's own methods store or delete some.
        writer: writer to which `write` submits changes.
        result_room: disk space that is reserved for the results of calls in flight.

    Args:
        list_engines: lists the owners that have the database open; None if they have no files.
    """

    def __init__(
        self,
        database: OpenDatabase,
        blobs: BlobStore,
        *,
        is_synced: bool,
        lease_s: float,
        timed: Callable[[float], None] | None,
        list_engines: Callable[[], frozenset[str]] | None = None,
    ) -> None:
        super().__init__(database.reads)
        self._database = database
        self.is_copy = database.is_copy
        self.blobs = blobs
        self._owner = database.owner
        reader = RowReader(database.reads)
        self._outages = WriteOutages()
        self.writer = ChangeWriter(
            database.writes,
            is_synced=is_synced,
            committed=self._report_commit,
            timed=timed,
            outages=self._outages,
        )
        self.result_room = ResultRoom(self._outages, self.writer, blobs)
        self._waiters = EventWaiters(reader, database.get_version, database.poll_interval_s)
        self._changes = DirectWriter(database.begin)
        self.leases = LeaseStore(
            reader,
            self.writer,
            self._changes,
            self._owner,
            database.clock,
            lease_s,
            database.build_work_notice,
        )
        # If an engine's own writes fail, no other engine is assumed to renew its leases either.
        self._outages.on_failure = self.leases.outages.note_failed_write
        self.limits = LimitStore(
            database.reads, self._changes, self._owner, database.clock, list_engines
        )

    @classmethod
    async def open(
        cls,
        data_dir: Path,
        *,
        durability: Literal["normal", "full"] = "normal",
        artifact_url: str | None = None,
        lease_s: float = 15.0,
        timed: Callable[[float], None] | None = None,
        sandbox: bool | None = None,
        take_up: bool | None = None,
        database: str | None = None,
        database_wait_s: float = 0.0,
        artifact_endpoint_url: str | None = None,
    ) -> Self:
        """Open a data directory, or a database, creating and migrating it as needed.

        Args:
            data_dir: folder of `state.db`, unless the rows are in another database.
            durability: `full` makes every commit survive a power cut as well as a crash.
            artifact_url: place of artifacts' bytes, as fsspec spells it; `data_dir` by default.
            lease_s: duration of a lease without renewal, in seconds.
            timed: called with the seconds that each commit took, on the thread that made it.
            sandbox: whether its work is simulated or real; None skips the check.
            take_up: True makes a copy an independent data directory or database.
            database: address of a PostgreSQL database, which then has the rows.
            database_wait_s: maximum wait for its server if that is away, in seconds.
            artifact_endpoint_url: endpoint of an S3-compatible service other than AWS.

        Raises:
            ServiceError: `UNAVAILABLE` if it cannot be used.
        """
        try:
            make_private_folder(data_dir)
            make_data_dir_private(data_dir)
        except OSError as error:
            raise make_unusable_error(
                f"The data directory cannot be created: {error.strerror}."
            ) from error
        is_synced = durability == "full"
        place = partial(open_place, data_dir, artifact_url, endpoint_url=artifact_endpoint_url)
        blobs = BlobStore(place(synced=is_synced), synced=is_synced)
        # A database that other machines have open does not know their processes.
        list_engines = None if database else lambda: frozenset(find_active_owners(data_dir))
        if database is None:
            open_database: OpenDatabase = SqliteDatabase(data_dir, durability, sandbox, take_up)
        else:
            open_database = await _open_postgres(
                database, data_dir, sandbox=sandbox, take_up=take_up, wait_s=database_wait_s
            )
        store = cls(
            open_database,
            blobs,
            is_synced=is_synced,
            lease_s=lease_s,
            timed=timed,
            list_engines=list_engines,
        )
        await open_database.listen(store._waiters.wake, store.leases.note_work)
        return store

    async def close(self) -> None:
        """Write all submitted changes, and close everything."""
        await self.writer.drain()
        await self._changes.close()
        await self.blobs.close()
        self._waiters.close()
        await self._database.close()

    def write(
        self,
        changes: Sequence[Change],
        *,
        lease: Lease | None = None,
        eager: bool = True,
        max_wait_s: float | None = None,
        conditional: bool = False,
        paid: bool = False,
    ) -> "asyncio.Future[None]":
        """Submit changes, to be written all or nothing, in the order of the calls.

        Args:
            eager: whether to write at once; otherwise soon, together with later changes.
            max_wait_s: maximum wait for a locked database, in seconds. The default is some seconds
                without a lease, and minutes under one, for the results of work.
            conditional: True if `OverLimit` or `Conflict` may refuse it alone, so that later writes
                under the lease go on.
            paid: whether it has the result of a paid call, for which `result_room` reserves space.

        Returns:
            A future that is done when they are durable; it raises `Conflict`, `LeaseLost` or
            `ServiceError`.
        """
        return self.writer.submit(
            changes, lease, eager=eager, max_wait_s=max_wait_s, conditional=conditional, paid=paid
        )

    def _report_commit(self, events: Sequence[AppendEvent]) -> None:
        self._waiters.notify(events)
        self._database.note_commit()

    async def wait_for_event(
        self, resource_id: str, *, after: int, timeout_s: float, types: frozenset[str] | None = None
    ) -> None:
        """Wait until a resource, or a job, may have an event above `after`, or time is up.

        Args:
            after: number of the last event seen.
            types: wait for events of these types only; any, by default.
        """
        await self._waiters.wait(resource_id, after, timeout_s, types)

    async def delete_older_than(self, table: str, cutoff: str) -> int:
        """Delete the rows of a table that were created before a time; return their number."""
        rows = metadata.tables[table]
        return await self._changes.execute(rows.delete().where(rows.c.created_at < cutoff))

    async def claim_artifact_place(self) -> str | None:
        """Record the database and its artifacts' place in each other, once others see this engine.

        Returns:
            A warning if this engine's folder is its own and other engines have theirs, or None.

        Raises:
            ServiceError: `UNAVAILABLE` if the place is not the database's.
        """
        warning = await self._database.claim_artifacts(self.blobs.place)
        self.limits.is_apart = warning is not None
        return warning

    @property
    def owner(self) -> str:
        """The id of this opening of the store; another process can tell when it has ended."""
        return self._owner.id

    def is_stale_owner(self, owner: str) -> bool:
        """Check whether the process of another owner is known on this machine to have ended."""
        return self._owner.is_stale(owner)

    async def replace_spec(self, table: str, row_id: str, spec: str, new: str) -> bool:
        """Replace a row's `spec` with `new`; return False if another process was quicker."""
        rows = metadata.tables[table]
        update = rows.update().where(rows.c.id == row_id, rows.c.spec == spec).values(spec=new)
        return await self._changes.execute(update) > 0

    async def replace_cache_claim(self, claim_id: str, holder: str, job_id: str) -> bool:
        """Give a claim of the job `holder` to another job; return False if it has changed hands."""
        cache = metadata.tables["cache"]
        update = (
            cache.update()
            .where(cache.c.id == claim_id, cache.c.job_id == holder)
            .values(job_id=job_id)
        )
        return await self._changes.execute(update) > 0

    async def put_blob(self, sha256: str, data: Content) -> None:
        """Store bytes under their SHA-256, for a request: it does not wait for hanging storage."""
        await self.blobs.put(sha256, data, limit_s=REQUEST_LIMIT_S)

    async def put_paid_blob(self, sha256: str, data: Content) -> None:
        """Store the bytes of a paid result; while that fails, no call begins.

        A caller that gives up afterwards says so (`give_up_blob`).
        """
        try:
            await self.blobs.put_paid(sha256, data)
        except ServiceError:
            self._outages.note_failure(ARTIFACTS)
            raise
        self._outages.note_success(ARTIFACTS)

    def give_up_blob(self) -> None:
        """Note that bytes that could not be stored are not tried again."""
        self._outages.note_success(ARTIFACTS)

    async def delete_blob(self, sha256: str, *, stored_before_s: float) -> bool:
        """Delete bytes that no artifact refers to; return False if they were stored too recently.

        A copy of a data directory deletes nothing from remote storage, which the original uses,
        too.

        Args:
            stored_before_s: minimum age, in seconds.
        """
        if self.is_copy and self.blobs.place.is_remote:
            return True  # they are the original's, too
        is_referenced = partial(self.has_blob_reference, sha256)
        return await self.blobs.delete(sha256, stored_before_s, is_referenced)


async def _open_postgres(
    url: str, data_dir: Path, *, sandbox: bool | None, take_up: bool | None, wait_s: float
) -> OpenDatabase:
    """Open a database of PostgreSQL."""
    with needs_postgres():
        from toolkit.store.postgres.database import PostgresDatabase
    return await PostgresDatabase.open(
        url, data_dir, sandbox=sandbox, take_up=take_up, wait_s=wait_s
    )
