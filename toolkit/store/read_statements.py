"""The statements that reads run, each compiled once for each kind of database."""

from functools import cache
from typing import Any, Final, TypeAlias

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    Table,
    bindparam,
    cast,
    false,
    func,
    literal_column,
    select,
    true,
)

from toolkit.store.account_scope import ScopeKind, make_account_condition
from toolkit.store.dialects import DatabaseKind, compile_statement, list_given_ids
from toolkit.store.tables import artifacts, connections, events, metadata, name_columns, roots

# Without an offset, the dialect adds a parameter for it, which would have no value.
ZERO_OFFSET: ColumnElement[int] = literal_column("0")
_SPENDER_COLUMN: Final = "spender_id"  # the account of a row, which may differ from the reader's
# A table, the columns to sum, the columns to group by, the bounded column, and whether the rows are
# those by an account's connections, rather than the account's own.
SumQuery: TypeAlias = tuple[str, tuple[str, ...], tuple[str, ...], str, bool]


def _match(
    rows: Table, scope: ScopeKind, columns: tuple[str, ...], *, without: bool = False
) -> list[ColumnElement[bool]]:
    """Make the conditions that a row is in a scope, and has the values of columns."""
    conditions = [make_account_condition(scope, rows)]
    conditions += [rows.c[column] == bindparam(column) for column in columns]
    return [*conditions, rows.c.status != bindparam("without")] if without else conditions


def _count_some(kind: DatabaseKind, rows: Table, conditions: list[ColumnElement[bool]]) -> str:
    """Build the count of the rows that fulfil conditions, up to `most`."""
    subset: Select[Any] = select(literal_column("1")).select_from(rows).where(*conditions)
    subset = subset.limit(bindparam("most")).offset(ZERO_OFFSET)
    return compile_statement(kind, select(func.count().label("n")).select_from(subset.subquery()))


@cache
def build_get(
    kind: DatabaseKind,
    scope: ScopeKind,
    table: str,
    columns: tuple[str, ...],
    equals: tuple[str, ...] = (),
    without: bool = False,
) -> str:
    """Build the query of a scope's row by its id and the values of other columns."""
    rows = metadata.tables[table]
    selection: list[Any] = [rows.c[column] for column in columns] or [rows]
    conditions = _match(rows, scope, ("id", *equals), without=without)
    return compile_statement(kind, select(*selection).where(*conditions))


@cache
def build_find(kind: DatabaseKind, scope: ScopeKind, table: str, columns: tuple[str, ...]) -> str:
    """Build the query of a scope's rows by the values of columns, oldest first."""
    rows = metadata.tables[table]
    query = select(rows).where(*_match(rows, scope, columns))
    return compile_statement(kind, query.order_by(rows.c.id))


@cache
def build_page(
    kind: DatabaseKind,
    scope: ScopeKind,
    table: str,
    columns: tuple[str, ...],
    by: str,
    below: bool,
    without: bool,
) -> str:
    """Build the query of a page of a scope's rows, newest first."""
    rows = metadata.tables[table]
    conditions = _match(rows, scope, columns, without=without)
    conditions += [rows.c[by] < bindparam("before")] if below else [rows.c[by].is_not(None)]
    newest_first = select(rows).where(*conditions).order_by(rows.c[by].desc())
    return compile_statement(kind, newest_first.limit(bindparam("limit")).offset(ZERO_OFFSET))


@cache
def build_page_count(
    kind: DatabaseKind,
    scope: ScopeKind,
    table: str,
    columns: tuple[str, ...],
    by: str,
    without: bool,
) -> str:
    """Build the count of the rows that a list has in all, up to `most`."""
    rows = metadata.tables[table]
    conditions = _match(rows, scope, columns, without=without)
    return _count_some(kind, rows, [*conditions, rows.c[by].is_not(None)])


@cache
def build_count(kind: DatabaseKind, scope: ScopeKind, table: str) -> str:
    """Build the count of a scope's rows."""
    rows = metadata.tables[table]
    number = select(func.count().label("n")).select_from(rows)
    return compile_statement(kind, number.where(make_account_condition(scope, rows)))


@cache
def build_sums(kind: DatabaseKind, scope: ScopeKind, query: SumQuery) -> str:
    """Build the sums over rows, grouped by columns."""
    table, sum_columns, columns, range_column, through = query
    rows = metadata.tables[table]
    range_condition = rows.c[range_column].between(bindparam("first"), bindparam("last"))
    totals = {
        name: func.coalesce(func.sum(rows.c[name]), literal_column("0")) for name in sum_columns
    }
    # Sums of PostgreSQL's are of a type of their own.
    sums = [cast(total, BigInteger).label(name) for name, total in totals.items()]
    groups = [
        rows.c[name].label(_SPENDER_COLUMN if name == "account_id" else name) for name in columns
    ]
    order = [rows.c[name].desc() if name == range_column else rows.c[name] for name in columns]
    condition = make_account_condition(scope, rows)
    if through:
        connection_ids = select(connections.c.id).where(make_account_condition(scope, connections))
        condition = rows.c.connection_id.in_(connection_ids)
    statement = select(*groups, *sums).where(condition, range_condition)
    return compile_statement(kind, statement.group_by(*groups).order_by(*order))


@cache
def build_events(kind: DatabaseKind, owner: str) -> str:
    """Build the query of a resource's events; a job's are numbered as the job counts them."""
    owner_id, number = (events.c[f"{owner}_id"], events.c["job_n" if owner == "job" else "n"])
    columns = [owner_id.label("resource_id"), number.label("n"), events.c.type, events.c.at]
    query = select(*columns, events.c.data, events.c.job_id).where(
        owner_id == bindparam("of"), number > bindparam("after")
    )
    return compile_statement(
        kind, query.order_by(number).limit(bindparam("limit")).offset(ZERO_OFFSET)
    )


@cache
def build_last_event(kind: DatabaseKind, owner: str) -> str:
    """Build the query of the last event of a resource or job."""
    owner_id, number = (events.c[f"{owner}_id"], events.c["job_n" if owner == "job" else "n"])
    last = select(owner_id.label("id"), number.label("n"), events.c.type)
    newest = last.where(owner_id == bindparam("of")).order_by(number.desc())
    return compile_statement(kind, newest.limit(literal_column("1")).offset(ZERO_OFFSET))


@cache
def build_last_events(kind: DatabaseKind, owner: str) -> str:
    """Build the query of the last events of several resources or jobs; an index finds each."""
    owner_id, number = f"{owner}_id", "job_n" if owner == "job" else "n"
    last = f"SELECT max({number}) FROM events WHERE {owner_id} = wanted.value"  # noqa: S608
    return (
        f"SELECT last.{owner_id} AS id, last.{number} AS n, last.type FROM {list_given_ids(kind)}"  # noqa: S608
        f" JOIN events AS last ON last.{owner_id} = wanted.value AND last.{number} = ({last})"
    )


# The digests of artifacts whose bytes are outside the database.
STORED_DIGESTS_SQL: Final = (
    "SELECT DISTINCT sha256 FROM artifacts WHERE NOT deleted AND content IS NULL ORDER BY sha256"
)
# As the indexes of open roots spell it.
_IS_OPEN: Final[dict[DatabaseKind, str]] = {"sqlite": "open = 1", "postgresql": "open"}


@cache
def build_root_owners(kind: DatabaseKind) -> str:
    """Build the query of the owners of open roots: a step in an index for each."""
    least = f"SELECT min(roots.owner) FROM roots WHERE {_IS_OPEN[kind]}"  # noqa: S608 - our names
    return (
        f"WITH RECURSIVE owners (owner) AS ({least} UNION ALL"  # noqa: S608 - our names
        f" SELECT ({least} AND roots.owner > owners.owner)"
        " FROM owners WHERE owners.owner IS NOT NULL"
        ") SELECT owner FROM owners WHERE owner IS NOT NULL"
    )


@cache
def build_free_roots(kind: DatabaseKind) -> str:
    """Build the query of a page of the open roots that an owner may take, oldest first."""
    return (
        f"SELECT {name_columns('roots')} FROM roots WHERE {_IS_OPEN[kind]}"  # noqa: S608
        " AND (owner IS NULL OR owner <> :owner"
        f" AND (lease_until < :at OR owner IN (SELECT wanted.value FROM {list_given_ids(kind)})))"
        " AND (created_at, id) > (:after, :after_id)"
        " ORDER BY created_at, id LIMIT :limit"
    )


@cache
def build_cancel_requests(kind: DatabaseKind) -> str:
    """Build the query of an owner's open roots that are to be cancelled."""
    conditions = (roots.c.owner == bindparam("owner"), roots.c.open == true())
    return compile_statement(
        kind, select(roots.c.id).where(*conditions, roots.c.cancel_requested.is_(True))
    )


@cache
def build_count_of_open_roots(kind: DatabaseKind, scope: ScopeKind) -> str:
    """Build the count of a scope's open roots, up to `most`, which an index answers."""
    conditions = [make_account_condition(scope, roots), roots.c.open == true()]
    return _count_some(kind, roots, conditions)


@cache
def build_blob_reference(kind: DatabaseKind) -> str:
    """Build the search for an artifact that refers to bytes outside the database."""
    conditions = (artifacts.c.content.is_(None), artifacts.c.deleted == false())
    query: Select[Any] = select(literal_column("1").label("n")).where(
        artifacts.c.sha256 == bindparam("sha256"), *conditions
    )
    return compile_statement(kind, query.limit(literal_column("1")).offset(ZERO_OFFSET))
