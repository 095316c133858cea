"""Events as a stream: equal to the list, resumable, and ended after the last event."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import httpx
import pytest

from tests.conftest import Server
from tests.contract.conftest import read_key, sign_up_client
from tests.server.conftest import read_stream
from tests.support.slow_capability import load_slow_registry
from tests.support.timing import PATIENCE_S
from toolkit import Client, Workflow
from toolkit.engine.request_context import RequestContext
from toolkit.local import EngineThread, open_engine
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
