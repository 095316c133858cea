"""Writes of requests while calls wait for disk space that is not there."""

from pathlib import Path

import pytest

from toolkit.store import InsertRow, Store

pytestmark = pytest.mark.sqlite("a server's disk is its own")
AT = "2026-11-23T08:00:00.000Z"
MORE_THAN_ANY_DISK = 1 << 45


async def test_a_request_is_written_while_calls_wait_for_room(tmp_path: Path) -> None:
    """Given calls that wait for more space than there is, then rows that fit are written."""
    store = await Store.open(tmp_path)
    writer = store._writer
    writer.wanted_ballast_bytes = MORE_THAN_ANY_DISK
    growing = [writer.grow_ballast() for _ in range(12)]
    plan = {"id": "a", "account_id": "acc", "created_at": AT, "doc": "{}"}
    await store.write([InsertRow("plans", plan)])
    assert not any(each.done() for each in growing)
    writer.wanted_ballast_bytes = 0
    for each in growing:
        await each
    await store.close()
