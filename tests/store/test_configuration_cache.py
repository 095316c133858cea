"""Caches of values: of one turn of the loop, and of the configuration."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest

from tests._postgres import PostgresCluster
from tests.store.rows import AT, make_row
from tests.support.timing import wait_until_async, yield_turns
from toolkit.contract.errors import ServiceError
from toolkit.store import (
    Change,
    ConfigurationCache,
    DeleteRow,
    PatchDocument,
    ReplaceRow,
    Store,
    UpdateRow,
)
from toolkit.store.configuration_cache import MAX_ENTRIES
from toolkit.store.reader import TurnMemo

ROWS = (
    ("accounts", "acc_a"),
    ("api_keys", "key_a"),
    ("connections", "prv_a"),
    ("shares", "prv_a|*"),
)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """An open store with a row in each table of the configuration."""
    opened = await Store.open(tmp_path)
    await opened.write([make_row(table, row_id) for table, row_id in ROWS])
    yield opened
    await opened.close()


@pytest.fixture
async def other_store(store: Store, tmp_path: Path) -> AsyncIterator[Store]:
    """A second store of the directory."""
    assert store
    opened = await Store.open(tmp_path)
    yield opened
    await opened.close()


@pytest.mark.parametrize(
    ("change", "is_noticed"),
    [
        (PatchDocument("accounts", "acc_a", {"disabled_at": AT}), True),
        (UpdateRow("accounts", "acc_a", {"operator": True}), True),
        (UpdateRow("accounts", "acc_a", {"operator": False}), False),
        (PatchDocument("api_keys", "key_a", {"revoked_at": AT}), True),
        (PatchDocument("api_keys", "key_a", {"last_used_at": AT}), False),
        (UpdateRow("connections", "prv_a", {"deleted": True}), True),
        (UpdateRow("connections", "prv_a", {"doc": json.dumps({"overbilled": ["m"]})}), True),
        (UpdateRow("connections", "prv_a", {"health": "{}"}), False),
        (DeleteRow("shares", "prv_a|*"), True),
        (ReplaceRow("shares", make_row("shares", "prv_a|acc_b").values), True),
    ],
)
async def test_every_cache_sees_a_change_at_once(
    store: Store, other_store: Store, change: Change, is_noticed: bool
) -> None:
    """Given caches of two stores, when a decisive row changes, then both caches load anew."""
    reads: list[str] = []

    async def load(key: str) -> str:
        reads.append(key)
        return key

    caches = [ConfigurationCache(opened, load) for opened in (store, other_store)]
    for cache in (*caches, *caches):
        await cache.find("a")
    assert len(reads) == 2
    await other_store.write([change])
    for cache in caches:
        await cache.find("a")
    assert len(reads) == (4 if is_noticed else 2)


async def test_does_not_cache_a_failure(store: Store) -> None:
    """Given a key whose value cannot be loaded, then each lookup loads it anew."""
    reads: list[str] = []

    async def load(key: str) -> str:
        reads.append(key)
        raise LookupError

    cache = ConfigurationCache(store, load)
    for _ in range(2):
        with pytest.raises(LookupError):
            await cache.find("a")
    assert len(reads) == 2


async def test_limits_the_number_of_entries(store: Store) -> None:
    """Given more keys than the limit, then the cache is emptied, and its answers stay right."""

    async def load(key: int) -> int:
        return -key

    cache = ConfigurationCache(store, load)
    values = [await cache.find(key) for key in range(MAX_ENTRIES + 2)]
    assert values == [-key for key in range(MAX_ENTRIES + 2)]
    assert len(cache) <= MAX_ENTRIES


async def test_drops_values_of_a_lost_configuration(
    own_postgres: PostgresCluster, tmp_path: Path
) -> None:
    """Given a failover that loses a commit, then the cache drops what it read at that version."""
    url = own_postgres.build_url()
    store = await Store.open(tmp_path, database=url)
    await store.write([make_row("api_keys", "key_a")])

    async def load(key_id: str) -> object:
        row = await store.get_row("api_keys", key_id)
        return None if row is None else json.loads(row["doc"]).get("state")

    cache = ConfigurationCache(store, load)
    await store.write([PatchDocument("api_keys", "key_a", {"state": "lost"})])
    assert await cache.find("key_a") == "lost"
    own_postgres.stop()
    own_postgres.start()
    with psycopg.connect(url) as session:  # undo that commit, and make another with its number
        (number,) = session.execute("SELECT version FROM configuration").fetchone() or (0,)
        session.execute("UPDATE configuration SET version = version - 1")
        session.execute("""UPDATE api_keys SET doc = '{"state": "kept"}'""")
        assert session.execute("SELECT version FROM configuration").fetchone() == (number,)

    async def is_available() -> bool:
        try:
            return await store.get_row("api_keys", "key_a") is not None
        except ServiceError:
            return False

    await wait_until_async(is_available)
    assert await cache.find("key_a") == "kept"
    await store.close()


async def test_reads_a_value_once_per_turn() -> None:
    """Given a value, then it is read once per turn, and again after `forget`."""
    memo, reads = TurnMemo(), []

    async def read() -> int:
        reads.append(1)
        return len(reads)

    assert [await memo.find("a", read), await memo.find("a", read)] == [1, 1]
    assert await memo.find("b", read) == 2
    memo.forget()
    assert await memo.find("a", read) == 3
    await yield_turns()
    assert await memo.find("a", read) == 4


async def test_callers_in_one_turn_share_a_read() -> None:
    """Given slow reads, then callers in one turn share a read, and a later caller has its own.

    The first read may be older than a write that the later caller knows of.
    """
    memo, answers = TurnMemo(), [asyncio.Event() for _ in range(2)]
    reads: list[int] = []

    async def read() -> int:
        reads.append(number := len(reads))
        await answers[number].wait()
        return number

    callers = [asyncio.create_task(memo.find("a", read)) for _ in range(3)]
    await yield_turns(2)
    later = asyncio.create_task(memo.find("a", read))
    await yield_turns(2)
    callers[1].cancel()
    answers[1].set()
    answers[0].set()
    assert await asyncio.gather(callers[0], callers[2], later) == [0, 0, 1]
    assert callers[1].cancelled()


async def test_a_caller_repeats_a_cancelled_read() -> None:
    """Given callers of one read, when its reader is cancelled, then one other caller reads."""
    memo, answer = TurnMemo(), asyncio.Event()
    reads: list[int] = []

    async def read() -> int:
        reads.append(number := len(reads))
        await answer.wait()
        return number

    callers = [asyncio.create_task(memo.find("a", read)) for _ in range(3)]
    await yield_turns(2)
    callers[0].cancel()
    await yield_turns(2)
    answer.set()
    assert await asyncio.gather(*callers[1:]) == [1, 1]


async def test_does_not_cache_a_failed_read() -> None:
    """Given a read that fails, then all its callers get the error, and the next caller reads."""
    memo, reads = TurnMemo(), []

    async def read() -> int:
        reads.append(1)
        await yield_turns()
        if len(reads) == 1:
            raise LookupError
        return len(reads)

    errors = await asyncio.gather(*[memo.find("a", read) for _ in range(2)], return_exceptions=True)
    assert [*map(type, errors)] == [LookupError] * 2
    assert await memo.find("a", read) == 2


async def test_reads_the_version_after_a_write(tmp_path: Path) -> None:
    """Given a completed write, then the configuration's version is read anew."""
    store = await Store.open(tmp_path)
    for n in range(5):
        before = await store.get_configuration_version()
        await store.write([make_row("accounts", f"acc_{n}")])
        assert await store.get_configuration_version() > before
    await store.close()
