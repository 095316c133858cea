"""Start-up: `import toolkit`, `toolkit --help`, a client, the first run, and the demo.

Run `python -m benchmarks.startup`. Every figure is a whole process; the floor is a Python process
that imports nothing, measured in turns. `import toolkit` is the process less that floor. The client
of a server is CPU time, in turns with a process that imports httpx and pydantic; its limit is twice
that.

`demo` is `toolkit demo` less the time of its vendors: the longest chain of nodes that a vendor
executed.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks._report import report_rounds

ROUNDS = 7
LIMITS = {"import": 0.25, "help": 0.25, "first_run": 1.0, "demo": 1.92}
LIBRARIES = "import httpx, pydantic"
SERVED = """
from toolkit import {kind}
{kind}(base_url="http://service.invalid", api_key="sk_live_x")
"""
FIRST_RUN = """
import sys
from toolkit import Client
client = Client.local(sys.argv[1], sandbox=True)
run = client.runs.create("llm.generate", {"objective": "One line on tidal power"})
assert run.wait(progress=False).output["text"]
client.close()
"""

Work = Callable[[], float]


def run_process(*arguments: str, cwd: str | None = None) -> None:
    """Run a new Python process in a folder until it ends."""
    command = [sys.executable, *arguments]
    environment = {"PYTHONPATH": os.getcwd(), **os.environ}
    subprocess.run(command, check=True, capture_output=True, env=environment, cwd=cwd)


def measure_start_s(code: str) -> float:
    """Measure the seconds of a new process that runs `code` in its own folder."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        run_process("-c", code, folder)
        return time.perf_counter() - started


def measure_help_s() -> float:
    """Measure the seconds of `toolkit --help`."""
    started = time.perf_counter()
    run_process("-m", "toolkit", "--help")
    return time.perf_counter() - started


def measure_demo_s() -> float:
    """Measure the seconds of `toolkit demo`, less the time of its vendors."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        run_process("-m", "toolkit", "demo", cwd=folder)
        took = time.perf_counter() - started
        report_text = Path(folder, "demo-output", "report.json").read_text("utf-8")
        nodes = json.loads(report_text)["workflow"]["nodes"]
    return took - find_longest_chain_s(nodes)


def find_longest_chain_s(nodes: Sequence[Mapping[str, Any]]) -> float:
    """Return the longest time of vendors along dependencies, in seconds."""
    ends: dict[str, float] = {}
    for node in nodes:  # each node follows the nodes that it depends on
        node_s = find_time_s(node) if node["provider"] else 0.0
        ends[node["id"]] = node_s + max((ends[up] for up in node["depends_on"]), default=0.0)
    return max(ends.values())


def find_time_s(node: Mapping[str, Any]) -> float:
    """Return the seconds of a node; 0 if it never ran."""
    times = [node["started_at"], node["completed_at"]]
    if None in times:
        return 0.0
    started, completed = map(datetime.fromisoformat, times)
    return (completed - started).total_seconds()


def count_cpu_s(work: Callable[[], object]) -> float:
    """Measure the CPU seconds of the child processes of a function."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


FLOORS: dict[str, Work] = {
    "bare": lambda: measure_start_s("pass"),
    "libraries": lambda: measure_start_s(LIBRARIES),
}
STARTS: dict[str, Work] = {
    "import": lambda: measure_start_s("import toolkit"),
    "help": measure_help_s,
    "first_run": lambda: measure_start_s(FIRST_RUN),
    "demo": measure_demo_s,
}
CLIENTS: dict[str, Work] = {
    "client": lambda: measure_start_s(SERVED.format(kind="Client")),
    "async_client": lambda: measure_start_s(SERVED.format(kind="AsyncClient")),
}


def measure_in_turns(
    floor: str,
    works: Mapping[str, Work],
    rounds: int,
    measure: Callable[[Work], float] = lambda work: work(),
) -> tuple[list[float], dict[str, list[float]]]:
    """Measure a floor and each work once per round, after a first time that warms files."""
    works = {"": FLOORS[floor], **works}
    results: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():
        measure(work)
    for _ in range(rounds):
        for name, work in works.items():
            results[name].append(measure(work))
    return results.pop(""), results


def measure_processes(rounds: int) -> bool:
    """Measure the starts, the first run and the demo; returns True if all limits are kept."""
    floors, results = measure_in_turns("bare", STARTS, rounds)
    both = zip(results["import"], floors, strict=True)
    results["import"] = [max(0.0, total - bare) for total, bare in both]
    # A list, so that every figure is reported even if an earlier figure missed its limit.
    verdicts = [
        report_rounds(f"startup.{name}", took, "s", floors=floors, limit=LIMITS[name])
        for name, took in results.items()
    ]
    return all(verdicts)


def measure_clients(rounds: int) -> bool:
    """Measure the clients of a server in turns with the libraries that they use."""
    floors, results = measure_in_turns("libraries", CLIENTS, rounds, count_cpu_s)
    limit = round(2 * statistics.median(floors), 4)
    verdicts = [
        report_rounds(f"startup.{name}", took, "s of CPU", floors=floors, limit=limit)
        for name, took in results.items()
    ]
    return all(verdicts)


def main(rounds: int = ROUNDS) -> int:
    """Run the benchmark; the exit code is 1 if a figure misses its limit."""
    verdicts = [measure_processes(rounds), measure_clients(rounds)]
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
