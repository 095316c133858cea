"""A Dask cluster of worker processes on loopback: `python -m benchmarks._dask_cluster WORKERS`."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]


@contextmanager
def start_cluster(workers: int) -> Iterator[str]:
    """Start a cluster in a separate process, and yield the address of its scheduler."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    command = [sys.executable, "-m", "benchmarks._dask_cluster", str(workers)]
    with subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()  # ends the cluster


def main() -> None:
    """Run a cluster until standard input closes."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=int(sys.argv[1]),
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=None,
    ) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
