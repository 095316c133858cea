"""The kernel's share of a core while progress is shown and ten nodes per second change.

Run `python -m benchmarks.progress`. Two notebook kernels each wait for their own workflow on one
server, ten chains of nodes that take a second each. One kernel shows the display of progress in its
cell; the other (`progress=False`) shows nothing and is the floor.
"""

import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from queue import Empty

import httpx
from jupyter_client.blocking import BlockingKernelClient

from benchmarks._cloud import serve_cloud
from benchmarks._process import read_cpu_s
from benchmarks._report import report
from benchmarks._server import find_cloud_urls, open_accounts, serve_toolkit
from benchmarks.live_graph import REPLY_S, SUBMIT, run_cell, start_kernel

LIMIT_SHARE = 0.05  # of a core, as for the live graph
WARM_S, MEASURE_S = 5.0, 60.0
CHAINS = 10
SPARE_NODES = 10  # per chain, so that no chain ends during the measurement
WAIT = """
from toolkit.contract.errors import ServiceTimeoutError
try:
    submitted.wait(timeout={seconds}, progress={progress})
except ServiceTimeoutError:
    pass
"""
COUNT = "sum(node.status == 'completed' for node in submitted.refresh().record.nodes)"


def begin_wait(client: BlockingKernelClient, seconds: float, *, progress: bool) -> None:
    """Begin to wait in a kernel, as a user's cell does."""
    client.execute(WAIT.format(seconds=seconds, progress=progress), store_history=False)


def count_drawn(client: BlockingKernelClient) -> int:
    """Count the updates of a kernel's display."""
    drawn = 0
    with suppress(Empty):
        while True:
            message = client.get_iopub_msg(timeout=0)
            drawn += message["msg_type"] == "update_display_data"
    return drawn


def main(seconds: float = MEASURE_S) -> int:
    """Run the benchmark; the exit code is 1 if a figure misses its limit."""
    with (
        tempfile.TemporaryDirectory() as name,
        serve_cloud() as cloud,
        serve_toolkit(Path(name, "data"), find_cloud_urls(cloud)) as (url, _),
        start_kernel() as (quiet, quiet_pid),
        start_kernel() as (display, shown_pid),
    ):
        slow = {"vendor": "*", "delay_ms": 1_000, "times": None}
        httpx.post(f"{cloud}/_sandbox/faults", json=slow, trust_env=False).raise_for_status()
        (key,) = open_accounts(url, 1, ("openai",))
        whole_s = WARM_S + seconds + 1
        length = int(whole_s) + SPARE_NODES
        for client, progress in ((quiet, False), (display, True)):
            run_cell(client, SUBMIT.format(url=url, key=key, chains=CHAINS, length=length))
            begin_wait(client, whole_s, progress=progress)
        time.sleep(WARM_S)
        began, quiet_s, shown_s = time.monotonic(), read_cpu_s(quiet_pid), read_cpu_s(shown_pid)
        time.sleep(seconds)
        took_s = time.monotonic() - began
        quiet_s = read_cpu_s(quiet_pid) - quiet_s
        shown_s = read_cpu_s(shown_pid) - shown_s
        display.get_shell_msg(timeout=REPLY_S)
        drawn = count_drawn(display)
        completed = int(run_cell(display, COUNT))
    is_kept = report(
        "progress.kernel", shown_s / took_s, "of a core", floor=quiet_s / took_s,
        limit=LIMIT_SHARE, nodes_per_s=round(completed / (whole_s + 1), 1),
        drawn_per_s=round(drawn / whole_s, 1),
    )  # fmt: skip
    return 0 if is_kept else 1


if __name__ == "__main__":
    sys.exit(main())
