"""Three transports to one engine, in process, ASGI and a socket: their responses are equal."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.conftest import Server
from tests.contract.conftest import read_key, sign_up_client
from tests.support.embedded import AppTransport, open_in_process
from toolkit import Client
from toolkit.contract.errors import ToolkitError
from toolkit.local import LOCAL_URL
from toolkit.settings import Settings

pytestmark = pytest.mark.sqlite("other tests have its statements")

UNKNOWN_RUN = "run_01k23tfp431g22yas787jwqrky"
TEXT = {"objective": "One line on tides"}
NODE = {"id": "a", "capability": "llm.generate", "input": TEXT}
Ask = Callable[[Client], object]
INVALID: dict[str, Ask] = {
    "an id with delimiters": lambda client: client.runs.get("a/b c%20d?e=1&f"),
    "no such path": lambda client: client.read("/poems"),
    "no such query": lambda client: client.read("/runs?limits=2"),
    "a path for POST alone": lambda client: client.read("/route"),
    "no such id": lambda client: client.runs.get(UNKNOWN_RUN),
    "no such capability": lambda client: client.runs.create("poem.generate", {}),
    "an unknown field": lambda client: client.runs.create("llm.generate", {**TEXT, "x": 1}),
    "two faults": lambda client: client.runs.create("llm.generate", {"objective": 3, "seed": "x"}),
    "a text too long": lambda client: client.runs.create(
        "llm.generate", {"objective": "x" * 10**6}
    ),
    "NUL": lambda client: client.runs.create("llm.generate", {"objective": "a\0b"}),
    "nested too deep": lambda client: client.runs.create("llm.generate", {"objective": nest(70)}),
    "a number too large": lambda client: client.runs.create("llm.generate", {"seed": 2**64}),
    "a body too large": lambda client: client.runs.create("llm.generate", {"a": "x" * 4_000_000}),
    "no vendor connected": lambda client: client.runs.create("llm.generate", TEXT),
    "an unknown provider": lambda client: client.runs.create(
        "llm.generate", TEXT, provider="nobody"
    ),
    "an empty page": lambda client: client.runs.list(0),
    "an invalid cursor": lambda client: client.read("/runs", {"cursor": "x"}),
    "a graph with a cycle": lambda client: client.workflows.create(
        {"name": "loop", "nodes": [{**NODE, "depends_on": ["a"]}]}
    ),
    "a key as a pointer": lambda client: client.connections.create("openai", "environment", "sk-x"),
}
READ: dict[str, Ask] = {
    "the account": lambda client: client.account.get(),
    "capabilities": lambda client: list(client.capabilities.list()),
    "providers": lambda client: list(client.providers.list()),
    "models": lambda client: client.catalog.models(),
    "JSON of a record": lambda client: client.read("/capabilities/llm.generate"),
    "JSON of a page": lambda client: client.read("/capabilities?", {}),
    "usage": lambda client: client.usage.list(),
    "a plan": lambda client: client.plans.create("A picture of a tide").record.nodes,
    "a route": lambda client: client.route("image.generate", {"prompt": "a tide"}),
}


def nest(depth: int) -> object:
    """Return nested lists."""
    value: object = []
    for _ in range(depth):
        value = [value]
    return value


def open_ways(server: Server, key: str) -> dict[str, Client]:
    """Open a client with a key for each transport to an engine."""
    return {
        "in process": open_in_process(server.thread, key),
        "asgi": Client(LOCAL_URL, key, transport=AppTransport(server.thread)),
        "socket": Client(server.url, key),
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A served engine in this process."""
    server = Server(Settings(data_dir=tmp_path_factory.mktemp("ways"), sandbox=True))
    yield server
    server.close()


@pytest.fixture(scope="module")
def ways(server: Server) -> Iterator[dict[str, Client]]:
    """Clients of one account, by transport."""
    with sign_up_client(server.url) as owner:
        clients = open_ways(server, read_key(owner))
    yield clients
    for client in clients.values():
        client.close()


def get_outcome(ask: Ask, client: Client) -> object:
    """Return the members of the error of a request, or the text of its result."""
    try:
        return repr(ask(client))
    except ToolkitError as error:
        members = type(error), error.code, error.message, error.details
        origin = str(error.request_id)[:4], error.retry_after, error.is_away
        return (*members, *origin, error.__cause__, error.__context__)


@pytest.mark.parametrize("request_name", INVALID)
def test_errors_are_equal(request_name: str, ways: dict[str, Client]) -> None:
    """Given an invalid request, then each transport raises an equal error."""
    outcomes = {way: get_outcome(INVALID[request_name], client) for way, client in ways.items()}
    assert isinstance(outcomes["socket"], tuple)
    assert "req_" in outcomes["socket"]
    assert outcomes["in process"] == outcomes["asgi"] == outcomes["socket"]


@pytest.mark.parametrize("request_name", READ)
def test_results_are_equal(request_name: str, ways: dict[str, Client]) -> None:
    """Given a valid request, then each transport returns an equal result."""
    outcomes = {way: get_outcome(READ[request_name], client) for way, client in ways.items()}
    assert isinstance(outcomes["socket"], str)
    assert outcomes["in process"] == outcomes["asgi"] == outcomes["socket"]


@pytest.mark.parametrize("value", [math.nan, math.inf, "\ud800"])
def test_sends_nothing_that_json_cannot_express(value: object, ways: dict[str, Client]) -> None:
    """Given NaN, infinity or half a character, then it is rejected before it is sent."""
    for client in ways.values():
        with pytest.raises(ValueError, match=r"JSON|surrogates"):
            client.runs.create("llm.generate", {"objective": value})


@pytest.mark.parametrize("kind", ["unknown", "revoked", "of too little scope"])
def test_errors_of_a_key_are_equal(kind: str, server: Server, ways: dict[str, Client]) -> None:
    """Given an invalid key, then each transport raises an equal error."""
    owner = ways["socket"]
    key = owner.api_keys.create(scopes=["read"])
    if kind == "revoked":
        owner.api_keys.delete(key.id)
    clients = open_ways(server, "sk_live_" + "x" * 32 if kind == "unknown" else key.api_key)
    first, second, third = (
        get_outcome(lambda client: client.agents.delete(UNKNOWN_RUN), client)
        for client in clients.values()
    )
    for client in clients.values():
        client.close()
    assert isinstance(first, tuple)
    assert first == second == third


def test_readers_share_no_record(ways: dict[str, Client]) -> None:
    """Given a record that a reader changes, then the next reader gets it unchanged."""
    client = ways["in process"]
    record: Any = client.capabilities.get("llm.generate").record
    record.title = "mine"
    record.input_schema.clear()
    second: Any = client.capabilities.get("llm.generate").record
    assert second.title != "mine"
    assert second.input_schema
