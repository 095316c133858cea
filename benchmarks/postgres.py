"""PostgreSQL as the store: durable nodes and runs, beside SQLite and DBOS, and several engines.

Run `python -m benchmarks.postgres`; `--small` only shows that it works. A cluster of PostgreSQL is
started for it, whose commits wait for the disk as anywhere (`tests/_postgres.py`); SQLite's do, too
(durability `full`). The peer is DBOS on the same cluster (`_dbos.py`), where `PEERS` names a Python
that has it (`_peers.py`). All take turns.

Engines are processes of their own on one database, 32 runs at once each. They share this machine's
cores with PostgreSQL and with each other: the figure says that they do not hold each other up, not
what so many machines would do.
"""

import asyncio
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg

from benchmarks._noop import graph, open_noop_engine, run
from benchmarks._peers import find_peer
from benchmarks._process import spread
from benchmarks._report import report, report_rounds
from benchmarks.dag_overhead import shapes
from tests._postgres import PostgresCluster, find_postgres
from toolkit.contract.base import format_rfc3339, now
from toolkit.contract.runs import RunCreate
from toolkit.engine import Engine
from toolkit.engine.request_context import RequestContext
from toolkit.store import AppendEvent, Store

ROUNDS, NODES, RUNS, AT_ONCE, ENGINES = 3, 1_000, 1_500, 32, (1, 2, 4)
NOTICES, NAP_S, NAPS = 100, 0.05, 2_000


@contextmanager
def serve_postgres() -> Iterator[PostgresCluster]:
    """Run a cluster until the block ends."""
    programs = find_postgres()
    if programs is None:
        raise SystemExit("PostgreSQL is not installed.")
    cluster = PostgresCluster(programs, synced=True)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.remove()


async def measure_node_ms(shape: str, nodes: int, database: str | None) -> float:
    """Measure the milliseconds of a durable no-op node of one workflow."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        async with open_noop_engine(data, database=database, durability="full") as engine:
            account, _ = await engine.accounts.open_local_account()
            context = RequestContext(account.id)
            await run(engine, context, graph(shapes(100)[shape]))
            _, took = await run(engine, context, graph(shapes(nodes)[shape]))
    return 1000 * took / nodes


async def run_many(engine: Engine, context: RequestContext, runs: int) -> None:
    """Carry out so many runs that do nothing, some at once."""
    request = RunCreate(target="capability", name="bench.nap", input={})
    left = iter(range(runs))

    async def call_again() -> None:
        for _ in left:
            made = await engine.runs.create(context, request)
            ended = await engine.wait(context, made.id, 60)
            assert ended is not None
            assert ended.status == "completed", ended.error

    await asyncio.gather(*[call_again() for _ in range(AT_ONCE)])


async def run_as_engine(database: str | None, runs: int) -> None:
    """Be one of several engines: say when it is ready, then carry out runs when it is told to."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        async with open_noop_engine(data, database=database, durability="full") as engine:
            account, _ = await engine.accounts.open_local_account()
            context = RequestContext(account.id)
            await run_many(engine, context, AT_ONCE)
            print("ready", flush=True)
            await asyncio.to_thread(sys.stdin.readline)
            await run_many(engine, context, runs)
            print("done", flush=True)


@contextmanager
def start_engine(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """Run an engine in a process of its own until the block ends."""
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
    """Measure how many runs several engines on one database end in a second, together."""
    each = runs // engines
    with ExitStack() as stack:
        arguments = ("engine", database or "", str(each))
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
        return engines * each / (time.monotonic() - started)


async def measure_notice_ms(database: str, notices: int) -> list[float]:
    """Measure the milliseconds from an event's commit by one store until another one knows."""
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
            await writer.write([event], lease=lease)
            committed = time.perf_counter()
            await waiting
            took.append(1000 * (time.perf_counter() - committed))
        await writer.close()
        await reader.close()
    return took


async def measure_bare_notice_ms(database: str, notices: int) -> list[float]:
    """Measure the milliseconds of a bare NOTIFY, from one connection to another."""
    took = []
    async with (
        await psycopg.AsyncConnection.connect(database, autocommit=True) as listening,
        await psycopg.AsyncConnection.connect(database, autocommit=True) as telling,
    ):
        await listening.execute("LISTEN bare")
        heard = listening.notifies()
        for _ in range(notices):
            hearing = asyncio.ensure_future(anext(heard))
            await asyncio.sleep(0.02)  # until it listens
            began = time.perf_counter()
            await telling.execute("NOTIFY bare")
            await hearing
            took.append(1000 * (time.perf_counter() - began))
        await heard.aclose()
    return took


async def nap_as_engine(database: str) -> None:
    """Be an engine that works on one long workflow, until it is killed."""
    with tempfile.TemporaryDirectory() as folder:
        async with open_noop_engine(Path(folder), database=database, max_nodes=NAPS) as engine:
            account, _ = await engine.accounts.open_local_account()
            chain = shapes(NAPS)["chain"]
            seconds = dict.fromkeys(chain, NAP_S)
            made = await engine.workflows.create(RequestContext(account.id), graph(chain, seconds))
            print(made.id, flush=True)
            await asyncio.Event().wait()


async def measure_takeover_s(database: str) -> float:
    """Measure the seconds from the kill of an engine until another one goes on with its work."""
    with tempfile.TemporaryDirectory() as folder, start_engine("nap", database) as first:
        assert first.stdout is not None
        workflow_id = first.stdout.readline().strip()
        async with open_noop_engine(Path(folder), database=database, max_nodes=NAPS) as second:
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
    asked = json.dumps({"url": url, "steps": steps, "runs": runs})
    done = subprocess.run(program, check=True, input=asked, stdout=subprocess.PIPE, text=True)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def main(
    nodes: int = NODES,
    runs: int = RUNS,
    engines: Sequence[int] = ENGINES,
    rounds: int = ROUNDS,
    notices: int = NOTICES,
    takeovers: int = ROUNDS,
) -> int:
    """Measure all of it, in turns; nothing of it has a limit."""
    with serve_postgres() as cluster:
        ours: dict[str, list[float]] = {"chain": [], "layered": []}
        floors: dict[str, list[float]] = {"chain": [], "layered": []}
        totals: dict[int, list[float]] = {many: [] for many in engines}
        sqlite, steps, flows = [], [], []
        dbos = find_peer("dbos")
        for _ in range(rounds):
            for shape in ours:
                floors[shape].append(asyncio.run(measure_node_ms(shape, nodes, None)))
                url = cluster.create_database()
                ours[shape].append(asyncio.run(measure_node_ms(shape, nodes, url)))
            sqlite.append(measure_runs_per_s(1, runs, None))
            for many in engines:
                totals[many].append(measure_runs_per_s(many, runs, cluster.create_database()))
            if dbos is not None:
                theirs = measure_peer(dbos, cluster.create_database(), nodes, runs)
                steps.append(theirs["step_ms"])
                flows.append(theirs["runs_per_s"])
        for shape, found in ours.items():
            peers = steps if shape == "chain" else ()
            report_rounds(
                f"postgres.node.{shape}", found, "ms/node", floors=floors[shape], limit=None,
                peers=peers, peer="DBOS",
            )  # fmt: skip
        for many, found in totals.items():
            report_rounds(
                f"postgres.runs.{many}", found, "runs/s", floors=sqlite, limit=None,
                peers=flows, peer="DBOS", engines=many,
            )  # fmt: skip
        url = cluster.create_database()
        notice = asyncio.run(measure_notice_ms(url, notices))
        bare = asyncio.run(measure_bare_notice_ms(url, notices))
        report_rounds("postgres.notice", notice, "ms", floors=bare, limit=None)
        if takeovers:
            found = [
                asyncio.run(measure_takeover_s(cluster.create_database())) for _ in range(takeovers)
            ]
            value = statistics.median(found)
            report("postgres.takeover", value, "s", floor=0.0, limit=None, **spread(found, 1))
    return 0


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--small"]:
            sys.exit(main(20, 64, (1, 2), 1, 5, 0))
        case ["engine", database, runs]:
            asyncio.run(run_as_engine(database or None, int(runs)))
        case ["nap", database]:
            asyncio.run(nap_as_engine(database))
        case _:
            sys.exit(main())
