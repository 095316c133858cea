"""`http_client`, `timeout` and `max_retries` mean what they mean in openai-python and httpx."""

import json

import httpx
import pytest

from tests.client.test_client import KEY, RUN, ListedService, envelope, failure
from toolkit import AsyncClient, Client, RequestError, ServiceError
from toolkit.client._wire import retries

URL = "http://service.test"


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "compute_backoff_s", lambda *_: 0.0)


def test_a_client_of_the_caller_s_own_sends_the_requests() -> None:
    """Given an `httpx.Client`, then it sends our requests with what it has, and is closed last."""
    service = ListedService(envelope(RUN, 202))
    http = httpx.Client(
        transport=httpx.MockTransport(service),
        base_url="http://elsewhere.test",
        headers={"X-Team": "tides", "Authorization": "Basic eA=="},
    )
    with Client(URL, KEY, http_client=http) as client:
        client.runs.create("llm.generate", {"objective": "x"})
        assert not http.is_closed
    assert http.is_closed
    (sent,) = service.seen
    assert str(sent.url) == f"{URL}/v1/runs"
    assert sent.headers["x-team"] == "tides"
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert len(sent.headers["idempotency-key"]) == 32
    assert json.loads(sent.content)["name"] == "llm.generate"


async def test_an_async_client_of_the_caller_s_own() -> None:
    """Given an `httpx.AsyncClient`, then the async client is the same."""
    service = ListedService(envelope(RUN))
    http = httpx.AsyncClient(transport=httpx.MockTransport(service))
    async with AsyncClient(URL, KEY, http_client=http) as client:
        assert (await client.runs.get("run_1")).id == "run_1"
    assert http.is_closed


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


def test_what_does_not_go_together_is_refused() -> None:
    """Given the wrong kind of client, or a transport beside it, then it is said at once."""
    with pytest.raises(TypeError, match=r"httpx\.Client"):
        Client(URL, KEY, http_client=httpx.AsyncClient())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="of its own"):
        Client(URL, KEY, http_client=httpx.Client(), transport=httpx.HTTPTransport())
    with pytest.raises(TypeError, match="of its own"):
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
