"""A day of mixed work with vendor faults, accelerated: memory and files stay flat, no work is lost.

Run `python -m benchmarks.long_day`; `--small` only checks that it works. A simulated hour is a
fixed number of runs, workflows and tasks, 24 at once, and takes some seconds. All waits are
shortened (`SHORT`, in seconds, and the minimum age of unreferenced bytes before `prune` removes
them), so that breakers, leases and retries occur as often per hour as in real time, or more often.
Effects of real time alone are not accelerated, for example memory that an idle process would leak
in a day.

The vendors are the sandbox in a separate process, over real sockets: of all calls 8 % are answered
with 429, 5 % with 500, 2 % lose their connection, and all take 1 to 9 ms. In some hours one or two
vendors answer only 503. The encyclopedia has the latency but no faults, because no setting shortens
the wait of `research` for it. Data older than an hour is pruned every six hours.

At the end of each hour, when its work has ended, the process is measured without collecting garbage
first. The first six hours are warm-up.

- `memory` is the slope of the resident memory over the last 18 hours, by least squares, as a share
  of its mean (limit 1 % an hour); its floor is the slope of as many samples of the same engine when
  it is idle at the end.
- `files` is the maximum number of open files at the end of an hour after the warm-up, less the
  maximum in it (limit 0). `sockets` is the number of open sockets, less those before any work,
  after the time that pools keep a connection open (limit 0).
- `tasks` is the number of remaining asyncio tasks, less those of the engine before any work (limit
  0).
- `lost` is the number of accepted requests that did not end, with or without an error (limit 0).
- `database` is the maximum size of the database in the second half of the day over the maximum in
  the first half (limit 1.1); its floor is a database that does not grow.
"""

import asyncio
import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx

from benchmarks._cloud import connect_account, hosts, serve_cloud
from benchmarks._process import MB, folder_bytes, open_files, resident_mb, slope
from benchmarks._report import report
from toolkit.contract.runs import RunCreate
from toolkit.contract.tasks import TaskCreate
from toolkit.contract.workflows import WorkflowCreate
from toolkit.engine import Engine
from toolkit.engine.request_context import RequestContext
from toolkit.local import open_engine
from toolkit.settings import Settings

HOURS, WARM_UP, PRUNED_EVERY, AT_ONCE, PATIENCE_S, LOOKS = 24, 6, 6, 24, 60.0, 5
RUNS, WORKFLOWS, TASKS = 60, 12, 4
POOLED_S = 20.0  # longer than an unused connection is kept
VENDORS = ("minimax", "openai", "anthropic", "google", "elevenlabs")
SHORT: dict[str, Any] = {
    "lease_s": 2.0,
    "retry_base_s": 0.005,
    "retry_cap_s": 0.05,
    "breaker_cooldown_s": 0.05,
    "max_cooldown_wait_s": 5.0,
    "timeout_s": 10.0,
}
PRUNE = """
import json, sys
from datetime import timedelta
from pathlib import Path
from typing import Any
import toolkit.store.maintenance.prune as pruning
from toolkit.store.blob_places.folder import BlobFolder
from toolkit.store.sqlite.upkeep import SqliteUpkeep
pruning.MIN_UNREFERENCED_AGE_S = 1.0  # an hour, when time is not accelerated
folder, age = Path(sys.argv[1]), timedelta(seconds=float(sys.argv[2]))
with SqliteUpkeep.open(folder) as database:
    counts = pruning.prune_records(database, age, BlobFolder(folder / "artifacts"))
print(json.dumps(counts.rows))
"""
# Vendors that are down, by hour.
DOWN = {
    3: ("minimax",),
    8: ("openai",),
    11: ("elevenlabs",),
    13: ("anthropic", "google"),
    17: ("minimax", "openai"),
    22: ("google",),
}


@dataclass(slots=True)
class Look:
    """The measurements at the end of an hour."""

    memory_mb: float
    files: int
    sockets: int
    database_mb: float
    log_mb: float


@dataclass(slots=True)
class Day:
    """The results of a day."""

    ends: Counter[str] = field(default_factory=Counter)
    pruned: Counter[str] = field(default_factory=Counter)
    looks: list[Look] = field(default_factory=list)
    idle_mb: list[float] = field(default_factory=list)
    jobs: int = 0
    open_roots: int = 0
    tasks_left: int = 0
    sockets_left: int = 0
    took_s: float = 0.0


def weather(hour: int) -> list[dict[str, object]]:
    """Return the faults of an hour, in the sandbox's format."""
    down = [{"vendor": vendor, "status": 503} for vendor in DOWN.get(hour, ())]
    often: list[dict[str, object]] = [
        {"status": 429, "share": 0.08, "headers": {"retry-after-ms": "10"}},
        {"status": 500, "share": 0.05},
        {"mangle": "drop", "share": 0.02},
    ]
    return [
        {"vendor": "*", "delay_ms": 5.0, "spread_ms": 4.0},
        *down,
        *({"vendor": vendor, **fault} for vendor in VENDORS for fault in often),
    ]


def runs(hour: int, count: int) -> list[RunCreate]:
    """Make runs: mostly texts, some speech and research, and local card layouts."""
    requests = []
    for i in range(count):
        about = f"tea number {hour}-{i}"
        name, fields = "llm.generate", {"objective": f"One line on {about}"}
        if i % 10 == 3:
            name, fields = "speech.generate", {"text": f"This is {about}."}
        elif i % 10 == 6:
            name, fields = "research.gather", {"topic": "Tidal power"}
        elif i % 20 == 9:
            name, fields = "composition.layout", {"title": about, "format": "svg"}
        requests.append(RunCreate.model_validate({"name": name, "input": fields}))
    return requests


def workflows(hour: int, count: int) -> list[WorkflowCreate]:
    """Make workflows of research, parallel texts about it, and one spoken text."""
    requests = []
    for i in range(count):
        texts = [
            {
                "id": f"text{j}",
                "capability": "llm.generate",
                "input": {"objective": f"Paragraph {j} of report {hour}-{i} on tidal power"},
                "depends_on": ["facts"],
            }
            for j in range(4)
        ]
        spoken = {"id": "spoken", "capability": "speech.generate", "depends_on": ["text0"]}
        facts = {"id": "facts", "capability": "research.gather", "input": {"topic": "Tidal power"}}
        body = {"name": f"report {hour}-{i}", "max_retries": 2, "nodes": [facts, *texts, spoken]}
        requests.append(WorkflowCreate.model_validate(body))
    return requests


def tasks(hour: int, count: int) -> list[TaskCreate]:
    """Make objectives to plan, execute and review."""
    return [
        TaskCreate(objective=f"Research tidal power and write a short post {hour}-{i} about it")
        for i in range(count)
    ]


async def ended(engine: Engine, context: RequestContext, request: object) -> str:
    """Submit a request and wait for its end; return its kind with its status, or with `lost`."""
    match request:
        case RunCreate():
            kind, resource_id = "run", (await engine.runs.create(context, request)).id
        case WorkflowCreate():
            kind, resource_id = "workflow", (await engine.workflows.create(context, request)).id
        case TaskCreate():
            kind, resource_id = "task", (await engine.tasks.create(context, request)).id
        case _:
            raise TypeError(type(request).__name__)
    status, until = "", time.monotonic() + PATIENCE_S
    while status not in ("completed", "failed", "cancelled", "blocked"):
        if time.monotonic() > until:
            return f"{kind} lost"
        await engine.wait(context, resource_id, 5)
        match kind:
            case "run":
                status = (await engine.runs.get(context, resource_id)).status
            case "workflow":
                status = (await engine.workflows.get(context, resource_id)).status
            case _:
                status = (await engine.tasks.get(context, resource_id)).status
    return f"{kind} {status}"


async def hour_of(
    engine: Engine, context: RequestContext, requests: list[object], day: Day
) -> None:
    """Run the requests of an hour, `AT_ONCE` at once."""
    room = asyncio.Semaphore(AT_ONCE)

    async def run_request(request: object) -> None:
        async with room:
            day.ends[await ended(engine, context, request)] += 1

    async with asyncio.TaskGroup() as group:
        for request in requests:
            group.create_task(run_request(request))


async def look(data_dir: Path) -> Look:
    """Measure the process and the database now."""
    memory = resident_mb()
    seen = []
    for _ in range(LOOKS):
        # A checkpoint opens the database for a moment; a leaked file is open every time.
        seen.append(open_files())
        await asyncio.sleep(0.02)
    sockets, files = map(min, zip(*seen, strict=True))
    database = folder_bytes(data_dir, "state.db") / MB
    return Look(memory, files, sockets, database, folder_bytes(data_dir, "state.db-wal") / MB)


def count(data_dir: Path, what: str) -> int:
    """Count the rows of a table."""
    with closing(sqlite3.connect(data_dir / "state.db")) as db:
        return int(db.execute(f"SELECT count(*) FROM {what}").fetchone()[0])


def prune_data_dir(data_dir: Path, age: timedelta) -> Counter[str]:
    """Prune in a separate process, as an operator would; return the removed rows by table."""
    command = [sys.executable, "-c", PRUNE, str(data_dir), str(age.total_seconds())]
    process = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    rows: dict[str, int] = json.loads(process.stdout)
    return Counter(rows)


async def count_leftover_tasks(base: int, seconds: float) -> int:
    """Return the number of asyncio tasks above a base, after waiting for tasks that are ending."""
    until = time.monotonic() + seconds
    while (excess := len(asyncio.all_tasks()) - base) > 0 and time.monotonic() < until:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    return excess


async def live(folder: Path, url: str, hours: int, size: float) -> Day:
    """Run a day; `size` is a factor on the requests of each hour."""
    day = Day()
    settings = Settings(
        data_dir=folder,
        sandbox=True,
        vendors=hosts(url),
        encyclopedia_url=f"{url}/encyclopedia",
        **SHORT,
    )
    engine = await open_engine(settings)
    try:
        context = await connect_account(engine, *VENDORS)
        base, (sockets, _) = len(asyncio.all_tasks()), open_files()
        began = [time.monotonic()]
        async with httpx.AsyncClient(base_url=f"{url}/_sandbox", trust_env=False) as control:
            for hour in range(1, hours + 1):
                (await control.delete("/faults")).raise_for_status()
                await control.delete("/calls")
                for fault in weather(hour):
                    body = {"times": None, **fault}
                    (await control.post("/faults", json=body)).raise_for_status()
                requests: list[object] = [
                    *runs(hour, int(RUNS * size)),
                    *workflows(hour, max(1, int(WORKFLOWS * size))),
                    *tasks(hour, max(1, int(TASKS * size))),
                ]
                await hour_of(engine, context, requests, day)
                if hour % PRUNED_EVERY == 0:
                    age = timedelta(seconds=time.monotonic() - began[-1])
                    day.pruned += await asyncio.to_thread(prune_data_dir, folder, age)
                began.append(time.monotonic())
                day.looks.append(await look(folder))
                if "--trace" in sys.argv:
                    print(day.looks[-1], file=sys.stderr)
        day.took_s = time.monotonic() - began[0]
        day.tasks_left = await count_leftover_tasks(base, 5)
        for _ in range(hours - WARM_UP):
            await asyncio.sleep(POOLED_S / (hours - WARM_UP))
            day.idle_mb.append(resident_mb())
        day.sockets_left = open_files()[0] - sockets
        day.jobs = count(folder, "jobs") + day.pruned["jobs"]
        day.open_roots = count(folder, "roots WHERE open")
    finally:
        await engine.close(0)
    return day


def report_day(day: Day, hours: int) -> bool:
    """Print the figures of a day; returns True if all limits are kept."""
    name = "long_day"
    warm = min(WARM_UP, hours // 2)
    first, later = day.looks[:warm], day.looks[warm:]
    memory = [seen.memory_mb for seen in later]
    mean = statistics.mean(memory)
    are_kept = report(
        f"{name}.memory",
        100 * slope(memory) / mean,
        "% per hour",
        floor=100 * slope(day.idle_mb) / mean,
        limit=1.0,
        mb_after_warm_up=round(first[-1].memory_mb, 1),
        mb_at_the_end=round(memory[-1], 1),
        min=round(min(memory), 1),
        max=round(max(memory), 1),
    )
    before, after = max(seen.files for seen in first), [seen.files for seen in later]
    are_kept &= report(
        f"{name}.files",
        max(after) - before,
        "more files",
        floor=0,
        limit=0,
        min=min(after),
        max=max(after),
        in_warm_up=before,
    )
    are_kept &= report(
        f"{name}.sockets",
        day.sockets_left,
        "sockets left",
        floor=0,
        limit=0,
        most_at_the_end_of_an_hour=max(seen.sockets for seen in day.looks),
        most_in_warm_up=max(seen.sockets for seen in first),
    )
    are_kept &= report(f"{name}.tasks", day.tasks_left, "asyncio tasks left", floor=0, limit=0)
    lost = sum(times for end, times in day.ends.items() if end.endswith("lost"))
    are_kept &= report(
        f"{name}.lost",
        lost + day.open_roots,
        "requests",
        floor=0,
        limit=0,
        ends=dict(sorted(day.ends.items())),
        jobs=day.jobs,
        hours=hours,
        seconds=round(day.took_s, 1),
        times_real_time=round(hours * 3600 / day.took_s),
    )
    sizes = [seen.database_mb + seen.log_mb for seen in day.looks]
    half = len(sizes) // 2
    are_kept &= report(
        f"{name}.database",
        max(sizes[half:]) / max(sizes[:half]),
        "x its size in the first half",
        floor=1,
        limit=1.1,
        mb=round(max(sizes), 1),
        of_it_log_mb=round(max(seen.log_mb for seen in day.looks), 1),
        pruned_jobs=day.pruned["jobs"],
    )
    return are_kept


async def main(hours: int = HOURS, size: float = 1.0) -> bool:
    """Run a day and report its figures; returns True if all limits are kept."""
    with tempfile.TemporaryDirectory() as folder, serve_cloud() as url:
        return report_day(await live(Path(folder), url, hours, size), hours)


if __name__ == "__main__":
    if "--small" in sys.argv:
        asyncio.run(main(2, 0.05))
    else:
        sys.exit(0 if asyncio.run(main()) else 1)
