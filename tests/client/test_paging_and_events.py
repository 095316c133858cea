"""Reading on: all pages of a list, all events of some work, and answers that got lost."""

import asyncio
import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import httpx
import pytest

from tests.client.test_client import AT, KEY, RUN, ListedService, envelope, events
from toolkit.client import AsyncClient, Client
from toolkit.contract.errors import RequestError, ServiceError

DONE = {**RUN, "status": "completed", "output": {"text": "x"}}


def page(*ids: str, cursor: str | None = None, total: int | None = None) -> httpx.Response:
    """A page of runs."""
    items = [{**RUN, "id": i} for i in ids]
    data = {"items": items, "count": len(ids), "total": total, "next_cursor": cursor}
    return httpx.Response(200, json={"data": data})


def serve_pages(total: int | None = 4) -> ListedService:
    """A service with four runs on three pages."""
    return ListedService(
        page("run_1", "run_2", cursor="b", total=total), page("run_3", cursor="c"), page("run_4")
    )


def list_queries(service: ListedService) -> list[dict[str, str]]:
    """The queries that were sent."""
    return [dict(request.url.params) for request in service.seen]


def test_all_pages_are_read_as_they_are_needed() -> None:
    """Given three pages, then a page is asked for only when the one before is used up."""
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
def test_each_way_to_the_records_reads_what_it_needs(
    read: Callable[[Any], bool], requests: int
) -> None:
    """Given three pages, then positions and ids read up to theirs, tables and sums all."""
    service = serve_pages()
    assert read(service.client().runs.list())
    assert len(service.seen) == requests


def test_a_limit_ends_the_pages() -> None:
    """Given a limit, then no more is asked for, and the display says how many there are."""
    service = serve_pages()
    runs = service.client().runs.list(limit=3)
    assert (len(runs), [run.id for run in runs]) == (3, ["run_1", "run_2", "run_3"])
    assert list_queries(service) == [{"limit": "3"}, {"limit": "1", "cursor": "b"}]
    assert repr(runs) == "<4 runs; the first 3 are shown>"
    with pytest.raises(IndexError):
        runs[3]


def test_a_list_without_a_total_is_counted_by_its_pages() -> None:
    """Given no total, then the display says so, and only the length reads all pages."""
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


async def test_two_readers_of_a_list_read_each_page_once() -> None:
    """Given two tasks that read one list, then both have each record once."""
    transport = httpx.MockTransport(
        ListedService(page("run_1", cursor="b"), page("run_2"), page("run_2"))
    )

    async def read(runs: Any) -> list[str]:
        return [run.id async for run in runs]

    async with AsyncClient("http://service.test", KEY, transport=transport) as client:
        runs = await client.runs.list()
        assert await asyncio.gather(read(runs), read(runs)) == [["run_1", "run_2"]] * 2


def test_events_are_read_to_the_end() -> None:
    """Given work under way and a poll that breaks off, then each event comes once, in order."""
    service = ListedService(
        events("run.queued", "run.running"),
        httpx.ReadError("a dropped poll"),
        events(),
        envelope(RUN),
        events("run.completed", first=3),
        envelope(DONE),
        events(),
    )
    found = [(event.n, event.type) for event in service.client().events("run_1")]
    assert found == [(1, "run.queued"), (2, "run.running"), (3, "run.completed")]
    polls = [r.url.params["after"] for r in service.seen if r.url.path.endswith("/events")]
    assert polls == ["0", "2", "2", "2", "3"]
    assert service.answers == []


def test_events_go_on_after_an_end_that_was_none() -> None:
    """Given a workflow that failed and was retried, then the events of the retry come too."""
    wfl = {"id": "wfl_1", "name": "w", "nodes": [], "created_at": AT}

    def build_event(kind: str, n: int) -> httpx.Response:
        item = {"n": n, "resource_id": "wfl_1", "type": kind, "at": AT, "data": {"id": "wfl_1"}}
        return httpx.Response(200, json={"data": {"items": [item], "count": 1}})

    service = ListedService(
        build_event("workflow.failed", 1),
        envelope({**wfl, "status": "running"}),
        build_event("workflow.completed", 2),
        envelope({**wfl, "status": "completed"}),
        events(),
    )
    assert [event.n for event in service.client().events("wfl_1")] == [1, 2]


def test_only_work_has_events() -> None:
    """Given the id of something else, then it is refused before anything is asked."""
    service = ListedService()
    with pytest.raises(RequestError, match="NOT_FOUND"):
        list(service.client().events("art_1"))
    assert service.seen == []


def test_an_id_is_enough_to_cancel() -> None:
    """Given the id of work, then it is cancelled without being read first."""
    service = ListedService(envelope({**RUN, "status": "cancelled"}))
    assert service.client().runs.cancel("run_1").status == "cancelled"
    assert [(r.method, r.url.path) for r in service.seen] == [("POST", "/v1/runs/run_1/cancel")]


@contextmanager
def serve_dropping(drops: int, answer: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A server that reads requests whole and hangs up on the first; its URL, and what it read."""
    seen: list[bytes] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += self.rfile.readline()
            lines = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
            self.rfile.read(int(lines.get(b"content-length", 0)))
            seen.append(lines.get(b"idempotency-key", b""))
            if len(seen) > drops:
                self.wfile.write(answer)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", seen
        server.shutdown()


def build_answer(data: dict[str, object]) -> bytes:
    """An answer as it is on the wire."""
    body = json.dumps({"id": data["id"], "data": data}).encode()
    return b"HTTP/1.1 202 Accepted\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (
        len(body), body,
    )  # fmt: skip


@pytest.mark.usefixtures("no_backoff")
def test_a_connection_that_is_lost_costs_no_second_run() -> None:
    """Given a server that hangs up after it read the request, then it is sent again as the same."""
    with serve_dropping(2, build_answer(RUN)) as (url, seen), Client(url, KEY) as client:
        assert client.runs.create("llm.generate", {"objective": "x"}).id == "run_1"
    assert len(seen) == 3
    assert len(set(seen)) == 1
    assert len(seen[0]) == 32


@pytest.mark.usefixtures("no_backoff")
def test_what_is_told_a_single_time_is_not_asked_for_again() -> None:
    """Given a lost answer to a request for a key, then none is made in secret beside it."""
    refused = pytest.raises(ServiceError, match="could not be reached")
    with serve_dropping(1, build_answer(RUN)) as (url, seen), Client(url, KEY) as client, refused:
        client.api_keys.create()
    assert seen == [b""]
