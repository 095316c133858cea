"""The cache of what the configuration decides, with two openings of one directory."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.store.rows import AT, make_row
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

ROWS = (
    ("accounts", "acc_a"),
    ("api_keys", "key_a"),
    ("connections", "prv_a"),
    ("shares", "prv_a|*"),
)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """An open store with one row of each kind."""
    opened = await Store.open(tmp_path)
    await opened.write([make_row(table, row_id) for table, row_id in ROWS])
    yield opened
    await opened.close()


@pytest.fixture
async def other(store: Store, tmp_path: Path) -> AsyncIterator[Store]:
    """The same directory, opened a second time."""
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
async def test_a_change_by_anybody_is_seen_at_once(
    store: Store, other: Store, change: Change, is_noticed: bool
) -> None:
    """Given what two processes keep, when one changes a row, then both read what it decides."""
    reads: list[str] = []

    async def load(key: str) -> str:
        reads.append(key)
        return key

    caches = [ConfigurationCache(each, load) for each in (store, other)]
    for cache in (*caches, *caches):
        await cache.find("a")
    assert len(reads) == 2
    await other.write([change])
    for cache in caches:
        await cache.find("a")
    assert len(reads) == (4 if is_noticed else 2)


async def test_a_failure_is_not_kept(store: Store) -> None:
    """Given a key whose value cannot be loaded, then it is asked for anew each time."""
    reads: list[str] = []

    async def load(key: str) -> str:
        reads.append(key)
        raise LookupError

    cache = ConfigurationCache(store, load)
    for _ in range(2):
        with pytest.raises(LookupError):
            await cache.find("a")
    assert len(reads) == 2


async def test_the_cache_is_bounded(store: Store) -> None:
    """Given more keys than it has room for, then it starts anew, and is right."""

    async def load(key: int) -> int:
        return -key

    cache = ConfigurationCache(store, load)
    found = [await cache.find(key) for key in range(MAX_ENTRIES + 2)]
    assert found == [-key for key in range(MAX_ENTRIES + 2)]
    assert len(cache) <= MAX_ENTRIES
