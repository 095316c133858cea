"""The CPU time of a page of runs by each filter, in a store with very many runs.

Run `python -m benchmarks.large_lists --runs 1000000` for the figures of large stores, which takes
half an hour; `--small` only checks that it works. `--database sqlite` or `postgresql` measures one.

One run is executed in the sandbox and copied. Each copy has its own id, time, cost, and input of a
dozen words. A *rare* filter matches ten runs in total, a *frequent* filter half of the runs or
more, and a page has at most 50 runs. Figures cover the whole call with the count of all matches:
the CPU time of this process and, on PostgreSQL, of the sessions that serve it.

`index` is the CPU time per run of indexing texts in a migration. `write` is the CPU time of a run
that does nothing; its floor is the same without the indexes of status, provider, capability and
cost. `prune` is the CPU time per run of deleting the older half of the runs, measured last.
"""

import argparse
import asyncio
import json
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import psycopg

from benchmarks._cloud import connect_account
from benchmarks._noop import open_noop_engine
from benchmarks._report import report, report_rounds
from benchmarks.postgres import run_many, serve_postgres
from toolkit.contract.base import format_rfc3339
from toolkit.contract.ids import Prefix, make_earliest_id
from toolkit.contract.operations.work_queries import WorkFilter
from toolkit.contract.runs import RunCreate
from toolkit.engine import Engine
from toolkit.engine.request_context import RequestContext
from toolkit.local import open_engine
from toolkit.settings import Settings
from toolkit.store.blob_places.folder import BlobFolder
from toolkit.store.maintenance.prune import prune_records
from toolkit.store.postgres.upkeep import PostgresUpkeep
from toolkit.store.postgres.writing.writes import index_texts
from toolkit.store.sqlite.upkeep import SqliteUpkeep
from toolkit.store.tables import metadata
from toolkit.store.text_index import index_missing

RUNS, ROUNDS, PAGE, BATCH = 50_000, 5, 50, 5_000
WRITE_RUNS, WRITE_ROUNDS = 1_500, 3
LIMIT_MS = 50.0
RARE_RUNS: Final = 10
WORDS: Final = 3_000
SECONDS_APART: Final = 20
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
REQUEST = RunCreate(name="llm.generate", input={"objective": "Three sentences on tidal power"})
RARE_TEXT, FREQUENT_TEXT = "Zyzzyva-Straße 潮汐發電", "能源 every"
FILTERS: Final[dict[str, WorkFilter]] = {
    "none": WorkFilter(),
    "status_rare": WorkFilter(status="failed"),
    "status_frequent": WorkFilter(status="completed"),
    "status_missing": WorkFilter(status="cancelled"),
    "provider_rare": WorkFilter(provider="rare"),
    "provider_frequent": WorkFilter(provider="frequent"),
    "capability_rare": WorkFilter(capability="rare.draw"),
    "capability_frequent": WorkFilter(capability="llm.generate"),
    "tag_rare": WorkFilter(tags=("rare",)),
    "tag_frequent": WorkFilter(tags=("even",)),
    "min_cost_rare": WorkFilter(min_cost_usd=1.0),
    "min_cost_frequent": WorkFilter(min_cost_usd=0.00503),
    "max_cost_rare": WorkFilter(max_cost_usd=0.0000001),
    "max_cost_frequent": WorkFilter(max_cost_usd=0.00503),
    "text_rare": WorkFilter(text="ZYZZYVA-STRASSE"),
    "text_frequent": WorkFilter(text="every"),
    "text_missing": WorkFilter(text="nowhere to be seen"),
    "text_long": WorkFilter(text="every nowhere every somewhere every nowhere every else"),
    "text_chinese_rare": WorkFilter(text="潮汐"),
    "text_chinese_frequent": WorkFilter(text="能源"),
    "text_chinese_missing": WorkFilter(text="海洋"),
    "text_two_rare": WorkFilter(text="zz"),
    "text_one_rare": WorkFilter(text="發"),
    "text_one_frequent": WorkFilter(text="e"),
    "since": WorkFilter(since=BEGIN + timedelta(days=2)),
    "until": WorkFilter(until=BEGIN + timedelta(hours=2)),
}
_SCHEDSTAT_NS: Final = 1e9


class CpuClock:
    """A clock of the CPU time of this process and of the database sessions that serve it."""

    def __init__(self, url: str | None) -> None:
        self._connection = psycopg.connect(url, autocommit=True) if url is not None else None

    def __call__(self) -> float:
        """Return the seconds of CPU time so far."""
        total = time.process_time()
        if self._connection is not None:
            listed = self._connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                " AND datname = current_database()"
            ).fetchall()
            total += sum(_read_cpu_s(int(pid)) for (pid,) in listed)
        return total


def _read_cpu_s(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / _SCHEDSTAT_NS
    except FileNotFoundError:
        return 0.0


class RunCopier:
    """Makes the rows of copies of a run."""

    def __init__(self, job: dict[str, Any], root: dict[str, Any], runs: int) -> None:
        self._job, self._root, self._doc = job, root, json.loads(job["doc"])
        self._rare_every = max(2, runs // RARE_RUNS)
        self._random = random.Random(20_261_127)
        letters = "abcdefghiklmnoprstuvw"
        self._words = [
            "".join(self._random.choices(letters, k=self._random.randint(3, 9)))
            for _ in range(WORDS)
        ]

    def copy(self, n: int) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any] | None]:
        """Make the rows of one more run: its root, its job, and its tags if it has any."""
        at = BEGIN + timedelta(seconds=SECONDS_APART * n)
        run_id, created_at = make_earliest_id(Prefix.RUN, at), format_rfc3339(at)
        is_rare, is_even = n % self._rare_every == 1, n % 2 == 0
        words = [*self._random.choices(self._words, k=12), *([FREQUENT_TEXT] if is_even else [])]
        row = {
            "id": run_id.replace("run_", "job_"),
            "run_id": run_id,
            "status": "failed" if is_rare else "completed",
            "created_at": created_at,
            "capability": "rare.draw@1" if is_rare else "llm.generate@1",
            "provider": "rare" if is_rare else "frequent" if is_even else "other",
        }
        doc = {**self._doc, **row, "cost_usd": 5.0 if is_rare else self._random.random() / 100}
        doc["input"] = {"objective": " ".join([*words, *([RARE_TEXT] if is_rare else [])])}
        job = {**self._job, **row, "root_id": run_id, "text_number": None}
        job["doc"] = json.dumps(doc, ensure_ascii=False)
        root = {**self._root, "id": run_id, "created_at": created_at}
        if not is_even and not is_rare:
            return root, job, None
        tags = json.dumps(["rare"] if is_rare else ["even"])
        note = {"id": run_id, "account_id": job["account_id"], "created_at": created_at}
        return root, job, {**note, "tags": tags, "note": ""}


def iter_batches(copier: RunCopier, runs: int) -> Iterator[dict[str, list[tuple[Any, ...]]]]:
    """Yield the rows of runs by table, in batches."""
    tables = ("roots", "jobs", "annotations")
    columns = {name: [c.name for c in metadata.tables[name].columns] for name in tables}
    for first in range(0, runs, BATCH):
        batch: dict[str, list[tuple[Any, ...]]] = {name: [] for name in tables}
        for n in range(first, min(first + BATCH, runs)):
            for name, row in zip(tables, copier.copy(n), strict=True):
                if row is not None:
                    batch[name].append(tuple(row[column] for column in columns[name]))
        yield batch


def fill_sqlite(database: Path, copier: RunCopier, runs: int) -> None:
    """Insert rows into a database that no process has open."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("PRAGMA cache_size=-400000")
        for batch in iter_batches(copier, runs):
            connection.execute("BEGIN")
            for name, rows in batch.items():
                marks = ", ".join("?" * len(metadata.tables[name].columns))
                connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
            connection.execute("COMMIT")


def fill_postgres(url: str, copier: RunCopier, runs: int) -> None:
    """Copy rows into a database."""
    with psycopg.connect(url, autocommit=True) as connection:
        for batch in iter_batches(copier, runs):
            with connection.transaction():
                for name, rows in batch.items():
                    columns = ", ".join(c.name for c in metadata.tables[name].columns)
                    statement = f"COPY {name} ({columns}) FROM STDIN"
                    with connection.cursor().copy(statement.encode()) as copy:
                        for row in rows:
                            copy.write_row(row)


async def fill_store(settings: Settings, url: str | None, runs: int) -> None:
    """Execute one run, and store copies of it."""
    engine = await open_engine(settings)
    try:
        context = await connect_account(engine, "minimax")
        run = await engine.runs.create(context, REQUEST)
        await engine.wait(context, run.id, 60)
        (job,) = await engine.core.store.find_rows("jobs", run_id=run.id)
        root = await engine.core.store.get_row("roots", run.id)
    finally:
        await engine.close(0)
    assert root is not None
    copier = RunCopier(job, root, runs)
    if url is None:
        fill_sqlite(settings.data_dir / "state.db", copier, runs)
    else:
        fill_postgres(url, copier, runs)


def index_filled(kind: str, database: Path, url: str | None, runs: int) -> None:
    """Index the texts of the runs that were inserted without an engine, and report the time."""
    clock, began = CpuClock(url), time.perf_counter()
    started = clock()
    if url is None:
        with closing(sqlite3.connect(database)) as local:
            index_missing(local)
            local.commit()
        used_s = clock() - started
    else:
        with psycopg.connect(url) as connection:
            index_jobs(connection)
            connection.commit()
            used_s = clock() - started  # before the session ends
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
    each_ms = 1000 * used_s / runs
    took = time.perf_counter() - began
    report(f"large_lists.{kind}.index", each_ms, "ms CPU", floor=0, limit=None, seconds=took)


def index_jobs(connection: psycopg.Connection[Any]) -> None:
    """Index the texts of all jobs that are not indexed."""
    jobs = connection.cursor("jobs")
    indexed = "SELECT 1 FROM input_texts WHERE input_texts.id = jobs.id"
    jobs.execute(f"SELECT id, run_id, doc FROM jobs WHERE NOT EXISTS ({indexed})".encode())
    while rows := jobs.fetchmany(500):
        index_texts(
            connection, "jobs", {key: {"run_id": run_id, "doc": doc} for key, run_id, doc in rows}
        )
    connection.execute(f"UPDATE jobs SET text_number = 1 WHERE EXISTS ({indexed})".encode())


async def read_first_page(engine: Engine, context: RequestContext, work_filter: WorkFilter) -> int:
    """Read the first page of a list, and count all of its runs if the page is full."""
    count = len(await engine.runs.list(context, PAGE, None, work_filter))
    if count == PAGE:
        await engine.runs.count(context, work_filter)
    return count


async def report_filters(
    kind: str, engine: Engine, context: RequestContext, rounds: int, clock: CpuClock
) -> bool:
    """Report the CPU time of a page by each filter; returns True if every limit is kept."""
    are_kept = True
    for name, work_filter in FILTERS.items():
        await read_first_page(engine, context, work_filter)
        took, count = [], 0
        for _ in range(rounds):
            started = clock()
            count = await read_first_page(engine, context, work_filter)
            took.append(1000 * (clock() - started))
        figure = f"large_lists.{kind}.{name}"
        floors = [0.0]
        are_kept &= report_rounds(
            figure, took, "ms CPU", floors=floors, limit=LIMIT_MS, found=count
        )
    return are_kept


async def measure_lists(kind: str, settings: Settings, url: str | None, runs: int) -> bool:
    """Fill a store and measure its lists."""
    started = time.perf_counter()
    await fill_store(settings, url, runs)
    report(f"large_lists.{kind}.fill", time.perf_counter() - started, "s", floor=0, limit=None)
    index_filled(kind, settings.data_dir / "state.db", url, runs)
    engine = await open_engine(settings)
    try:
        account, _ = await engine.accounts.open_local_account()
        context, clock = RequestContext(account.id), CpuClock(url)
        are_kept = await report_filters(kind, engine, context, ROUNDS, clock)
    finally:
        await engine.close(0)
    report_prune(kind, settings.data_dir, url, runs)
    return are_kept


def report_prune(kind: str, data_dir: Path, url: str | None, runs: int) -> None:
    """Report the CPU time of pruning the older half of the runs."""
    age = datetime.now(UTC) - BEGIN - timedelta(seconds=SECONDS_APART * runs / 2)
    opening = SqliteUpkeep.open(data_dir) if url is None else PostgresUpkeep.open(url)
    with opening as database, closing(BlobFolder(data_dir / "artifacts")) as place:
        clock, began = CpuClock(url), time.perf_counter()
        started = clock()
        pruned = prune_records(database, age, place).rows["jobs"]
        each_ms = 1000 * (clock() - started) / pruned
        took = time.perf_counter() - began
    figure = f"large_lists.{kind}.prune"
    report(figure, each_ms, "ms CPU", floor=0, limit=None, seconds=took, pruned=pruned)


async def measure_run_cpu(url: str | None, runs: int, *, has_indexes: bool) -> float:
    """Measure the CPU milliseconds of a run that does nothing."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        async with open_noop_engine(data, database=url) as engine:
            account, _ = await engine.accounts.open_local_account()
            context, clock = RequestContext(account.id), CpuClock(url)
            if not has_indexes:
                drop_indexes(data / "state.db", url)
            await run_many(engine, context, runs // 10)
            started = clock()
            await run_many(engine, context, runs)
            return 1000 * (clock() - started) / runs


def drop_indexes(database: Path, url: str | None) -> None:
    """Drop the indexes of filters; the index of texts stays."""
    names = ["ix_jobs_status", "ix_jobs_provider", "ix_jobs_capability", "ix_jobs_cost"]
    drops = [f"DROP INDEX {name}" for name in names]
    if url is not None:
        with psycopg.connect(url, autocommit=True) as connection:
            for drop in drops:
                connection.execute(drop.encode())
        return
    with closing(sqlite3.connect(database, isolation_level=None)) as local:
        for drop in drops:
            local.execute(drop)


async def main(runs: int, kinds: list[str], write_runs: int, write_rounds: int) -> bool:
    """Run the benchmark; returns True if every limit is kept."""
    are_kept = True
    for kind in kinds:
        with ExitStack() as stack:
            cluster = stack.enter_context(serve_postgres()) if kind == "postgresql" else None
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            ratios: list[list[float]] = [[], []]
            for _ in range(write_rounds):
                for has_indexes in (True, False):
                    url = cluster.create_database() if cluster else None
                    took = await measure_run_cpu(url, write_runs, has_indexes=has_indexes)
                    ratios[not has_indexes].append(took)
            figure = f"large_lists.{kind}.write"
            report_rounds(figure, ratios[0], "ms CPU", floors=ratios[1], limit=None)
            url = cluster.create_database() if cluster else None
            settings = Settings(data_dir=folder / "data", database=url, sandbox=True)
            if runs:
                are_kept &= await measure_lists(kind, settings, url, runs)
    return are_kept


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="benchmarks.large_lists", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), action="append")
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    kinds = options.database or ["sqlite", "postgresql"]
    if options.small:
        asyncio.run(main(3_000, ["sqlite"], 50, 1))
    else:
        sys.exit(0 if asyncio.run(main(options.runs, kinds, WRITE_RUNS, WRITE_ROUNDS)) else 1)
