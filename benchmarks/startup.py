"""Start-up: `import toolkit` (limit 0.25 s), a client of a server, and cold process to first run.

Run `python -m benchmarks.startup`. Every figure is a whole process; the floor is a Python process
that imports nothing, timed beside it. `import toolkit` is the process less that floor. A client of
a server is CPU time, in turns with a process that imports httpx and pydantic: at most twice that.
The first run takes 2.5 s at most.
"""

import resource
import statistics
import subprocess
import sys
import tempfile
import time

from benchmarks._report import report

ROUNDS = 7
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


def measure_start_s(code: str) -> float:
    """Seconds that a new process takes for `code`, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", code, folder], check=True, capture_output=True)
        return time.perf_counter() - started


def measure_cpu_s(code: str) -> float:
    """Seconds of CPU time that a new process takes for `code`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    measure_start_s(code)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure_clients() -> bool:
    """Measure the clients of a server beside the libraries that they are made of."""
    programs = {
        "libraries": LIBRARIES,
        "client": SERVED.format(kind="Client"),
        "async_client": SERVED.format(kind="AsyncClient"),
    }
    taken: dict[str, list[float]] = {name: [] for name in programs}
    for code in programs.values():
        measure_start_s(code)  # warm the byte-code and file caches
    for _ in range(ROUNDS):
        for name, code in programs.items():
            taken[name].append(measure_cpu_s(code))
    libraries = taken.pop("libraries")
    floor = statistics.median(libraries)
    spread = {"rounds": ROUNDS, "noise": round(max(libraries) - min(libraries), 4)}
    # A list: each is reported, whether the one before kept its limit or not.
    kept = [
        report(
            f"startup.{name}", statistics.median(found), "s of CPU", floor=floor,
            limit=round(2 * floor, 4), **spread,
        )
        for name, found in taken.items()
    ]  # fmt: skip
    return all(kept)


def main() -> int:
    """Measure all; exit code 1 if a limit is not kept."""
    measure_start_s("import toolkit, toolkit.local")  # warm the byte-code and file caches
    bare, imported, first = [], [], []
    for _ in range(ROUNDS):
        bare.append(measure_start_s("pass"))
        imported.append(measure_start_s("import toolkit"))
        first.append(measure_start_s(FIRST_RUN))
    floor = statistics.median(bare)
    spread = {"rounds": ROUNDS, "noise": round(max(bare) - min(bare), 4)}
    own = max(0.0, statistics.median(imported) - floor)
    kept = report("startup.import", own, "s", floor=floor, limit=0.25, **spread)
    kept &= measure_clients()
    kept &= report(
        "startup.first_run", statistics.median(first), "s", floor=floor, limit=2.5, **spread
    )
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
