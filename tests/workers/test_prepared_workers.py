"""Worker processes that are there, and have loaded their steps, before a first card needs them."""

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

# A process of its own: it counts its children, and those of other tests are kept between them.
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


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="it looks at /proc")
def test_a_worker_is_ready_before_the_first_card(tmp_path: Path) -> None:
    """Given an engine that was opened, when nothing is asked, then a worker can draw a card."""
    done = subprocess.run(
        [sys.executable, "-c", FRESH_KERNEL, str(tmp_path), str(PATIENCE_S)],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr


async def test_a_workflow_starts_the_worker_of_its_card(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a workflow whose card comes last, when it is accepted, then its worker is started."""
    started: list[WorkerProcess] = []

    class _NotedWorker(WorkerProcess):
        def __init__(self, memory_bytes: int) -> None:
            super().__init__(memory_bytes)
            started.append(self)

    monkeypatch.setattr(worker_pool, "WorkerProcess", _NotedWorker)
    engine = await open_engine(settings, registry=load_slow_registry())
    account, _ = await engine.accounts.open_local_account()
    context = RequestContext(account.id)
    flow = build_nap_workflow(1, 60)
    flow.add("card", "composition.layout", title="Tea", depends_on=["n0"])
    workflow = await engine.workflows.create(context, WorkflowCreate.model_validate(flow.to_dict()))
    await wait_until_async(lambda: started and started[0].pid)
    assert {node.status for node in workflow.nodes} <= {"pending", "queued", "running"}
    await engine.close(0)
