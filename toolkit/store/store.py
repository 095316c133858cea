"""The store itself: opened once per engine, used from that engine's event loop."""

import asyncio
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Literal, Self

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.contract.operations.work_queries import WorkFilter
from toolkit.store.account_scope import ReadScope
from toolkit.store.blobs import REQUEST_LIMIT_S, BlobStore, open_place
from toolkit.store.changes import AppendEvent, Change, Lease
from toolkit.store.configuration_version import ConfigurationVersion
from toolkit.store.content import Content
from toolkit.store.data_dir.owners import find_active_owners
from toolkit.store.database import OpenDatabase
from toolkit.store.event_waiters import EventWaiters
from toolkit.store.extras import needs_postgres
from toolkit.store.leases.lease_store import LeaseStore
from toolkit.store.limits.limit_store import LimitStore
from toolkit.store.private_files import make_data_dir_private, make_private_folder
from toolkit.store.read_connection import Row
from toolkit.store.reader import RowReader
from toolkit.store.sqlite.database import SqliteDatabase
from toolkit.store.tables import metadata
from toolkit.store.turn_memo import TurnMemo
from toolkit.store.work_lists import WorkList
from toolkit.store.writing.direct_writer import DirectWriter
from toolkit.store.writing.outages import ARTIFACTS, WriteOutages
from toolkit.store.writing.result_room import ResultRoom
from toolkit.store.writing.writer import ChangeWriter


class Store:
    """Rows, events, leases and artifacts' bytes of one data directory.

    Several processes of one machine may have the same directory open.

    Attributes:
        is_copy: whether the directory is a copy of another one.
        leases: the leases of roots.
        limits: the limits that all who have the database open share.
        result_room: the disk space that is held for the results of calls in flight.

    Args:
        database: what was opened.
        blobs: the artifacts' bytes.
        is_synced: whether each commit waits for the disk.
        lease_s: how long a lease holds without being renewed, in seconds.
        timed: called with the seconds that each commit took, on the thread that made it.
        list_engines: lists the owners that have the database open; none where no files tell.
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
        self._database = database
        self.is_copy = database.is_copy
        self._blobs = blobs
        self._owner = database.owner
        self._reader = RowReader(database.reads)
        self._outages = WriteOutages()
        self._writer = ChangeWriter(
            database.writes,
            is_synced=is_synced,
            committed=self._report_commit,
            timed=timed,
            outages=self._outages,
        )
        self.result_room = ResultRoom(self._outages, self._writer, blobs)
        self._waiters = EventWaiters(self._reader, database.get_version, database.poll_interval_s)
        self._changes = DirectWriter(database.begin)
        self.leases = LeaseStore(
            self._reader,
            self._writer,
            self._changes,
            self._owner,
            database.clock,
            lease_s,
            database.build_work_notice,
        )
        # An engine whose own writes fail supposes that no other can renew its leases either.
        self._outages.on_failure = self.leases.note_failed_write
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
            data_dir: where `state.db` is, unless the rows are in another database.
            durability: `full` makes every commit survive a power cut as well as a crash.
            artifact_url: where artifacts' bytes go, as fsspec spells it; `data_dir` by default.
            lease_s: how long a lease holds without being renewed, in seconds.
            timed: called with the seconds that each commit took, on the thread that made it.
            sandbox: whether the work in it is simulated or real; None does not check.
            take_up: true makes a copy a data directory, or a database, of its own.
            database: the address of a database of PostgreSQL, which has the rows instead.
            database_wait_s: how long to wait for its server, if that is away, in seconds.
            artifact_endpoint_url: of a service that speaks S3, where it is not AWS.

        Raises:
            ServiceError: `UNAVAILABLE` when it cannot be used.
        """
        try:
            make_private_folder(data_dir)
            make_data_dir_private(data_dir)
        except OSError as error:
            raise ServiceError(
                ErrorCode.UNAVAILABLE, f"The data directory cannot be made: {error.strerror}."
            ) from error
        is_synced = durability == "full"
        place = partial(open_place, data_dir, artifact_url, endpoint_url=artifact_endpoint_url)
        blobs = BlobStore(place(synced=is_synced), synced=is_synced)
        # A database that other machines have open does not know their processes.
        list_engines = None if database else lambda: frozenset(find_active_owners(data_dir))
        if database is None:
            there: OpenDatabase = SqliteDatabase(data_dir, durability, sandbox, take_up)
        else:
            there = await _open_postgres(
                database, data_dir, sandbox=sandbox, take_up=take_up, wait_s=database_wait_s
            )
        opened = cls(
            there,
            blobs,
            is_synced=is_synced,
            lease_s=lease_s,
            timed=timed,
            list_engines=list_engines,
        )
        await there.listen(opened._waiters.wake, opened.leases.note_work)
        return opened

    async def close(self) -> None:
        """Write all submitted changes, and close everything."""
        await self._writer.drain()
        await self._changes.close()
        await self._blobs.close()
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
            changes: what to write, in one transaction.
            lease: the lease that it is written under.
            eager: write it at once; otherwise soon, together with what comes next.
            max_wait_s: the longest to wait for a database that others have locked; seconds for what
                is written under no lease, longer for what work came to.
            conditional: True if `OverLimit` or `Conflict` may refuse it alone, so that later writes
                under the lease go on.
            paid: it has the result of a paid call, for which `result_room` holds space.

        Returns:
            a future that is done when they are durable; it raises `Conflict`, `LeaseLost` or
            `ServiceError`.
        """
        return self._writer.submit(
            changes,
            lease,
            eager=eager,
            max_wait_s=max_wait_s,
            conditional=conditional,
            paid=paid,
        )

    def forfeit(self, lease: Lease, error: Exception) -> None:
        """Have all that is still written under a lease fail, as its work is to be taken up again.

        Args:
            lease: it is given back later (`leases.release`).
            error: what such writes fail with.
        """
        self._writer.forfeit(lease, error)

    async def wait_for_room(self) -> None:
        """Wait while far more is submitted than written: work is no faster than the disk."""
        await self._writer.backlog.wait_for_room()

    @cached_property
    def _turn(self) -> TurnMemo:
        return TurnMemo()

    def _report_commit(self, events: Sequence[AppendEvent]) -> None:
        self._waiters.notify(events)
        self._database.note_commit()

    async def get_configuration_version(self) -> ConfigurationVersion:
        """Return the version of the configuration (`configuration_version`), as of now."""
        return await self._turn.find("configuration", self._reader.get_configuration_version)

    async def get_row(self, table: str, row_id: str, *columns: str) -> Row | None:
        """Return one row by its id, with all or some of its columns."""
        return await self._reader.get_row(table, row_id, *columns)

    async def find_owned_row(
        self,
        table: str,
        scope: ReadScope,
        row_id: str,
        *columns: str,
        without: str | None = None,
        **equals: object,
    ) -> Row | None:
        """Return a scope's row by its id, with all or some of its columns.

        Args:
            without: a status that it must not have.
        """
        return await self._reader.find_owned_row(table, scope, row_id, columns, without, **equals)

    async def find_rows(self, table: str, **equals: object) -> list[Row]:
        """Return all rows whose columns have these values, oldest first."""
        return await self._reader.find_rows(table, **equals)

    async def find_owned_rows(self, table: str, scope: ReadScope, **equals: object) -> list[Row]:
        """Return the rows of a scope whose columns have these values, oldest first."""
        return await self._reader.find_owned_rows(table, scope, **equals)

    async def list_page(
        self,
        table: str,
        scope: ReadScope,
        *,
        limit: int,
        before: str | None = None,
        by: str = "id",
        without: str | None = None,
        **equals: object,
    ) -> list[Row]:
        """Return a scope's rows, newest first, from below the id `before`.

        Args:
            by: the column of the id to page by; rows without one are left out.
            without: a status to leave out, too, as filtering later could make a page seem the last.
        """
        return await self._reader.list_page(table, scope, limit, before, by, without, **equals)

    async def count_page(
        self,
        table: str,
        scope: ReadScope,
        most: int,
        *,
        by: str = "id",
        without: str | None = None,
        **equals: object,
    ) -> int:
        """Count the rows that `list_page` would list without a limit, up to `most`."""
        return await self._reader.count_page(table, scope, most, by, without, **equals)

    async def sum_rows(
        self,
        table: str,
        summed: Sequence[str],
        columns: Sequence[str],
        scope: ReadScope,
        ranged: str,
        span: tuple[str, str],
        *,
        through: bool = False,
    ) -> list[Row]:
        """Sum over a scope's rows, grouped by some columns.

        Args:
            summed: the columns to sum.
            columns: those to group by, in whose order the rows are returned; the account of a row
                (`account_id`) is returned as `spender_id`.
            ranged: the column that must be within `span`, the greatest of which comes first.
            through: of all accounts' rows those by the scope's connections, instead of its own.
        """
        key = (table, tuple(summed), tuple(columns), ranged, through)
        return await self._reader.sum_rows(key, scope, span)

    async def list_work(
        self, work: WorkList, scope: ReadScope, wanted: WorkFilter, limit: int, before: str | None
    ) -> list[Row]:
        """Return a page of a scope's runs, workflows or tasks, newest first.

        Each row has its `listed_id`, and the `tags` and the `note` that it was given, if any.

        Args:
            work: the kind.
            scope: whose.
            wanted: the filter of the page.
            limit: the most rows.
            before: the id that the page before this one ended with.
        """
        return await self._reader.list_work(work, scope, wanted, limit, before)

    async def count_work(self, work: WorkList, scope: ReadScope, wanted: WorkFilter) -> int | None:
        """Count a scope's runs, workflows or tasks that a filter lets through.

        Returns:
            None if there are more than 10,000, or too many rows would have to be read.
        """
        return await self._reader.count_work(work, scope, wanted)

    async def list_shared_connections(self, account_id: str) -> list[Row]:
        """Return the connections of operators that are shared with an account, oldest first.

        Each row has its owner's document, too, as `owner`.
        """
        return await self._reader.list_shared_connections(account_id)

    async def count_open_roots(self, account_id: str, most: int) -> int:
        """Count the open roots of an account, up to `most`."""
        count = partial(self._reader.count_open_roots, account_id, most)
        return await self._turn.find(("open_roots", account_id, most), count)

    async def count_rows(self, table: str, scope: ReadScope) -> int:
        """Count a scope's rows in a table."""
        return await self._reader.count_rows(table, scope)

    async def get_stored_bytes(self, account_id: str) -> tuple[int, int]:
        """Return how many bytes an account stores, of artifacts and of records."""
        read = partial(self._reader.get_stored_bytes, account_id)
        return await self._turn.find(("stored_bytes", account_id), read)

    async def get_spending(self, row_id: str) -> tuple[int, list[Row]]:
        """Return a day's total spending, and the reservations that are part of it."""
        return await self._reader.get_spending(row_id)

    async def list_reservations(self, root_id: str) -> list[Row]:
        """Return the reservations of the calls of a root."""
        return await self._reader.list_reservations(root_id)

    async def list_events(self, resource_id: str, *, after: int, limit: int = 1000) -> list[Row]:
        """Return the events of a resource, or of a job, numbered above `after`, in order."""
        return await self._reader.list_events(resource_id, after, limit)

    async def get_last_event_number(self, resource_id: str) -> int:
        """Return the number of the last event of a resource, or of a job; 0 before the first."""
        return await self._reader.get_last_event_number(resource_id)

    async def wait_for_event(
        self,
        resource_id: str,
        *,
        after: int,
        timeout_s: float,
        types: frozenset[str] | None = None,
    ) -> None:
        """Wait until a resource, or a job, may have an event above `after`, or time is up.

        Args:
            resource_id: whose events.
            after: the number of the last event seen.
            timeout_s: the longest to wait, in seconds.
            types: wait for events of these types only; any, by default.
        """
        await self._waiters.wait(resource_id, after, timeout_s, types)

    async def delete_older_than(self, table: str, cutoff: str) -> int:
        """Delete the rows of a table that were created before a time; return their number."""
        of = metadata.tables[table]
        return await self._changes.execute(of.delete().where(of.c.created_at < cutoff))

    async def claim_artifact_place(self) -> str | None:
        """Have the database and the place of its artifacts know each other, once others know of us.

        Returns:
            what is to be told where this engine's folder is its own, and others have theirs.

        Raises:
            ServiceError: `UNAVAILABLE` when the place is not that of the database.
        """
        warning = await self._database.claim_artifacts(self._blobs.place)
        self.limits.is_apart = warning is not None
        return warning

    @property
    def owner(self) -> str:
        """The id of this opening of the store; another process can tell when it has ended."""
        return self._owner.id

    def is_stale_owner(self, owner: str) -> bool:
        """Tell whether the process of another owner has ended, as far as this machine knows."""
        return self._owner.is_stale(owner)

    async def replace_spec(self, table: str, row_id: str, spec: str, new: str) -> bool:
        """Replace a row's `spec` with `new`, unless another process was quicker."""
        of = metadata.tables[table]
        mine = of.update().where(of.c.id == row_id, of.c.spec == spec).values(spec=new)
        return await self._changes.execute(mine) > 0

    async def replace_cache_claim(self, claim_id: str, holder: str, job_id: str) -> bool:
        """Give a claim of the job `holder` to another job; return False if it has changed hands."""
        of = metadata.tables["cache"]
        mine = of.update().where(of.c.id == claim_id, of.c.job_id == holder).values(job_id=job_id)
        return await self._changes.execute(mine) > 0

    async def put_blob(self, sha256: str, data: Content) -> None:
        """Store bytes under their SHA-256, for a request: it does not wait for hanging storage."""
        await self._blobs.put(sha256, data, limit_s=REQUEST_LIMIT_S)

    async def put_paid_blob(self, sha256: str, data: Content) -> None:
        """Store the bytes of a paid result; while that fails, no call begins.

        A caller that gives up afterwards says so (`give_up_blob`).
        """
        try:
            await self._blobs.put_paid(sha256, data)
        except ServiceError:
            self._outages.note_failure(ARTIFACTS)
            raise
        self._outages.note_success(ARTIFACTS)

    def give_up_blob(self) -> None:
        """Note that bytes that could not be stored are not tried again."""
        self._outages.note_success(ARTIFACTS)

    async def delete_blob(self, sha256: str, *, stored_before_s: float) -> bool:
        """Delete bytes that no artifact refers to; return False if they were stored too recently.

        Args:
            sha256: of the bytes.
            stored_before_s: the least age, in seconds.
        """
        if self.is_copy and self._blobs.place.is_remote:
            return True  # they are the original's, too
        is_referenced = partial(self._reader.has_blob_reference, sha256)
        return await self._blobs.delete(sha256, stored_before_s, is_referenced)

    async def get_blob(
        self,
        sha256: str,
        start: int = 0,
        end: int | None = None,
        *,
        limit_s: float | None = None,
    ) -> bytes:
        """Return stored bytes from `start` up to, but not including, `end`.

        Args:
            sha256: SHA-256 of the bytes.
            start: offset of the first byte.
            end: offset after the last byte; None reads to the end.
            limit_s: the longest that remote storage may make no progress; work has more patience
                than a request.
        """
        return await self._blobs.get(sha256, start, end, limit_s=limit_s)

    async def get_blob_size(self, sha256: str, *, limit_s: float | None = None) -> int:
        """Return how many bytes are stored under a SHA-256; `limit_s` as for `get_blob`."""
        return await self._blobs.get_size(sha256, limit_s=limit_s)

    async def make_blob_link(self, sha256: str, seconds: int, headers: dict[str, str]) -> str:
        """Make a URL by which stored bytes can be read without a key, for some seconds.

        Args:
            sha256: of the bytes.
            seconds: how long it holds.
            headers: `Content-Type` and `Content-Disposition` of the answer.
        """
        return await self._blobs.make_link(sha256, seconds, headers, limit_s=REQUEST_LIMIT_S)

    @property
    def blob_chunk_bytes(self) -> int:
        """How many stored bytes are best read at once."""
        return self._blobs.chunk_bytes


async def _open_postgres(
    url: str, data_dir: Path, *, sandbox: bool | None, take_up: bool | None, wait_s: float
) -> OpenDatabase:
    """Open a database of PostgreSQL.

    Raises:
        ServiceError: `UNAVAILABLE` when it cannot be used, or what it takes is not installed.
    """
    with needs_postgres():
        from toolkit.store.postgres.database import PostgresDatabase
    return await PostgresDatabase.open(
        url, data_dir, sandbox=sandbox, take_up=take_up, wait_s=wait_s
    )
