"""Roots that tests of leases work on."""

from toolkit.store import Lease, Store


async def acquire(store: Store, *names: str, kind: str = "run") -> list[Lease]:
    """Make roots that a store holds."""
    made = [store.leases.build_root(name, kind, "acc") for name in names]
    await store.write([inserted for inserted, _ in made])
    return [lease for _, lease in made]
