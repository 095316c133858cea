"""Requests and waits that take too long raise a `TimeoutError` that is a `ToolkitError`."""

import inspect
import socket
from collections.abc import Iterator

import httpx
import pytest

from tests.client.test_client import KEY, RUN, URL, ListedService, envelope
from toolkit import AsyncClient, Client, ServiceError, ServiceTimeoutError, WorkError
from toolkit.client._wire.timeouts import GRACE_S

pytestmark = pytest.mark.usefixtures("no_backoff")
LATE = (httpx.ConnectTimeout("late"), httpx.ReadTimeout("late"), httpx.PoolTimeout("late"))


async def read_run(
    kind: type[Client] | type[AsyncClient], service: ListedService, **options: float
) -> object:
    """Read the run of a service with a sync or async client, and wait for it."""
    client = kind(URL, KEY, transport=httpx.MockTransport(service), max_retries=0)  # type: ignore[arg-type]
    run = client.runs.get("run_1")
    run = await run if inspect.isawaitable(run) else run
    waiting = run.wait(progress=False, **options)
    return await waiting if inspect.isawaitable(waiting) else waiting


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize(
    ("answers", "timeout"),
    [
        *([[late], None] for late in LATE),
        *([[RUN, late], None] for late in LATE),
        ([RUN, RUN], 0.0),
        ([RUN, httpx.ConnectError("refused")], 0.0),
    ],
    ids=repr,
)
async def test_late_responses_raise_timeout_errors(
    kind: type[Client] | type[AsyncClient],
    answers: list[dict[str, object] | Exception],
    timeout: float | None,
) -> None:
    """Given a request or a wait that takes too long, then it raises a `TimeoutError`."""
    responses = [
        answer if isinstance(answer, Exception) else envelope(answer) for answer in answers
    ]
    with pytest.raises(TimeoutError) as late:
        await read_run(kind, ListedService(*responses), timeout=timeout)
    assert isinstance(late.value, ServiceTimeoutError)
    assert late.value.code.name == "UNAVAILABLE"
    assert timeout is None or "work continues" in late.value.message
    assert len(late.value._render_traceback_()) == 1


@pytest.mark.parametrize("kind", [Client, AsyncClient])
async def test_other_failures_are_no_timeouts(kind: type[Client] | type[AsyncClient]) -> None:
    """Given a refused connection, or a run whose vendor timed out, then no wait timed out."""
    with pytest.raises(ServiceError) as away:
        await read_run(kind, ListedService(envelope(RUN), httpx.ConnectError("no")), timeout=60)
    slow = {"code": "PROVIDER_TIMEOUT", "message": "Too slow."}
    service = ListedService(*[envelope({**RUN, "status": "failed", "error": slow})] * 2)
    with pytest.raises(WorkError) as failed:
        await read_run(kind, service)
    assert not isinstance(away.value, TimeoutError)
    assert not isinstance(failed.value, TimeoutError)


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that accepts connections and sends nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.parametrize("timeout", [0.05, httpx.Timeout(None, read=0.05)], ids=repr)
def test_silent_server_raises_a_timeout(silent: str, timeout: float | httpx.Timeout) -> None:
    """Given a real connection, when the timeout passes, then the request ends."""
    with (
        Client(silent, KEY, timeout=timeout, max_retries=0) as client,
        pytest.raises(TimeoutError, match="ReadTimeout"),
    ):
        client.account.get()


def test_long_polls_extend_the_timeout() -> None:
    """Given a long poll, then the read timeout is longer by its waiting time."""
    timeout = httpx.Timeout(9, connect=2)
    service = ListedService(httpx.Response(200, json={"data": {"items": [], "count": 0}}))
    service.client(timeout=timeout).runs.events("run_1", wait_s=20)
    assert service.seen[0].extensions["timeout"] == {
        "connect": 2, "read": 29, "write": 9, "pool": 9,
    }  # fmt: skip


def test_wait_bounds_its_requests() -> None:
    """Given a time to wait, then it bounds the timeout of each request of the wait."""
    service = ListedService(envelope(RUN), httpx.ReadTimeout("late"))
    with pytest.raises(TimeoutError):
        service.client(max_retries=0).runs.get("run_1").wait(2.0, progress=False)
    bounds = [request.extensions["timeout"]["read"] for request in service.seen]
    assert bounds[0] == 60.0
    assert all(0 < bound <= 2.0 + GRACE_S for bound in bounds[1:])
