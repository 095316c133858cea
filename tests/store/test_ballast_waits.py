"""Writes of requests while calls wait for disk space that is not there."""

import asyncio
from pathlib import Path

import pytest

from tests.store.rows import make_row
from tests.support.timing import PATIENCE_S
from toolkit.store import Store, StoreUnavailableError
from toolkit.store.writing import result_room
from toolkit.store.writing.outages import ROWS, WriteOutages

pytestmark = pytest.mark.sqlite("a server's disk is its own")
MORE_THAN_ANY_DISK = 1 << 45


async def test_a_request_is_written_while_calls_wait_for_room(tmp_path: Path) -> None:
    """Given calls that wait for more space than there is, then rows that fit are written."""
    store = await Store.open(tmp_path)
    writer = store.writer
    writer.wanted_ballast_bytes = MORE_THAN_ANY_DISK
    growing = [writer.grow_ballast() for _ in range(12)]
    await store.write([make_row("plans", "a")])
    assert not any(each.done() for each in growing)
    writer.wanted_ballast_bytes = 0
    for each in growing:
        await each
    await store.close()


async def test_a_call_that_waits_too_long_for_a_full_disk_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given an outage of writes that lasts, then a call is refused after the longest wait."""
    monkeypatch.setattr(result_room, "WORK_WAIT_S", 0.05)
    store = await Store.open(tmp_path)
    outages = WriteOutages()
    outages.note_failure(ROWS)
    room = result_room.ResultRoom(outages, store.writer, store.blobs)
    with pytest.raises(StoreUnavailableError, match="free disk space"):
        await asyncio.wait_for(room.hold(result_room.ResultSize(1, 1)), PATIENCE_S)
    assert store.writer.wanted_ballast_bytes == 0
    await store.close()
