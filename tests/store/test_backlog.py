"""A backlog of writes: its cost per row, and writes that overtake it."""

import asyncio
import gc
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import pytest

from tests.store.rows import acquire, make_job
from tests.support.timing import PATIENCE_S, check_stays, yield_turns
from tests.support.write_lock import WriteLock
from toolkit.store import Store
from toolkit.store.writing.direct_writer import WriteTurns
from toolkit.store.writing.writer import MOST_PAUSE_S

FEW, MANY = 1_000, 8_000
RENEWALS = 8


@pytest.fixture
async def synced(tmp_path: Path) -> AsyncIterator[Store]:
    """A store whose commits wait for the disk, so that a thread makes them."""
    opened = await Store.open(tmp_path, durability="full")
    yield opened
    await opened.close()


async def measure_cpu_s(store: Store, first: int, rows: int) -> float:
    """Write rows at once; return the CPU seconds per row."""
    began = time.process_time()
    await asyncio.gather(*[store.write([make_job(str(n))]) for n in range(first, first + rows)])
    return (time.process_time() - began) / rows


async def test_cost_per_row_does_not_grow_with_the_backlog(synced: Store) -> None:
    """Given sixteen times the rows at once, then each row costs about the same CPU."""
    gc.collect()
    gc.freeze()  # so that collections skip the objects of earlier tests
    try:
        few = [await measure_cpu_s(synced, FEW * n, FEW) for n in range(3)]
        many = await measure_cpu_s(synced, FEW * len(few), 16 * FEW)
    finally:
        gc.unfreeze()
    assert many < 2 * max(few)


@pytest.mark.parametrize("durability", ["normal", "full"], ids=["in the loop", "in the thread"])
async def test_renews_leases_between_transactions(
    tmp_path: Path, durability: Literal["normal", "full"]
) -> None:
    """Given a writer that never pauses, then renewals do not wait for its last transaction."""
    store = await Store.open(tmp_path, durability=durability)
    await acquire(store, "run_r")
    rows = [store.write([make_job(str(n))]) for n in range(MANY)]
    await asyncio.to_thread(lambda: [store.leases.renew() for _ in range(RENEWALS)])
    assert not rows[-1].done()
    await asyncio.gather(*rows)
    await store.close()


@pytest.mark.sqlite("the lock of a file")
async def test_waits_for_a_short_lock_without_a_thread(tmp_path: Path) -> None:
    """Given a short transaction of another process, then no thread waits for the lock."""
    before = set(threading.enumerate())
    store = await Store.open(tmp_path)
    lock = WriteLock(tmp_path, None)
    lock.take()
    writes = [store.write([make_job("a")])]
    await yield_turns(4)
    writes.append(store.write([make_job("b")]))
    check_stays(lambda: not any(write.done() for write in writes), MOST_PAUSE_S)
    lock.release()
    await asyncio.gather(*writes)
    new_threads = set(threading.enumerate()) - before
    assert not [t for t in new_threads if t.name.startswith("toolkit-writer")]
    lock.close()
    await store.close()


def test_writer_gives_way_to_a_small_change() -> None:
    """Given a small change in progress, then the writer waits for it, up to a timeout."""
    turns = WriteTurns()
    with ThreadPoolExecutor(1) as threads:
        with turns.ask():
            assert not turns.give_way(0)
            assert not turns.give_way(0.01)
            waiting = threads.submit(turns.give_way, PATIENCE_S)
            check_stays(lambda: not waiting.done(), 0.05)
        assert waiting.result(PATIENCE_S)
    assert turns.give_way(PATIENCE_S)


async def test_waits_until_the_backlog_has_room(synced: Store) -> None:
    """Given a full backlog, then `wait_for_room` returns once most of it is written."""
    rows = [synced.write([make_job(str(n))]) for n in range(MANY)]
    async with asyncio.timeout(PATIENCE_S):
        await synced.writer.backlog.wait_for_room()
    assert MANY // 2 < sum(row.done() for row in rows) < MANY
    await asyncio.gather(*rows)
    await synced.writer.backlog.wait_for_room()
