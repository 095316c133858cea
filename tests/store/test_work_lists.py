"""Lists by a filter: read slice by slice, and tags indexed by the database itself."""

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

MADE = 3 * SLICE_ROWS + 7
UNINDEXED = "\1"  # a text that the index cannot look up, so all records are read
BEGIN = datetime(2026, 11, 20, tzinfo=UTC)


def _make_run(n: int) -> list[Change]:
    """A run a minute, of which every hundredth failed."""
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
    """A store with more runs than three slices have."""
    opened = await Store.open(tmp_path)
    await opened.write([change for n in range(MADE) for change in _make_run(n)])
    yield opened
    await opened.close()


async def _find(store: Store, limit: int = 200, **filters: object) -> list[int]:
    wanted = WorkFilter(**filters)  # type: ignore[arg-type]
    rows = await store.list_work(RUN_LIST, AccountScope("acc"), wanted, limit, None)
    return [int(json.loads(row["doc"])["input"]["n"]) for row in rows]


async def test_a_count_ends_after_some_rows(store: Store) -> None:
    """Given more than may be counted, or rows that would have to be read, then there is no count.

    An index answers for one status, so a filter of that alone is counted up to 10,000.
    """

    async def count(**filters: object) -> int | None:
        wanted = WorkFilter(**filters)  # type: ignore[arg-type]
        return await store.count_work(RUN_LIST, AccountScope("acc"), wanted)

    since = BEGIN + timedelta(minutes=MADE - 30)
    assert await count() == MADE
    assert await count(status="failed") == MADE // 100 + 1
    assert await count(status="failed", since=since) == 1
    assert await count(since=since) == 30
    assert await count(text="123") == 12
    assert await count(min_cost_usd=1.0) is None  # most documents would have to be read
    await store.write([change for n in range(MADE, 10_001) for change in _make_run(n)])
    assert await count() is None
    assert await count(status="completed") == 10_001 - 101
    assert await count(capability="x") is None
    assert await count(until=BEGIN + timedelta(minutes=6_000)) is None


async def _count_turns(search: Awaitable[object]) -> int:
    """Count the turns that the event loop takes while something searches."""
    loop, turns = asyncio.get_running_loop(), itertools.count()

    def tick() -> None:
        next(turns)
        handles[0] = loop.call_soon(tick)

    handles = [loop.call_soon(tick)]
    await search
    handles[0].cancel()
    return next(turns)


async def test_a_long_search_lets_others_run_and_a_time_ends_it(store: Store) -> None:
    """Given a search through all slices, then others run between; a time has it look at one."""
    since = BEGIN + timedelta(minutes=MADE - 3)
    assert await _find(store, since=since) == [MADE - 1, MADE - 2, MADE - 3]
    assert await _count_turns(_find(store, text=UNINDEXED)) >= MADE // SLICE_ROWS
    if not ON_POSTGRESQL:  # whose every answer takes turns
        assert await _count_turns(_find(store, text="nowhere", since=since)) == 0
