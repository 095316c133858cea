"""Every test here runs twice, against the embedded engine and a server.

With TOOLKIT_TEST_DATABASE=postgresql both have their rows there.

`client` speaks through the client, to a service of its own; `caller` and `stranger` speak HTTP, to
one that the tests of a module share.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.conftest import Server, clear_environment
from tests.contract.raw_http import NAMES, SETTINGS, RawCaller, open_door
from toolkit import AsyncClient, Client
from toolkit.sandbox import Faults
from toolkit.settings import Settings

WAYS = ("embedded", "served")
POINTERS = {
    "minimax": "MINIMAX_API_KEY",
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "google": "GEMINI_API_KEY",
    "elevenlabs": "ELEVENLABS_API_KEY",
    "aws": "AWS_BEARER_TOKEN_BEDROCK",
    "runpod": "RUNPOD_API_KEY",
}


def sign_up_client(url: str, email: str = "ada@example.org") -> Client:
    """A client of a new account on a server."""
    with Client(base_url=url) as nobody:
        return Client(base_url=url, api_key=nobody.account.create(email).api_key)


def read_key(client: Client) -> str:
    """The key that a client sends."""
    assert client.access.api_key is not None
    return client.access.api_key.get_secret_value()


@pytest.fixture(params=WAYS)
def bare(request: pytest.FixtureRequest, settings: Settings, faults: Faults) -> Iterator[Client]:
    """A client whose account has connected nothing."""
    if request.param == "embedded":
        client = Client.local(settings=settings, faults=faults)
        for connection in client.connections.list():
            client.connections.delete(connection.id)
        yield client
        client.close()
        return
    server = Server(settings, faults)
    client = sign_up_client(server.url)
    yield client
    client.close()
    server.close()


@pytest.fixture
def client(bare: Client) -> Client:
    """A client whose account has connected every vendor of the sandbox."""
    for provider, variable in POINTERS.items():
        bare.connections.create(provider, "environment", variable)
    return bare


@pytest.fixture(params=WAYS)
async def async_client(
    request: pytest.FixtureRequest, settings: Settings, faults: Faults
) -> AsyncIterator[AsyncClient]:
    """The client to be awaited, whose account has connected openai."""
    if request.param == "embedded":
        async with AsyncClient.local(settings=settings, faults=faults) as client:
            yield client
        return
    server = Server(settings, faults)
    with sign_up_client(server.url) as signed_up:
        signed_up.connections.create("openai", "environment", "OPENAI_API_KEY")
        async with AsyncClient(server.url, read_key(signed_up)) as client:
            yield client
    server.close()


@pytest.fixture
def data_dir(settings: Settings) -> Path:
    """Where the engine of this test keeps its data."""
    return settings.data_dir


@pytest.fixture(scope="module", params=WAYS)
def service(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RawCaller]:
    """A caller without a key."""
    with pytest.MonkeyPatch.context() as patch:
        clear_environment(patch)
        data_dir = tmp_path_factory.mktemp("service")
        settings = Settings(data_dir=data_dir, sandbox=True, retry_base_s=0.001, **SETTINGS)
        with open_door(request.param, settings) as door:
            yield door


@pytest.fixture(scope="module")
def caller(service: RawCaller) -> RawCaller:
    """A caller whose account has connected every vendor."""
    return service.sign_up(*NAMES.values())


@pytest.fixture(scope="module")
def stranger(service: RawCaller) -> RawCaller:
    """A caller whose account has connected nothing."""
    return service.sign_up()
