"""Lists by a filter read slice by slice, and counts end at a limit."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.store.rows import make_row
from tests.support.database_pool import ON_POSTGRESQL
from toolkit.contract.base import format_rfc3339
from toolkit.contract.ids import Prefix, make_earliest_id
from toolkit.contract.operations.work_queries import WorkFilter
from toolkit.store import RUN_LIST, AccountScope, Change, Store
from toolkit.store.work_lists import SLICE_ROWS

COUNT = 3 * SLICE_ROWS + 7
UNINDEXED = "\1"  # a text outside the index, so that the search reads all records
BEGIN = datetime(2026, 11, 20, tzinfo=UTC)


def _make_run(n: int) -> list[Change]:
    """Make a run; runs are a minute apart, and every hundredth has failed."""
    at = BEGIN + timedelta(minutes=n)
    run_id, created_at = make_earliest_id(Prefix.RUN, at), format_rfc3339(at)
    root = make_row("roots", run_id, kind="run", created_at=created_at)
    doc = json.dumps({"input": {"n": str(n)}, "cost_usd": n})
    job = make_row(
        "jobs", run_id.replace("run", "job"), root_id=run_id, run_id=run_id, capability="x@1",
        status="completed" if n % 100 else "failed", created_at=created_at, doc=doc,
    )  # fmt: skip
    return [root, job]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """A store with more runs than fit in three slices."""
    opened = await Store.open(tmp_path)
    await opened.write([change for n in range(COUNT) for change in _make_run(n)])
    yield opened
    await opened.close()


async def _find(store: Store, **filters: object) -> list[int]:
    work_filter = WorkFilter(**filters)  # type: ignore[arg-type]
    rows = await store.list_work(RUN_LIST, AccountScope("acc"), work_filter, 200, None)
    return [int(json.loads(row["doc"])["input"]["n"]) for row in rows]


async def test_does_not_count_beyond_a_limit(store: Store) -> None:
    """Given too many rows, or too many documents to read, then the count is None.

    An index counts the rows of one status, so there is no limit for that filter alone.
    """

    async def count(**filters: object) -> int | None:
        work_filter = WorkFilter(**filters)  # type: ignore[arg-type]
        return await store.count_work(RUN_LIST, AccountScope("acc"), work_filter)

    since = BEGIN + timedelta(minutes=COUNT - 30)
    assert await count() == COUNT
    assert await count(status="failed") == COUNT // 100 + 1
    assert await count(status="failed", since=since) == 1
    assert await count(since=since) == 30
    assert await count(text="123") == 12
    assert await count(min_cost_usd=1.0) is None  # it would read most documents
    await store.write([change for n in range(COUNT, 10_001) for change in _make_run(n)])
    assert await count() is None
    assert await count(status="completed") == 10_001 - 101
    assert await count(capability="x") is None
    assert await count(until=BEGIN + timedelta(minutes=6_000)) is None


async def _count_turns(search: Awaitable[object]) -> int:
    """Count the turns of the event loop during a search."""
    loop, turns = asyncio.get_running_loop(), itertools.count()

    def tick() -> None:
        next(turns)
        handles[0] = loop.call_soon(tick)

    handles = [loop.call_soon(tick)]
    await search
    handles[0].cancel()
    return next(turns)


async def test_a_long_search_yields_between_slices(store: Store) -> None:
    """Given a search of all slices, then it yields; with a start time, it reads one slice."""
    since = BEGIN + timedelta(minutes=COUNT - 3)
    assert await _find(store, since=since) == [COUNT - 1, COUNT - 2, COUNT - 3]
    assert await _count_turns(_find(store, text=UNINDEXED)) >= COUNT // SLICE_ROWS
    if not ON_POSTGRESQL:  # each answer of a server takes turns
        assert await _count_turns(_find(store, text="nowhere", since=since)) == 0
