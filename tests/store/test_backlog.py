"""A backlog of writes: what it costs, and what does not wait for all of it."""

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
from toolkit.store.sqlite.writes import WriteTurns
from toolkit.store.writing.writer import MOST_PAUSE_S

FEW, MANY = 1_000, 8_000
RENEWALS = 8


@pytest.fixture
async def synced(tmp_path: Path) -> AsyncIterator[Store]:
    """A store whose commits wait for the disk, so that they are made in a thread."""
    opened = await Store.open(tmp_path, durability="full")
    yield opened
    await opened.close()


async def measure_cpu_s(store: Store, first: int, rows: int) -> float:
    """Write so many rows, all handed over at once; return the seconds of CPU for each."""
    began = time.process_time()
    await asyncio.gather(*[store.write([make_job(str(n))]) for n in range(first, first + rows)])
    return (time.process_time() - began) / rows


async def test_a_long_backlog_costs_each_row_what_a_short_one_does(synced: Store) -> None:
    """Given sixteen times the rows at once, then each costs about the same, not sixteen times."""
    gc.collect()
    gc.freeze()  # else collections would visit what all tests before have left
    try:
        few = [await measure_cpu_s(synced, FEW * n, FEW) for n in range(3)]
        many = await measure_cpu_s(synced, FEW * len(few), 16 * FEW)
    finally:
        gc.unfreeze()
    assert many < 2 * max(few)


@pytest.mark.parametrize("durability", ["normal", "full"], ids=["in the loop", "in the thread"])
async def test_leases_are_renewed_between_two_transactions(
    tmp_path: Path, durability: Literal["normal", "full"]
) -> None:
    """Given a writer that goes on without a pause, then renewals do not wait for its last one."""
    store = await Store.open(tmp_path, durability=durability)
    await acquire(store, "run_r")
    rows = [store.write([make_job(str(n))]) for n in range(MANY)]
    await asyncio.to_thread(lambda: [store.leases.renew() for _ in range(RENEWALS)])
    assert not rows[-1].done()
    await asyncio.gather(*rows)
    await store.close()


@pytest.mark.sqlite("where others wait for one lock")
async def test_what_others_hold_for_a_moment_is_waited_for_in_the_loop(
    tmp_path: Path,
) -> None:
    """Given another process in the middle of a short transaction, then no thread waits for it."""
    before = set(threading.enumerate())
    store = await Store.open(tmp_path)
    others = WriteLock(tmp_path, None)
    others.take()
    written = [store.write([make_job("a")])]
    await yield_turns(4)
    written.append(store.write([make_job("b")]))
    check_stays(lambda: not any(each.done() for each in written), MOST_PAUSE_S)
    others.release()
    await asyncio.gather(*written)
    begun = set(threading.enumerate()) - before
    assert not [each for each in begun if each.name.startswith("toolkit-writer")]
    others.close()
    await store.close()


def test_the_writer_gives_way_to_a_small_change() -> None:
    """Given a small change that is being made, then the writer waits for it, but not for long."""
    turns, order = WriteTurns(), []
    with ThreadPoolExecutor(1) as threads:
        with turns.ask():
            assert not turns.give_way(0)
            assert not turns.give_way(0.01)
            order.append("went on after a while")
            waiting = threads.submit(turns.give_way, PATIENCE_S)
            check_stays(lambda: not waiting.done(), 0.05)
            order.append("made")
        waiting.result(PATIENCE_S)
    assert turns.give_way(PATIENCE_S)
    assert order == ["went on after a while", "made"]


async def test_work_waits_for_room(synced: Store) -> None:
    """Given far more handed over than is written, then work waits until only a little is left."""
    rows = [synced.write([make_job(str(n))]) for n in range(MANY)]
    async with asyncio.timeout(PATIENCE_S):
        await synced.writer.backlog.wait_for_room()
    assert MANY // 2 < sum(row.done() for row in rows) < MANY
    await asyncio.gather(*rows)
    await synced.writer.backlog.wait_for_room()
