"""Start-up: `import toolkit` (limit 0.25 s) and cold process to first run (limit 2.5 s).

Run `python -m benchmarks.startup`. Every figure is a whole process; the floor is a Python process
that imports nothing, timed beside it. `import toolkit` is the process less that floor.
"""

import statistics
import subprocess
import sys
import tempfile
import time

from benchmarks._report import report

ROUNDS = 7
FIRST_RUN = """
import sys
from toolkit import Client
client = Client.local(sys.argv[1], sandbox=True)
run = client.runs.create("llm.generate", {"objective": "One line on tidal power"})
assert run.wait(progress=False).output["text"]
client.close()
"""


def timed(code: str) -> float:
    """Seconds that a new process takes for `code`, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", code, folder], check=True, capture_output=True)
        return time.perf_counter() - started


def main() -> int:
    """Measure both; exit code 1 if a limit is not kept."""
    timed("import toolkit, toolkit.local")  # warm the byte-code and file caches
    bare, imported, first = [], [], []
    for _ in range(ROUNDS):
        bare.append(timed("pass"))
        imported.append(timed("import toolkit"))
        first.append(timed(FIRST_RUN))
    floor = statistics.median(bare)
    spread = {"rounds": ROUNDS, "noise": round(max(bare) - min(bare), 4)}
    own = max(0.0, statistics.median(imported) - floor)
    kept = report("startup.import", own, "s", floor=floor, limit=0.25, **spread)
    kept &= report(
        "startup.first_run", statistics.median(first), "s", floor=floor, limit=2.5, **spread
    )
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
