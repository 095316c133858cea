"""Tables labelled by batches while the program is killed: what other libraries lose or repeat.

Run `python -m benchmarks.peer_tables`; `--kills 60` tries longer. Each program of
`_table_programs.py` labels tables by the batches of a simulated OpenAI, which is a process of its
own. It gets `kill -9` at random times after its first request, and is run again until it has
written its results. The vendor's log shows what was submitted and billed. Programs whose library is
missing are skipped (`PEERS`, see `_peers.py`).

- `peer_tables.repeats_*`: billed answers above one for each row, as a share of the rows.
- `peer_tables.lost_*`: rows without a result, as a share of the rows. A table counts as lost if the
  program does not end within a minute after the last kill.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from random import Random

import httpx

from benchmarks import _table_programs
from benchmarks._cloud import serve_cloud
from benchmarks._peers import find_peer
from benchmarks._report import report

ROWS, KILLS, KILLS_OF_A_TABLE = 10, 24, 4
LONGEST_S, END_S, LATENCY_MS = 1.5, 60.0, 15.0
TIMES = {"vendor": "openai", "path_contains": "/batches", "batch_s": 1.0}
MODULES = {"openai": "openai", "litellm": "litellm", "inspect_ai": "inspect_ai"}
MODULES |= {"curator": "bespokelabs.curator"}


def run_whole(command: list[str], log: Path) -> None:
    """Run a program to its end, for at most a minute."""
    with log.open("ab") as output, suppress(subprocess.TimeoutExpired):
        subprocess.run(command, stdout=output, stderr=output, timeout=END_S, check=False)


def run_killed(command: list[str], log: Path, http: httpx.Client, after_s: float) -> None:
    """Run a program, and kill it some seconds after its first request, unless it has ended."""
    before = count_calls(http)
    with log.open("ab") as output, subprocess.Popen(command, stdout=output, stderr=output) as child:
        deadline = time.monotonic() + END_S
        while count_calls(http) == before and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        with suppress(subprocess.TimeoutExpired):
            child.wait(after_s)
        child.kill()


def count_calls(http: httpx.Client) -> int:
    """Count the requests that the vendor has got."""
    return len(http.get("/_sandbox/calls").json()["calls"])


def try_program(name: str, python: str, url: str, folder: Path, kills: int) -> tuple[float, float]:
    """Kill a program again and again; return the shares of repeated and of lost rows."""
    random, log = Random(7), folder / f"{name}.log"
    tables, lost = range(1, kills // KILLS_OF_A_TABLE + 1), 0
    with httpx.Client(base_url=url) as http:
        for number in tables:
            table = folder / f"{name}-{number}"
            script = str(Path(_table_programs.__file__))
            command = [python, script, name, f"{url}/openai/v1", str(table), str(ROWS)]
            for _ in range(KILLS_OF_A_TABLE):
                run_killed(command, log, http, random.uniform(0.0, LONGEST_S))
            run_whole(command, log)
            results = table / "results.json"
            texts = json.loads(results.read_text()) if results.exists() else {}
            lost += ROWS - len(texts)
    if lost == ROWS * len(tables):
        print(f"{name} labels nothing: {log.read_text()[-1_000:]}", file=sys.stderr)
    count = ROWS * len(tables)
    return max(0, count_billed(url) - count) / count, lost / count


def count_billed(url: str) -> int:
    """Count the answers that the vendor has billed.

    The simulated vendor carries out batches when they are listed, as a vendor does anyway.
    """
    headers = {"Authorization": f"Bearer {_table_programs.KEY}"}
    deadline = time.monotonic() + END_S
    with httpx.Client(base_url=url, headers=headers) as http:
        while time.monotonic() < deadline:
            batches = http.get("/openai/v1/batches?limit=100").json()["data"]
            if all(batch["status"] == "completed" for batch in batches):
                break
            time.sleep(0.2)
        calls = http.get("/_sandbox/calls").json()["calls"]
    return sum(bool(call["custom_id"] and call["billed"]) for call in calls)


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; the exit code is 1 if the toolkit repeats or loses a row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=KILLS, help="kills of each program")
    parser.add_argument("--programs", nargs="*", default=list(_table_programs.PROGRAMS))
    options = parser.parse_args(arguments)
    is_kept = True
    for name in options.programs:
        python = sys.executable if name == "toolkit" else find_peer(MODULES[name])
        if python is None:
            continue
        limit = 0.0 if name == "toolkit" else None
        with tempfile.TemporaryDirectory() as folder, serve_cloud(LATENCY_MS) as url:
            httpx.post(f"{url}/_sandbox/faults", json=TIMES).raise_for_status()
            repeats, lost = try_program(name, python, url, Path(folder), options.kills)
        details = {"kills": options.kills, "rows": ROWS}
        for figure, share in (("repeats", repeats), ("lost", lost)):
            is_kept &= report(
                f"peer_tables.{figure}_{name}", share, "share", floor=0.0, limit=limit, **details
            )
    return 0 if is_kept else 1


if __name__ == "__main__":
    sys.exit(main())
