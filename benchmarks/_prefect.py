"""Prefect with tasks that use a processor: a peer's time for a step in a thread and on Dask.

Run as `PYTHON benchmarks/_prefect.py`, by a Python that has prefect and prefect-dask and none of
our packages; `PREFECT_HOME` names the directory of its database. It reads lines of JSON: `runner`
(`thread` or `dask`), `steps` and `turns`. It answers each with the milliseconds of a step in a
chain.
"""

import json
import os
import sys
import time

from _cpu_work import count_turns
from distributed import LocalCluster
from prefect import flow, task
from prefect.task_runners import ThreadPoolTaskRunner
from prefect_dask import DaskTaskRunner

WORKERS = 2
count = task(count_turns)


def measure_chain_ms(steps: int, turns: int) -> float:
    """Measure the milliseconds per task of a chain of tasks."""
    for _ in range(2 * WORKERS):
        count.submit(turns).result()
    began = time.perf_counter()
    for _ in range(steps):
        count.submit(turns).result()
    return 1000 * (time.perf_counter() - began) / steps


def main() -> None:
    """Answer until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # so that the libraries do not print among the answers
    with LocalCluster(
        n_workers=WORKERS, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        runners = {
            "thread": lambda: ThreadPoolTaskRunner(max_workers=WORKERS),
            "dask": lambda: DaskTaskRunner(address=cluster.scheduler_address),
        }
        for line in sys.stdin:
            request = json.loads(line)
            chain = flow(measure_chain_ms, task_runner=runners[request["runner"]]())
            print(json.dumps(chain(request["steps"], request["turns"])), file=answers, flush=True)


if __name__ == "__main__":
    main()
