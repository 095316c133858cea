"""A backlog of writes: what it costs, and what does not wait for all of it."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.store.test_store import acquire_lease, job
from tests.support.timing import PATIENCE_S
from toolkit.store import Store

FEW, MANY = 1_000, 16_000
SMALL_CHANGES = 12
GROUP = 256  # rows that one transaction of the writer's thread writes


@pytest.fixture
async def synced(tmp_path: Path) -> AsyncIterator[Store]:
    """A store whose commits wait for the disk, so that they are made in a thread."""
    opened = await Store.open(tmp_path, durability="full")
    yield opened
    await opened.close()


async def measure_cpu_s(store: Store, first: int, rows: int) -> float:
    """Write so many rows, all handed over at once; return the seconds of CPU for each."""
    began = time.process_time()
    await asyncio.gather(*[store.write([job(str(n))]) for n in range(first, first + rows)])
    return (time.process_time() - began) / rows


async def test_a_long_backlog_costs_each_row_what_a_short_one_does(synced: Store) -> None:
    """Given sixteen times the rows at once, then each costs about the same, not sixteen times."""
    few = [await measure_cpu_s(synced, FEW * n, FEW) for n in range(3)]
    many = await measure_cpu_s(synced, FEW * len(few), MANY)
    assert many < 2 * max(few)


async def test_a_lease_is_renewed_between_two_transactions(synced: Store) -> None:
    """Given a writer that goes on without a pause, then a renewal waits for a few commits only."""
    await acquire_lease(synced)
    rows = [synced.write([job(str(n))]) for n in range(MANY)]
    went_by = []
    for _ in range(SMALL_CHANGES):
        before = sum(row.done() for row in rows)
        await asyncio.to_thread(synced.leases.renew)
        went_by.append(sum(row.done() for row in rows) - before)
    assert max(went_by) <= 6 * GROUP
    assert not rows[-1].done()
    await asyncio.gather(*rows)


async def test_work_waits_for_room(synced: Store) -> None:
    """Given far more handed over than is written, then work waits until only a little is left."""
    rows = [synced.write([job(str(n))]) for n in range(MANY)]
    async with asyncio.timeout(PATIENCE_S):
        await synced.wait_for_room()
    assert MANY // 2 < sum(row.done() for row in rows) < MANY
    await asyncio.gather(*rows)
    await synced.wait_for_room()
