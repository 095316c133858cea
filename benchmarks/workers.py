"""The throughput of two workers of `toolkit serve` over one, with SQLite and PostgreSQL.

Run `python -m benchmarks.workers`; it takes four minutes. As in `gateway`, callers create runs of
`llm.generate` at a vendor without latency, each with a new input, and wait for them.

Two workers and their load need four cores, and this machine may have fewer. So the floor is twice
the throughput of one worker as measured on this machine: two servers that share nothing, each with
its own data directory or database, under half of the load each at the same time. Together they may
have as many calls in flight as the two workers, which share one connection and its limit. The
figure is the throughput of two workers as a multiple of one worker's: 2 if sharing costs nothing.
Its minimum is 1.7.
"""

import asyncio
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks._process import spread
from benchmarks._raw_http import send_load, start_module
from benchmarks._report import report_share
from benchmarks._server import serve_toolkit
from benchmarks.gateway import Service
from benchmarks.postgres import serve_postgres
from tests._postgres import find_postgres

ROUNDS, SECONDS, CALLERS = 9, 4.0, 64
WORKERS = 2
CALLS_IN_FLIGHT = 16
LEAST_RATIO = 1.7


@contextmanager
def open_server(workers: int, vendor_port: int, database: str | None) -> Iterator[Service]:
    """Serve with several workers, on a database or a data directory."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {"max_concurrent_calls": str(workers * CALLS_IN_FLIGHT)}
        if database is not None:
            settings["database"] = database
        urls = {("openai", "api"): f"http://127.0.0.1:{vendor_port}/v1"}
        options = ("--workers", str(workers))
        with serve_toolkit(Path(folder) / "data", urls, options=options, **settings) as served:
            yield Service(*served)


async def measure_runs_per_s(services: Sequence[Service], seconds: float) -> float:
    """Measure the total runs per second of several servers, which share the callers."""
    loads = [
        send_load(
            service.port,
            service.make_request,
            CALLERS // len(services),
            seconds,
            expected=service.expected,
        )
        for service in services
    ]
    return sum(per_s for _, per_s in await asyncio.gather(*loads))


def report_workers(name: str, rounds: int, seconds: float, databases: Sequence[str | None]) -> bool:
    """Measure workers and servers in turns, and report the ratio; returns True if it suffices.

    Args:
        name: name of the figure.
        rounds: number of measurements of each.
        seconds: duration of each measurement.
        databases: URL of the workers' database, and of each server's; None for a data directory.
    """
    with ExitStack() as stack:
        vendor_port, _ = stack.enter_context(start_module("benchmarks._fake_vendor"))
        shared, *apart = databases
        together = [stack.enter_context(open_server(WORKERS, vendor_port, shared))]
        alone = [stack.enter_context(open_server(1, vendor_port, database)) for database in apart]
        for services in (together, alone):  # so that imports are not measured
            asyncio.run(measure_runs_per_s(services, seconds / 2))
        rates = [
            [asyncio.run(measure_runs_per_s(services, seconds)) for services in (together, alone)]
            for _ in range(rounds)
        ]
    ratios = [WORKERS * ours / theirs for ours, theirs in rates]
    ours, theirs = (statistics.median(rates_of) for rates_of in zip(*rates, strict=True))
    return report_share(
        name,
        statistics.median(ratios),
        at_least=LEAST_RATIO,
        unit="x one worker",
        per_s=round(ours),
        apart_per_s=round(theirs),
        callers=CALLERS,
        **spread(ratios),
    )


def main(rounds: int = ROUNDS, seconds: float = SECONDS) -> int:
    """Run the benchmark; the exit code is 1 if a figure misses its limit."""
    count = 1 + WORKERS
    are_kept = report_workers("workers.sqlite", rounds, seconds, [None] * count)
    if find_postgres() is not None:
        with serve_postgres() as cluster:
            databases = [cluster.create_database() for _ in range(count)]
            are_kept &= report_workers("workers.postgresql", rounds, seconds, databases)
    return 0 if are_kept else 1


if __name__ == "__main__":
    sys.exit(main())
