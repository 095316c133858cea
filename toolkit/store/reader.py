"""Reads of rows and events: statements compiled once, run on the database's own driver."""

import json
import sqlite3
from functools import cache
from typing import Any, Final

from sqlalchemy import ClauseElement, ColumnElement, bindparam, func, literal_column, select
from sqlalchemy.dialects import sqlite

from toolkit.store.configuration_version import READ_VERSION_SQL
from toolkit.store.sqlite.connections import make_unavailable_error
from toolkit.store.tables import connections, events, metadata, roots
from toolkit.store.work_lists import HAS_TEXT, WorkListQuery, has_text

# Without an offset, the dialect adds a parameter for it, which would have no value.
ZERO_OFFSET: ColumnElement[int] = literal_column("0")
Row = dict[str, Any]
# An index answers each of these.
_COUNT_OPEN_ROOTS_SQL = (
    "SELECT count(*) AS n FROM"
    " (SELECT 1 FROM roots WHERE account_id = :account_id AND open = 1 LIMIT :most)"
)
# One statement, so that both are read at the same moment.
_SPENDING_SQL = (
    "SELECT spending.nano AS total, reservations.* FROM spending"
    " LEFT JOIN reservations ON reservations.spending_id = spending.id WHERE spending.id = :id"
)
_BLOB_REFERENCE_SQL = (
    "SELECT 1 FROM artifacts WHERE sha256 = :sha256 AND content IS NULL AND deleted = 0 LIMIT 1"
)
_STORED_BYTES_SQL = "SELECT artifacts, records FROM stored_bytes WHERE id = ?"
_JOB_OF_RUN_SQL = "SELECT id FROM jobs WHERE run_id = :run_id"
SHARED_WITH_ALL: Final = "*"  # in a share, instead of an account
_SPENDER_COLUMN: Final = "spender_id"  # the account of a row, which may be another one
_SHARED_CONNECTIONS_SQL = (
    "SELECT connections.*, owners.doc AS owner FROM shares"
    " JOIN connections ON connections.id = shares.connection_id"
    " JOIN accounts AS owners ON owners.id = connections.account_id"
    " WHERE shares.shared_with IN (:account_id, :all) AND connections.account_id <> :account_id"
    " AND connections.deleted = 0 AND owners.operator = 1"
    " GROUP BY connections.id ORDER BY connections.id"
)
# A table, the columns to sum, those to group by, the one that is bounded, and whether the rows are
# those by an account's connections, rather than the account's own.
SumQuery = tuple[str, tuple[str, ...], tuple[str, ...], str, bool]


class RowReader:
    """A reader of committed rows and events; every method reads at once.

    Raises:
        ServiceError: `UNAVAILABLE`, from every method.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.create_function(HAS_TEXT, 3, has_text, deterministic=True)

    def get_row(self, table: str, row_id: str, *columns: str) -> Row | None:
        """Return one row by its id, with all or some of its columns."""
        rows = self._fetch_rows(_build_get(table, columns), {"id": row_id})
        return rows[0] if rows else None

    def find_owned_row(
        self,
        table: str,
        account_id: str,
        row_id: str,
        columns: tuple[str, ...],
        without: str | None,
        **equals: object,
    ) -> Row | None:
        """Return an account's row by its id, `without` a status, with all or some columns."""
        given = {**equals, "id": row_id, "account_id": account_id, "without": without}
        statement = _build_get_owned(table, columns, tuple(equals), without is not None)
        rows = self._fetch_rows(statement, given)
        return rows[0] if rows else None

    def find_rows(self, table: str, **equals: object) -> list[Row]:
        """Return all rows whose columns have these values, oldest first."""
        return self._fetch_rows(_build_find(table, tuple(equals)), equals)

    def list_page(
        self,
        table: str,
        account_id: str,
        limit: int,
        before: str | None,
        by: str = "id",
        without: str | None = None,
        **equals: object,
    ) -> list[Row]:
        """Return an account's rows, newest first, from below `before`, `without` a status."""
        given = {**equals, "account_id": account_id, "limit": limit}
        given |= {"before": before, "without": without}
        columns = tuple(equals)
        statement = _build_page(table, columns, by, before is not None, without is not None)
        return self._fetch_rows(statement, given)

    def list_work(self, query: WorkListQuery, before: str, limit: int) -> tuple[list[Row], str]:
        """Return the rows of one slice of a list below an id, and the id that the slice ends with.

        It ends with the lowest id there may be once all of the list was read.
        """
        edge = query.lowest
        if query.edge_sql is not None:
            bounds = {"before": before, "edge": query.lowest}
            found = self._fetch_rows(query.edge_sql, {**query.given, **bounds})
            edge = str(found[0]["edge"]) if found else edge
        bounds = {"before": before, "edge": edge}
        return self._fetch_rows(query.rows_sql, {**query.given, **bounds, "limit": limit}), edge

    def list_shared_connections(self, account_id: str) -> list[Row]:
        """Return the connections of operators that are shared with an account, oldest first.

        Each row has its owner's document, too, as `owner`.
        """
        return self._fetch_rows(
            _SHARED_CONNECTIONS_SQL, {"account_id": account_id, "all": SHARED_WITH_ALL}
        )

    def sum_rows(self, what: SumQuery, account_id: str, span: tuple[str, str]) -> list[Row]:
        """Sum over an account's rows, or those by its connections, grouped by some columns."""
        given: dict[str, object] = {"account_id": account_id, "first": span[0], "last": span[1]}
        return self._fetch_rows(_build_sums(what), given)

    def list_events(self, resource_id: str, after: int, limit: int) -> list[Row]:
        """Return the events of a resource numbered above `after`, in order."""
        of, key = self._find_event_key(resource_id)
        rows = self._fetch_rows(_build_events(of), {"of": key, "after": after, "limit": limit})
        only_job = None
        if any(row["job_id"] is None for row in rows):
            only_job = self._find_only_job(key)
        return [{**row, "data": _read_event_data(row, only_job)} for row in rows]

    def get_last_event_number(self, resource_id: str) -> int:
        """Return the number of the last event of a resource; 0 before the first."""
        of, key = self._find_event_key(resource_id)
        last = self._fetch_rows(_build_last_event(of), {"of": key})
        return int(last[0]["n"]) if last else 0

    def has_event(self, resource_id: str, after: int, types: frozenset[str] | None) -> bool:
        """Tell whether there is an event above `after`, and the last one is of one of `types`."""
        of, key = self._find_event_key(resource_id)
        last = self._fetch_rows(_build_last_event(of), {"of": key})
        return bool(last) and last[0]["n"] > after and (types is None or last[0]["type"] in types)

    def _find_event_key(self, resource_id: str) -> tuple[str, str]:
        """Find what a resource's events are stored by: `resource` or `job`, and its id.

        The events of a job that was asked for alone are those of its work item.
        """
        if not resource_id.startswith("job_"):
            return "resource", resource_id
        job = self.get_row("jobs", resource_id, "root_id", "workflow_id")
        if job is None or job["workflow_id"] is not None:
            return "job", resource_id
        return "resource", str(job["root_id"])

    def _find_only_job(self, resource_id: str) -> str | None:
        """Find the job of a run, or of a job that is a work item; none of anything else."""
        if not resource_id.startswith("run_"):
            return resource_id if resource_id.startswith("job_") else None
        found = self._fetch_rows(_JOB_OF_RUN_SQL, {"run_id": resource_id})
        return str(found[0]["id"]) if found else None

    def list_open_roots(self, owner: str) -> list[Row]:
        """Return the open roots that others hold, or nobody, oldest first."""
        return self._fetch_rows(_build_open_roots(), {"owner": owner})

    def list_cancel_requests(self, owner: str) -> set[str]:
        """Return the ids of an owner's open roots that are to be cancelled."""
        return {
            str(row["id"]) for row in self._fetch_rows(_build_cancel_requests(), {"owner": owner})
        }

    def count_open_roots(self, account_id: str, most: int) -> int:
        """Count the open roots of an account, up to `most`."""
        return int(
            self._fetch_rows(_COUNT_OPEN_ROOTS_SQL, {"account_id": account_id, "most": most})[0][
                "n"
            ]
        )

    def count_rows(self, table: str, account_id: str) -> int:
        """Count an account's rows in a table."""
        return int(self._fetch_rows(_build_count(table), {"account_id": account_id})[0]["n"])

    def get_stored_bytes(self, account_id: str) -> tuple[int, int]:
        """Return how many bytes an account stores, of artifacts and of records."""
        row = self._fetch_values(_STORED_BYTES_SQL, (account_id,))
        return (0, 0) if row is None else (int(row[0]), int(row[1]))

    def get_spending(self, row_id: str) -> tuple[int, list[Row]]:
        """Return a day's total spending, and the reservations that are part of it."""
        rows = self._fetch_rows(_SPENDING_SQL, {"id": row_id})
        total = int(rows[0]["total"]) if rows else 0
        return total, [row for row in rows if row["id"] is not None]

    def has_blob_reference(self, sha256: str) -> bool:
        """Tell whether an artifact refers to bytes that are stored in a file."""
        return bool(self._fetch_rows(_BLOB_REFERENCE_SQL, {"sha256": sha256}))

    def get_data_version(self) -> int:
        """Return a number that changes when another connection has committed."""
        return int(self._fetch_rows("PRAGMA data_version", {})[0]["data_version"])

    def get_configuration_version(self) -> int:
        """Return the version of the configuration: the same number means that nothing changed."""
        (version,) = self._fetch_values(READ_VERSION_SQL) or (0,)
        return int(version)

    def _fetch_values(self, sql: str, given: tuple[str, ...] = ()) -> tuple[Any, ...] | None:
        """Fetch the values of the first row, if there is one: what is asked for very often."""
        try:
            row: tuple[Any, ...] | None = self._connection.execute(sql, given).fetchone()
        except (sqlite3.Error, OSError) as error:
            raise make_unavailable_error(error) from error
        return row

    def _fetch_rows(self, sql: str, given: dict[str, object]) -> list[Row]:
        try:  # and not `translate_errors`: as a context manager it costs half a read
            cursor = self._connection.execute(sql, given)
            found = cursor.fetchall()
        except (sqlite3.Error, OSError) as error:
            raise make_unavailable_error(error) from error
        if not found:
            return []
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in found]


def _read_event_data(row: Row, only_job: str | None) -> dict[str, Any]:
    """Read an event's data; the ids that are known anyway are not stored in it again.

    Args:
        row: the event's.
        only_job: the job that all of its resource's events tell of.
    """
    known = {"id": row["resource_id"]}
    job_id = row["job_id"] or only_job
    if job_id is not None:
        known["job_id"] = job_id
    return {**known, **json.loads(row["data"])}


def compile_statement(statement: ClauseElement) -> str:
    """Compile a statement to the database's dialect, with named parameters."""
    return str(statement.compile(dialect=sqlite.dialect(paramstyle="named")))


@cache
def _build_get(table: str, columns: tuple[str, ...]) -> str:
    of = metadata.tables[table]
    wanted: list[Any] = [of.c[column] for column in columns] or [of]
    return compile_statement(select(*wanted).where(of.c.id == bindparam("id")))


@cache
def _build_get_owned(
    table: str, columns: tuple[str, ...], equals: tuple[str, ...], without: bool
) -> str:
    of = metadata.tables[table]
    wanted: list[Any] = [of.c[column] for column in columns] or [of]
    where = [of.c[column] == bindparam(column) for column in ("id", "account_id", *equals)]
    where += [of.c.status != bindparam("without")] if without else []
    return compile_statement(select(*wanted).where(*where))


@cache
def _build_find(table: str, columns: tuple[str, ...]) -> str:
    of = metadata.tables[table]
    wanted = [of.c[column] == bindparam(column) for column in columns]
    return compile_statement(select(of).where(*wanted).order_by(of.c.id))


@cache
def _build_page(table: str, columns: tuple[str, ...], by: str, below: bool, without: bool) -> str:
    of = metadata.tables[table]
    wanted = [of.c[column] == bindparam(column) for column in ("account_id", *columns)]
    wanted += [of.c[by] < bindparam("before")] if below else [of.c[by].is_not(None)]
    wanted += [of.c.status != bindparam("without")] if without else []
    newest_first = select(of).where(*wanted).order_by(of.c[by].desc())
    return compile_statement(newest_first.limit(bindparam("limit")).offset(ZERO_OFFSET))


@cache
def _build_count(table: str) -> str:
    of = metadata.tables[table]
    number = select(func.count().label("n")).select_from(of)
    return compile_statement(number.where(of.c.account_id == bindparam("account_id")))


@cache
def _build_sums(what: SumQuery) -> str:
    table, summed, columns, ranged, through = what
    of = metadata.tables[table]
    within = of.c[ranged].between(bindparam("first"), bindparam("last"))
    sums = [func.coalesce(func.sum(of.c[name]), literal_column("0")).label(name) for name in summed]
    alike = [
        of.c[name].label(_SPENDER_COLUMN if name == "account_id" else name) for name in columns
    ]
    order = [of.c[name].desc() if name == ranged else of.c[name] for name in columns]
    mine = of.c.account_id == bindparam("account_id")
    if through:
        owned = select(connections.c.id).where(connections.c.account_id == bindparam("account_id"))
        mine = of.c.connection_id.in_(owned)
    statement = select(*alike, *sums).where(mine, within)
    return compile_statement(statement.group_by(*alike).order_by(*order))


@cache
def _build_events(of: str) -> str:
    """Build the query of a resource's events; a job's are numbered as the job counts them."""
    whose, number = (events.c[f"{of}_id"], events.c["job_n" if of == "job" else "n"])
    columns = [whose.label("resource_id"), number.label("n"), events.c.type, events.c.at]
    wanted = select(*columns, events.c.data, events.c.job_id).where(
        whose == bindparam("of"), number > bindparam("after")
    )
    return compile_statement(wanted.order_by(number).limit(bindparam("limit")).offset(ZERO_OFFSET))


@cache
def _build_last_event(of: str) -> str:
    whose, number = (events.c[f"{of}_id"], events.c["job_n" if of == "job" else "n"])
    last = select(number.label("n"), events.c.type).where(whose == bindparam("of"))
    return compile_statement(
        last.order_by(number.desc()).limit(literal_column("1")).offset(ZERO_OFFSET)
    )


@cache
def _build_open_roots() -> str:
    others = (roots.c.owner.is_(None)) | (roots.c.owner != bindparam("owner"))
    return compile_statement(
        select(roots).where(roots.c.open.is_(True), others).order_by(roots.c.id)
    )


@cache
def _build_cancel_requests() -> str:
    mine = (roots.c.owner == bindparam("owner"), roots.c.open.is_(True))
    return compile_statement(select(roots.c.id).where(*mine, roots.c.cancel_requested.is_(True)))
