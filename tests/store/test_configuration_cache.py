"""The cache of what the configuration decides, with two openings of one directory."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from toolkit.store import (
    Change,
    ConfigurationCache,
    DeleteRow,
    InsertRow,
    PatchDocument,
    ReplaceRow,
    Store,
    UpdateRow,
)
from toolkit.store.configuration_cache import MAX_ENTRIES

AT = "2026-11-23T00:00:00.000Z"
ACCOUNT = {"id": "acc_a", "email": "a@example.org", "created_at": AT, "doc": "{}"}
KEY = {"id": "key_a", "account_id": "acc_a", "digest": "d", "created_at": AT, "doc": "{}"}
CONNECTION = {
    "id": "prv_a", "account_id": "acc_a", "provider": "openai", "deleted": False,
    "created_at": AT, "doc": "{}",
}  # fmt: skip
SHARE = {"id": "prv_a|*", "connection_id": "prv_a", "shared_with": "*", "created_at": AT}


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """An open store with one row of each kind."""
    opened = await Store.open(tmp_path)
    await opened.write(
        [
            InsertRow("accounts", ACCOUNT),
            InsertRow("api_keys", KEY),
            InsertRow("connections", CONNECTION),
            InsertRow("shares", SHARE),
        ]
    )
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
        (ReplaceRow("shares", {**SHARE, "id": "prv_a|acc_b", "shared_with": "acc_b"}), True),
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
