"""The time of a page of runs if a filter must find them among 50,000.

Run `python -m benchmarks.filtered_lists`; `--small` only checks that it works.

One run is executed in the sandbox and copied. Each copy has its own id, time and input; one in
1,000 has failed, and every second copy has a tag. A page has at most 50 runs.

- `page` has no filter, `tag` matches 5 runs, `status` one run in 1,000, `cost` and `text` none. The
  floor of each is one SQL statement that finds the same rows, on a separate connection.
- `hold` is the longest time that the event loop was blocked during any of them, which is the
  longest delay of another caller; its floor is the same without any list.
"""

import asyncio
import json
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks._cloud import connect_account
from benchmarks._report import report, report_rounds
from toolkit.contract.base import format_rfc3339
from toolkit.contract.ids import Prefix, make_earliest_id
from toolkit.contract.operations.work_queries import WorkFilter
from toolkit.contract.runs import RunCreate
from toolkit.engine import Engine
from toolkit.engine.request_context import RequestContext
from toolkit.local import open_engine
from toolkit.settings import Settings
from toolkit.store import Change, InsertRow

RUNS, ROUNDS, PAGE, BATCH = 50_000, 5, 50, 1_000
MAX_HOLD_MS = 50.0
Clock: TypeAlias = Callable[[], float]
FAILED_EVERY, TAGGED_EVERY, RARE_EVERY = 1_000, 2, 10_000
BEGIN = datetime(2026, 11, 1, tzinfo=UTC)
REQUEST = RunCreate(name="llm.generate", input={"objective": "Three sentences on tidal power"})
FILTERS: dict[str, tuple[WorkFilter, str, float]] = {
    "page": (WorkFilter(), "SELECT * FROM jobs ORDER BY id DESC LIMIT 50", 50.0),
    "tag": (
        WorkFilter(tags=("rare",)),
        "SELECT * FROM jobs WHERE run_id IN (SELECT resource_id FROM tags WHERE tag = 'rare')",
        50.0,
    ),
    "status": (
        WorkFilter(status="failed"),
        "SELECT count(*) FROM jobs WHERE status = 'failed'",
        500.0,
    ),
    "cost": (
        WorkFilter(min_cost_usd=1.0),
        "SELECT count(*) FROM jobs WHERE json_extract(doc, '$.cost_usd') >= 1",
        1_000.0,
    ),
    "text": (
        WorkFilter(text="nowhere"),
        "SELECT count(*) FROM jobs WHERE instr(lower(doc), 'nowhere')",
        1_000.0,
    ),
}


def copy_run(job: dict[str, Any], root: dict[str, Any], n: int) -> list[Change]:
    """Return the rows of a copy of a run."""
    at = BEGIN + timedelta(seconds=10 * n)
    run_id, created_at = make_earliest_id(Prefix.RUN, at), format_rfc3339(at)
    job_id, status = run_id.replace("run_", "job_"), "completed" if n % FAILED_EVERY else "failed"
    columns = {"run_id": run_id, "status": status, "created_at": created_at}
    doc = {**json.loads(job["doc"]), "id": job_id, **columns, "input": {"objective": f"Note {n}"}}
    rows: list[Change] = [
        InsertRow("roots", {**root, "id": run_id, "created_at": created_at}),
        InsertRow(
            "jobs", {**job, **columns, "id": job_id, "root_id": run_id, "doc": json.dumps(doc)}
        ),
    ]
    if n % TAGGED_EVERY == 0:
        tags = ["even", *(["rare"] if n % RARE_EVERY == 0 else [])]
        row = {"id": run_id, "account_id": job["account_id"], "created_at": created_at}
        rows.append(InsertRow("annotations", {**row, "tags": json.dumps(tags), "note": ""}))
    return rows


async def fill_store(engine: Engine, context: RequestContext, runs: int) -> None:
    """Execute one run, and store copies of it."""
    run = await engine.runs.create(context, REQUEST)
    await engine.wait(context, run.id, 60)
    (job,) = await engine.core.store.find_rows("jobs", run_id=run.id)
    root = await engine.core.store.get_row("roots", run.id)
    assert root is not None
    for first in range(0, runs, BATCH):
        batch = range(first, min(first + BATCH, runs))
        await engine.core.store.write([row for n in batch for row in copy_run(job, root, n)])


class HoldClock:
    """Measures the longest time between two turns of the event loop."""

    def __init__(self) -> None:
        self.longest_ms = 0.0
        self._last = time.perf_counter()
        self._tick()

    def _tick(self) -> None:
        at = time.perf_counter()
        self.longest_ms = max(self.longest_ms, 1000 * (at - self._last))
        self._last = at
        self._handle = asyncio.get_running_loop().call_soon(self._tick)

    def stop(self) -> float:
        """Stop, and return the longest time in milliseconds."""
        self._handle.cancel()
        return self.longest_ms


async def report_filters(
    engine: Engine, context: RequestContext, rounds: int, clock: Clock
) -> bool:
    """Report the time of a page by each filter; returns True if every limit is kept."""
    are_kept = True
    with closing(sqlite3.connect(engine.settings.data_dir / "state.db")) as database:
        for name, (work_filter, sql, limit) in FILTERS.items():
            took, floors, count = [], [], 0
            for _ in range(rounds):
                started = clock()
                count = len(await engine.runs.list(context, PAGE, None, work_filter))
                listed = clock()
                database.execute(sql).fetchall()
                took.append(1000 * (listed - started))
                floors.append(1000 * (clock() - listed))
            name = f"filtered_lists.{name}"
            are_kept &= report_rounds(name, took, "ms", floors=floors, limit=limit, found=count)
    return are_kept


async def report_hold(engine: Engine, context: RequestContext) -> bool:
    """Report the longest time that the event loop is blocked while a list is searched."""
    idle = HoldClock()
    await asyncio.sleep(0.1)
    floor = idle.stop()
    busy = HoldClock()
    for work_filter, _, _ in FILTERS.values():
        await engine.runs.list(context, PAGE, None, work_filter)
    return report("filtered_lists.hold", busy.stop(), "ms", floor=floor, limit=MAX_HOLD_MS)


async def main(runs: int = RUNS, rounds: int = ROUNDS, clock: Clock = time.perf_counter) -> bool:
    """Run the benchmark; returns True if every limit is kept."""
    with tempfile.TemporaryDirectory() as folder:
        engine = await open_engine(Settings(data_dir=Path(folder), sandbox=True))
        try:
            context = await connect_account(engine, "minimax")
            await fill_store(engine, context, runs)
            are_kept = await report_filters(engine, context, rounds, clock)
            if clock is time.perf_counter:
                are_kept &= await report_hold(engine, context)
            return are_kept
        finally:
            await engine.close(0)


if __name__ == "__main__":
    if "--small" in sys.argv:
        asyncio.run(main(1_500, 1))
    else:
        sys.exit(0 if asyncio.run(main()) else 1)
