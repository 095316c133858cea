"""Reads of rows and events: statements compiled once, run on the database's own driver."""

import json
import sqlite3
from functools import cache
from typing import Any, Final

from sqlalchemy import ClauseElement, ColumnElement, bindparam, func, literal_column, select
from sqlalchemy.dialects import sqlite

from toolkit.store.database import translated
from toolkit.store.tables import connections, events, metadata, roots

# Without an offset, the dialect adds a parameter for it, which would have no value.
NONE: ColumnElement[int] = literal_column("0")
Row = dict[str, Any]
# An index answers each of these.
_QUEUED = (
    "SELECT count(*) AS n FROM"
    " (SELECT 1 FROM roots WHERE account_id = :account_id AND open = 1 LIMIT :most)"
)
# One statement, so that both are read at the same moment.
_SPENDING = (
    "SELECT spending.nano AS total, reservations.* FROM spending"
    " LEFT JOIN reservations ON reservations.spending_id = spending.id WHERE spending.id = :id"
)
_NAMES_BLOB = (
    "SELECT 1 FROM artifacts WHERE sha256 = :sha256 AND content IS NULL AND deleted = 0 LIMIT 1"
)
ALL_ACCOUNTS: Final = "*"  # in a share, instead of an account
_SPENDER: Final = "spender_id"  # the account of a row, which may be another one
_LENT = (
    "SELECT connections.*, owners.doc AS owner FROM shares"
    " JOIN connections ON connections.id = shares.connection_id"
    " JOIN accounts AS owners ON owners.id = connections.account_id"
    " WHERE shares.shared_with IN (:account_id, :all) AND connections.account_id <> :account_id"
    " AND connections.deleted = 0 AND owners.operator = 1"
    " GROUP BY connections.id ORDER BY connections.id"
)
# A table, the columns to sum, those to group by, the one that is bounded, and whether the rows are
# those by an account's connections, rather than the account's own.
Sums = tuple[str, tuple[str, ...], tuple[str, ...], str, bool]


class Reader:
    """A reader of committed rows and events; every method reads at once.

    Raises:
        ServiceError: `UNAVAILABLE`, from every method.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def get(self, table: str, row_id: str, *columns: str) -> Row | None:
        """Return one row by its id, with all or some of its columns."""
        rows = self._rows(_by_id(table, columns), {"id": row_id})
        return rows[0] if rows else None

    def find(self, table: str, **equals: object) -> list[Row]:
        """Return all rows whose columns have these values, oldest first."""
        return self._rows(_equal(table, tuple(equals)), equals)

    def page(
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
        statement = _page(table, columns, by, before is not None, without is not None)
        return self._rows(statement, given)

    def lent(self, account_id: str) -> list[Row]:
        """Return the connections of operators that are shared with an account, oldest first.

        Each row has its owner's document, too, as `owner`.
        """
        return self._rows(_LENT, {"account_id": account_id, "all": ALL_ACCOUNTS})

    def sums(self, what: Sums, account_id: str, span: tuple[str, str]) -> list[Row]:
        """Sum over an account's rows, or those by its connections, grouped by some columns."""
        given: dict[str, object] = {"account_id": account_id, "first": span[0], "last": span[1]}
        return self._rows(_sums(what), given)

    def events(self, resource_id: str, after: int, limit: int) -> list[Row]:
        """Return the events of a resource numbered above `after`, in order."""
        of = "job" if resource_id.startswith("job_") else "resource"
        given = {"of": resource_id, "after": after, "limit": limit}
        rows = self._rows(_events(of), given)
        return [{**row, "data": json.loads(row["data"])} for row in rows]

    def last_event(self, resource_id: str) -> int:
        """Return the number of the last event of a resource; 0 before the first."""
        of = "job" if resource_id.startswith("job_") else "resource"
        last = self._rows(_last_event(of), {"of": resource_id})
        return int(last[0]["n"]) if last else 0

    def has_event(self, resource_id: str, after: int, types: frozenset[str] | None) -> bool:
        """Tell whether there is an event above `after`, and the last one is of one of `types`."""
        of = "job" if resource_id.startswith("job_") else "resource"
        last = self._rows(_last_event(of), {"of": resource_id})
        return bool(last) and last[0]["n"] > after and (types is None or last[0]["type"] in types)

    def open_roots(self, owner: str) -> list[Row]:
        """Return the open roots that others hold, or nobody, oldest first."""
        return self._rows(_open_roots(), {"owner": owner})

    def to_cancel(self, owner: str) -> set[str]:
        """Return the ids of an owner's open roots that are to be cancelled."""
        return {str(row["id"]) for row in self._rows(_to_cancel(), {"owner": owner})}

    def queued(self, account_id: str, most: int) -> int:
        """Count the open roots of an account, up to `most`."""
        return int(self._rows(_QUEUED, {"account_id": account_id, "most": most})[0]["n"])

    def count(self, table: str, account_id: str) -> int:
        """Count an account's rows in a table."""
        return int(self._rows(_count(table), {"account_id": account_id})[0]["n"])

    def stored_bytes(self, account_id: str) -> tuple[int, int]:
        """Return how many bytes an account stores, of artifacts and of records."""
        row = self.get("stored_bytes", account_id)
        return (0, 0) if row is None else (int(row["artifacts"]), int(row["records"]))

    def spending(self, row_id: str) -> tuple[int, list[Row]]:
        """Return a day's total spending, and the reservations that are part of it."""
        rows = self._rows(_SPENDING, {"id": row_id})
        total = int(rows[0]["total"]) if rows else 0
        return total, [row for row in rows if row["id"] is not None]

    def names_blob(self, sha256: str) -> bool:
        """Tell whether an artifact refers to bytes that are stored in a file."""
        return bool(self._rows(_NAMES_BLOB, {"sha256": sha256}))

    def version(self) -> int:
        """Return a number that changes when another connection has committed."""
        return int(self._rows("PRAGMA data_version", {})[0]["data_version"])

    def _rows(self, sql: str, given: dict[str, object]) -> list[Row]:
        with translated():
            cursor = self._connection.execute(sql, given)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor]


def compiled(statement: ClauseElement) -> str:
    """Compile a statement to the database's dialect, with named parameters."""
    return str(statement.compile(dialect=sqlite.dialect(paramstyle="named")))


@cache
def _by_id(table: str, columns: tuple[str, ...]) -> str:
    of = metadata.tables[table]
    wanted: list[Any] = [of.c[column] for column in columns] or [of]
    return compiled(select(*wanted).where(of.c.id == bindparam("id")))


@cache
def _equal(table: str, columns: tuple[str, ...]) -> str:
    of = metadata.tables[table]
    wanted = [of.c[column] == bindparam(column) for column in columns]
    return compiled(select(of).where(*wanted).order_by(of.c.id))


@cache
def _page(table: str, columns: tuple[str, ...], by: str, below: bool, without: bool) -> str:
    of = metadata.tables[table]
    wanted = [of.c[column] == bindparam(column) for column in ("account_id", *columns)]
    wanted += [of.c[by] < bindparam("before")] if below else [of.c[by].is_not(None)]
    wanted += [of.c.status != bindparam("without")] if without else []
    newest_first = select(of).where(*wanted).order_by(of.c[by].desc())
    return compiled(newest_first.limit(bindparam("limit")).offset(NONE))


@cache
def _count(table: str) -> str:
    of = metadata.tables[table]
    number = select(func.count().label("n")).select_from(of)
    return compiled(number.where(of.c.account_id == bindparam("account_id")))


@cache
def _sums(what: Sums) -> str:
    table, summed, columns, ranged, through = what
    of = metadata.tables[table]
    within = of.c[ranged].between(bindparam("first"), bindparam("last"))
    sums = [func.coalesce(func.sum(of.c[name]), literal_column("0")).label(name) for name in summed]
    alike = [of.c[name].label(_SPENDER if name == "account_id" else name) for name in columns]
    order = [of.c[name].desc() if name == ranged else of.c[name] for name in columns]
    mine = of.c.account_id == bindparam("account_id")
    if through:
        owned = select(connections.c.id).where(connections.c.account_id == bindparam("account_id"))
        mine = of.c.connection_id.in_(owned)
    statement = select(*alike, *sums).where(mine, within)
    return compiled(statement.group_by(*alike).order_by(*order))


@cache
def _events(of: str) -> str:
    """Build the query of a resource's events; a job's are numbered as the job counts them."""
    whose, number = (events.c[f"{of}_id"], events.c["job_n" if of == "job" else "n"])
    columns = [whose.label("resource_id"), number.label("n"), events.c.type, events.c.at]
    wanted = select(*columns, events.c.data, events.c.job_id).where(
        whose == bindparam("of"), number > bindparam("after")
    )
    return compiled(wanted.order_by(number).limit(bindparam("limit")).offset(NONE))


@cache
def _last_event(of: str) -> str:
    whose, number = (events.c[f"{of}_id"], events.c["job_n" if of == "job" else "n"])
    last = select(number.label("n"), events.c.type).where(whose == bindparam("of"))
    return compiled(last.order_by(number.desc()).limit(literal_column("1")).offset(NONE))


@cache
def _open_roots() -> str:
    others = (roots.c.owner.is_(None)) | (roots.c.owner != bindparam("owner"))
    return compiled(select(roots).where(roots.c.open.is_(True), others).order_by(roots.c.id))


@cache
def _to_cancel() -> str:
    mine = (roots.c.owner == bindparam("owner"), roots.c.open.is_(True))
    return compiled(select(roots.c.id).where(*mine, roots.c.cancel_requested.is_(True)))
