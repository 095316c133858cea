"""CPU time of a row of `client.map`, next to the same runs by the async client.

Run `python -m benchmarks.map`. The engine is in this process, and the vendor (`_fake_vendor.py`),
which has no latency, is a separate process. Rows and runs are measured in turns, 32 at once. The
floor of a row is a run; the figures are medians of rounds.
"""

import asyncio
import itertools
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks._raw_http import start_module
from benchmarks._report import report_rounds
from benchmarks.embedded import AT_ONCE, KEY, do_at_once, make_input, open_settings
from toolkit import AsyncClient
from toolkit.sandbox import SANDBOX_KEYS

ROUNDS, ROWS = 5, 1_000
LIMIT_MS, LIMIT_RATIO = 1.5, 1.2
TEMPLATE = "Say one line on tea, number {n}"
_NUMBERS = itertools.count(1)


async def map_rows(client: AsyncClient, count: int) -> None:
    """Map rows that differ from all rows before."""
    rows = [{"n": f"{next(_NUMBERS)} of a table"} for _ in range(count)]
    table = await client.map(
        "llm.generate",
        rows,
        objective=TEMPLATE,
        max_tokens=64,
        concurrency=AT_ONCE,
        progress=False,
    )
    assert set(table["status"]) == {"completed"}, table["error"].unique()


async def measure(folder: Path, vendor_port: int, rounds: int, rows: int) -> bool:
    """Measure rows and runs in turns; returns True if the limits are kept."""
    cpu_ms: dict[str, list[float]] = {"row": [], "run": []}
    async with AsyncClient.local(folder, settings=open_settings(vendor_port)) as client:
        await client.connections.create("openai", "environment", KEY)

        async def make_run() -> None:
            run = await client.runs.create("llm.generate", make_input())
            assert (await run.wait(progress=False)).output["text"]

        works = {"row": map_rows, "run": lambda _, count: do_at_once(make_run, count)}
        for work in works.values():
            await work(client, rows // 4 + 1)  # so that imports are not measured
        for _ in range(rounds):
            for name, work in works.items():
                began = time.process_time()
                await work(client, rows)
                cpu_ms[name].append((time.process_time() - began) * 1000 / rows)
    ratios = [row / run for row, run in zip(cpu_ms["row"], cpu_ms["run"], strict=True)]
    are_kept = report_rounds(
        "map.row_cpu_ms", cpu_ms["row"], "ms", floors=cpu_ms["run"], limit=LIMIT_MS,
        at_once=AT_ONCE,
    )  # fmt: skip
    return are_kept and statistics.median(ratios) <= LIMIT_RATIO


def main(rounds: int = ROUNDS, rows: int = ROWS) -> int:
    """Run the benchmark; the exit code is 1 if a figure misses its limit."""
    os.environ.setdefault(KEY, SANDBOX_KEYS[KEY])
    with (
        tempfile.TemporaryDirectory() as name,
        start_module("benchmarks._fake_vendor") as (port, _),
    ):
        return 0 if asyncio.run(measure(Path(name), port, rounds, rows)) else 1


if __name__ == "__main__":
    sys.exit(main())
