"""Reads of rows and events: statements compiled once, run on the database's own driver."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar, cast

from toolkit.contract.operations.work_queries import WorkFilter
from toolkit.store import read_statements as statements
from toolkit.store.account_scope import AccountScope, ReadScope, get_scope_values
from toolkit.store.configuration_version import READ_VERSION_SQL, ConfigurationVersion
from toolkit.store.list_search import WorkSearch
from toolkit.store.map_rows import MapRowReader
from toolkit.store.read_connection import ReadConnection, Row
from toolkit.store.tables import name_columns
from toolkit.store.work_lists import WorkList

T = TypeVar("T")
_GIVEN_UP: Final = object()  # replaces the value if its reader was cancelled
# One statement, so that both are read at the same moment.
_SPENDING_SQL = (
    "SELECT spending.nano AS total, "  # noqa: S608 - our names
    f"{name_columns('reservations')} FROM spending"
    " LEFT JOIN reservations ON reservations.spending_id = spending.id WHERE spending.id = :id"
)
_RESERVATIONS_SQL = "SELECT * FROM reservations WHERE id LIKE :pattern"
_STORED_BYTES_SQL = "SELECT artifacts, records FROM stored_bytes WHERE id = :id"
_JOB_OF_RUN_SQL = "SELECT id FROM jobs WHERE run_id = :run_id"
SHARED_WITH_ALL: Final = "*"  # in a share, instead of an account
_SHARED_CONNECTIONS_SQL = (
    f"SELECT DISTINCT {name_columns('connections')}, owners.doc AS owner"  # noqa: S608 - ours
    " FROM shares"
    " JOIN connections ON connections.id = shares.connection_id"
    " JOIN accounts AS owners ON owners.id = connections.account_id"
    " WHERE shares.shared_with IN (:account_id, :all) AND connections.account_id <> :account_id"
    " AND NOT connections.deleted AND owners.operator ORDER BY connections.id"
)
# The key of stored events, `resource` or `job`, and its id; and the number and type of an event.
EventKey: TypeAlias = tuple[str, str]
LastEvent: TypeAlias = tuple[int, str]


class TurnMemo:
    """Remembers values that were read in a turn of the event loop, for the rest of that turn.

    Many requests are often served in one turn, and read the same values. The first read queues
    the memory's end in the loop. Every callback that runs before the end was queued before the
    read. So no request gets a value from before it asked, and a caller that waited for a commit
    reads its rows. Requests must be queued when they are received (`call_soon`), as servers do
    unless they start tasks at once.

    If a read has to wait for its answer, all callers of the turn in which it began wait for it.
    """

    def __init__(self) -> None:
        self._values: dict[Hashable, object] = {}
        self._is_ending = False

    def peek(self, key: Hashable) -> object:
        """Return the value of a key that was read in this turn; None if it has no value yet."""
        value = self._values.get(key)
        return None if isinstance(value, asyncio.Future) else value

    async def find(self, key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        """Return the value of a key, which is read at most once in a turn of the event loop."""
        while key in self._values:
            entry = self._values[key]
            # Shielded, as the others wait on when one of them is cancelled.
            value = await asyncio.shield(entry) if isinstance(entry, asyncio.Future) else entry
            if value is not _GIVEN_UP:
                return cast("T", value)
        loop = asyncio.get_running_loop()
        if not self._is_ending:
            self._is_ending = True
            loop.call_soon(self.forget)
        reading: asyncio.Future[object] = loop.create_future()
        self._values[key] = reading
        try:
            answer = await read()
        except BaseException as error:
            if self._values.get(key) is reading:
                del self._values[key]
            if isinstance(error, Exception):
                reading.set_exception(error)
                reading.exception()  # marks it as retrieved, as nobody else may have asked
            else:
                reading.set_result(_GIVEN_UP)
            raise
        reading.set_result(answer)
        if self._values.get(key) is reading:
            self._values[key] = answer
        return answer

    def forget(self) -> None:
        """Forget all values: the turn is over."""
        self._values.clear()
        self._is_ending = False


class RowReader:
    """A reader of committed rows and events.

    Raises:
        ServiceError: `UNAVAILABLE`, from every method.
    """

    def __init__(self, connection: ReadConnection) -> None:
        self._connection = connection
        self.kind = self._kind = connection.kind
        self._fetch = connection.fetch_rows
        self._turn = TurnMemo()
        self.map_rows = MapRowReader(connection)

    async def get_row(self, table: str, row_id: str, *columns: str) -> Row | None:
        """Return one row by its id, with all or some of its columns; None if there is none."""
        rows = await self._fetch(
            statements.build_get(self._kind, "all", table, columns), {"id": row_id}
        )
        return rows[0] if rows else None

    async def find_owned_row(
        self,
        table: str,
        scope: ReadScope,
        row_id: str,
        *columns: str,
        without: str | None = None,
        **equals: object,
    ) -> Row | None:
        """Return a scope's row by its id, with all or some of its columns; None if there is none.

        Args:
            without: a status that it must not have.
        """
        parameters = {**equals, "id": row_id, **get_scope_values(scope), "without": without}
        statement = statements.build_get(
            self._kind, scope.kind, table, columns, tuple(equals), without is not None
        )
        rows = await self._fetch(statement, parameters)
        return rows[0] if rows else None

    async def find_rows(self, table: str, **equals: object) -> list[Row]:
        """Return all rows whose columns have these values, oldest first."""
        return await self._fetch(
            statements.build_find(self._kind, "all", table, tuple(equals)), equals
        )

    async def find_owned_rows(self, table: str, scope: ReadScope, **equals: object) -> list[Row]:
        """Return the rows of a scope whose columns have these values, oldest first."""
        statement = statements.build_find(self._kind, scope.kind, table, tuple(equals))
        return await self._fetch(statement, {**equals, **get_scope_values(scope)})

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
            by: column of the id to page by; rows without that id are left out.
            without: a status to leave out, too, as filtering later could make a page seem the last.
        """
        parameters = {**equals, **get_scope_values(scope), "limit": limit}
        parameters |= {"before": before, "without": without}
        columns = tuple(equals)
        statement = statements.build_page(
            self._kind, scope.kind, table, columns, by, before is not None, without is not None
        )
        return await self._fetch(statement, parameters)

    async def count_page(
        self,
        table: str,
        scope: ReadScope,
        maximum: int,
        *,
        by: str = "id",
        without: str | None = None,
        **equals: object,
    ) -> int:
        """Count the rows that `list_page` would list without a limit, up to `maximum`."""
        parameters = {**equals, **get_scope_values(scope), "most": maximum, "without": without}
        statement = statements.build_page_count(
            self._kind, scope.kind, table, tuple(equals), by, without is not None
        )
        return int((await self._fetch(statement, parameters))[0]["n"])

    async def list_work(
        self, work: WorkList, scope: ReadScope, filters: WorkFilter, limit: int, before: str | None
    ) -> list[Row]:
        """Return a page of a scope's runs, workflows or tasks, newest first.

        Each row has its `listed_id`, and its `tags` and `note`, if any.

        Args:
            before: last id of the previous page.
        """
        search = WorkSearch(self._connection, work, scope, filters)
        return await search.find_rows(limit, before)

    async def count_work(self, work: WorkList, scope: ReadScope, filters: WorkFilter) -> int | None:
        """Count a scope's runs, workflows or tasks that a filter lets through.

        Returns:
            None if there are more than 10,000, or too many rows would have to be read.
        """
        return await WorkSearch(self._connection, work, scope, filters).count_rows()

    async def list_shared_connections(self, account_id: str) -> list[Row]:
        """Return the connections of operators that are shared with an account, oldest first.

        Each row has its owner's document, too, as `owner`.
        """
        return await self._fetch(
            _SHARED_CONNECTIONS_SQL, {"account_id": account_id, "all": SHARED_WITH_ALL}
        )

    async def sum_rows(
        self,
        table: str,
        sum_columns: Sequence[str],
        columns: Sequence[str],
        scope: ReadScope,
        range_column: str,
        span: tuple[str, str],
        *,
        through: bool = False,
    ) -> list[Row]:
        """Sum over a scope's rows, grouped by some columns.

        Args:
            columns: columns to group by, and to sort by; a row's account (`account_id`) is returned
                as `spender_id`.
            range_column: column that must be within `span`; its greatest value comes first.
            through: whether to sum the rows of all accounts by the scope's connections, instead of
                the scope's own rows.
        """
        key = (table, tuple(sum_columns), tuple(columns), range_column, through)
        parameters = {**get_scope_values(scope), "first": span[0], "last": span[1]}
        return await self._fetch(statements.build_sums(self._kind, scope.kind, key), parameters)

    async def list_events(self, resource_id: str, *, after: int, limit: int = 1000) -> list[Row]:
        """Return the events of a resource, or of a job, numbered above `after`, in order."""
        owner, key = await self.find_event_key(resource_id)
        rows = await self._fetch(
            statements.build_events(self._kind, owner), {"of": key, "after": after, "limit": limit}
        )
        only_job = None
        if any(row["job_id"] is None for row in rows):
            only_job = await self._find_only_job(key)
        return [{**row, "data": _read_event_data(row, only_job)} for row in rows]

    async def get_last_event_number(self, resource_id: str) -> int:
        """Return the number of the last event of a resource, or of a job; 0 before the first."""
        key = await self.find_event_key(resource_id)
        last = await self.find_last_events([key])
        return last[key][0] if key in last else 0

    async def find_last_events(self, keys: Sequence[EventKey]) -> dict[EventKey, LastEvent]:
        """Find the last event by each of several keys; a key without events has no entry."""
        ids_by_owner: dict[str, list[str]] = {}
        for owner, value in keys:
            ids_by_owner.setdefault(owner, []).append(value)
        last_events: dict[EventKey, LastEvent] = {}
        for owner, ids in ids_by_owner.items():
            if len(ids) == 1:
                last, parameters = statements.build_last_event(self._kind, owner), {"of": ids[0]}
            else:
                last, parameters = (
                    statements.build_last_events(self._kind, owner),
                    {"ids": json.dumps(ids)},
                )
            for row in await self._fetch(last, parameters):
                last_events[owner, row["id"]] = (int(row["n"]), str(row["type"]))
        return last_events

    async def find_event_key(self, resource_id: str) -> EventKey:
        """Find the key of a resource's stored events: `resource` or `job`, and its id.

        The events of a job that was requested alone are the events of its work item.
        """
        if not resource_id.startswith("job_"):
            return "resource", resource_id
        job = await self.get_row("jobs", resource_id, "root_id")
        if job is None or not str(job["root_id"]).startswith(("run_", "job_")):
            return "job", resource_id
        return "resource", str(job["root_id"])

    async def _find_only_job(self, resource_id: str) -> str | None:
        """Find the job of a run, or of a job that is a work item; return None for anything else."""
        if not resource_id.startswith("run_"):
            return resource_id if resource_id.startswith("job_") else None
        rows = await self._fetch(_JOB_OF_RUN_SQL, {"run_id": resource_id})
        return str(rows[0]["id"]) if rows else None

    async def list_root_owners(self) -> list[str]:
        """Return the ids of the owners of leases on unfinished work items."""
        rows = await self._fetch(statements.build_root_owners(self._kind), {})
        return [str(row["owner"]) for row in rows]

    async def list_free_roots(
        self, owner: str, at: float, dead_owners: Iterable[str], after: Row | None, limit: int
    ) -> list[Row]:
        """Return a page of the unfinished work items that a process may lease, oldest first.

        Args:
            owner: owner's id; roots that it holds itself are not listed.
            after: last root of the previous page; None begins with the oldest.
        """
        parameters = {
            "owner": owner,
            "at": at,
            "ids": json.dumps(list(dead_owners)),
            "after": "" if after is None else after["created_at"],
            "after_id": "" if after is None else after["id"],
            "limit": limit,
        }
        return await self._fetch(statements.build_free_roots(self._kind), parameters)

    async def list_cancel_requests(self, owner: str) -> set[str]:
        """Return the ids of the work items that a process leases and that are to be cancelled."""
        return {
            str(row["id"])
            for row in await self._fetch(
                statements.build_cancel_requests(self._kind), {"owner": owner}
            )
        }

    async def count_open_roots(self, account_id: str, maximum: int) -> int:
        """Count the unfinished work items of an account, up to `maximum`."""
        statement = statements.build_count_of_open_roots(self._kind, AccountScope.kind)

        async def count() -> int:
            parameters = {"account_id": account_id, "most": maximum}
            return int((await self._fetch(statement, parameters))[0]["n"])

        return await self._turn.find(("open_roots", account_id, maximum), count)

    async def count_rows(self, table: str, scope: ReadScope) -> int:
        """Count a scope's rows in a table."""
        count = statements.build_count(self._kind, scope.kind, table)
        return int((await self._fetch(count, get_scope_values(scope)))[0]["n"])

    async def get_stored_bytes(self, account_id: str) -> tuple[int, int]:
        """Return how many bytes an account stores, of artifacts and of records."""
        read = partial(self._connection.fetch_values, _STORED_BYTES_SQL, {"id": account_id})
        row = await self._turn.find(("stored_bytes", account_id), read)
        return (0, 0) if row is None else (int(row[0]), int(row[1]))

    async def get_spending(self, row_id: str) -> tuple[int, list[Row]]:
        """Return the nano-dollars that a row of spending counts, and its reservations.

        The row is of a day or of all days; its sum includes the reservations.
        """
        rows = await self._fetch(_SPENDING_SQL, {"id": row_id})
        total = int(rows[0]["total"]) if rows else 0
        return total, [row for row in rows if row["id"] is not None]

    async def list_reservations(self, root_id: str) -> list[Row]:
        """Return the reservations of money for the calls of a work item."""
        begin = f"{root_id}/"  # to LIKE, an underscore is any character
        rows = await self._fetch(_RESERVATIONS_SQL, {"pattern": f"{begin}%"})
        return [row for row in rows if str(row["id"]).startswith(begin)]

    async def has_blob_reference(self, sha256: str) -> bool:
        """Check whether an artifact refers to bytes that are stored outside the database."""
        return bool(
            await self._fetch(statements.build_blob_reference(self._kind), {"sha256": sha256})
        )

    async def get_configuration_version(self) -> ConfigurationVersion:
        """Return the version of the configuration (`configuration_version`), as of now."""
        known = self._turn.peek("configuration")
        if known:
            return cast("ConfigurationVersion", known)
        read = partial(self._connection.fetch_values, READ_VERSION_SQL[self._kind], {})
        return await self._turn.find("configuration", read) or ()


def _read_event_data(row: Row, only_job: str | None) -> dict[str, Any]:
    """Read an event's data, and add the ids that are not stored in it.

    Args:
        only_job: job of all of its resource's events, or None.
    """
    ids = {"id": row["resource_id"]}
    job_id = row["job_id"] or only_job
    if job_id is not None:
        ids["job_id"] = job_id
    return {**ids, **json.loads(row["data"])}
