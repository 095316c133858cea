"""Roots that tests of leases work on, and rows to write."""

from tests.support.timing import wait_until_async
from toolkit.store import InsertRow, Lease, Store


def plan(name: str) -> InsertRow:
    """A row that nobody has a lease on."""
    row = {"id": name, "account_id": "acc", "created_at": "2026-11-20T08:00:00Z", "doc": "{}"}
    return InsertRow("plans", row)


async def acquire(store: Store, *names: str, kind: str = "run") -> list[Lease]:
    """Make roots that a store holds."""
    made = [store.leases.build_root(name, kind, "acc") for name in names]
    await store.write([inserted for inserted, _ in made])
    return [lease for _, lease in made]


async def claim_ended(store: Store, limit: int = 10) -> list[Lease]:
    """Claim roots whose leases ended by the clock, once their owners had time to renew them."""
    claimed: list[Lease] = []

    async def is_claimed() -> bool:
        claimed.extend(await store.leases.claim(limit))
        return bool(claimed)

    await wait_until_async(is_claimed)
    return claimed
