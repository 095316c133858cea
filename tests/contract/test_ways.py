"""The three ways to one engine, in process, over ASGI and over a socket: all answer the same.

Everything else here is tried by clients and callers that each take one way or another; this holds
the ways against each other, on the same engine, to the word.
"""

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
Ask = Callable[[Client], object]
REFUSED: dict[str, Ask] = {
    "an id with signs in it": lambda client: client.runs.get("a/b c%20d?e=1&f"),
    "no such path": lambda client: client.read("/poems"),
    "no such query": lambda client: client.read("/runs?limits=2"),
    "a path for POST alone": lambda client: client.read("/route"),
    "no such id": lambda client: client.runs.get(UNKNOWN_RUN),
    "no id at all": lambda client: client.runs.get("one of mine"),
    "no such capability": lambda client: client.runs.create("poem.generate", {}),
    "a field too many": lambda client: client.runs.create("llm.generate", {**TEXT, "x": 1}),
    "many faults": lambda client: client.runs.create("llm.generate", {"objective": 3, "seed": "x"}),
    "a text too long": lambda client: client.runs.create(
        "llm.generate", {"objective": "x" * 10**6}
    ),
    "NUL": lambda client: client.runs.create("llm.generate", {"objective": "a\0b"}),
    "nested too deep": lambda client: client.runs.create("llm.generate", {"objective": nest(70)}),
    "a number too large": lambda client: client.runs.create("llm.generate", {"seed": 2**64}),
    "a body too large": lambda client: client.runs.create("llm.generate", {"a": "x" * 4_000_000}),
    "no vendor connected": lambda client: client.runs.create("llm.generate", TEXT),
    "another's provider": lambda client: client.runs.create(
        "llm.generate", TEXT, provider="nobody"
    ),
    "a page of none": lambda client: client.runs.list(0),
    "no cursor": lambda client: client.read("/runs", {"cursor": "x"}),
    "a graph with a cycle": lambda client: client.workflows.create(
        {
            "name": "loop",
            "nodes": [
                {"id": "a", "capability": "llm.generate", "input": TEXT, "depends_on": ["b"]},
                {"id": "b", "capability": "llm.generate", "input": TEXT, "depends_on": ["a"]},
            ],
        }
    ),
    "a pointer to a key": lambda client: client.connections.create("openai", "environment", "sk-x"),
    "events of nothing": lambda client: client.runs.events(UNKNOWN_RUN),
    "a month that is none": lambda client: client.billing.get("2026-13"),
    "a limit below zero": lambda client: client.runs.create("llm.generate", TEXT, max_cost_usd=-1),
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
    "what a route would be": lambda client: client.route("image.generate", {"prompt": "a tide"}),
}


def nest(depth: int) -> object:
    """A list in a list, and so on."""
    value: object = []
    for _ in range(depth):
        value = [value]
    return value


def open_ways(server: Server, key: str) -> dict[str, Client]:
    """Clients with a key, one for each way to one engine."""
    return {
        "in process": open_in_process(server.thread, key),
        "asgi": Client(LOCAL_URL, key, transport=AppTransport(server.thread)),
        "socket": Client(server.url, key),
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A served engine that is in this process."""
    server = Server(Settings(data_dir=tmp_path_factory.mktemp("ways"), sandbox=True))
    yield server
    server.close()


@pytest.fixture(scope="module")
def ways(server: Server) -> Iterator[dict[str, Client]]:
    """Clients of one account, one for each way."""
    with sign_up_client(server.url) as owner:
        found = open_ways(server, read_key(owner))
    yield found
    for client in found.values():
        client.close()


def tell_outcome(ask: Ask, client: Client) -> object:
    """What comes of a request: an error to the word, or a result as it would be shown."""
    try:
        return repr(ask(client))
    except ToolkitError as error:
        told = str(error.request_id)[:4], error.retry_after, error.is_away
        said = type(error), error.code, error.message, error.details
        return (*said, *told, error.__cause__, error.__context__)


@pytest.mark.parametrize("asked", REFUSED)
def test_what_is_refused_is_refused_alike(asked: str, ways: dict[str, Client]) -> None:
    """Given a request that is refused, then each way says so in the same words."""
    told = {way: tell_outcome(REFUSED[asked], client) for way, client in ways.items()}
    assert isinstance(told["socket"], tuple)
    assert "req_" in told["socket"]
    assert told["in process"] == told["asgi"] == told["socket"]


@pytest.mark.parametrize("asked", READ)
def test_what_is_read_is_the_same(asked: str, ways: dict[str, Client]) -> None:
    """Given what may be read, then each way reads the same."""
    told = {way: tell_outcome(READ[asked], client) for way, client in ways.items()}
    assert isinstance(told["socket"], str)
    assert told["in process"] == told["asgi"] == told["socket"]


@pytest.mark.parametrize("value", [math.nan, math.inf, "\ud800"])
def test_what_json_cannot_say_is_never_sent(value: object, ways: dict[str, Client]) -> None:
    """Given a number that is none, or half a character, then it is refused before it is sent."""
    for client in ways.values():
        with pytest.raises(ValueError, match=r"JSON|surrogates"):
            client.runs.create("llm.generate", {"objective": value})


@pytest.mark.parametrize("kind", ["unknown", "revoked", "of too little scope"])
def test_a_key_is_refused_alike(kind: str, server: Server, ways: dict[str, Client]) -> None:
    """Given a key that may not, then each way says so in the same words."""
    owner = ways["socket"]
    made = owner.api_keys.create(scopes=["read"])
    if kind == "revoked":
        owner.api_keys.delete(made.id)
    key = "sk_live_" + "x" * 32 if kind == "unknown" else made.api_key
    asking = open_ways(server, key)
    told = [
        tell_outcome(lambda client: client.agents.delete(UNKNOWN_RUN), one)
        for one in asking.values()
    ]
    for client in asking.values():
        client.close()
    assert isinstance(told[0], tuple)
    assert told[0] == told[1] == told[2]


def test_nothing_that_is_read_is_shared(ways: dict[str, Client]) -> None:
    """Given a record that a caller changes, then whoever reads it next reads what it was."""
    client = ways["in process"]
    changed: Any = client.capabilities.get("llm.generate")
    changed.record.title = "mine"
    changed.record.input_schema.clear()
    again: Any = client.capabilities.get("llm.generate")
    assert again.title != "mine"
    assert again.record.input_schema
