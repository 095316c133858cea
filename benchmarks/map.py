"""CPU time of a row of `client.map`, and the memory and the resume of a large table.

Run `python -m benchmarks.map`. The vendor (`_fake_vendor.py`), which has no latency, is a separate
process.

- `map.row_cpu_ms` is a row with the engine in this process; the floor is the same run by the async
  client. Rows and runs are measured in turns, 32 at once; medians of rounds.
- `map.table_mb` is the peak memory of a server that runs a table; the floor is its memory before.
- `map.resume_s` is the same call again, whose rows are all answered; the floor is the time in which
  a bare HTTP client reads the results.
"""

import asyncio
import itertools
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import httpx

from benchmarks._process import read_cpu_s, read_peak_mb, read_resident_mb
from benchmarks._raw_http import start_module
from benchmarks._report import report, report_rounds
from benchmarks._server import open_accounts, serve_toolkit
from benchmarks.embedded import AT_ONCE, KEY, do_at_once, make_input, open_settings
from toolkit import AsyncClient, Client
from toolkit.sandbox import SANDBOX_KEYS

ROUNDS, ROWS, TABLE_ROWS = 5, 1_000, 100_000
LIMIT_MS, LIMIT_RATIO, LIMIT_MB, LIMIT_S = 1.5, 1.2, 200.0, 3.0
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


def map_table(client: Client, rows: list[dict[str, object]]) -> tuple[str, float]:
    """Map a table; return the id of the map, and the seconds that the call took."""
    began = time.perf_counter()
    table = client.map(
        "llm.generate",
        rows,
        objective=TEMPLATE,
        max_tokens=64,
        concurrency=AT_ONCE,
        progress=False,
    )
    seconds = time.perf_counter() - began
    assert set(table["status"]) == {"completed"}, table["error"].unique()
    return table.attrs["map"], seconds


def read_results(url: str, key: str, map_id: str, count: int) -> float:
    """Read the results of all rows by a bare HTTP client; return the seconds."""
    began, after = time.perf_counter(), 0
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}) as http:
        while after < count:
            page = http.get(f"/v1/maps/{map_id}/rows", params={"after": after})
            after = page.json()["data"]["rows"][-1]["n"]
    return time.perf_counter() - began


def measure_table(folder: Path, vendor_port: int, count: int) -> bool:
    """Measure the memory and the resume of a large table; return True if the limits are kept."""
    rows: list[dict[str, object]] = [{"n": f"{n} of a large table"} for n in range(count)]
    urls = {("openai", "api"): f"http://127.0.0.1:{vendor_port}/v1"}
    with serve_toolkit(folder / "server", urls) as (url, pid):
        (key,) = open_accounts(url, 1, ["openai"])
        with Client(base_url=url, api_key=key) as client:
            idle_mb = read_resident_mb(pid)
            _, run_s = map_table(client, rows)
            peak_mb = read_peak_mb(pid)
            cpu_s = -time.process_time() - read_cpu_s(pid)
            map_id, resume_s = map_table(client, rows)
            cpu_s += time.process_time() + read_cpu_s(pid)
        read_s = read_results(url, key, map_id, count)
    is_small = report(
        "map.table_mb", peak_mb, "MB", floor=idle_mb, limit=LIMIT_MB, rows=count,
        run_s=round(run_s, 1),
    )  # fmt: skip
    is_quick = report(
        "map.resume_s", resume_s, "s", floor=read_s, limit=LIMIT_S, rows=count,
        cpu_s=round(cpu_s, 2),
    )  # fmt: skip
    return is_small and is_quick


def main(rounds: int = ROUNDS, rows: int = ROWS, table_rows: int = TABLE_ROWS) -> int:
    """Run the benchmark; the exit code is 1 if a figure misses its limit."""
    os.environ.setdefault(KEY, SANDBOX_KEYS[KEY])
    with (
        tempfile.TemporaryDirectory() as name,
        start_module("benchmarks._fake_vendor") as (port, _),
    ):
        are_kept = asyncio.run(measure(Path(name) / "embedded", port, rounds, rows))
        if table_rows:
            are_kept &= measure_table(Path(name), port, table_rows)
        return 0 if are_kept else 1


if __name__ == "__main__":
    sys.exit(main())
