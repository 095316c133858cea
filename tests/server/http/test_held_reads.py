"""`Prefer: wait` for reads of work: the answer is held until the work ends."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.server.conftest import POINTER, Wire, open_wire
from tests.support.timing import Watch
from toolkit.sandbox import Fault, Faults
from toolkit.settings import Settings

LINE = {"target": "capability", "name": "llm.generate", "input": {"objective": "One line on tea"}}
WAIT = {"Prefer": "wait=30"}
GRAPH = {
    "name": "w",
    "nodes": [{"id": "a", "capability": "llm.generate", "input": LINE["input"]}],
}


@pytest.fixture
async def wire(settings: Settings, faults: Faults) -> AsyncIterator[Wire]:
    """A caller that is connected to a vendor."""
    quiet = settings.model_copy(update={"connection_test_s": 0.0})
    async with open_wire(quiet, faults=faults) as wire:
        await wire.send("POST", "/v1/providers/connections", json=POINTER)
        yield wire


@pytest.mark.parametrize(
    ("path", "body", "read"),
    [
        ("/v1/runs", LINE, "/v1/runs/{id}"),
        ("/v1/runs", LINE, "/v1/jobs/{job_id}"),
        ("/v1/workflows", GRAPH, "/v1/workflows/{id}"),
        ("/v1/tasks", {"objective": "Write a line on tea"}, "/v1/tasks/{id}"),
    ],
)
async def test_holds_a_read_until_the_work_ends(
    wire: Wire, faults: Faults, path: str, body: dict[str, Any], read: str
) -> None:
    """Given running work, when it is read with `Prefer: wait`, then the answer has its result."""
    faults.add(Fault("minimax", delay_ms=300, times=1))
    read = read.format(**(await wire.send("POST", path, json=body)).json()["data"])
    assert (await wire.send("GET", read)).json()["status"] != "completed"
    answer = await wire.send("GET", read, headers=WAIT)
    assert answer.json()["status"] == "completed", answer.text
    assert answer.headers["Preference-Applied"] == "wait=30"
    assert (await wire.send("GET", read, headers=WAIT)).json() == answer.json()


async def test_answers_after_the_preferred_time(wire: Wire, faults: Faults) -> None:
    """Given work that takes longer, then the answer after that time has the current state."""
    faults.add(Fault("minimax", delay_ms=60_000, times=None))
    run = (await wire.send("POST", "/v1/runs", json=LINE)).json()["id"]
    answer = await wire.send("GET", f"/v1/runs/{run}", headers={"Prefer": "wait=1"})
    assert answer.json()["status"] == "running"
    assert answer.headers["Preference-Applied"] == "wait=1"


@pytest.mark.parametrize("how", ["GET", "POST"])
async def test_answers_a_blocked_task_at_once(wire: Wire, how: str) -> None:
    """Given a task that waits for its caller, then the answer is not held."""
    task = {"objective": "A video about tea"}
    watch = Watch()
    answer = await wire.send("POST", "/v1/tasks", json=task, headers=WAIT if how == "POST" else {})
    if how == "GET":
        answer = await wire.send("GET", f"/v1/tasks/{answer.json()['id']}", headers=WAIT)
    assert answer.json()["status"] == "blocked"
    assert watch.measure_elapsed_s() < 15


async def test_holds_a_read_of_a_retried_workflow(wire: Wire, faults: Faults) -> None:
    """Given a failed workflow that is retried, then a read is held until the new end."""
    faults.add(Fault("minimax", status=400, times=1))
    workflow = (await wire.send("POST", "/v1/workflows", json=GRAPH, headers=WAIT)).json()
    assert workflow["status"] == "failed"
    faults.add(Fault("minimax", delay_ms=300, times=1))
    await wire.send("POST", f"/v1/workflows/{workflow['id']}/retry")
    answer = await wire.send("GET", f"/v1/workflows/{workflow['id']}", headers=WAIT)
    assert answer.json()["status"] == "completed"


async def test_answers_an_unknown_id_at_once(wire: Wire) -> None:
    """Given an unknown id, or an id of another kind or account, then the answer is 404 at once."""
    run = (await wire.send("POST", "/v1/runs", json=LINE, headers=WAIT)).json()["data"]
    bobs_headers = await wire.sign_up("bob@example.org")
    unused_id = run["id"][:-1] + ("1" if run["id"].endswith("0") else "0")
    for path, headers in (
        (f"/v1/runs/{run['job_id']}", WAIT),
        (f"/v1/jobs/{run['id']}", WAIT),
        (f"/v1/runs/{unused_id}", WAIT),
        (f"/v1/runs/{run['id']}", {**WAIT, **bobs_headers}),
    ):
        assert (await wire.send("GET", path, headers=headers)).status_code == 404, path
