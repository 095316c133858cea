"""The ids of a list by an indexed field of its filter, newest first.

An index of accounts, values and ids has the ids of one account and one value in order: a *branch*.
A filter may need several: one for each version of a capability, for each step in a range of costs,
and for each account. Their newest ids are read from each, and merged.
"""

from functools import cache
from typing import Final

from toolkit.contract.operations.work_queries import WorkFilter
from toolkit.store.account_scope import AccountScope, ReadScope, ScopeKind
from toolkit.store.cost_index import build_cost, build_cost_step, is_step_in_range, list_steps
from toolkit.store.dialects import DatabaseKind
from toolkit.store.read_connection import ReadConnection
from toolkit.store.work_lists import IndexedField

# Of more branches, each of which costs a step in an index, all ids are cheaper.
MAX_BRANCHES: Final = 1_000
# A filter with more branches fits so many records that the newest are read themselves first.
FEW_BRANCHES: Final = 16
_ACCOUNTS_SQL: Final = (
    "owners (account_id) AS (SELECT min(account_id) FROM {table} UNION ALL"
    " SELECT (SELECT min(i.account_id) FROM {table} AS i WHERE i.account_id > owners.account_id)"
    " FROM owners WHERE owners.account_id IS NOT NULL)"
)
_ACCOUNT_SQL: Final = "owners (account_id) AS (SELECT CAST(:account_id AS text))"


def list_values(field: IndexedField, scope: ReadScope, filters: WorkFilter) -> list[str] | None:
    """List the values of a field that a filter wants; None if the index has to list them."""
    if field.name == "cost" and isinstance(scope, AccountScope):
        return list_steps(filters.min_cost_usd, filters.max_cost_usd)
    exact = {
        "tag": filters.tags[0] if filters.tags else None,
        "status": filters.status,
        "provider": filters.provider,
    }.get(field.name)
    return None if exact is None else [exact]


def is_filtered(field: IndexedField, filters: WorkFilter) -> bool:
    """Return whether a filter has a condition on a field."""
    if field.name == "cost":
        return filters.min_cost_usd is not None or filters.max_cost_usd is not None
    return bool(filters.tags) if field.name == "tag" else getattr(filters, field.name) is not None


def _fits(field: IndexedField, value: str, filters: WorkFilter) -> bool:
    """Return whether records with an indexed value may fit a filter."""
    if field.name == "cost":
        return is_step_in_range(value, filters.min_cost_usd, filters.max_cost_usd)
    if field.name == "capability":
        name = filters.capability
        return value == name or value.startswith(f"{name}@")
    return True


async def find_branches(
    connection: ReadConnection, field: IndexedField, scope: ReadScope, filters: WorkFilter
) -> list[list[str]] | None:
    """Find the branches of a filter: pairs of an account and a value; some may have no records.

    Returns:
        None if there are too many of them.
    """
    values = list_values(field, scope, filters)
    if values is not None and isinstance(scope, AccountScope):
        return [[scope.account_id, value] for value in values]
    statement = _build_branches(connection.kind, scope.kind, field, values is None)
    parameters = {"account_id": scope.account_id} if isinstance(scope, AccountScope) else {}
    rows = await connection.fetch_rows(statement, {**parameters, "most": MAX_BRANCHES + 1})
    if len(rows) > MAX_BRANCHES:
        return None
    return [
        [row["account_id"], value]
        for row in rows
        for value in values or [row["value"]]
        if _fits(field, value, filters)
    ]


def _build_value(kind: DatabaseKind, field: IndexedField, row: str = "i") -> str:
    return build_cost_step(kind, f"{row}.doc") if field.column is None else f"{row}.{field.column}"


@cache
def _build_branches(
    kind: DatabaseKind, scope: ScopeKind, field: IndexedField, with_values: bool
) -> str:
    """Build the statement that finds accounts, and their values of a field."""
    accounts = _ACCOUNT_SQL if scope == "account" else _ACCOUNTS_SQL.format(table=field.table)
    if not with_values:
        return (
            f"WITH RECURSIVE {accounts} SELECT account_id FROM owners"  # noqa: S608 - our names
            " WHERE account_id IS NOT NULL LIMIT :most"
        )
    value = _build_value(kind, field)
    template = (
        f"SELECT {value} FROM {field.table} AS i WHERE i.account_id = {{of}}.account_id{{more}}"  # noqa: S608
        f" AND {value} IS NOT NULL AND i.{field.key} IS NOT NULL ORDER BY {value} LIMIT 1"
    )
    first = template.format(of="owners", more="")
    following = template.format(of="branches", more=f" AND {value} > branches.value")
    return (
        f"WITH RECURSIVE {accounts}, branches (account_id, value) AS ("  # noqa: S608 - our names
        f"SELECT account_id, ({first}) FROM owners WHERE account_id IS NOT NULL"
        f" UNION ALL SELECT account_id, ({following}) FROM branches WHERE value IS NOT NULL)"
        " SELECT account_id, value FROM branches WHERE value IS NOT NULL LIMIT :most"
    )


@cache
def build_branch_count(kind: DatabaseKind, field: IndexedField) -> str:
    """Build the statement that counts each branch's ids between two bounds, up to `limit`."""
    ids = f"SELECT 1 {_build_branch_range(kind, field)} LIMIT :limit"
    return f"SELECT (SELECT count(*) FROM ({ids}) AS found) AS n FROM {_list_branches(kind)}"  # noqa: S608


def _list_branches(kind: DatabaseKind) -> str:
    """Build the SQL source `branch`, with a row for each branch in the JSON list `:branches`."""
    if kind == "sqlite":
        return "json_each(:branches) AS branch"
    return "json_array_elements(CAST(:branches AS json)) AS branch (value)"


def _match_branch(kind: DatabaseKind, field: IndexedField, row: str) -> str:
    """Build the condition that a row is of the account and the value of a branch."""
    account, value = (
        f"json_extract(branch.value, '$[{n}]')" if kind == "sqlite" else f"branch.value ->> {n}"
        for n in range(2)
    )
    return f"{row}.account_id = {account} AND {_build_value(kind, field, row)} = {value}"


def _build_branch_range(kind: DatabaseKind, field: IndexedField) -> str:
    """Build `FROM` and `WHERE` for rows with a value of a field, from `:lowest` up to `:before`."""
    return (
        f"FROM {field.table} AS i WHERE {_match_branch(kind, field, 'i')}"
        f" AND i.{field.key} >= :lowest AND i.{field.key} < :before"
    )


def build_branch_ids(kind: DatabaseKind, field: IndexedField, filters: WorkFilter) -> str:
    """Build the statement that reads the newest ids of branches between two bounds."""
    bounds: tuple[str, ...] = ()
    if field.name == "cost":
        bounds = tuple(
            name for name in ("min_cost_usd", "max_cost_usd") if getattr(filters, name) is not None
        )
    return _build_branch_ids(kind, field, bounds)


@cache
def _build_branch_ids(kind: DatabaseKind, field: IndexedField, bounds: tuple[str, ...]) -> str:
    operators = {"min_cost_usd": ">=", "max_cost_usd": "<="}
    checks = "".join(f" AND {build_cost(kind, 'i.doc')} {operators[b]} :{b}" for b in bounds)
    newest = (
        f"SELECT i.{field.key} AS value {_build_branch_range(kind, field)}{checks}"
        f" ORDER BY i.{field.key} DESC LIMIT :limit"
    )
    branches = _list_branches(kind)
    if kind == "sqlite":  # which has no LATERAL
        return (
            f"SELECT found.{field.key} AS value FROM {branches} CROSS JOIN {field.table} AS found"  # noqa: S608
            f" ON {_match_branch(kind, field, 'found')} AND found.{field.key} IN ({newest})"
            " ORDER BY 1 DESC LIMIT :limit"
        )
    return (
        f"SELECT found.value FROM {branches} CROSS JOIN LATERAL ({newest}) AS found"  # noqa: S608
        " ORDER BY 1 DESC LIMIT :limit"
    )
