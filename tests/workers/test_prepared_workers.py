"""Worker processes that have loaded their steps before the first card needs them."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.slow_capability import build_nap_workflow, load_slow_registry
from tests.support.timing import PATIENCE_S, wait_until_async
from toolkit.contract.workflows import WorkflowCreate
from toolkit.engine.request_context import RequestContext
from toolkit.engine.transport import worker_pool
from toolkit.local import open_engine
from toolkit.settings import Settings
from toolkit.workers.process import WorkerProcess

# Runs in a process of its own, because other tests keep their worker processes as children.
FRESH_KERNEL = """
import sys, time
from pathlib import Path
from toolkit import Client

def list_children():
    tasks = Path("/proc/self/task").glob("*/children")
    return {pid for task in tasks for pid in task.read_text().split()}

def has_loaded(pid):
    return "PIL/_imaging" in Path(f"/proc/{pid}/maps").read_text()

deadline = time.monotonic() + float(sys.argv[2])
with Client.local(sys.argv[1], sandbox=True) as client:
    while not any(map(has_loaded, before := list_children())):
        assert time.monotonic() < deadline, "no worker process loads what draws cards"
    client.runs.create("composition.layout", {"title": "Tea"}).wait(progress=False)
    assert list_children() == before, "the card was drawn by another process"
"""


def test_a_worker_is_ready_before_the_first_card(tmp_path: Path) -> None:
    """Given an engine that was just opened, then a worker can draw a card."""
    process = subprocess.run(
        [sys.executable, "-c", FRESH_KERNEL, str(tmp_path), str(PATIENCE_S)],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
    )
    assert process.returncode == 0, process.stderr


async def test_a_workflow_starts_the_worker_of_its_card(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a workflow whose card comes last, when it is accepted, then a worker is started."""
    workers: list[WorkerProcess] = []

    def start_worker(memory_bytes: int) -> WorkerProcess:
        workers.append(WorkerProcess(memory_bytes))
        return workers[-1]

    monkeypatch.setattr(worker_pool, "WorkerProcess", start_worker)
    engine = await open_engine(settings, registry=load_slow_registry())
    account, _ = await engine.accounts.open_local_account()
    context = RequestContext(account.id)
    flow = build_nap_workflow(1, 60)
    flow.add("card", "composition.layout", title="Tea", depends_on=["n0"])
    workflow = await engine.workflows.create(context, WorkflowCreate.model_validate(flow.to_dict()))
    await wait_until_async(lambda: workers and workers[0].pid)
    assert {node.status for node in workflow.nodes} <= {"pending", "queued", "running"}
    await engine.close(0)
