"""All pages of a list, and all events of a run."""

import asyncio
from collections.abc import Callable
from itertools import islice
from typing import Any

import httpx
import pytest

from tests.client.test_client import AT, KEY, RUN, URL, ListedService, envelope, events
from toolkit.client import AsyncClient
from toolkit.contract.errors import RequestError

DONE = {**RUN, "status": "completed", "output": {"text": "x"}}


def page(*ids: str, cursor: str | None = None, total: int | None = None) -> httpx.Response:
    """Build a page of runs."""
    items = [{**RUN, "id": i} for i in ids]
    data = {"items": items, "count": len(ids), "total": total, "next_cursor": cursor}
    return httpx.Response(200, json={"data": data})


def serve_pages(total: int | None = 4) -> ListedService:
    """Return a service with four runs on three pages."""
    return ListedService(
        page("run_1", "run_2", cursor="b", total=total), page("run_3", cursor="c"), page("run_4")
    )


def list_queries(service: ListedService) -> list[dict[str, str]]:
    """Return the queries of the requests."""
    return [dict(request.url.params) for request in service.seen]


def test_requests_pages_as_needed() -> None:
    """Given three pages, then the client requests a page only after the previous page is used."""
    service = serve_pages()
    runs = service.client().runs.list(tag="a")
    assert runs
    assert (len(runs), runs[1].id, runs["run_2"].id) == (4, "run_2", "run_2")
    assert [run.id for run in islice(runs, 2)] == ["run_1", "run_2"]
    assert repr(runs) == "<4 runs; the first 2 are shown>"
    assert len(service.seen) == 1
    assert [run.id for run in runs] == ["run_1", "run_2", "run_3", "run_4"]
    assert repr(runs) == "<4 runs>"
    assert list_queries(service) == [
        {"tag": "a", "limit": "50"},
        {"tag": "a", "limit": "200", "cursor": "b"},
        {"tag": "a", "limit": "200", "cursor": "c"},
    ]


@pytest.mark.parametrize(
    ("read", "requests"),
    [
        (lambda runs: runs[2].id == "run_3", 2),
        (lambda runs: runs["run_3"].id == "run_3", 2),
        (lambda runs: [run.id for run in runs[1:3]] == ["run_2", "run_3"], 2),
        (lambda runs: runs[-1].id == "run_4", 3),
        (lambda runs: runs[::-1][0].id == "run_4", 3),
        (lambda runs: len(runs.to_frame()) == len(runs.to_dict()) == 4, 3),
        (lambda runs: runs.cost_usd is None, 3),
    ],
)
def test_access_reads_only_needed_pages(read: Callable[[Any], bool], requests: int) -> None:
    """Given three pages, then an index or id reads up to its page, a table or sum all pages."""
    service = serve_pages()
    assert read(service.client().runs.list())
    assert len(service.seen) == requests


def test_limit_ends_the_pages() -> None:
    """Given a limit, then no further page is requested, and the display has the total."""
    service = serve_pages()
    runs = service.client().runs.list(limit=3)
    assert (len(runs), [run.id for run in runs]) == (3, ["run_1", "run_2", "run_3"])
    assert list_queries(service) == [{"limit": "3"}, {"limit": "1", "cursor": "b"}]
    assert repr(runs) == "<4 runs; the first 3 are shown>"
    with pytest.raises(IndexError):
        runs[3]


def test_length_without_a_total_reads_all_pages() -> None:
    """Given no total, then the display has a lower bound, and only the length reads all pages."""
    service = serve_pages(None)
    runs = service.client().runs.list()
    assert repr(runs) == "<more than 10,000 runs; the first 2 are shown>"
    assert bool(runs)
    assert len(service.seen) == 1
    filtered = serve_pages(None).client().runs.list(q="tea")
    assert repr(filtered) == "<more than 2 runs; the first 2 are shown>"
    assert "… and more" in filtered._repr_html_()
    assert len(runs) == 4
    assert len(service.seen) == 3


async def test_concurrent_readers_get_each_record_once() -> None:
    """Given two tasks that read a list, then both have each record once."""
    transport = httpx.MockTransport(
        ListedService(page("run_1", cursor="b"), page("run_2"), page("run_2"))
    )

    async def read(runs: Any) -> list[str]:
        return [run.id async for run in runs]

    async with AsyncClient(URL, KEY, transport=transport) as client:
        runs = await client.runs.list()
        assert await asyncio.gather(read(runs), read(runs)) == [["run_1", "run_2"]] * 2


def test_reads_events_to_the_end() -> None:
    """Given a run under way and a failed poll, then each event comes once, in order."""
    service = ListedService(
        events("run.queued", "run.running"),
        httpx.ReadError("a dropped poll"),
        events(),
        envelope(RUN),
        events("run.completed", first=3),
        envelope(DONE),
        events(),
    )
    listed = [(event.n, event.type) for event in service.client().events("run_1")]
    assert listed == [(1, "run.queued"), (2, "run.running"), (3, "run.completed")]
    polls = [r.url.params["after"] for r in service.seen if r.url.path.endswith("/events")]
    assert polls == ["0", "2", "2", "2", "3"]
    assert service.answers == []


def test_reads_events_of_a_retry() -> None:
    """Given a workflow that failed and was retried, then the events of the retry follow."""
    wfl = {"id": "wfl_1", "name": "w", "nodes": [], "created_at": AT}
    service = ListedService(
        events("workflow.failed"),
        envelope({**wfl, "status": "running"}),
        events("workflow.completed", first=2),
        envelope({**wfl, "status": "completed"}),
        events(),
    )
    assert [event.n for event in service.client().events("wfl_1")] == [1, 2]


def test_rejects_ids_without_events() -> None:
    """Given the id of an artifact, then no request is sent."""
    with pytest.raises(RequestError, match="NOT_FOUND"):
        list(ListedService().client().events("art_1"))


def test_cancels_by_id() -> None:
    """Given the id of a run, then the client cancels it without reading it first."""
    service = ListedService(envelope({**RUN, "status": "cancelled"}))
    assert service.client().runs.cancel("run_1").status == "cancelled"
    assert [(r.method, r.url.path) for r in service.seen] == [("POST", "/v1/runs/run_1/cancel")]
