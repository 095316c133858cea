"""Rows of a map in batches of a vendor, against the same rows at once: price, CPU time and kills.

Run `python -m benchmarks.batches`. The simulated OpenAI is a separate process. Rows in batches and
rows at once are measured in turns.

- `batches.cost_share` is the cost of rows in batches as a share of their cost at once.
- `batches.row_cpu_ms` is the CPU time of a row in a batch with the engine in this process; the
  floor is that of a row at once.
- `batches.repeats` and `batches.lost` are the rows that the vendor bills twice, and that have no
  result, while the program gets `kill -9` (`peer_tables.py`, which tries other libraries as well).
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import httpx

from benchmarks._cloud import hosts, serve_cloud
from benchmarks._report import report, report_rounds
from benchmarks.peer_tables import KILLS, LATENCY_MS, TIMES, try_program
from toolkit import Client
from toolkit.contract.choices import When
from toolkit.contract.run_options import RunOptions
from toolkit.sandbox import SANDBOX_KEYS
from toolkit.settings import Settings

ROUNDS, ROWS = 3, 500
LIMIT_SHARE, LIMIT_MS = 0.5, 2.0
KEY = "OPENAI_API_KEY"


def label(client: Client, table: str, rows: int, when: When) -> tuple[float, float]:
    """Label a table; return its cost in US dollars, and the CPU time of a row in ms."""
    options: RunOptions = {"provider": "openai", "when": when, "cache": False}
    began = time.process_time()
    frame = client.map(
        "llm.generate",
        [{"n": n} for n in range(rows)],
        objective=f"Say one line on item {{n}} of {table}",
        max_tokens=60,
        options=options,
        progress=False,
    )
    cpu_ms = (time.process_time() - began) * 1000 / rows
    assert set(frame["status"]) == {"completed"}, frame["error"].unique()
    return float(client.maps.get(frame.attrs["map"]).cost_incurred_usd), cpu_ms


def measure(folder: Path, url: str, rounds: int, rows: int) -> bool:
    """Measure price and CPU time in turns; return True if the limits are kept."""
    cpu_ms: dict[When, list[float]] = {"batch": [], "now": []}
    usd: dict[When, float] = {"batch": 0.0, "now": 0.0}
    settings = Settings(data_dir=folder, vendors=hosts(url))
    with Client.local(settings=settings) as client:
        client.connections.create("openai", "environment", KEY)
        for when in cpu_ms:
            label(client, "nothing", 20, when)  # so that imports are not measured
        for number in range(rounds):
            for when, times in cpu_ms.items():
                cost, milliseconds = label(client, f"table {number}", rows, when)
                usd[when] += cost
                times.append(milliseconds)
    is_half = report(
        "batches.cost_share", usd["batch"] / usd["now"], "share", floor=1.0, limit=LIMIT_SHARE
    )
    is_quick = report_rounds(
        "batches.row_cpu_ms", cpu_ms["batch"], "ms", floors=cpu_ms["now"], limit=LIMIT_MS, rows=rows
    )
    return is_half and is_quick


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; the exit code is 1 if a figure misses its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--kills", type=int, default=KILLS)
    options = parser.parse_args(arguments)
    os.environ.setdefault(KEY, SANDBOX_KEYS[KEY])
    with tempfile.TemporaryDirectory() as name, serve_cloud() as url:
        are_kept = measure(Path(name), url, options.rounds, options.rows)
    with tempfile.TemporaryDirectory() as name, serve_cloud(LATENCY_MS) as url:
        httpx.post(f"{url}/_sandbox/faults", json=TIMES).raise_for_status()
        shares = try_program("toolkit", sys.executable, url, Path(name), options.kills)
    for figure, share in zip(("repeats", "lost"), shares, strict=True):
        are_kept &= report(
            f"batches.{figure}", share, "share", floor=0.0, limit=0.0, kills=options.kills
        )
    return 0 if are_kept else 1


if __name__ == "__main__":
    sys.exit(main())
