"""A notebook's kernel that is killed in mid-workflow, and the next one that goes on."""

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from secrets import token_hex

import pytest
from jupyter_client import BlockingKernelClient
from jupyter_client.connect import write_connection_file

from tests.crash.conftest import LEASE_S
from tests.crash.processes import FindUrl, ForkServerClient, Process

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
    """A kernel, and who asks it.

    Args:
        process: the kernel.
        client: has its cells run.
    """

    def __init__(self, process: Process, client: BlockingKernelClient) -> None:
        self.process = process
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


@pytest.fixture
def start_kernel(
    fork_server: ForkServerClient, tmp_path: Path, find_url: FindUrl
) -> Callable[[], AbstractContextManager[Kernel]]:
    """Starts a kernel as JupyterLab does; its first cell opens the data directory."""
    data_dir = tmp_path / "data"
    cell = OPEN.format(folder=str(data_dir), database=find_url(data_dir))

    @contextmanager
    def start() -> Iterator[Kernel]:
        file, _ = write_connection_file(str(tmp_path / f"{token_hex(4)}.json"))
        command = ["ipykernel_launcher", "-f", file]
        process = fork_server.start(command, {"TOOLKIT_LEASE_S": LEASE_S})
        client = BlockingKernelClient(connection_file=file)
        client.load_connection_file()
        client.start_channels(hb=False)  # on a busy machine it may well miss a beat
        try:
            client.wait_for_ready(timeout=60)
            kernel = Kernel(process, client)
            kernel.run(cell)
            yield kernel
        finally:
            client.stop_channels()
            process.send_signal(signal.SIGKILL)
            process.wait()

    return start


def test_a_killed_kernel_loses_nothing(
    start_kernel: Callable[[], AbstractContextManager[Kernel]],
) -> None:
    """Given a kernel that is killed again and again, then the next finds what ran and goes on.

    What one kernel has shown as completed keeps its job and its artifact; a node in flight is run
    again at most once for each kill, and says that it was interrupted.
    """
    workflow_id, shown = "", dict[str, list[str]]()
    for turn in range(KILLS):
        with start_kernel() as running:
            workflow_id = workflow_id or running.run(SUBMIT).splitlines()[-1]
            told = running.run(SHOW.format(id=workflow_id, enough=5 * (turn + 1)))
            shown |= json.loads(told.splitlines()[-1])
            running.process.send_signal(signal.SIGKILL)
    with start_kernel() as last:
        told = json.loads(last.run(FINISH.format(id=workflow_id)).splitlines()[-1])
    assert told["status"] == "completed"
    assert len(shown) >= 5 * KILLS
    assert {name: told["nodes"][name] for name in shown} == shown
    tries = [status for attempts in told["attempts"] for status in attempts]
    assert tries.count("interrupted") <= KILLS
    assert len(tries) == 40 + tries.count("interrupted")
    assert [attempts[-1] for attempts in told["attempts"]] == ["completed"] * 40
    assert told["whole"]
