"""Whatever takes a client too long is a `TimeoutError`, and a `ToolkitError` as ever."""

import inspect
import socket
from collections.abc import Iterator

import httpx
import pytest

from tests.client.test_client import KEY, RUN, ListedService, envelope
from toolkit import AsyncClient, Client, ServiceError, ServiceTimeoutError, WorkError
from toolkit.client._wire.timeouts import GRACE_S

pytestmark = pytest.mark.usefixtures("no_backoff")
URL = "http://service.test"
LATE = [
    httpx.ConnectTimeout("late"),
    httpx.ReadTimeout("late"),
    httpx.WriteTimeout("late"),
    httpx.PoolTimeout("late"),
]


async def read_run(
    kind: type[Client] | type[AsyncClient], service: ListedService, **options: float
) -> object:
    """Read the run of a service by either client, and wait for it as long as is said."""
    client = kind(URL, KEY, transport=httpx.MockTransport(service), max_retries=0)  # type: ignore[arg-type]
    run = client.runs.get("run_1")
    run = await run if inspect.isawaitable(run) else run
    done = run.wait(progress=False, **options)
    return await done if inspect.isawaitable(done) else done


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
async def test_what_takes_too_long_is_a_timeout_error(
    kind: type[Client] | type[AsyncClient],
    answers: list[dict[str, object] | Exception],
    timeout: float | None,
) -> None:
    """Given a part of a request, or work, that takes too long, then it is told as Python does."""
    given = [one if isinstance(one, Exception) else envelope(one) for one in answers]
    with pytest.raises(TimeoutError) as late:
        await read_run(kind, ListedService(*given), timeout=timeout)
    assert isinstance(late.value, ServiceTimeoutError)
    assert late.value.code.name == "UNAVAILABLE"
    assert timeout is None or "work continues" in late.value.message
    assert len(late.value._render_traceback_()) == 1


@pytest.mark.parametrize("kind", [Client, AsyncClient])
async def test_what_is_away_or_has_failed_is_none(kind: type[Client] | type[AsyncClient]) -> None:
    """Given a refused connection, or work whose vendor was too slow, then no wait timed out."""
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
    """The address of a server that takes connections, and answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.parametrize("timeout", [0.05, httpx.Timeout(None, read=0.05)], ids=repr)
def test_a_server_that_answers_nothing(silent: str, timeout: float | httpx.Timeout) -> None:
    """Given a real connection, when the timeout is up, then so is the request."""
    with (
        Client(silent, KEY, timeout=timeout, max_retries=0) as client,
        pytest.raises(TimeoutError, match="ReadTimeout"),
    ):
        client.account.get()


def test_a_request_that_is_held_may_take_longer() -> None:
    """Given a request that the service holds, then it may take that much longer, and no more."""
    given = httpx.Timeout(9, connect=2)
    service = ListedService(httpx.Response(200, json={"data": {"items": [], "count": 0}}))
    with Client(URL, KEY, timeout=given, transport=httpx.MockTransport(service)) as client:
        client.runs.events("run_1", wait_s=20)
    assert service.seen[0].extensions["timeout"] == {
        "connect": 2, "read": 29, "write": 9, "pool": 9,
    }  # fmt: skip


def test_a_wait_bounds_its_requests() -> None:
    """Given a time to wait, then no request of the wait may take much longer than is left of it."""
    service = ListedService(envelope(RUN), httpx.ReadTimeout("late"))
    transport = httpx.MockTransport(service)
    run = Client(URL, KEY, transport=transport, max_retries=0).runs.get("run_1")
    with pytest.raises(TimeoutError):
        run.wait(2.0, progress=False)
    bounds = [request.extensions["timeout"]["read"] for request in service.seen]
    assert bounds[0] == 60.0
    assert all(0 < bound <= 2.0 + GRACE_S for bound in bounds[1:])
