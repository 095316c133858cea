"""The number of requests that a client sends, counted by a proxy between it and the server."""

from collections.abc import Iterator

import httpx
import pytest

from tests.support.proxied_service import ProxiedService, open_proxied_service
from toolkit import Client, Workflow
from toolkit.settings import Settings

ASK = {"objective": "One line on tides"}


@pytest.fixture
def service(settings: Settings) -> Iterator[ProxiedService]:
    """A served engine whose requests are counted."""
    with open_proxied_service(settings) as made:
        yield made


@pytest.mark.parametrize("delay_ms", [0, 400], ids=["quick", "slow"])
@pytest.mark.parametrize("progress", [False, True], ids=["quiet", "shown"])
def test_a_run_that_is_waited_for_takes_few_requests(
    service: ProxiedService, delay_ms: int, progress: bool
) -> None:
    """Given a run, when it is waited for, then a request is held until it has its record."""
    service.faults.latency("minimax", mean_ms=delay_ms, times=1)
    with Client(service.url, service.key) as client:
        run = client.runs.create("llm.generate", ASK)
        run.wait(progress=progress)

    assert run.output["text"]
    # A display also reads events: at most a page before the run begins, as it does, and at its end.
    most = 5 if progress else 2
    assert len(service.list_requests()) <= most, service.list_requests()


@pytest.mark.parametrize(("limit", "each"), [(None, 1), (1.0, 2)], ids=["unlimited", "budget"])
def test_a_row_of_a_map_takes_one_request_and_one_for_its_bound(
    service: ProxiedService, limit: float | None, each: int
) -> None:
    """Given quick rows, then each is one request, and with a budget one more for its bound."""
    rows = [{"n": n} for n in range(12)]
    with Client(service.url, service.key) as client:
        table = client.map(
            "llm.generate", rows, objective="On {n}", max_cost_usd=limit, progress=False
        )

    assert set(table["status"]) == {"completed"}
    paths = service.list_requests()
    assert len([path for path in paths if "?" not in path]) == each * len(rows), paths
    lists = [path for path in paths if path.startswith("/v1/runs?")]
    assert len(lists) <= 4


@pytest.mark.parametrize("work", ["run", "workflow"])
def test_a_wait_does_not_poll_without_a_pause_where_a_proxy_drops_preferences(
    service: ProxiedService, work: str
) -> None:
    """Given a proxy that passes no `Prefer` on, then a wait still ends, by the long poll."""

    def drop(request: httpx.Request) -> None:
        request.headers.pop("prefer", None)

    service.faults.latency("minimax", mean_ms=500, times=1)
    http = httpx.Client(event_hooks={"request": [drop]})
    with Client(service.url, service.key, http_client=http) as client:
        if work == "run":
            status = client.runs.create("llm.generate", ASK).wait(progress=False).status
        else:
            graph = Workflow("w")
            graph.add("a", "llm.generate", **ASK)
            status = client.workflows.submit(graph).wait(progress=False).status

    assert status == "completed"
    assert len(service.list_requests()) <= 12
