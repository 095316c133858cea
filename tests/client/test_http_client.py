"""`http_client`, `timeout` and `max_retries` have the meaning of openai-python and httpx."""

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest

from tests.client.test_client import KEY, RUN, URL, ListedService, envelope, failure
from tests.conftest import Server
from toolkit import AsyncClient, Client, ServiceError

pytestmark = pytest.mark.usefixtures("no_backoff")


@pytest.mark.parametrize(
    ("http", "options", "timeout"),
    [
        (httpx.Client(), {}, 60.0),  # the default of httpx is not the caller's choice
        (httpx.Client(timeout=9), {}, 9),
        (httpx.Client(timeout=None), {}, None),
        (httpx.Client(timeout=9), {"timeout": 7}, 7),
        (httpx.Client(timeout=9), {"timeout": None}, None),
    ],
)
def test_uses_the_timeout_of_the_client_first(
    http: httpx.Client, options: dict[str, float | None], timeout: float | None
) -> None:
    """Given timeouts of this client and the HTTP client, then this client's is used."""
    service = ListedService(envelope(RUN))
    http._transport = httpx.MockTransport(service)
    Client(URL, KEY, http_client=http, **options).runs.get("run_1")
    assert set(service.seen[0].extensions["timeout"].values()) == {timeout}


@pytest.fixture(params=["httpx", "copy", "httpx2"])
def twin(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    """A package with httpx's interface: httpx itself, a second import of it, or httpx2."""
    if request.param == "httpx":
        yield httpx
        return
    if request.param == "httpx2":
        yield pytest.importorskip("httpx2")
        return
    names = [name for name in sys.modules if name.partition(".")[0] == "httpx"]
    originals = {name: sys.modules.pop(name) for name in names}
    try:
        copy = importlib.import_module("httpx")
    finally:
        sys.modules.update(originals)
    assert copy.Client is not httpx.Client
    yield copy


class TwinService:
    """A service for clients of another package."""

    def __init__(self, twin: ModuleType, *answers: httpx.Response | str) -> None:
        self._twin, self._answers = twin, list(answers)
        self.seen: list[Any] = []
        self.transport = twin.MockTransport(self._answer)

    def _answer(self, request: Any) -> Any:
        self.seen.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, str):
            raise getattr(self._twin, answer)("no")
        answer.read()
        headers = list(answer.headers.raw)
        return self._twin.Response(answer.status_code, headers=headers, content=answer.content)


def test_custom_http_client_sends_requests(twin: ModuleType) -> None:
    """Given an HTTP client, then it sends and retries the requests, and is closed last."""
    service = TwinService(twin, "ConnectError", envelope(RUN, 202), envelope(RUN))
    http = twin.Client(
        transport=service.transport,
        timeout=9,
        base_url="http://elsewhere.test",
        headers={"X-Team": "tides", "User-Agent": "mine", "Authorization": "Basic eA=="},
    )
    with Client(URL, KEY, http_client=http) as client:
        assert client.runs.create("llm.generate", {"objective": "x"}).id == "run_1"
        assert client.runs.get("run_1").id == "run_1"
        assert not http.is_closed
    assert http.is_closed
    assert len(service.seen) == 3
    first, sent, _ = service.seen
    assert str(sent.url) == f"{URL}/v1/runs"
    assert sent.headers["x-team"] == "tides"
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.headers["idempotency-key"] == first.headers["idempotency-key"]
    assert json.loads(sent.content)["name"] == "llm.generate"
    assert set(sent.extensions["timeout"].values()) == {9}


async def test_custom_async_http_client_sends_requests(twin: ModuleType) -> None:
    """Given an async HTTP client, then it sends and retries the requests, and is closed."""
    service = TwinService(twin, "ReadTimeout", envelope(RUN))
    http = twin.AsyncClient(transport=service.transport)
    async with AsyncClient(URL, KEY, http_client=http) as client:
        assert (await client.runs.get("run_1")).id == "run_1"
    assert http.is_closed
    assert len(service.seen) == 2


def test_custom_http_client_transfers_files(
    twin: ModuleType, server: Server, tmp_path: Path
) -> None:
    """Given a real server, then an HTTP client uploads, downloads and reads events."""
    (tmp_path / "leaves.bin").write_bytes(b"leaves" * 100_000)
    with Client(server.url, server.sign_up(), http_client=twin.Client()) as client:
        artifact = client.artifacts.upload(tmp_path / "leaves.bin")
        assert client.artifacts.content(artifact.id) == b"leaves" * 100_000
        run = client.runs.create("composition.layout", {"title": "Tea"})
        assert [event.type for event in client.events(run.id)][-1] == "run.completed"


def test_rejects_http_clients_of_the_wrong_kind(twin: ModuleType) -> None:
    """Given an HTTP client of the other kind, or another object, then a TypeError is raised."""
    with pytest.raises(TypeError, match=r"httpx\.Client"):
        Client(URL, KEY, http_client=twin.AsyncClient())
    with pytest.raises(TypeError, match=r"httpx\.AsyncClient"):
        AsyncClient(URL, KEY, http_client=twin.Client())
    for value in (object(), twin.Client, "http://proxy.test"):
        with pytest.raises(TypeError, match=r"httpx\.Client"):
            Client(URL, KEY, http_client=value)  # type: ignore[arg-type]


def test_rejects_transport_options_with_an_http_client() -> None:
    """Given an HTTP client and a transport or certificate, then a TypeError is raised."""
    with pytest.raises(TypeError, match="its own transport"):
        Client(URL, KEY, http_client=httpx.Client(), transport=httpx.HTTPTransport())
    with pytest.raises(TypeError, match="its own transport"):
        AsyncClient(URL, KEY, http_client=httpx.AsyncClient(), cacert="ca.pem")


@pytest.mark.parametrize("failed", [failure(503, "UNAVAILABLE"), httpx.ConnectError("no")])
@pytest.mark.parametrize("max_retries", [0, 1, 5])
def test_max_retries_bounds_the_requests(
    failed: httpx.Response | Exception, max_retries: int
) -> None:
    """Given a number of retries, then it bounds them, whether the service answers or is away."""
    service = ListedService(*[failed] * 20)
    with pytest.raises(ServiceError):
        service.client(max_retries=max_retries).runs.create("llm.generate", {"objective": "x"})
    assert len(service.seen) == max_retries + 1
    assert len({request.headers["idempotency-key"] for request in service.seen}) == 1
