"""`http_client`, `timeout` and `max_retries` mean what they mean in openai-python and httpx."""

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest

from tests.client.test_client import KEY, RUN, ListedService, envelope, failure
from tests.conftest import Server
from toolkit import AsyncClient, Client, RequestError, ServiceError

pytestmark = pytest.mark.usefixtures("no_backoff")
URL = "http://service.test"


@pytest.mark.parametrize(
    ("own", "given", "used"),
    [
        (httpx.Client(), {}, 60.0),  # httpx's own default is no choice of the caller's
        (httpx.Client(timeout=9), {}, 9),
        (httpx.Client(timeout=None), {}, None),
        (httpx.Client(timeout=9), {"timeout": 7}, 7),
        (httpx.Client(timeout=9), {"timeout": None}, None),
    ],
)
def test_the_timeout_that_is_given_counts(
    own: httpx.Client, given: dict[str, float | None], used: float | None
) -> None:
    """Given timeouts in several places, then that of this client counts, then the HTTP client's."""
    service = ListedService(envelope(RUN))
    own._transport = httpx.MockTransport(service)
    Client(URL, KEY, http_client=own, **given).runs.get("run_1")
    assert set(service.seen[0].extensions["timeout"].values()) == {used}


@pytest.fixture(params=["httpx", "copy", "httpx2"])
def twin(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    """A package with httpx's interface: httpx itself, also imported once more, or httpx2."""
    if request.param == "httpx":
        yield httpx
        return
    if request.param == "httpx2":
        yield pytest.importorskip("httpx2")
        return
    names = [name for name in sys.modules if name.partition(".")[0] == "httpx"]
    kept = {name: sys.modules.pop(name) for name in names}
    try:
        copy = importlib.import_module("httpx")
    finally:
        sys.modules.update(kept)
    assert copy.Client is not httpx.Client
    yield copy


class TwinService:
    """A service that a client of another package speaks to."""

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


def test_a_client_of_the_caller_s_own_sends_the_requests(twin: ModuleType) -> None:
    """Given a client with httpx's methods, then it sends and retries ours, and is closed last."""
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


async def test_an_async_client_of_the_caller_s_own_sends_the_requests(twin: ModuleType) -> None:
    """Given an async client with httpx's methods, then the async client is the same."""
    service = TwinService(twin, "ReadTimeout", envelope(RUN))
    http = twin.AsyncClient(transport=service.transport)
    async with AsyncClient(URL, KEY, http_client=http) as client:
        assert (await client.runs.get("run_1")).id == "run_1"
    assert http.is_closed
    assert len(service.seen) == 2


def test_a_client_of_another_package_reads_and_sends_files(
    twin: ModuleType, server: Server, tmp_path: Path
) -> None:
    """Given a real server, then files go and come, and events are followed, by such a client."""
    with Client(server.url) as nobody:
        key = nobody.account.create("ada@example.org").api_key
    (tmp_path / "leaves.bin").write_bytes(b"leaves" * 100_000)
    with Client(server.url, key, http_client=twin.Client()) as client:
        kept = client.artifacts.upload(tmp_path / "leaves.bin")
        assert client.artifacts.content(kept.id) == b"leaves" * 100_000
        run = client.runs.create("composition.layout", {"title": "Tea"})
        assert [event.type for event in client.events(run.id)][-1] == "run.completed"


def test_a_client_of_another_package_of_the_wrong_kind(twin: ModuleType) -> None:
    """Given an async client where a sync one belongs, and the reverse, then it is refused."""
    with pytest.raises(TypeError, match=r"httpx\.Client"):
        Client(URL, KEY, http_client=twin.AsyncClient())
    with pytest.raises(TypeError, match=r"httpx\.AsyncClient"):
        AsyncClient(URL, KEY, http_client=twin.Client())
    for other in (object(), twin.Client, "http://proxy.test"):
        with pytest.raises(TypeError, match=r"httpx\.Client"):
            Client(URL, KEY, http_client=other)  # type: ignore[arg-type]


def test_what_does_not_go_together_is_refused() -> None:
    """Given a client of HTTP and what it has to have itself, then it is said at once."""
    with pytest.raises(TypeError, match="its own transport"):
        Client(URL, KEY, http_client=httpx.Client(), transport=httpx.HTTPTransport())
    with pytest.raises(TypeError, match="its own transport"):
        AsyncClient(URL, KEY, http_client=httpx.AsyncClient(), cacert="ca.pem")


@pytest.mark.parametrize("failed", [failure(503, "UNAVAILABLE"), httpx.ConnectError("no")])
@pytest.mark.parametrize("max_retries", [0, 1, 5])
def test_a_request_is_sent_again_so_often_at_most(
    failed: httpx.Response | Exception, max_retries: int
) -> None:
    """Given a number of retries, then it bounds them, whether the service answers or is away."""
    service = ListedService(*[failed] * 20)
    transport = httpx.MockTransport(service)
    client = Client(URL, KEY, transport=transport, max_retries=max_retries)
    with pytest.raises(ServiceError):
        client.runs.create("llm.generate", {"objective": "x"})
    assert len(service.seen) == max_retries + 1
    assert len({request.headers["idempotency-key"] for request in service.seen}) == 1


def test_what_is_refused_is_not_sent_again() -> None:
    """Given an answer that asking again would not change, then no retry is made."""
    service = ListedService(failure(400, "INVALID_REQUEST"))
    client = Client(URL, KEY, transport=httpx.MockTransport(service), max_retries=5)
    with pytest.raises(RequestError):
        client.runs.create("llm.generate", {})
    assert len(service.seen) == 1
