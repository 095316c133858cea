"""A notebook's kernel that is killed in mid-workflow, and the next one that goes on."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from jupyter_client import BlockingKernelClient
from jupyter_client.manager import KernelManager

KILLS = 3
OPEN = """
import json
from toolkit import Client, Workflow
from toolkit.sandbox import Fault, Faults
faults = Faults()
faults.add(Fault("minimax", delay_ms=25, times=None))
client = Client.local({folder!r}, faults=faults, database={database!r})
"""
SUBMIT = """
flow, before = Workflow("long"), []
for i in range(40):
    before = [flow.add(f"n{i}", "llm.generate", objective=f"Line {i}", depends_on=before)]
print(client.workflows.submit(flow).id)
"""
SHOW = """
from itertools import islice
completed = (event for event in client.events({id!r}) if event.type == "node.completed")
list(islice(completed, {enough}))
nodes = client.workflows.get({id!r}).nodes
print(json.dumps({{n.id: [n.job_id, n.artifact_id] for n in nodes if n.status == "completed"}}))
"""
FINISH = """
done = client.workflows.get({id!r}).wait(progress=False)
jobs = [client.jobs.get(n.job_id).record for n in done.nodes]
print(json.dumps({{
    "status": done.status,
    "nodes": {{n.id: [n.job_id, n.artifact_id] for n in done.nodes}},
    "attempts": [[a.status for a in job.attempts] for job in jobs],
    "whole": all(len(client.artifacts.get(n.artifact_id).content()) for n in done.nodes),
}}))
"""


class Kernel:
    """A kernel as JupyterLab starts one."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager = manager
        self._client = client

    def run(self, cell: str) -> str:
        """Run a cell, and return what it prints."""
        printed: list[str] = []

        def keep(message: dict[str, object]) -> None:
            content = message["content"]
            assert isinstance(content, dict)
            if content.get("name") == "stdout":
                printed.append(str(content["text"]))

        reply = self._client.execute_interactive(cell, timeout=60, output_hook=keep)
        assert reply["content"]["status"] == "ok", reply["content"].get("traceback")
        return "".join(printed).strip()

    def kill(self) -> None:
        """`kill -9`."""
        pid = self.manager.provisioner.pid  # type: ignore[union-attr]
        os.kill(pid, signal.SIGKILL)


@contextmanager
def kernel(folder: Path, database: str | None) -> Iterator[Kernel]:
    """A new kernel whose first cell has opened the data directory."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=str(Path.cwd()))
    client = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        started = Kernel(manager, client)
        started.run(OPEN.format(folder=str(folder), database=database))
        yield started
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_a_killed_kernel_loses_nothing(
    tmp_path: Path, find_url: Callable[[Path], str | None]
) -> None:
    """Given a kernel that is killed again and again, then the next finds what ran and goes on.

    What one kernel has shown as completed keeps its job and its artifact; a node in flight is run
    again at most once for each kill, and says that it was interrupted.
    """
    data_dir, shown = tmp_path / "data", dict[str, list[str]]()
    workflow_id, database = "", find_url(data_dir)
    for turn in range(KILLS):
        with kernel(data_dir, database) as running:
            workflow_id = workflow_id or running.run(SUBMIT).splitlines()[-1]
            told = running.run(SHOW.format(id=workflow_id, enough=5 * (turn + 1)))
            shown |= json.loads(told.splitlines()[-1])
            running.kill()
    with kernel(data_dir, database) as last:
        told = json.loads(last.run(FINISH.format(id=workflow_id)).splitlines()[-1])
    assert told["status"] == "completed"
    assert len(shown) >= 5 * KILLS
    assert {name: told["nodes"][name] for name in shown} == shown
    tries = [status for attempts in told["attempts"] for status in attempts]
    assert tries.count("interrupted") <= KILLS
    assert len(tries) == 40 + tries.count("interrupted")
    assert [attempts[-1] for attempts in told["attempts"]] == ["completed"] * 40
    assert told["whole"]
