"""Claims of work that nobody works on, beside much that others do, in a database of either kind."""

from pathlib import Path
from typing import Final

from tests.store.rows import acquire
from tests.support.s3_server import TcpRelay
from toolkit.store import Lease, Row, Store, UpdateRow

MANY: Final = 2_000
PLAIN: Final = "sslmode=disable&gssencmode=disable"
# Far less than all rows take, which are some 150 bytes each.
LITTLE_BYTES: Final = 20_000


async def release(store: Store, *leases: Lease) -> None:
    """Let go of roots that are not done."""
    await store.write([UpdateRow("roots", lease.root_id, {"owner": None}) for lease in leases])


async def test_the_oldest_is_claimed_first(stores: tuple[Store, Store]) -> None:
    """Given free work of several kinds, then what has waited longest is claimed first."""
    first, second = stores
    asked = {"wfl_a": "workflow", "run_b": "run", "job_c": "job", "run_a": "run"}
    for day, (name, kind) in enumerate(asked.items(), 1):
        await release(first, *await acquire(first, name, kind=kind))
        at = f"2026-01-0{day}T08:00:00.000Z"
        await first.write([UpdateRow("roots", name, {"created_at": at})])
    claimed = [lease.root_id for lease in await second.leases.claim(3)]
    claimed += [lease.root_id for lease in await second.leases.claim(3)]
    assert claimed == list(asked)
    assert await first.leases.claim(3) == []


async def test_what_is_not_wanted_hides_nothing(stores: tuple[Store, Store]) -> None:
    """Given much free work that one engine cannot do, then it finds what it can do all the same."""
    first, second = stores
    names = [f"run_{n:05}" for n in range(MANY)]
    await release(first, *await acquire(first, *names))
    asked: list[str] = []

    async def is_last(row: Row) -> bool:
        asked.append(row["id"])
        return bool(row["id"] == names[-1])

    (lease,) = await second.leases.claim(64, is_last)
    assert lease.root_id == names[-1]
    assert sorted(asked) == names


async def test_one_root_is_claimed_by_its_id(stores: tuple[Store, Store]) -> None:
    """Given roots that are free, held and done, then only the free one is claimed by its id."""
    first, second = stores
    free, done, _held = await acquire(first, "run_free", "run_done", "run_held")
    await release(first, free)
    await first.leases.release(done, is_done=True)
    for name in ("run_done", "run_held", "run_nobody"):
        assert await second.leases.claim_root(name) is None
    claimed = await second.leases.claim_root("run_free")
    assert claimed is not None
    assert claimed.fence == free.fence + 1
    assert await second.leases.claim_root("run_free") is None


async def test_what_others_work_on_is_not_read(tmp_path: Path, postgres_url: str) -> None:
    """Given thousands of runs of another engine, then a look for abandoned ones reads few bytes."""
    address, _, name = postgres_url.rpartition("/")
    server = address.rpartition("@")[2]
    busy = await Store.open(tmp_path / "busy", database=postgres_url)
    leases = await acquire(busy, *(f"run_{n:05}" for n in range(MANY)))
    with TcpRelay(f"http://{server}") as relay:
        near = address.replace(server, relay.url.removeprefix("http://"))
        store = await Store.open(tmp_path / "idle", database=f"{near}/{name}?{PLAIN}")
        assert await store.leases.claim(1) == []
        before = relay.received
        assert await store.leases.claim(1) == []
        assert relay.received - before < LITTLE_BYTES
        # And of what is free, not much more than is claimed.
        await release(busy, *leases)
        before = relay.received
        (lease,) = await store.leases.claim(1)
        assert lease.root_id == "run_00000"
        assert relay.received - before < MANY * 50
        await store.close()
    await busy.close()
