"""PostgreSQL as the store: durable nodes and runs, compared with SQLite and DBOS.

Run `python -m benchmarks.postgres`; `--small` only checks that it works. A PostgreSQL cluster is
started for it, whose commits wait for the disk (`tests/_postgres.py`); SQLite's commits wait, too
(durability `full`). The peer is DBOS on the same cluster (`_dbos.py`), if `PEERS` names a Python
that has it (`_peers.py`). All measurements take turns.

Several engines run as separate processes on one database, with 32 runs at once each. They share the
cores of this machine with PostgreSQL and with each other: the figure shows that they do not block
each other, not the throughput of several machines. `run_cpu` is the CPU time of the engine itself
for such a run.

`takeover` is the time over the lease that the killed engine held (`lease_s`), which is the minimum.
`limits` is the measurement of `shared_limits`, with four servers on one database.
"""

import asyncio
import json
import math
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import psycopg

from benchmarks import shared_limits
from benchmarks._noop import graph, open_noop_engine, run
from benchmarks._peers import find_peer
from benchmarks._process import Clock
from benchmarks._report import report_rounds
from benchmarks.dag_overhead import shapes
from tests._postgres import PostgresCluster, find_postgres
from toolkit.contract.base import format_rfc3339, now
from toolkit.contract.runs import RunCreate
from toolkit.engine import Engine
from toolkit.engine.request_context import RequestContext
from toolkit.settings import Settings
from toolkit.store import AppendEvent, Lease, Store

ROUNDS, NODES, RUNS, AT_ONCE, ENGINES = 3, 1_000, 1_500, 32, (1, 2, 4)
NOTICES, NAP_S, NAPS = 100, 0.05, 2_000
CLAIM_PAUSE_S = 0.07  # notices within this time after another are handled together
LEASE_S: float = Settings.model_fields["lease_s"].default


@contextmanager
def serve_postgres() -> Iterator[PostgresCluster]:
    """Run a cluster until the block ends."""
    programs = find_postgres()
    if programs is None:
        raise SystemExit("PostgreSQL is not installed; install it to run this benchmark.")
    cluster = PostgresCluster(programs, synced=True)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.remove()


@asynccontextmanager
async def _open_durable_engine(
    database: str | None,
) -> AsyncIterator[tuple[Engine, RequestContext]]:
    """Open an engine on a database, or on a data directory, with an account."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        async with open_noop_engine(data, database=database, durability="full") as engine:
            account, _ = await engine.accounts.open_local_account()
            yield engine, RequestContext(account.id)


async def measure_node_ms(shape: str, nodes: int, database: str | None, clock: Clock) -> float:
    """Measure the milliseconds of a durable no-op node of one workflow, by a clock."""
    async with _open_durable_engine(database) as (engine, context):
        await run(engine, context, graph(shapes(100)[shape]))
        _, took = await run(engine, context, graph(shapes(nodes)[shape]), clock)
        return 1000 * took / nodes


async def run_many(engine: Engine, context: RequestContext, runs: int) -> None:
    """Execute runs that do nothing, `AT_ONCE` at once."""
    request = RunCreate(target="capability", name="bench.nap", input={})
    numbers = iter(range(runs))

    async def call_again() -> None:
        for _ in numbers:
            run = await engine.runs.create(context, request)
            record = await engine.wait(context, run.id, 60)
            assert record is not None
            assert record.status == "completed", record.error

    await asyncio.gather(*[call_again() for _ in range(AT_ONCE)])


async def measure_run_cpu_ms(runs: int, database: str | None) -> float:
    """Measure the CPU milliseconds of the engine itself for a run that does nothing."""
    async with _open_durable_engine(database) as (engine, context):
        await run_many(engine, context, AT_ONCE)
        began = time.process_time()
        await run_many(engine, context, runs)
        return 1000 * (time.process_time() - began) / runs


async def run_as_engine(database: str | None, runs: int) -> None:
    """Run as one of several engines: print `ready`, wait for a line on stdin, then execute runs."""
    async with _open_durable_engine(database) as (engine, context):
        await run_many(engine, context, AT_ONCE)
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        await run_many(engine, context, runs)
        print("done", flush=True)


@contextmanager
def start_engine(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """Run an engine in a separate process until the block ends."""
    command = [sys.executable, "-m", "benchmarks.postgres", *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _await_line(process: "subprocess.Popen[str]", line: str) -> None:
    assert process.stdout is not None
    assert process.stdout.readline().strip() == line


def measure_runs_per_s(engines: int, runs: int, database: str | None) -> float:
    """Measure the runs per second of several engines on one database, in total."""
    share = runs // engines
    with ExitStack() as stack:
        arguments = ("engine", database or "", str(share))
        processes = [stack.enter_context(start_engine(*arguments)) for _ in range(engines)]
        for process in processes:
            _await_line(process, "ready")
        started = time.monotonic()
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in processes:
            _await_line(process, "done")
        return engines * share / (time.monotonic() - started)


async def measure_notice_ms(database: str, notices: int) -> list[float]:
    """Measure the milliseconds from an event's write in one store until another store knows it."""
    with tempfile.TemporaryDirectory() as folder:
        writer = await Store.open(Path(folder) / "one", database=database)
        reader = await Store.open(Path(folder) / "two", database=database)
        root, lease = writer.leases.build_root("run_notice", "run", "acc")
        await writer.write([root])
        took = []
        for number in range(notices):
            waiting = asyncio.ensure_future(
                reader.wait_for_event("run_notice", after=number, timeout_s=30)
            )
            await asyncio.sleep(0.02)  # until it waits
            event = AppendEvent("run_notice", "run.progress", {}, format_rfc3339(now()))
            began = time.perf_counter()
            await writer.write([event], lease=lease)
            await waiting
            took.append(1000 * (time.perf_counter() - began))
        await writer.close()
        await reader.close()
    return took


async def measure_bare_notice_ms(database: str, notices: int) -> list[float]:
    """Measure the milliseconds from a row's write on one connection until another knows it."""
    took = []
    async with (
        await psycopg.AsyncConnection.connect(database, autocommit=True) as listening,
        await psycopg.AsyncConnection.connect(database, autocommit=True) as sending,
    ):
        await sending.execute("CREATE TABLE bare (number integer)")
        await listening.execute("LISTEN bare")
        notifications = listening.notifies()
        for number in range(notices):
            hearing = asyncio.ensure_future(anext(notifications))
            await asyncio.sleep(0.02)  # until it listens
            began = time.perf_counter()
            async with sending.transaction():
                await sending.execute("INSERT INTO bare VALUES (%s)", [number])
                await sending.execute("NOTIFY bare")
            await hearing
            took.append(1000 * (time.perf_counter() - began))
        await notifications.aclose()
    return took


async def measure_claims_ms(database: str, claims: int) -> list[float]:
    """Measure the milliseconds from the release of work until another engine has claimed it.

    The time runs from before the release to the first step of the work: two commits, and a notice
    between them.
    """
    took: list[float] = []
    async with open_noop_store(database) as first:
        with tempfile.TemporaryDirectory() as folder:
            async with open_noop_engine(Path(folder), database=database) as second:
                claimed = asyncio.Event()

                async def work(_: Lease) -> None:
                    took.append(1000 * (time.perf_counter() - began))
                    claimed.set()

                second.leases.register_handler("run", work)
                for number in range(claims):
                    root, lease = first.leases.build_root(f"run_{number:04}", "run", "acc")
                    await first.write([root])
                    await asyncio.sleep(CLAIM_PAUSE_S)  # until the engine looks again
                    claimed.clear()
                    began = time.perf_counter()
                    await first.leases.release(lease, is_done=False, is_announced=True)
                    await claimed.wait()
    return took


@asynccontextmanager
async def open_noop_store(database: str) -> AsyncIterator[Store]:
    """Open a store without an engine, as on another machine."""
    with tempfile.TemporaryDirectory() as folder:
        store = await Store.open(Path(folder), database=database)
        try:
            yield store
        finally:
            await store.close()


async def nap_as_engine(database: str, lease_s: float) -> None:
    """Run as an engine that works on one long workflow, until it is killed."""
    with tempfile.TemporaryDirectory() as folder:
        async with open_noop_engine(
            Path(folder), database=database, lease_s=lease_s, max_nodes=NAPS
        ) as engine:
            account, _ = await engine.accounts.open_local_account()
            chain = shapes(NAPS)["chain"]
            seconds = dict.fromkeys(chain, NAP_S)
            workflow = await engine.workflows.create(
                RequestContext(account.id), graph(chain, seconds)
            )
            print(workflow.id, flush=True)
            await asyncio.Event().wait()


async def measure_takeover_s(database: str, lease_s: float) -> float:
    """Measure the seconds from the kill of an engine until another engine resumes its work."""
    with (
        tempfile.TemporaryDirectory() as folder,
        start_engine("nap", database, str(lease_s)) as first,
    ):
        assert first.stdout is not None
        workflow_id = first.stdout.readline().strip()
        async with open_noop_engine(
            Path(folder), database=database, lease_s=lease_s, max_nodes=NAPS
        ) as second:
            store = second.core.store
            await store.wait_for_event(workflow_id, after=20, timeout_s=30)
            first.send_signal(signal.SIGKILL)
            first.wait()
            killed = time.monotonic()
            last = await store.get_last_event_number(workflow_id)
            await store.wait_for_event(workflow_id, after=last, timeout_s=120)
            return time.monotonic() - killed


def measure_peer(python: str, url: str, steps: int, runs: int) -> dict[str, float]:
    """Measure DBOS: `step_ms` of a chain, and `runs_per_s`."""
    program = [python, str(Path(__file__).with_name("_dbos.py"))]
    request = json.dumps({"url": url, "steps": steps, "runs": runs})
    process = subprocess.run(program, check=True, input=request, stdout=subprocess.PIPE, text=True)
    answer: dict[str, float] = json.loads(process.stdout)
    return answer


def report_work(
    cluster: PostgresCluster,
    nodes: int,
    runs: int,
    engines: Sequence[int],
    rounds: int,
    clock: Clock,
) -> None:
    """Measure and report nodes and runs on PostgreSQL, on SQLite and by DBOS, in turns."""
    ours: dict[str, list[float]] = {"chain": [], "layered": []}
    floors: dict[str, list[float]] = {"chain": [], "layered": []}
    totals: dict[int, list[float]] = {many: [] for many in engines}
    sqlite, cpu, sqlite_cpu, steps, flows = [], [], [], [], []
    dbos = find_peer("dbos")
    for _ in range(rounds):
        for shape in ours:
            floors[shape].append(asyncio.run(measure_node_ms(shape, nodes, None, clock)))
            url = cluster.create_database()
            ours[shape].append(asyncio.run(measure_node_ms(shape, nodes, url, clock)))
        sqlite_cpu.append(asyncio.run(measure_run_cpu_ms(runs, None)))
        cpu.append(asyncio.run(measure_run_cpu_ms(runs, cluster.create_database())))
        if engines:
            sqlite.append(measure_runs_per_s(1, runs, None))
        for many in engines:
            totals[many].append(measure_runs_per_s(many, runs, cluster.create_database()))
        if dbos is not None:
            theirs = measure_peer(dbos, cluster.create_database(), nodes, runs)
            steps.append(theirs["step_ms"])
            flows.append(theirs["runs_per_s"])
    for shape, values in ours.items():
        peers = steps if shape == "chain" else ()
        report_rounds(
            f"postgres.node.{shape}", values, "ms/node", floors=floors[shape], limit=None,
            peers=peers, peer="DBOS",
        )  # fmt: skip
    report_rounds("postgres.run_cpu", cpu, "ms/run", floors=sqlite_cpu, limit=None)
    for many, values in totals.items():
        report_rounds(
            f"postgres.runs.{many}", values, "runs/s", floors=sqlite, limit=None,
            peers=flows, peer="DBOS", engines=many,
        )  # fmt: skip


def report_notices(cluster: PostgresCluster, notices: int) -> None:
    """Measure and report the time until another engine knows of a commit."""
    url = cluster.create_database()
    took_ms = asyncio.run(measure_notice_ms(url, notices))
    bare = asyncio.run(measure_bare_notice_ms(url, notices))
    report_rounds("postgres.notice", took_ms, "ms", floors=bare, limit=None)
    took_ms = asyncio.run(measure_claims_ms(url, notices))
    p99 = sorted(took_ms)[math.ceil(0.99 * len(took_ms)) - 1]
    report_rounds("postgres.claim", took_ms, "ms", floors=bare, limit=None, p99=round(p99, 3))


def report_takeovers(cluster: PostgresCluster, takeovers: int, lease_s: float) -> None:
    """Measure and report the time until the work of a killed engine is resumed."""
    took_s = [
        asyncio.run(measure_takeover_s(cluster.create_database(), lease_s))
        for _ in range(takeovers)
    ]
    report_rounds("postgres.takeover", took_s, "s", floors=[lease_s], limit=None)


def main(
    nodes: int = NODES,
    runs: int = RUNS,
    engines: Sequence[int] = ENGINES,
    rounds: int = ROUNDS,
    notices: int = NOTICES,
    takeovers: int = ROUNDS,
    *,
    lease_s: float = LEASE_S,
    limits_s: float = shared_limits.SECONDS,
    clock: Clock = time.monotonic,
) -> int:
    """Run the benchmark; the exit code is 1 if a vendor's limit is exceeded.

    Args:
        nodes: number of nodes of a workflow.
        runs: number of runs in each turn, of all engines together.
        engines: numbers of engines on one database, one per turn.
        rounds: number of rounds.
        notices: number of commits that another engine waits for.
        takeovers: number of engines that are killed; 0 skips this measurement.
        lease_s: lease of the killed engines, in seconds.
        limits_s: seconds for which servers call a vendor with a limit; 0 skips this measurement.
        clock: clock that measures nodes.
    """
    is_kept = True
    with serve_postgres() as cluster:
        report_work(cluster, nodes, runs, engines, rounds, clock)
        report_notices(cluster, notices)
        if takeovers:
            report_takeovers(cluster, takeovers, lease_s)
        if limits_s:
            is_kept = shared_limits.report_vendor(
                "postgres.limits", shared_limits.ENGINES, limits_s, cluster.create_database()
            )
    return 0 if is_kept else 1


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--small"]:
            sys.exit(main(20, 64, (1, 2), 1, 5, 0, limits_s=1))
        case ["engine", database, runs]:
            asyncio.run(run_as_engine(database or None, int(runs)))
        case ["nap", database, lease_s]:
            asyncio.run(nap_as_engine(database, float(lease_s)))
        case _:
            sys.exit(main())
