"""What two workers of `toolkit serve` do more than one, on a data directory and on PostgreSQL.

Run `python -m benchmarks.workers`, a minute. As in `gateway`, callers, 64 of them, have runs of
`llm.generate` made at a vendor without latency, each another one, and wait for them. One worker and
two take turns; the figure is the ratio of their runs a second, and is to be at least 1.7.

That takes four cores: two for the workers, and the others for the vendor, the callers and the
database. On fewer, each worker gets 0.4 of a core (`_slow_core.py`), so that the others have as
much beside it as there; where that cannot be done, it says so, and measures nothing.
"""

import asyncio
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

from benchmarks._process import list_children, spread
from benchmarks._raw_http import send_load, start_module
from benchmarks._report import report_share
from benchmarks._server import serve_toolkit
from benchmarks._slow_core import can_slow_down, slow_down
from benchmarks.gateway import Service
from benchmarks.postgres import serve_postgres
from tests._postgres import find_postgres

ROUNDS, SECONDS, CALLERS = 5, 4.0, 64
WORKERS = (1, 2)
LEAST_RATIO = 1.7
CORES, SHARE = 4, 0.4


@contextmanager
def open_workers(count: int, vendor_port: int, database: str | None) -> Iterator[Service]:
    """Serve with so many workers, each on a core of its own or on a slow one."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        settings = {} if database is None else {"database": database}
        urls = {("openai", "api"): f"http://127.0.0.1:{vendor_port}/v1"}
        options = ("--workers", str(count))
        url, pid = stack.enter_context(
            serve_toolkit(folder / "data", urls, options=options, **settings)
        )
        service = Service(url, pid)
        workers = [pid] if count == 1 else list_children(pid)
        assert len(workers) == count
        is_slow = (os.cpu_count() or 1) < CORES
        stack.enter_context(slow_down(workers, SHARE) if is_slow else nullcontext())
        yield service


async def measure_runs_per_s(service: Service, seconds: float) -> float:
    """Measure how many runs end in a second."""
    _, per_s = await send_load(
        service.port, service.make_request, CALLERS, seconds, expected=service.expected
    )
    return per_s


def report_workers(name: str, rounds: int, seconds: float, databases: list[str | None]) -> bool:
    """Measure one worker and two in turns, and print the ratio; true if it is kept.

    Args:
        name: of the figure.
        rounds: how often each is measured.
        seconds: how long each time.
        databases: that of one worker, and that of two; none where each has a data directory.
    """
    with ExitStack() as stack:
        vendor_port, _ = stack.enter_context(start_module("benchmarks._fake_vendor"))
        services = [
            stack.enter_context(open_workers(count, vendor_port, database))
            for count, database in zip(WORKERS, databases, strict=True)
        ]
        for service in services:  # what is done first is imported first
            asyncio.run(measure_runs_per_s(service, seconds / 2))
        rates = [
            [asyncio.run(measure_runs_per_s(service, seconds)) for service in services]
            for _ in range(rounds)
        ]
    ratios = [many / one for one, many in rates]
    one, many = (statistics.median(each) for each in zip(*rates, strict=True))
    return report_share(
        name,
        statistics.median(ratios),
        at_least=LEAST_RATIO,
        unit="x one worker",
        per_s=round(many),
        one_per_s=round(one),
        **spread(ratios),
    )


def main(rounds: int = ROUNDS, seconds: float = SECONDS) -> int:
    """Measure; exit code 1 if a limit is not kept."""
    if (os.cpu_count() or 1) < CORES and not can_slow_down():
        told = {"figure": "workers", "skipped": f"fewer than {CORES} cores, and none can be slower"}
        print(json.dumps(told), flush=True)
        return 0
    kept = report_workers("workers.sqlite", rounds, seconds, [None, None])
    if find_postgres() is not None:
        with serve_postgres() as cluster:
            databases: list[str | None] = [cluster.create_database() for _ in WORKERS]
            kept &= report_workers("workers.postgresql", rounds, seconds, databases)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
