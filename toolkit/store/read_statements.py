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
from toolkit.store.dialects import DatabaseKind, compile_statement
from toolkit.store.json_sql import list_given_ids
from toolkit.store.tables import artifacts, connections, events, metadata, name_columns, roots

# Without an offset, the dialect adds a parameter for it, which would have no value.
ZERO_OFFSET: ColumnElement[int] = literal_column("0")
_SPENDER_COLUMN: Final = "spender_id"  # the account of a row, which may differ from the reader's
# A table, the columns to sum, the columns to group by, the bounded column, and whether the rows are
# those by an account's connections, rather than the account's own.
SumQuery: TypeAlias = tuple[str, tuple[str, ...], tuple[str, ...], str, bool]


def _match(
    of: Table, scope: ScopeKind, columns: tuple[str, ...], *, without: bool = False
) -> list[ColumnElement[bool]]:
    """Make the conditions that a row is in a scope, and has the values of columns.

    Args:
        without: whether there is a status that it must not have.
    """
    wanted = [make_account_condition(scope, of)]
    wanted += [of.c[column] == bindparam(column) for column in columns]
    return [*wanted, of.c.status != bindparam("without")] if without else wanted


def _count_some(kind: DatabaseKind, of: Table, wanted: list[ColumnElement[bool]]) -> str:
    """Build the count of the rows that fulfil conditions, up to `most`."""
    some: Select[Any] = select(literal_column("1")).select_from(of).where(*wanted)
    some = some.limit(bindparam("most")).offset(ZERO_OFFSET)
    return compile_statement(kind, select(func.count().label("n")).select_from(some.subquery()))


@cache
def build_get(
    kind: DatabaseKind,
    scope: ScopeKind,
    table: str,
    columns: tuple[str, ...],
    equals: tuple[str, ...] = (),
    without: bool = False,
) -> str:
    """Build the query of a scope's row by its id and more."""
    of = metadata.tables[table]
    wanted: list[Any] = [of.c[column] for column in columns] or [of]
    where = _match(of, scope, ("id", *equals), without=without)
    return compile_statement(kind, select(*wanted).where(*where))


@cache
def build_find(kind: DatabaseKind, scope: ScopeKind, table: str, columns: tuple[str, ...]) -> str:
    """Build the query of a scope's rows by the values of columns, oldest first."""
    of = metadata.tables[table]
    wanted = select(of).where(*_match(of, scope, columns))
    return compile_statement(kind, wanted.order_by(of.c.id))


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
    of = metadata.tables[table]
    wanted = _match(of, scope, columns, without=without)
    wanted += [of.c[by] < bindparam("before")] if below else [of.c[by].is_not(None)]
    newest_first = select(of).where(*wanted).order_by(of.c[by].desc())
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
    of = metadata.tables[table]
    wanted = _match(of, scope, columns, without=without)
    return _count_some(kind, of, [*wanted, of.c[by].is_not(None)])


@cache
def build_count(kind: DatabaseKind, scope: ScopeKind, table: str) -> str:
    """Build the count of a scope's rows."""
    of = metadata.tables[table]
    number = select(func.count().label("n")).select_from(of)
    return compile_statement(kind, number.where(make_account_condition(scope, of)))


@cache
def build_sums(kind: DatabaseKind, scope: ScopeKind, what: SumQuery) -> str:
    """Build the sums over rows, grouped by columns."""
    table, summed, columns, ranged, through = what
    of = metadata.tables[table]
    within = of.c[ranged].between(bindparam("first"), bindparam("last"))
    totals = {name: func.coalesce(func.sum(of.c[name]), literal_column("0")) for name in summed}
    # Sums of PostgreSQL's are of a type of their own.
    sums = [cast(total, BigInteger).label(name) for name, total in totals.items()]
    alike = [
        of.c[name].label(_SPENDER_COLUMN if name == "account_id" else name) for name in columns
    ]
    order = [of.c[name].desc() if name == ranged else of.c[name] for name in columns]
    mine = make_account_condition(scope, of)
    if through:
        owned = select(connections.c.id).where(make_account_condition(scope, connections))
        mine = of.c.connection_id.in_(owned)
    statement = select(*alike, *sums).where(mine, within)
    return compile_statement(kind, statement.group_by(*alike).order_by(*order))


@cache
def build_events(kind: DatabaseKind, of: str) -> str:
    """Build the query of a resource's events; a job's are numbered as the job counts them."""
    whose, number = (events.c[f"{of}_id"], events.c["job_n" if of == "job" else "n"])
    columns = [whose.label("resource_id"), number.label("n"), events.c.type, events.c.at]
    wanted = select(*columns, events.c.data, events.c.job_id).where(
        whose == bindparam("of"), number > bindparam("after")
    )
    return compile_statement(
        kind, wanted.order_by(number).limit(bindparam("limit")).offset(ZERO_OFFSET)
    )


@cache
def build_last_event(kind: DatabaseKind, of: str) -> str:
    """Build the query of the last event of a resource or job."""
    whose, number = (events.c[f"{of}_id"], events.c["job_n" if of == "job" else "n"])
    last = select(whose.label("id"), number.label("n"), events.c.type)
    newest = last.where(whose == bindparam("of")).order_by(number.desc())
    return compile_statement(kind, newest.limit(literal_column("1")).offset(ZERO_OFFSET))


@cache
def build_last_events(kind: DatabaseKind, of: str) -> str:
    """Build the query of the last events of several resources or jobs; an index finds each.

    Their ids are a JSON list.
    """
    whose, number = f"{of}_id", "job_n" if of == "job" else "n"
    last = f"SELECT max({number}) FROM events WHERE {whose} = wanted.value"  # noqa: S608
    return (
        f"SELECT last.{whose} AS id, last.{number} AS n, last.type FROM {list_given_ids(kind)}"  # noqa: S608
        f" JOIN events AS last ON last.{whose} = wanted.value AND last.{number} = ({last})"
    )


# The digests of artifacts whose bytes are outside the database.
STORED_DIGESTS_SQL: Final = (
    "SELECT DISTINCT sha256 FROM artifacts WHERE NOT deleted AND content IS NULL ORDER BY sha256"
)
# A step in an index for each owner, however many roots it has.
ROOT_OWNERS_SQL: Final = (
    "WITH RECURSIVE owners (owner) AS ("
    "SELECT min(owner) FROM roots WHERE open = TRUE"
    " UNION ALL SELECT"
    " (SELECT min(roots.owner) FROM roots WHERE open = TRUE AND roots.owner > owners.owner)"
    " FROM owners WHERE owners.owner IS NOT NULL"
    ") SELECT owner FROM owners WHERE owner IS NOT NULL"
)


@cache
def build_free_roots(kind: DatabaseKind) -> str:
    """Build the query of a page of the open roots that an owner may take, oldest first.

    The ids of owners that are known to be dead are a JSON list.
    """
    return (
        f"SELECT {name_columns('roots')} FROM roots WHERE open = TRUE"  # noqa: S608 - our names
        " AND (owner IS NULL OR owner <> :owner"
        f" AND (lease_until < :at OR owner IN (SELECT wanted.value FROM {list_given_ids(kind)})))"
        " AND (created_at, id) > (:after, :after_id)"
        " ORDER BY created_at, id LIMIT :limit"
    )


@cache
def build_cancel_requests(kind: DatabaseKind) -> str:
    """Build the query of an owner's open roots that are to be cancelled."""
    mine = (roots.c.owner == bindparam("owner"), roots.c.open.is_(True))
    return compile_statement(
        kind, select(roots.c.id).where(*mine, roots.c.cancel_requested.is_(True))
    )


@cache
def build_count_of_open_roots(kind: DatabaseKind, scope: ScopeKind) -> str:
    """Build the count of a scope's open roots, up to `most`, which an index answers."""
    wanted = [make_account_condition(scope, roots), roots.c.open == true()]
    return _count_some(kind, roots, wanted)


@cache
def build_blob_reference(kind: DatabaseKind) -> str:
    """Build the search for an artifact that refers to bytes outside the database."""
    kept = (artifacts.c.content.is_(None), artifacts.c.deleted == false())
    found: Select[Any] = select(literal_column("1").label("n")).where(
        artifacts.c.sha256 == bindparam("sha256"), *kept
    )
    return compile_statement(kind, found.limit(literal_column("1")).offset(ZERO_OFFSET))
