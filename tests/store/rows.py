"""Rows for tests to write, and leases for tests to hold."""

from functools import cache

from sqlalchemy import Boolean, Float, Integer

from tests.support.timing import wait_until_async
from toolkit.store import InsertRow, Lease, Store
from toolkit.store.tables import metadata

AT = "2026-11-20T08:00:00.000Z"
_TEXTS = {"account_id": "acc", "created_at": AT, "tags": "[]", "doc": "{}", "spec": "{}"}


@cache
def _describe(table: str) -> tuple[dict[str, object], frozenset[str]]:
    """Return values for a table's required columns, and the names of its unique columns."""
    columns = [column for column in metadata.tables[table].columns if not column.nullable]
    values: dict[str, object] = {column.name: _TEXTS.get(column.name, "") for column in columns}
    values |= {c.name: 0 for c in columns if isinstance(c.type, Integer | Float)}
    values |= {c.name: False for c in columns if isinstance(c.type, Boolean)}
    return values, frozenset(c.name for c in columns if c.unique or c.name == "id")


def make_row(table: str, row_id: str, **columns: object) -> InsertRow:
    """Make a row; missing columns get a default value, and unique columns the id."""
    values, unique = _describe(table)
    return InsertRow(table, {**values, **dict.fromkeys(unique, row_id), **columns})


def make_job(name: str, root: str = "r", **columns: object) -> InsertRow:
    """Make the job of a workflow's node."""
    return make_row("jobs", f"job_{name}", root_id=root, node_id=name, **columns)


async def acquire(store: Store, *names: str, kind: str = "run") -> list[Lease]:
    """Create roots, and return the leases that the store holds on them."""
    roots = [store.leases.build_root(name, kind, "acc") for name in names]
    await store.write([inserted for inserted, _ in roots])
    return [lease for _, lease in roots]


async def claim_ended(store: Store, limit: int = 10) -> list[Lease]:
    """Claim roots whose leases have expired, once their owners had time to renew them."""
    claimed: list[Lease] = []

    async def is_claimed() -> bool:
        claimed.extend(await store.leases.claim(limit))
        return bool(claimed)

    await wait_until_async(is_claimed)
    return claimed
