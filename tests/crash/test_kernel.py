"""A notebook's kernel that is killed during a workflow, and the next kernel that resumes it."""

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
    """A kernel and its client.

    Args:
        process: process of the kernel.
        client: runs cells in the kernel.
    """

    def __init__(self, process: Process, client: BlockingKernelClient) -> None:
        self.process = process
        self._client = client

    def run(self, cell: str) -> str:
        """Run a cell, and return its output."""
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
    """Starts a kernel like JupyterLab; its first cell opens the data directory."""
    data_dir = tmp_path / "data"
    cell = OPEN.format(folder=str(data_dir), database=find_url(data_dir))

    @contextmanager
    def start() -> Iterator[Kernel]:
        file, _ = write_connection_file(str(tmp_path / f"{token_hex(4)}.json"))
        command = ["ipykernel_launcher", "-f", file]
        process = fork_server.start(command, {"TOOLKIT_LEASE_S": LEASE_S})
        client = BlockingKernelClient(connection_file=file)
        client.load_connection_file()
        client.start_channels(hb=False)  # a busy machine may miss a heartbeat
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


def test_killed_kernel_loses_no_completed_node(
    start_kernel: Callable[[], AbstractContextManager[Kernel]],
) -> None:
    """Given a kernel that is killed repeatedly, then the next kernel resumes the workflow.

    A node that a kernel has read as completed keeps its job and its artifact. A node in flight
    runs again at most once for each kill, and its attempt is interrupted.
    """
    workflow_id, completed = "", dict[str, list[str]]()
    for turn in range(KILLS):
        with start_kernel() as running:
            workflow_id = workflow_id or running.run(SUBMIT).splitlines()[-1]
            output = running.run(SHOW.format(id=workflow_id, enough=5 * (turn + 1)))
            completed |= json.loads(output.splitlines()[-1])
            running.process.send_signal(signal.SIGKILL)
    with start_kernel() as last:
        output = json.loads(last.run(FINISH.format(id=workflow_id)).splitlines()[-1])
    assert output["status"] == "completed"
    assert len(completed) >= 5 * KILLS
    assert {name: output["nodes"][name] for name in completed} == completed
    tries = [status for attempts in output["attempts"] for status in attempts]
    assert tries.count("interrupted") <= KILLS
    assert len(tries) == 40 + tries.count("interrupted")
    assert [attempts[-1] for attempts in output["attempts"]] == ["completed"] * 40
    assert output["whole"]


EMBED = """
import time
faults.add(Fault("openai", "embeddings", delay_ms=1000))
texts = [f"Tide {i}" for i in range(250)]
run = client.runs.create("embed.generate", {"texts": texts}, provider="openai")
while len(faults.calls) < 2:
    time.sleep(0.01)
faults.clear()
faults.add(Fault("openai", "embeddings", mangle="hang"))
while len(faults.calls) < 3:
    time.sleep(0.01)
print(run.id)
"""
EMBEDDED = """
run = client.runs.get({id!r}).wait(progress=False)
texts = [f"Tide {{i}}" for i in range(250)]
print(json.dumps({{
    "attempts": [[a.status, a.cost_usd] for a in run.attempts],
    "calls": len(faults.calls),
    "cost_usd": run.cost_usd,
    "tokens": run.record.usage["input_tokens"],
    "same": bool((run.vectors == client.embed(texts, provider="openai", cache=False)).all()),
    "fresh_tokens": client.runs.list()[0].record.usage["input_tokens"],
}}))
"""


def test_killed_kernel_pays_no_vectors_twice(
    start_kernel: Callable[[], AbstractContextManager[Kernel]],
) -> None:
    """Given a kernel that is killed in the last of three calls, then only that call is repeated."""
    with start_kernel() as running:
        run_id = running.run(EMBED).splitlines()[-1]
        running.process.send_signal(signal.SIGKILL)
    with start_kernel() as last:
        output = json.loads(last.run(EMBEDDED.format(id=run_id)).splitlines()[-1])
    statuses, costs = zip(*output["attempts"], strict=True)
    assert statuses == ("completed", "completed", "interrupted", "completed")
    assert output["calls"] == 1
    assert output["cost_usd"] == pytest.approx(sum(costs) - costs[2])
    assert output["tokens"] == output["fresh_tokens"]
    assert output["same"]
