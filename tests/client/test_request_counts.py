"""The number of requests that a client sends, counted by a proxy between it and the server."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.proxied_service import ProxiedService, open_proxied_service
from toolkit import Client, Workflow
from toolkit.settings import Settings

ASK = {"objective": "One line on tides"}


@pytest.fixture
def service(settings: Settings) -> Iterator[ProxiedService]:
    """A served engine behind a proxy that counts requests."""
    with open_proxied_service(settings) as service:
        yield service


@pytest.mark.parametrize("delay_ms", [0, 400], ids=["quick", "slow"])
@pytest.mark.parametrize("progress", [False, True], ids=["quiet", "shown"])
def test_waiting_for_a_run_takes_few_requests(
    service: ProxiedService, delay_ms: int, progress: bool
) -> None:
    """Given a run, when the client waits for it, then a long poll returns its record."""
    service.faults.latency("minimax", mean_ms=delay_ms, times=1)
    with Client(service.url, service.key) as client:
        run = client.runs.create("llm.generate", ASK)
        run.wait(progress=progress)

    assert run.output["text"]
    # A display also reads a page of events before the run begins, at its begin and at its end.
    maximum = 5 if progress else 2
    assert len(service.list_requests()) <= maximum, service.list_requests()


@pytest.mark.parametrize("limit", [None, 1.0], ids=["unlimited", "budget"])
def test_map_takes_few_requests(service: ProxiedService, limit: float | None) -> None:
    """Given quick rows, then a map takes two requests, and long polls with many rows each."""
    rows = [{"n": n} for n in range(60)]
    with Client(service.url, service.key) as client:
        table = client.map(
            "llm.generate", rows, objective="On {n}", max_cost_usd=limit, progress=False
        )

    assert set(table["status"]) == {"completed"}
    paths = service.list_requests()
    assert len([path for path in paths if "?" not in path]) == 2
    assert len(paths) <= 3 + len(rows) / 4, paths


def test_answered_rows_are_not_sent_again(service: ProxiedService) -> None:
    """Given a map whose rows are answered, then the same call sends only new and failed rows."""
    rows = [{"n": n} for n in range(4)]
    with Client(service.url, service.key) as client:
        fields: dict[str, Any] = {"objective": "On {n}", "progress": False}
        first = client.map("llm.generate", [*rows[:3], {"n": None}], **fields)
        again = client.map("llm.generate", [*rows[:3], {"n": None}], **fields)
        before = len(service.list_requests())
        sent = [path for path in service.list_requests() if path.endswith("/rows")]
        more = client.map("llm.generate", rows, **fields)
        later = service.list_requests()[before:]

    assert list(again["job_id"][:3]) == list(first["job_id"][:3])
    assert again["status"][3] == "not begun"
    assert len(sent) == 1
    assert list(more["cached"]) == [True, True, True, False]
    assert len([path for path in later if path.endswith("/rows")]) == 1


@pytest.mark.parametrize("work", ["run", "workflow"])
def test_wait_pauses_between_polls_if_a_proxy_drops_preferences(
    service: ProxiedService, work: str
) -> None:
    """Given a proxy that drops `Prefer`, then a wait ends with few requests."""

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
