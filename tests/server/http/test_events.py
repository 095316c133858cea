"""Streams of events, and reads that are held until the end."""

from collections.abc import AsyncIterator, Iterator
from itertools import islice
from typing import Any

import httpx
import pytest

from tests.conftest import Server
from tests.contract.conftest import read_key, sign_up_client
from tests.server.conftest import POINTER, Wire, open_wire, read_stream
from tests.support.slow_capability import load_slow_registry
from tests.support.timing import PATIENCE_S, Watch
from toolkit import Client, Workflow
from toolkit.engine.request_context import RequestContext
from toolkit.local import EngineThread, open_engine
from toolkit.sandbox import Fault, Faults
from toolkit.settings import Settings

STREAM = {"Accept": "text/event-stream"}


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    """A client that is connected to minimax."""
    with sign_up_client(server.url) as client:
        client.connections.create("minimax", "environment", "MINIMAX_API_KEY")
        yield client


def read_events(
    client: Client, path: str, limit: int | None = None, **headers: str
) -> list[dict[str, Any]]:
    """Return the events of a stream, until it ends or reaches the limit."""
    events = (event for name, event in read_stream(client, path, **headers) if name != "delta")
    return list(islice(events, limit))


def build_workflow() -> Workflow:
    """Build a chain of three texts."""
    wf = Workflow("three")
    last: list[Any] = []
    for i in range(3):
        last = [wf.add(f"n{i}", "llm.generate", objective=f"Line {i}", depends_on=last)]
    return wf


def test_stream_equals_the_list_and_resumes(client: Client) -> None:
    """Given a workflow, then its stream equals the list, and resumes after Last-Event-ID."""
    run = client.workflows.submit(build_workflow())
    path = f"/workflows/{run.id}/events"
    events = read_events(client, path)
    assert events == [event.model_dump(mode="json") for event in run.events()]
    assert events[-1]["type"] == "workflow.completed"
    assert [event["n"] for event in events] == list(range(1, len(events) + 1))
    assert read_events(client, path, limit=3) == events[:3]
    assert read_events(client, path, **{"Last-Event-ID": "3"}) == events[3:]
    assert read_events(client, path, **{"Last-Event-ID": "9999"}) == []


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/runs/wfl_nope/events", {}, 404),
        ("/workflows/{id}/events", {"Last-Event-ID": "x"}, 400),
        ("/workflows/{id}/events?after=-1", {}, 400),
    ],
)
def test_rejects_before_the_stream(
    client: Client, path: str, headers: dict[str, str], status: int
) -> None:
    """Given an unknown id or an invalid number, then the error is JSON."""
    run = client.workflows.submit(build_workflow()).wait()
    url = client.access.base_url + path.replace("{id}", run.id)
    request_headers = {"Authorization": f"Bearer {read_key(client)}", **STREAM, **headers}
    answer = httpx.get(url, headers=request_headers)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json")


def test_stream_ends_with_its_key(settings: Settings) -> None:
    """Given a stream, when another process revokes its key, then the stream ends."""
    server = Server(settings, registry=load_slow_registry())
    other_engine = EngineThread(open_engine(settings, registry=load_slow_registry()))
    try:
        with sign_up_client(server.url) as client:
            run = client.runs.create("test.nap", {"seconds": 60})
            path = f"{server.url}/v1/runs/{run.id}/events"
            key = f"Bearer {read_key(client)}"
            with httpx.stream(
                "GET", path, headers={"Authorization": key, **STREAM}, timeout=PATIENCE_S
            ) as response:
                lines = response.iter_lines()
                assert next(lines) == "id: 1"
                me = client.account.get()
                (record,) = other_engine.call(
                    other_engine.engine.keys.list(RequestContext(me.id), 10, None)
                )
                other_engine.call(other_engine.engine.keys.revoke(RequestContext(me.id), record.id))
                assert not any("run.completed" in line for line in lines)  # the stream ends
        assert httpx.get(path, headers={"Authorization": key}).status_code == 401
    finally:
        other_engine.close(0)
        server.close()


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
