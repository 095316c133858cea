"""Notebooks in a batch: overhead per notebook, compared with papermill's API and command.

Run `python -m benchmarks.batch`. The notebook has five cells that do next to nothing, so all its
time is overhead. Each round measures in turns: papermill's command, its API, a batch with one
worker (because papermill runs notebooks one after the other), and the floor: the same cells in a
kernel that is already running. The limit of a batch is an eighth of papermill's API in the same
run. Then 100 notebooks run with two workers: limit 15 s.
"""

import logging
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import nbformat
from jupyter_client.manager import start_new_kernel
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
from papermill.execute import execute_notebook

from benchmarks._report import report
from toolkit import batch

ROUNDS = 5
NOTEBOOKS = 40
HUNDRED = 100
TIMES_LESS = 8
CELLS = ("x: int = 1", "import math", "y = math.sqrt(x)", "print(y)", "y")


def write_notebook(folder: Path) -> Path:
    """Write the notebook, and return its path."""
    cells = [new_code_cell(cell) for cell in CELLS]
    cells[0].metadata["tags"] = ["parameters"]
    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": spec}), folder / "n.ipynb")
    return folder / "n.ipynb"


def measure_command(path: Path) -> float:
    """Measure the seconds of papermill's command."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "papermill", str(path), str(path.with_name("cli.ipynb"))]
    subprocess.run([*command, "-p", "x", "4"], check=True, capture_output=True)
    return time.perf_counter() - started


def measure_api(path: Path) -> float:
    """Measure the seconds of papermill's API, in a process that has imported it."""
    started = time.perf_counter()
    target = str(path.with_name("api.ipynb"))
    execute_notebook(str(path), target, parameters={"x": 4}, progress_bar=False)
    return time.perf_counter() - started


def measure_batch(path: Path, notebooks: int, workers: int) -> float:
    """Measure the seconds of a batch, from its start to its table."""
    with tempfile.TemporaryDirectory() as out:
        started = time.perf_counter()
        grid = {"x": list(range(notebooks))}
        table = batch.run(path, grid, out=out, workers=workers, progress=False)
        spent = time.perf_counter() - started
    if set(table["status"]) != {"completed"}:
        raise RuntimeError("a notebook failed")
    return spent


def measure_kept_kernel(path: Path, times: int) -> float:
    """Measure the seconds of a notebook in a kernel that is already running."""
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        spent = []
        for _ in range(times + 1):
            notebook = nbformat.read(path, as_version=4)
            runner = NotebookClient(notebook, km=manager)
            runner.kc = client
            started = time.perf_counter()
            for index, cell in enumerate(notebook.cells):
                runner.execute_cell(cell, index)
            spent.append(time.perf_counter() - started)
        return statistics.median(spent[1:])
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def get_cpu_s() -> float:
    """Return the CPU seconds used by this process and by its children that have ended."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, kinds))


def main(rounds: int = ROUNDS, notebooks: int = NOTEBOOKS, hundred: int = HUNDRED) -> int:
    """Run the benchmark; the exit code is 1 if a figure misses its limit."""
    warnings.simplefilter("ignore")
    logging.getLogger("papermill").setLevel(logging.ERROR)
    command, api, batches, floors = [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        path = write_notebook(Path(folder))
        measure_api(path)  # warm the byte-code and file caches
        for _ in range(rounds):
            command.append(measure_command(path))
            api.append(measure_api(path))
            batches.append(measure_batch(path, notebooks, workers=1) / notebooks)
            floors.append(measure_kept_kernel(path, notebooks))
        before = get_cpu_s()
        side_by_side = measure_batch(path, hundred, workers=2)
        cpu_s = get_cpu_s() - before
    floor, stock, ours = (statistics.median(seconds) for seconds in (floors, api, batches))
    counts = {"rounds": rounds, "notebooks": notebooks}
    report("batch.papermill_command", statistics.median(command), "s", floor=floor, limit=None)
    report("batch.papermill_api", stock, "s", floor=floor, limit=None, rounds=rounds)
    times = {"times_less_than_api": round(stock / ours, 1), "noise": max(batches) - min(batches)}
    peer = {"peer": round(stock, 4), "peer_name": "papermill"}
    limit = round(stock / TIMES_LESS, 4)
    good = report("batch.notebook", ours, "s", floor=floor, limit=limit, **counts, **times, **peer)
    # On a shared machine, CPU seconds show how long the batch would take alone.
    counts = {
        "notebooks": hundred,
        "cpu_seconds": round(cpu_s, 2),
        "load": round(os.getloadavg()[0], 1),
    }
    side = {"floor": floor * hundred / 2, "limit": 15.0}
    good &= report("batch.hundred", side_by_side, "s", **side, **counts)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
