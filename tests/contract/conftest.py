"""What speaks to the service: clients, embedded and served, and callers by HTTP alone.

A test of `client` or `bare` runs twice, against the embedded engine and a server, each its own. One
that is marked `embedded` is of what the engine does, and runs once: that a server answers as the
engine does is shown by `test_ways.py` and by the tests of each resource. `caller` and `stranger`
speak HTTP to a server that the tests of a module share.

With TOOLKIT_TEST_DATABASE=postgresql all have their rows there.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import POINTERS, Server, clear_environment
from tests.contract.raw_http import NAMES, SETTINGS, RawCaller, open_door
from toolkit import AsyncClient, Client
from toolkit.sandbox import Faults
from toolkit.settings import Settings

WAYS = ("embedded", "served")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test both ways, unless it is marked otherwise."""
    if "way" in metafunc.fixturenames:
        is_embedded = metafunc.definition.get_closest_marker("embedded") is not None
        metafunc.parametrize("way", WAYS[:1] if is_embedded else WAYS, scope="module")


def sign_up_client(url: str, email: str = "ada@example.org") -> Client:
    """A client of a new account on a server."""
    with Client(base_url=url) as nobody:
        return Client(base_url=url, api_key=nobody.account.create(email).api_key)


def read_key(client: Client) -> str:
    """The key that a client sends."""
    assert client.access.api_key is not None
    return client.access.api_key.get_secret_value()


@contextmanager
def open_client(way: str, settings: Settings, faults: Faults, *providers: str) -> Iterator[Client]:
    """Open a client of a service of its own, whose account has connected these."""
    if way == "embedded":
        with Client.local(settings=settings, faults=faults) as client:
            for connection in client.connections.list():
                if connection.provider not in providers:
                    client.connections.delete(connection.id)
            yield client
        return
    server = Server(settings, faults)
    with Client(base_url=server.url, api_key=server.sign_up(*providers)) as client:
        yield client
    server.close()


@pytest.fixture
def bare(way: str, settings: Settings, faults: Faults) -> Iterator[Client]:
    """A client whose account has connected nothing."""
    with open_client(way, settings, faults) as client:
        yield client


@pytest.fixture
def client(way: str, settings: Settings, faults: Faults) -> Iterator[Client]:
    """A client whose account has connected every vendor of the sandbox."""
    with open_client(way, settings, faults, *POINTERS) as client:
        yield client


@pytest.fixture
async def async_client(way: str, settings: Settings, faults: Faults) -> AsyncIterator[AsyncClient]:
    """The client to be awaited, whose account has connected openai."""
    if way == "embedded":
        async with AsyncClient.local(settings=settings, faults=faults) as client:
            yield client
        return
    server = Server(settings, faults)
    async with AsyncClient(server.url, server.sign_up("openai")) as client:
        yield client
    server.close()


@pytest.fixture
def data_dir(settings: Settings) -> Path:
    """Where the engine of this test keeps its data."""
    return settings.data_dir


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawCaller]:
    """A caller without a key."""
    with pytest.MonkeyPatch.context() as patch:
        clear_environment(patch)
        data_dir = tmp_path_factory.mktemp("service")
        settings = Settings(data_dir=data_dir, sandbox=True, retry_base_s=0.001, **SETTINGS)
        with open_door(settings) as door:
            yield door


@pytest.fixture(scope="module")
def caller(service: RawCaller) -> RawCaller:
    """A caller whose account has connected every vendor."""
    return service.sign_up(*NAMES.values())


@pytest.fixture(scope="module")
def stranger(service: RawCaller) -> RawCaller:
    """A caller whose account has connected nothing."""
    return service.sign_up()
