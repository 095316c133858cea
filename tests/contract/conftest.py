"""Clients of the service, embedded and served, and callers by raw HTTP.

A test of `client` or `bare` runs twice: against an embedded engine, and against a server. A test
that is marked `embedded` runs once; `test_ways.py` shows that a server responds as the engine does.
`caller` and `stranger` send raw HTTP to a server that the tests of a module share.

With TOOLKIT_TEST_DATABASE=postgresql all of them use PostgreSQL.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import POINTERS, Server, clear_environment
from tests.contract.raw_http import NAMES, SETTINGS, RawCaller, open_door
from toolkit import AsyncClient, Client, RequestError, Workflow
from toolkit.client import WorkflowRun
from toolkit.sandbox import Faults
from toolkit.settings import Settings

WAYS = ("embedded", "served")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test of a client both ways, or only embedded if it is marked so."""
    if "way" in metafunc.fixturenames:
        is_embedded = metafunc.definition.get_closest_marker("embedded") is not None
        metafunc.parametrize("way", WAYS[:1] if is_embedded else WAYS, scope="module")


def sign_up_client(url: str, email: str = "ada@example.org") -> Client:
    """Return a client of a new account on a server."""
    with Client(base_url=url) as nobody:
        return Client(base_url=url, api_key=nobody.account.create(email).api_key)


def read_key(client: Client) -> str:
    """Return the key that a client sends."""
    assert client.access.api_key is not None
    return client.access.api_key.get_secret_value()


@contextmanager
def expect_refusal(code: str, *paths: str, match: str | None = None) -> Iterator[None]:
    """Expect a `RequestError` with this code, and details with exactly these paths."""
    with pytest.raises(RequestError, match=match) as error:
        yield
    assert error.value.code.name == code
    assert [detail.path for detail in error.value.details] == list(paths)


def use_up(client: Client, input: dict[str, object]) -> None:
    """Run until the allowance of the client's key does not cover another run."""

    def run_without_end() -> None:
        while True:
            client.runs.create("llm.generate", input).wait()

    with pytest.raises(RequestError, match=r"^BUDGET_EXCEEDED:"):
        run_without_end()


def submit_chain(client: Client, *, stream: bool = False, **options: object) -> WorkflowRun:
    """Submit a workflow of two nodes, `first` at openai, then `second` with the options."""
    input = {"objective": "Write two sentences about tides."}
    workflow = Workflow("tides")
    first = workflow.add("first", "llm.generate@1", options={"provider": "openai"}, **input)
    workflow.add("second", "llm.generate@1", depends_on=[first], options=options, **input)
    return client.workflows.submit(workflow, stream=stream)


@contextmanager
def open_client(way: str, settings: Settings, faults: Faults, *providers: str) -> Iterator[Client]:
    """Open a client of a new service, whose account has connected these providers."""
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
    """A client whose account has no connections."""
    with open_client(way, settings, faults) as client:
        yield client


@pytest.fixture
def client(way: str, settings: Settings, faults: Faults) -> Iterator[Client]:
    """A client whose account has connected every vendor of the sandbox."""
    with open_client(way, settings, faults, *POINTERS) as client:
        yield client


@pytest.fixture
async def async_client(way: str, settings: Settings, faults: Faults) -> AsyncIterator[AsyncClient]:
    """An async client whose account has connected openai."""
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
    """The data directory of the engine of this test."""
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
def places(caller: RawCaller) -> dict[str, str]:
    """Ids of an endpoint and a compute."""
    gpu = caller.get("/v1/catalog/gpus")["data"]["items"][0]["id"]
    compute = caller.create("/v1/compute", {"name": "easel", "gpu_type": gpu})
    return {"endpoint_id": caller.create("/v1/endpoints", {})["id"], "compute_id": compute["id"]}


@pytest.fixture(scope="module")
def stranger(service: RawCaller) -> RawCaller:
    """A caller whose account has no connections."""
    return service.sign_up()
