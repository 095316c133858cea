"""Following work by the client, embedded and served."""

import asyncio
import threading
from collections.abc import Iterable
from typing import Any

import httpx
import pytest

from tests.conftest import Server
from tests.contract.conftest import read_key, submit_chain
from tests.support.timing import PATIENCE_S, wait_until, wait_until_async
from toolkit import AsyncClient, Client, RequestError
from toolkit.client import TextPiece
from toolkit.contract.events import Event
from toolkit.sandbox import Faults
from toolkit.settings import Settings


def list_events(batches: Iterable[list[Any]]) -> list[Event]:
    """List the events among the changes of batches."""
    return [change for batch in batches for change in batch if isinstance(change, Event)]


def list_pieces(batches: Iterable[list[Any]]) -> list[TextPiece]:
    """List the pieces of text among the changes of batches."""
    return [change for batch in batches for change in batch if isinstance(change, TextPiece)]


def count_readers() -> int:
    """Count the threads that read for followers."""
    return sum(thread.name == "toolkit-follower" for thread in threading.enumerate())


def read_until(kind: str, follower: Any) -> list[Event]:
    """Read the events up to the first event of a kind."""
    events: list[Event] = []

    def has_ended() -> bool:
        events.extend(list_events([follower.take(1)]))
        return bool(events) and events[-1].type == kind

    wait_until(has_ended)
    return events


@pytest.mark.parametrize("texts", [False, True])
def test_yields_each_event_once(client: Client, texts: bool) -> None:
    """Given a workflow, then a follower gets each event once, and the end."""
    work = submit_chain(client)
    batches = list(work.follow(texts=texts))
    assert list_events(batches) == work.events()
    assert batches[-1][-1].status == "completed"
    assert list_events(work.follow(texts=texts)) == work.events()  # after the end
    last = work.events()[-1].n
    assert list_events(work.follow(last - 1)) == work.events(last - 1)
    assert list_events(work.follow(last)) == []


def test_followers_share_a_reader(client: Client, faults: Faults) -> None:
    """Given several followers, then all get the same events, and one thread reads."""
    faults.latency("openai", 60_000)
    work = submit_chain(client)
    followers = [work.follow(), client.workflows.get(work.id).follow(), work.follow()]
    events = [list_events([follower.take()]) for follower in followers]
    assert all(events)
    assert count_readers() == 1
    followers.pop().close()
    work.cancel()
    for first_events, follower in zip(events, followers, strict=False):
        first_events += list_events(follower)
    assert events[:2] == [work.events()] * 2
    wait_until(lambda: not count_readers())


def test_yields_a_retry_by_another_client(client: Client, faults: Faults) -> None:
    """Given failed work, then a follower beyond its end gets a retry by another client."""
    faults.fail("openai", status=400)
    work = submit_chain(client)
    is_served = client.access.data_dir is None
    with work.follow(texts=True, beyond_end=True) as follower:
        events = read_until("workflow.failed", follower)
        faults.clear()
        second = Client(client.access.base_url, read_key(client)) if is_served else client
        second.workflows.retry(work.id)
        events += read_until("workflow.completed", follower)
        assert events == work.events()
        if is_served:
            second.close()
    assert follower.take() == []


def test_yields_texts_as_nodes_write_them(client: Client, faults: Faults) -> None:
    """Given nodes that stream, then the pieces come before the node's end, and are its text."""
    faults.pace("openai", piece_ms=20)
    work = submit_chain(client, stream=True, provider="openai")
    pieces: dict[str, list[TextPiece]] = {}
    completed = set()
    for batch in work.follow(texts=True):
        for change in batch:
            if isinstance(change, TextPiece):
                assert change.node_id not in completed
                pieces.setdefault(change.node_id, []).append(change)
            elif isinstance(change, Event) and change.type == "node.completed":
                completed.add(change.data["node_id"])
    work.refresh()
    assert list(pieces) == ["first", "second"]
    for node_id, node_pieces in pieces.items():
        assert "".join(node_pieces) == work[node_id].text
        assert len(node_pieces) > 1
        assert not any(piece.restarts for piece in node_pieces)


@pytest.mark.parametrize("texts", [False, True], ids=["events", "texts"])
def test_a_late_follower_gets_the_text_from_its_beginning(
    client: Client, faults: Faults, texts: bool
) -> None:
    """Given a text that is being written, then a second follower gets it from its beginning."""
    faults.pace("openai", piece_ms=30)
    work = submit_chain(client, stream=True, provider="openai")
    with work.follow(texts=texts) as early:
        while not list_pieces([early.take()]) and texts:
            pass
        written: dict[str, str] = {}
        for piece in list_pieces(work.follow(texts=True)):
            before = "" if piece.restarts else written.get(piece.node_id, "")
            written[piece.node_id] = before + piece
    work.refresh()
    assert written["second"] == work["second"].text
    assert written.get("first", work["first"].text) == work["first"].text


def test_yields_a_task_and_its_workflow(client: Client, faults: Faults) -> None:
    """Given a task, then a follower gets the events and texts of its workflow, too, in order."""
    faults.pace("*", piece_ms=10)
    task = client.tasks.create("Write two sentences about tides", max_cost_usd=0.1, stream=True)
    batches = list(task.follow(texts=True))
    events = list_events(batches)
    assert [event for event in events if event.resource_id == task.id] == task.events()
    workflow = client.workflows.get(task.refresh().workflow_id)
    first = workflow.record.nodes[0]
    pieces = [piece for piece in list_pieces(batches) if piece.node_id == first.id]
    assert len(pieces) > 1
    assert "".join(pieces) == client.jobs.get(first.job_id or "").text
    places = [events.index(event) for event in workflow.events()]
    assert places == sorted(places)
    types = [event.type for event in events]
    assert types.index("task.executing") < places[0]
    assert types.index("task.reviewing") > places[-1]


@pytest.mark.parametrize("texts", [False, True])
def test_rejects_unknown_work(client: Client, texts: bool) -> None:
    """Given the id of no workflow, then following it raises `NOT_FOUND`."""
    work = submit_chain(client).wait(progress=False)
    work.record = work.record.model_copy(update={"id": "wfl_none"})
    with pytest.raises(RequestError, match="NOT_FOUND"):
        list(work.follow(texts=texts))


class LateAnswers(httpx.HTTPTransport):
    """Transport that holds a reader's response about a task until the main thread asks.

    Attributes:
        is_armed: whether responses are held.
        held: event that is set once a response is held.
    """

    def __init__(self, task_id: str) -> None:
        super().__init__()
        self.is_armed = False
        self.held = threading.Event()
        self._path = f"/v1/tasks/{task_id}"
        self._main_asks = threading.Event()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, and hold the response to a reader while armed."""
        response = super().handle_request(request)
        if self.is_armed and request.url.path == self._path and request.method == "GET":
            if threading.current_thread() is threading.main_thread():
                self._main_asks.set()
            else:
                response.read()
                self.held.set()
                assert self._main_asks.wait(PATIENCE_S)
        return response


@pytest.mark.parametrize("is_followed", [False, True])
def test_a_late_response_ends_no_later_wait(settings: Settings, is_followed: bool) -> None:
    """Given a record that was read before a task was resumed, then a later wait goes on."""
    server = Server(settings, Faults())
    answers = ["Whatever you like", "A paragraph about tea"]
    with Client(server.url, server.sign_up("openai")) as owner:
        task_id = owner.tasks.create("Something nice, please").wait().id
        transport = LateAnswers(task_id)
        with Client(server.url, read_key(owner), transport=transport) as client:
            task = client.tasks.get(task_id).resume(answer=answers[0])
            wait_until(lambda: owner.tasks.get(task_id).status == "blocked", "it asks again")
            transport.is_armed = True
            follower = task.follow(beyond_end=True)
            follower.take(0)
            assert transport.held.wait(PATIENCE_S)
            if not is_followed:
                follower.close()
            task.resume(answer=answers[1]).wait()
            assert [answer.answer for answer in task.answers] == answers
            assert task.status == "completed"
            follower.close()
    server.close()


async def test_the_async_client_follows_too(async_client: AsyncClient, faults: Faults) -> None:
    """Given the async client, then it gets the same events, and leaves no task behind."""
    faults.latency("openai", 100)

    async def read(follower: Any) -> list[Event]:
        return [event async for batch in follower for event in list_events([batch])]

    input = {"objective": "Write two sentences about tides."}
    run = await async_client.runs.create("llm.generate@1", input, provider="openai")
    events = await asyncio.gather(read(run.follow()), read(run.follow(texts=True)))
    assert events == [await run.events()] * 2
    async with run.follow(beyond_end=True) as follower:
        assert list_events([await follower.take()])

    def has_no_reader() -> bool:
        return all(task.get_name() != "toolkit-follower" for task in asyncio.all_tasks())

    await wait_until_async(has_no_reader)


class ScriptedTask:
    """Service with one task, which is blocked as soon as the main thread has read it.

    Attributes:
        reads: paths that the reader thread requested, in order.
    """

    def __init__(self) -> None:
        self.reads: list[str] = []
        self._main_reads, self.finished = threading.Event(), threading.Event()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Respond to a request."""
        path = request.url.path.rpartition("/")[2]
        if threading.current_thread() is threading.main_thread():
            if path != "events" and self.reads:
                self._main_reads.set()
            return self._respond(path, is_blocked=False)
        self.reads.append(path)
        hold = self._main_reads if self.reads.count("events") == 1 else self.finished
        if path == "events":
            assert hold.wait(PATIENCE_S)
        return self._respond(path, is_blocked=hold is self._main_reads or path != "events")

    def _respond(self, path: str, *, is_blocked: bool) -> httpx.Response:
        at = "2026-11-24T00:00:00.000Z"
        event = {"n": 1, "resource_id": "tsk_1", "type": "task.blocked", "at": at, "data": {}}
        items = [event] if is_blocked else []
        status = "blocked" if is_blocked else "planning"
        task = {"id": "tsk_1", "objective": "Something", "status": status, "created_at": at}
        data = {"items": items, "count": len(items)} if path == "events" else task
        return httpx.Response(200, json={"id": "tsk_1", "data": data})


def test_a_second_follower_is_notified_at_once() -> None:
    """Given a second follower that begins as work is blocked, then the record is read for both.

    Otherwise the second would wait for the next event, which may never come.
    """
    service = ScriptedTask()
    with Client("http://a.test", "key", transport=httpx.MockTransport(service)) as client:
        task = client.tasks.get("tsk_1")
        follower = task.follow(beyond_end=True)
        follower.take(0)
        wait_until(lambda: service.reads, "the reader asks")
        task.wait()
        assert task.status == "blocked"
        assert service.reads[:3] == ["events", "tsk_1", "tsk_1"]
        follower.close()
        service.finished.set()
