"""`Prefer: wait` on the reading of work: the answer is held until the work has ended."""

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
    """A caller who has connected a vendor."""
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
async def test_reading_work_is_held_until_its_end(
    wire: Wire, faults: Faults, path: str, body: dict[str, Any], read: str
) -> None:
    """Given work under way, when it is read with `Prefer: wait`, then the answer has its result."""
    faults.add(Fault("minimax", delay_ms=300, times=1))
    read = read.format(**(await wire.send("POST", path, json=body)).json()["data"])
    assert (await wire.send("GET", read)).json()["status"] != "completed"
    held = await wire.send("GET", read, headers=WAIT)
    assert held.json()["status"] == "completed", held.text
    assert held.headers["Preference-Applied"] == "wait=30"
    assert (await wire.send("GET", read, headers=WAIT)).json() == held.json()


async def test_the_time_is_kept(wire: Wire, faults: Faults) -> None:
    """Given work that takes longer, then the answer is its state when the time is up."""
    faults.add(Fault("minimax", delay_ms=60_000, times=None))
    run = (await wire.send("POST", "/v1/runs", json=LINE)).json()["id"]
    held = await wire.send("GET", f"/v1/runs/{run}", headers={"Prefer": "wait=1"})
    assert held.json()["status"] == "running"
    assert held.headers["Preference-Applied"] == "wait=1"


@pytest.mark.parametrize("how", ["GET", "POST"])
async def test_a_blocked_task_is_answered_at_once(wire: Wire, how: str) -> None:
    """Given a task that needs its caller, then nothing is held: only the caller can go on."""
    task = {"objective": "A video about tea"}
    watch = Watch()
    answer = await wire.send("POST", "/v1/tasks", json=task, headers=WAIT if how == "POST" else {})
    if how == "GET":
        answer = await wire.send("GET", f"/v1/tasks/{answer.json()['id']}", headers=WAIT)
    assert answer.json()["status"] == "blocked"
    assert watch.measure_elapsed_s() < 15


async def test_a_workflow_that_is_retried_is_held_anew(wire: Wire, faults: Faults) -> None:
    """Given a workflow that failed and is retried, then its earlier end is not its end."""
    faults.add(Fault("minimax", status=400, times=1))
    made = (await wire.send("POST", "/v1/workflows", json=GRAPH, headers=WAIT)).json()
    assert made["status"] == "failed"
    faults.add(Fault("minimax", delay_ms=300, times=1))
    await wire.send("POST", f"/v1/workflows/{made['id']}/retry")
    held = await wire.send("GET", f"/v1/workflows/{made['id']}", headers=WAIT)
    assert held.json()["status"] == "completed"


async def test_what_is_not_there_is_told_at_once(wire: Wire) -> None:
    """Given an id of nothing, or of another kind of work, then the answer is 404 at once."""
    run = (await wire.send("POST", "/v1/runs", json=LINE, headers=WAIT)).json()["data"]
    other = await wire.sign_up("bob@example.org")
    unused_id = run["id"][:-1] + ("1" if run["id"].endswith("0") else "0")
    for path, headers in (
        (f"/v1/runs/{run['job_id']}", WAIT),
        (f"/v1/jobs/{run['id']}", WAIT),
        (f"/v1/runs/{unused_id}", WAIT),
        (f"/v1/runs/{run['id']}", {**WAIT, **other}),
    ):
        assert (await wire.send("GET", path, headers=headers)).status_code == 404, path
