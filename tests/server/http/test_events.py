"""Events as a stream: the same as the list, resumable, and over when nothing comes any more."""

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
    """A client that has connected minimax."""
    with sign_up_client(server.url) as client:
        client.connections.create("minimax", "environment", "MINIMAX_API_KEY")
        yield client


def read_events(
    client: Client, path: str, most: int | None = None, **headers: str
) -> list[dict[str, Any]]:
    """The events that a stream gives, until it ends or there are so many."""
    told = (event for name, event in read_stream(client, path, **headers) if name != "delta")
    return list(islice(told, most))


def flow() -> Workflow:
    """Three texts in a row."""
    flow = Workflow("three")
    before: list[Any] = []
    for i in range(3):
        before = [flow.add(f"n{i}", "llm.generate", objective=f"Line {i}", depends_on=before)]
    return flow


def test_a_stream_has_what_the_list_has(client: Client) -> None:
    """Given a workflow under way, then its stream gives each event once, and ends with it."""
    run = client.workflows.submit(flow())
    told = read_events(client, f"/workflows/{run.id}/events")
    assert told == [event.model_dump(mode="json") for event in run.events()]
    assert told[-1]["type"] == "workflow.completed"
    assert [event["n"] for event in told] == list(range(1, len(told) + 1))


def test_a_broken_stream_goes_on(client: Client) -> None:
    """Given a stream that broke, then it goes on after the last event that was seen."""
    run = client.workflows.submit(flow())
    first = read_events(client, f"/workflows/{run.id}/events", most=3)
    last = {"Last-Event-ID": str(first[-1]["n"])}
    rest = read_events(client, f"/workflows/{run.id}/events", **last)
    assert [event["n"] for event in [*first, *rest]] == list(range(1, len(first + rest) + 1))
    assert read_events(client, f"/workflows/{run.id}/events", **{"Last-Event-ID": "9999"}) == []


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/runs/wfl_nope/events", {}, 404),
        ("/workflows/{id}/events", {"Last-Event-ID": "x"}, 400),
        ("/workflows/{id}/events?after=-1", {}, 400),
    ],
)
def test_refusals_come_before_the_stream(
    client: Client, path: str, headers: dict[str, str], status: int
) -> None:
    """Given what is not there or no number, then it is refused as ever, in JSON."""
    run = client.workflows.submit(flow()).wait()
    url = client.access.base_url + path.replace("{id}", run.id)
    sent = {"Authorization": f"Bearer {read_key(client)}", **STREAM, **headers}
    answer = httpx.get(url, headers=sent)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json")


def test_a_stream_ends_with_its_key(settings: Settings) -> None:
    """Given a stream under way, when another process revokes its key, then it ends."""
    served = Server(settings, registry=load_slow_registry())
    other = EngineThread(open_engine(settings, registry=load_slow_registry()))
    try:
        with sign_up_client(served.url) as client:
            run = client.runs.create("test.nap", {"seconds": 60})
            path = f"{served.url}/v1/runs/{run.id}/events"
            key = f"Bearer {read_key(client)}"
            with httpx.stream(
                "GET", path, headers={"Authorization": key, **STREAM}, timeout=PATIENCE_S
            ) as response:
                lines = response.iter_lines()
                assert next(lines) == "id: 1"
                me = client.account.get()
                (record,) = other.call(other.engine.keys.list(RequestContext(me.id), 10, None))
                other.call(other.engine.keys.revoke(RequestContext(me.id), record.id))
                assert not any("run.completed" in line for line in lines)  # it ends, so this does
        assert httpx.get(path, headers={"Authorization": key}).status_code == 401
    finally:
        other.close(0)
        served.close()
