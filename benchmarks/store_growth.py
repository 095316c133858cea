"""What a job leaves in the store, whether pruned space is used again, and the price of durability.

Run `python -m benchmarks.store_growth`; `--small` only shows that it works.

- `bytes.*` is what a job leaves in a data directory of its own: the database with its log moved
  into it, and the artifacts' files, less what an empty directory has. `node` is a node that does
  nothing, of workflows of 10; `llm` and `speech` are runs in the sandbox, each with a text of its
  own. The floor is what a caller gave and got: the input as JSON, and the artifact's bytes, counted
  once where several jobs made the same. A text may leave 4,000 at most.
- `again.*` is the size of the database after it was pruned of all that work and did as much again,
  over its size before it was pruned (limit 1.1). Bytes of artifacts are files: they are taken out
  by `prune` once nobody has named them for an hour, which is brought forward here.
- `runs.*` is the time of a run that does nothing, 16 callers at once, with `durability` normal and
  full in turns; `accepted.*` is how long one waits until its run is durable, by the median. Their
  floor is SQLite alone, on the same disk and with the same `synchronous`: one row, one commit, one
  after another, where the store puts what 16 callers want into one. `full_over_normal` is the ratio
  of the two, which is a matter of the disk.
"""

import asyncio
import json
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Literal

from benchmarks._cloud import connect_account
from benchmarks._noop import NAP, graph, run
from benchmarks._process import folder_bytes, percentile, spread
from benchmarks._report import report
from toolkit.contract.runs import RunCreate
from toolkit.engine import Engine, Registry
from toolkit.engine.request_context import RequestContext
from toolkit.local import open_engine
from toolkit.settings import Settings
from toolkit.store.blob_places.folder import BlobFolder
from toolkit.store.maintenance.prune import MIN_UNREFERENCED_AGE_S, PruneResult, prune_records
from toolkit.store.sqlite.upkeep import SqliteUpkeep

JOBS = {"node": 1_000, "llm": 300, "speech": 100}
MOST_BYTES = {"llm": 4_000}
WIDTH, AT_ONCE, ROUNDS, TIMED, MOST_AGAIN = 10, 16, 3, 400, 1.1
Durability = Literal["normal", "full"]
Work = Callable[[Engine, str, int], Awaitable[None]]
NAPPING = RunCreate.model_validate({"name": "bench.nap", "input": {}})


async def run_until_ended(engine: Engine, context: RequestContext, request: RunCreate) -> float:
    """Carry out a run; the seconds until it was accepted."""
    started = time.perf_counter()
    asked = await engine.runs.create(context, request)
    accepted = time.perf_counter() - started
    while asked.status not in ("completed", "failed", "cancelled"):
        await engine.wait(context, asked.id, 60)
        asked = await engine.runs.get(context, asked.id)
    assert asked.status == "completed", asked.error
    return accepted


async def run_concurrently(
    engine: Engine, context: RequestContext, requests: list[RunCreate]
) -> list[float]:
    """Carry out runs, so many at once; the seconds until each was accepted."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(request: RunCreate) -> float:
        async with room:
            return await run_until_ended(engine, context, request)

    return await asyncio.gather(*map(one, requests))


async def nodes(engine: Engine, context: RequestContext, count: int) -> None:
    """Nodes that do nothing, in workflows of 10 beside each other."""
    side_by_side: dict[str, list[str]] = {f"n{i}": [] for i in range(WIDTH)}
    for _ in range(count // WIDTH):
        await run(engine, context, graph(side_by_side))


async def llm(engine: Engine, context: RequestContext, count: int) -> None:
    """Texts, no two of them asked for alike."""
    asked = [{"objective": f"One line on tea {time.time_ns()} {i}"} for i in range(count)]
    requests = [{"name": "llm.generate", "input": given} for given in asked]
    await run_concurrently(engine, context, [RunCreate.model_validate(each) for each in requests])


async def speech(engine: Engine, context: RequestContext, count: int) -> None:
    """Speech, no two sentences alike."""
    asked = [{"text": f"This is sentence {time.time_ns()} {i}."} for i in range(count)]
    requests = [{"name": "speech.generate", "input": given} for given in asked]
    await run_concurrently(engine, context, [RunCreate.model_validate(each) for each in requests])


KINDS: dict[str, Work] = {"node": nodes, "llm": llm, "speech": speech}


async def run_workload(
    folder: Path, work: Work | None, count: int, durability: Durability = "normal"
) -> None:
    """Open an engine on a folder, have work done, and close it, which empties the log."""
    settings = Settings(data_dir=folder, sandbox=True, durability=durability)
    engine = await open_engine(settings, registry=Registry.load(extra=[NAP]))
    try:
        context = await connect_account(engine, "openai", "minimax")
        if work is not None:
            await work(engine, context, count)
    finally:
        await engine.close(0)


def measure_database_bytes(folder: Path) -> int:
    """The bytes of the database and of what is left of its log."""
    return folder_bytes(folder, "state.db", "state.db-wal")


def measure_least_bytes(folder: Path) -> int:
    """The bytes of all inputs and artifacts of jobs."""
    with closing(sqlite3.connect(folder / "state.db")) as db:
        inputs = db.execute("SELECT sum(length(json_extract(doc, '$.input'))) FROM jobs")
        # What several jobs made alike is one file.
        made = db.execute(
            "SELECT sum(size) FROM (SELECT max(json_extract(doc, '$.size_bytes')) AS size"
            " FROM artifacts WHERE job_id IS NOT NULL"
            " GROUP BY CASE WHEN content IS NULL THEN sha256 ELSE id END)"
        )
        return int(inputs.fetchone()[0] or 0) + int(made.fetchone()[0] or 0)


def prune_ended(folder: Path) -> PruneResult:
    """Prune all that has ended, as if an hour had passed."""
    long_ago = time.time() - 2 * MIN_UNREFERENCED_AGE_S
    for path in (folder / "artifacts").glob("*/*"):
        os.utime(path, (long_ago, long_ago))
    with SqliteUpkeep.open(folder) as database:
        return prune_records(database, timedelta(0), BlobFolder(folder / "artifacts"))


async def report_growth(kind: str, count: int, empty: int) -> bool:
    """Report what jobs of a kind leave, and what doing them again after `prune` leaves."""
    with tempfile.TemporaryDirectory() as each:
        folder = Path(each)
        await run_workload(folder, KINDS[kind], count)
        before, files = measure_database_bytes(folder), folder_bytes(folder / "artifacts")
        floor = measure_least_bytes(folder) / count
        kept = report(
            f"store_growth.bytes.{kind}",
            (before + files - empty) / count,
            "bytes/job",
            floor=floor,
            limit=MOST_BYTES.get(kind),
            jobs=count,
            of_it_files=round(files / count),
        )
        gone = prune_ended(folder)
        after, left = measure_database_bytes(folder), folder_bytes(folder / "artifacts")
        await run_workload(folder, KINDS[kind], count)
        return kept & report(
            f"store_growth.again.{kind}",
            measure_database_bytes(folder) / before,
            "x the size before",
            floor=after / before,
            limit=MOST_AGAIN,
            bytes_before=before,
            bytes_pruned=after,
            bytes_again=measure_database_bytes(folder),
            files_before=files,
            files_pruned=left,
            jobs_pruned=gone.rows["jobs"],
        )


def measure_commits(folder: Path, durability: Durability, count: int) -> list[float]:
    """Seconds of each of some commits of one row by SQLite alone."""
    with closing(sqlite3.connect(folder / "floor.db", isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute(f"PRAGMA synchronous={durability}")
        db.execute("CREATE TABLE row (doc TEXT)")
        took = []
        for _ in range(count):
            started = time.perf_counter()
            db.execute("INSERT INTO row VALUES (?)", (json.dumps({"x": "y" * 400}),))
            took.append(time.perf_counter() - started)
    return took


async def measure_pace(durability: Durability, count: int) -> dict[str, float]:
    """Milliseconds of a run, of its acceptance, and of a bare commit."""
    found: dict[str, float] = {}

    async def work(engine: Engine, context: RequestContext, count: int) -> None:
        await run_concurrently(engine, context, [NAPPING] * AT_ONCE)  # warm
        started = time.perf_counter()
        accepted = await run_concurrently(engine, context, [NAPPING] * count)
        found["runs"] = 1000 * (time.perf_counter() - started) / count
        found["accepted"] = 1000 * statistics.median(accepted)
        found["p95"] = 1000 * percentile(accepted, 0.95)

    with tempfile.TemporaryDirectory() as folder:
        floor = measure_commits(Path(folder), durability, count)
        await run_workload(Path(folder) / "data", work, count, durability)
    return {**found, "floor": 1000 * statistics.median(floor)}


async def report_durability(count: int, rounds: int) -> None:
    """Report what runs and their acceptance take with either durability, in turns."""
    both: tuple[Durability, ...] = ("normal", "full")
    rows: dict[Durability, list[dict[str, float]]] = {each: [] for each in both}
    for _ in range(rounds):
        for each in both:
            rows[each].append(await measure_pace(each, count))

    def middle(durability: Durability, what: str) -> float:
        return statistics.median(row[what] for row in rows[durability])

    name = "store_growth"
    for each in both:
        ms, accepted = middle(each, "runs"), [row["accepted"] for row in rows[each]]
        report(
            f"{name}.runs.{each}",
            ms,
            "ms/run",
            floor=middle(each, "floor"),
            limit=None,
            runs_per_s=round(1000 / ms),
            **spread([row["runs"] for row in rows[each]]),
        )
        report(
            f"{name}.accepted.{each}",
            statistics.median(accepted),
            "ms",
            floor=middle(each, "floor"),
            limit=None,
            p95=round(middle(each, "p95"), 2),
            **spread(accepted),
        )
    report(
        f"{name}.full_over_normal",
        middle("full", "runs") / middle("normal", "runs"),
        "x ms/run",
        floor=middle("full", "floor") / middle("normal", "floor"),
        limit=None,
        accepted=round(middle("full", "accepted") / middle("normal", "accepted"), 2),
    )


async def main(share: float = 1.0, rounds: int = ROUNDS) -> bool:
    """Measure it all; whether every limit is kept."""
    with tempfile.TemporaryDirectory() as folder:
        await run_workload(Path(folder), None, 0)
        empty = folder_bytes(Path(folder))
    kept = True
    for kind, count in JOBS.items():
        kept &= await report_growth(kind, max(WIDTH, int(count * share)), empty)
    await report_durability(max(AT_ONCE, int(TIMED * share)), rounds)
    return kept


if __name__ == "__main__":
    if "--small" in sys.argv:
        asyncio.run(main(0.02, 1))
    else:
        sys.exit(0 if asyncio.run(main()) else 1)
