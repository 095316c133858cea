"""The size of a job in the store, the reuse of pruned space, and the cost of durability.

Run `python -m benchmarks.store_growth`; `--small` only checks that it works.

- `bytes.*` is the size of a job in its own data directory: the database with its log merged, and
  the artifacts' files, less the size of an empty directory. `node` is a node that does nothing, of
  workflows of 10; `llm` and `speech` are runs in the sandbox, each with a different text. The floor
  is the data of the caller: the input as JSON, and the artifact's bytes, counted once if several
  jobs made the same bytes. A text may use at most 4,000 bytes.
- `again.*` is the size of the database after all work was pruned and done again, over its size
  before it was pruned (limit 1.1). Bytes of artifacts are files: `prune` removes them after they
  have been unreferenced for an hour, which is simulated here.
- `runs.*` is the time of a run that does nothing, with 16 callers at once, with `durability` normal
  and full in turns; `accepted.*` is the median time until a caller's run is durable. Their floor is
  SQLite alone, on the same disk and with the same `synchronous`: one row per commit, one after the
  other, where the store groups the writes of 16 callers in one commit. `full_over_normal` is the
  ratio of the two, which depends on the disk.
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
    """Execute a run; return the seconds until it was accepted."""
    started = time.perf_counter()
    job = await engine.runs.create(context, request)
    accepted = time.perf_counter() - started
    while job.status not in ("completed", "failed", "cancelled"):
        await engine.wait(context, job.id, 60)
        job = await engine.runs.get(context, job.id)
    assert job.status == "completed", job.error
    return accepted


async def run_concurrently(
    engine: Engine, context: RequestContext, requests: list[RunCreate]
) -> list[float]:
    """Execute runs, `AT_ONCE` at once; return the seconds until each was accepted."""
    room = asyncio.Semaphore(AT_ONCE)

    async def run_when_free(request: RunCreate) -> float:
        async with room:
            return await run_until_ended(engine, context, request)

    return await asyncio.gather(*map(run_when_free, requests))


async def nodes(engine: Engine, context: RequestContext, count: int) -> None:
    """Run nodes that do nothing, in workflows of 10 independent nodes."""
    side_by_side: dict[str, list[str]] = {f"n{i}": [] for i in range(WIDTH)}
    for _ in range(count // WIDTH):
        await run(engine, context, graph(side_by_side))


async def llm(engine: Engine, context: RequestContext, count: int) -> None:
    """Generate texts, each with a different objective."""
    inputs = [{"objective": f"One line on tea {time.time_ns()} {i}"} for i in range(count)]
    requests = [{"name": "llm.generate", "input": fields} for fields in inputs]
    await run_concurrently(engine, context, [RunCreate.model_validate(body) for body in requests])


async def speech(engine: Engine, context: RequestContext, count: int) -> None:
    """Generate speech, each with a different sentence."""
    inputs = [{"text": f"This is sentence {time.time_ns()} {i}."} for i in range(count)]
    requests = [{"name": "speech.generate", "input": fields} for fields in inputs]
    await run_concurrently(engine, context, [RunCreate.model_validate(body) for body in requests])


KINDS: dict[str, Work] = {"node": nodes, "llm": llm, "speech": speech}


async def run_workload(
    folder: Path, work: Work | None, count: int, durability: Durability = "normal"
) -> None:
    """Open an engine on a folder, run some work, and close the engine, which empties the log."""
    settings = Settings(data_dir=folder, sandbox=True, durability=durability)
    engine = await open_engine(settings, registry=Registry.load(extra=[NAP]))
    try:
        context = await connect_account(engine, "openai", "minimax")
        if work is not None:
            await work(engine, context, count)
    finally:
        await engine.close(0)


def measure_database_bytes(folder: Path) -> int:
    """Return the bytes of the database and of its remaining log."""
    return folder_bytes(folder, "state.db", "state.db-wal")


def measure_least_bytes(folder: Path) -> int:
    """Return the bytes of all inputs and artifacts of jobs."""
    with closing(sqlite3.connect(folder / "state.db")) as db:
        inputs = db.execute("SELECT sum(length(json_extract(doc, '$.input'))) FROM jobs")
        # Equal bytes of several jobs are one file.
        artifacts = db.execute(
            "SELECT sum(size) FROM (SELECT max(size_bytes) AS size"
            " FROM artifacts WHERE job_id IS NOT NULL"
            " GROUP BY CASE WHEN content IS NULL THEN sha256 ELSE id END)"
        )
        return int(inputs.fetchone()[0] or 0) + int(artifacts.fetchone()[0] or 0)


def prune_ended(folder: Path) -> PruneResult:
    """Prune all ended work, as if an hour had passed."""
    long_ago = time.time() - 2 * MIN_UNREFERENCED_AGE_S
    for path in (folder / "artifacts").glob("*/*"):
        os.utime(path, (long_ago, long_ago))
    with SqliteUpkeep.open(folder) as database:
        return prune_records(database, timedelta(0), BlobFolder(folder / "artifacts"))


async def report_growth(kind: str, count: int, empty: int) -> bool:
    """Report the size of jobs of a kind, and the size after `prune` and the same work again."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        await run_workload(folder, KINDS[kind], count)
        before, files = measure_database_bytes(folder), folder_bytes(folder / "artifacts")
        floor = measure_least_bytes(folder) / count
        is_kept = report(
            f"store_growth.bytes.{kind}",
            (before + files - empty) / count,
            "bytes/job",
            floor=floor,
            limit=MOST_BYTES.get(kind),
            jobs=count,
            of_it_files=round(files / count),
        )
        pruned = prune_ended(folder)
        after, files_left = measure_database_bytes(folder), folder_bytes(folder / "artifacts")
        await run_workload(folder, KINDS[kind], count)
        return is_kept & report(
            f"store_growth.again.{kind}",
            measure_database_bytes(folder) / before,
            "x the size before",
            floor=after / before,
            limit=MOST_AGAIN,
            bytes_before=before,
            bytes_pruned=after,
            bytes_again=measure_database_bytes(folder),
            files_before=files,
            files_pruned=files_left,
            jobs_pruned=pruned.rows["jobs"],
        )


def measure_commits(folder: Path, durability: Durability, count: int) -> list[float]:
    """Measure the seconds of each of some commits of one row by SQLite alone."""
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
    """Measure the milliseconds of a run, of its acceptance, and of a bare commit."""
    figures: dict[str, float] = {}

    async def work(engine: Engine, context: RequestContext, count: int) -> None:
        await run_concurrently(engine, context, [NAPPING] * AT_ONCE)  # warm
        started = time.perf_counter()
        accepted = await run_concurrently(engine, context, [NAPPING] * count)
        figures["runs"] = 1000 * (time.perf_counter() - started) / count
        figures["accepted"] = 1000 * statistics.median(accepted)
        figures["p95"] = 1000 * percentile(accepted, 0.95)

    with tempfile.TemporaryDirectory() as folder:
        floor = measure_commits(Path(folder), durability, count)
        await run_workload(Path(folder) / "data", work, count, durability)
    return {**figures, "floor": 1000 * statistics.median(floor)}


async def report_durability(count: int, rounds: int) -> None:
    """Report the time of runs and of their acceptance with each durability, in turns."""
    both: tuple[Durability, ...] = ("normal", "full")
    rows: dict[Durability, list[dict[str, float]]] = {durability: [] for durability in both}
    for _ in range(rounds):
        for durability in both:
            rows[durability].append(await measure_pace(durability, count))

    def middle(level: Durability, key: str) -> float:
        return statistics.median(row[key] for row in rows[level])

    name = "store_growth"
    for durability in both:
        ms, accepted = middle(durability, "runs"), [row["accepted"] for row in rows[durability]]
        report(
            f"{name}.runs.{durability}",
            ms,
            "ms/run",
            floor=middle(durability, "floor"),
            limit=None,
            runs_per_s=round(1000 / ms),
            **spread([row["runs"] for row in rows[durability]]),
        )
        report(
            f"{name}.accepted.{durability}",
            statistics.median(accepted),
            "ms",
            floor=middle(durability, "floor"),
            limit=None,
            p95=round(middle(durability, "p95"), 2),
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
    """Run the benchmark; returns True if every limit is kept."""
    with tempfile.TemporaryDirectory() as folder:
        await run_workload(Path(folder), None, 0)
        empty = folder_bytes(Path(folder))
    are_kept = True
    for kind, count in JOBS.items():
        are_kept &= await report_growth(kind, max(WIDTH, int(count * share)), empty)
    await report_durability(max(AT_ONCE, int(TIMED * share)), rounds)
    return are_kept


if __name__ == "__main__":
    if "--small" in sys.argv:
        asyncio.run(main(0.02, 1))
    else:
        sys.exit(0 if asyncio.run(main()) else 1)
