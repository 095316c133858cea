"""Following work by the client: embedded and served alike."""

import asyncio
import threading
from collections.abc import Iterable
from typing import Any

import httpx
import pytest

from tests.conftest import Server
from tests.contract.conftest import read_key
from tests.support.timing import PATIENCE_S, wait_until, wait_until_async
from toolkit import AsyncClient, Client, RequestError, Workflow
from toolkit.client import TextPiece, WorkflowRun
from toolkit.contract.events import Event
from toolkit.sandbox import Faults
from toolkit.settings import Settings

ASKED = {"objective": "Write two sentences about tides."}


def submit_two(client: Client, *, stream: bool = False, **options: Any) -> WorkflowRun:
    """A workflow of two nodes, one after the other, under way."""
    workflow = Workflow("tides")
    first = workflow.add("first", "llm.generate@1", options={"provider": "openai"}, **ASKED)
    workflow.add("second", "llm.generate@1", depends_on=[first], options=options, **ASKED)
    return client.workflows.submit(workflow, stream=stream)


def list_events(batches: Iterable[list[Any]]) -> list[Event]:
    """The events among what changed."""
    return [one for batch in batches for one in batch if isinstance(one, Event)]


@pytest.mark.parametrize("texts", [False, True])
def test_all_that_happens_is_told_once(client: Client, texts: bool) -> None:
    """Given a workflow, then whoever follows it is told of each event once, and of its end."""
    work = submit_two(client)
    batches = list(work.follow(texts=texts))
    assert list_events(batches) == work.events()
    assert batches[-1][-1].status == "completed"
    assert list_events(work.follow(texts=texts)) == work.events()  # now that it is over
    last = work.events()[-1].n
    assert list_events(work.follow(last - 1)) == work.events(last - 1)
    assert list_events(work.follow(last)) == []


def test_many_look_and_one_reads(client: Client, faults: Faults) -> None:
    """Given several who look, early and late, then all are told the same, and one thread reads."""
    faults.latency("openai", 60_000)
    work = submit_two(client)
    looking = [work.follow(), client.workflows.get(work.id).follow(), work.follow()]
    told = [list_events([one.take()]) for one in looking]
    assert [bool(one) for one in told] == [True] * 3
    assert count_readers() == 1
    looking.pop().close()
    work.cancel()
    for seen, one in zip(told, looking, strict=False):
        seen += list_events(one)
    assert told[:2] == [work.events()] * 2
    wait_until(lambda: not count_readers())


def test_a_retry_by_another_is_told(client: Client, faults: Faults) -> None:
    """Given work that has failed, then who looks beyond its end is told of a retry by another."""
    faults.fail("openai", status=400)
    work = submit_two(client)
    with work.follow(texts=True, beyond_end=True) as looking:
        seen = read_until("workflow.failed", looking)
        faults.clear()
        server = client.access.base_url
        other = Client(server, read_key(client)) if is_served(client) else client
        other.workflows.retry(work.id)
        seen += read_until("workflow.completed", looking)
        assert seen == work.events()
        if other is not client:
            other.close()
    assert looking.take() == []


def test_texts_of_nodes_come_as_they_are_written(client: Client, faults: Faults) -> None:
    """Given nodes that stream, then their pieces are told with the node, and are its text."""
    faults.pace("openai", piece_ms=20)
    work = submit_two(client, stream=True, provider="openai")
    pieces: dict[str, list[TextPiece]] = {}
    ended: dict[str, int] = {}
    for batch in work.follow(texts=True):
        for change in batch:
            if isinstance(change, TextPiece):
                assert change.node_id not in ended
                pieces.setdefault(change.node_id, []).append(change)
            elif isinstance(change, Event) and change.type == "node.completed":
                ended[str(change.data["node_id"])] = change.n
    work.refresh()
    assert list(pieces) == ["first", "second"]
    for node_id, those in pieces.items():
        assert "".join(those) == work[node_id].text
        assert len(those) > 1
        assert not any(piece.restarts for piece in those)


def test_texts_of_a_task_come_from_its_first_node_on(client: Client, faults: Faults) -> None:
    """Given a task that streams, then its first node's text is told whole, and in pieces."""
    faults.pace("*", piece_ms=10)
    task = client.tasks.create("Write two sentences about tides", max_cost_usd=0.1, stream=True)
    told = [piece for batch in task.follow(texts=True) for piece in batch]
    pieces = [piece for piece in told if isinstance(piece, TextPiece)]
    first = client.workflows.get(task.refresh().workflow_id or "").record.nodes[0]
    assert "".join(one for one in pieces if one.node_id == first.id) == (
        client.jobs.get(first.job_id or "").text
    )
    assert len(pieces) > 1


@pytest.mark.parametrize("texts", [False, True], ids=["beside events", "beside texts"])
def test_who_comes_late_gets_the_text_from_its_beginning(
    client: Client, faults: Faults, texts: bool
) -> None:
    """Given a text that is being written, then who begins to look at texts is told it all."""
    faults.pace("openai", piece_ms=30)
    work = submit_two(client, stream=True, provider="openai")
    with work.follow(texts=texts) as early:
        begun = False
        while not begun:
            changes = early.take()
            begun = any(isinstance(change, TextPiece) for change in changes) if texts else True
        told: dict[str, str] = {}
        for batch in work.follow(texts=True):
            for change in batch:
                if isinstance(change, TextPiece):
                    before = "" if change.restarts else told.get(change.node_id, "")
                    told[change.node_id] = before + change
    work.refresh()
    assert told["second"] == work["second"].text
    assert told.get("first", work["first"].text) == work["first"].text


def test_a_task_is_told_of_with_its_workflow(client: Client) -> None:
    """Given a task, then its workflow is told of from its beginning to its end, in order."""
    task = client.tasks.create("Write a poem about the sea.")
    told = list_events(task.follow())
    assert [one for one in told if one.resource_id == task.id] == task.events()
    below = client.workflows.get(task.refresh().workflow_id).events()
    places = [told.index(event) for event in below]
    assert places == sorted(places)
    types = [event.type for event in told]
    assert types.index("task.executing") < places[0]
    assert types.index("task.reviewing") > places[-1]


def test_what_there_is_not_is_refused(client: Client) -> None:
    """Given work that there is not, then following it says so, in whatever way it is read."""
    work = submit_two(client).wait(progress=False)
    work.record = work.record.model_copy(update={"id": "wfl_none"})
    for texts in (False, True):
        with pytest.raises(RequestError, match="NOT_FOUND"):
            list(work.follow(texts=texts))


class LateAnswers(httpx.HTTPTransport):
    """A transport that holds what a reader was answered about a task, until the main thread asks.

    Attributes:
        is_armed: whether it holds anything.
        held: set once there is something.
    """

    def __init__(self, task_id: str) -> None:
        super().__init__()
        self.is_armed = False
        self.held = threading.Event()
        self._path = f"/v1/tasks/{task_id}"
        self._asked = threading.Event()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, and keep a reader's answer back where that is wanted."""
        answer = super().handle_request(request)
        if self.is_armed and request.url.path == self._path and request.method == "GET":
            if threading.current_thread() is threading.main_thread():
                self._asked.set()
            else:
                answer.read()
                self.held.set()
                assert self._asked.wait(PATIENCE_S)
        return answer


@pytest.mark.parametrize("is_followed", [False, True])
def test_an_answer_that_comes_late_ends_no_later_wait(
    settings: Settings, is_followed: bool
) -> None:
    """Given a record that is read as a task is taken up, then who waits from then on waits on."""
    server = Server(settings, Faults())
    with Client(server.url, server.sign_up("openai")) as signed_up:
        asked = signed_up.tasks.create("Something nice, please").wait()
        transport = LateAnswers(asked.id)
        with Client(server.url, read_key(signed_up), transport=transport) as client:
            task = client.tasks.get(asked.id).resume(answer="Whatever you like")
            wait_until(lambda: signed_up.tasks.get(asked.id).status == "blocked", "it asks again")
            transport.is_armed = True
            looking = task.follow(beyond_end=True)
            looking.take(0)
            assert transport.held.wait(PATIENCE_S)
            if not is_followed:
                looking.close()
            task.resume(answer="A paragraph about tea").wait()
            assert [one.answer for one in task.answers] == [
                "Whatever you like",
                "A paragraph about tea",
            ]
            assert task.status == "completed"
            looking.close()
    server.close()


async def test_the_async_client_follows_too(async_client: AsyncClient, faults: Faults) -> None:
    """Given the async client, then it is told the same, and no task of it is left."""
    faults.latency("openai", 100)

    async def read(one: Any) -> list[Event]:
        return [event async for batch in one for event in list_events([batch])]

    run = await async_client.runs.create("llm.generate@1", ASKED, provider="openai")
    told = await asyncio.gather(read(run.follow()), read(run.follow(texts=True)))
    assert told == [await run.events()] * 2
    async with run.follow(beyond_end=True) as looking:
        assert list_events([await looking.take()])
    await wait_until_async(lambda: "toolkit-follower" not in map(get_name, asyncio.all_tasks()))


def read_until(kind: str, looking: Any) -> list[Event]:
    """The events that are told, up to one of a kind."""
    seen: list[Event] = []

    def has_come() -> bool:
        seen.extend(list_events([looking.take(1)]))
        return bool(seen) and seen[-1].type == kind

    wait_until(has_come)
    return seen


def count_readers() -> int:
    """The threads that read for those who look."""
    return sum(one.name == "toolkit-follower" for one in threading.enumerate())


def get_name(task: "asyncio.Task[Any]") -> str:
    """The name of a task."""
    return task.get_name()


def is_served(client: Client) -> bool:
    """Whether a client's engine is in another place."""
    return client.access.data_dir is None


class ScriptedTask:
    """A service that has one task, which is blocked as soon as the main thread has looked at it.

    Attributes:
        asked: what others than the main thread asked for, in order.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._looked, self.finished = threading.Event(), threading.Event()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Answer a request."""
        what = request.url.path.rpartition("/")[2]
        if threading.current_thread() is threading.main_thread():
            if what != "events" and self.asked:
                self._looked.set()
            return self._answer(what, is_blocked=False)
        self.asked.append(what)
        hold = self._looked if self.asked.count("events") == 1 else self.finished
        if what == "events":
            assert hold.wait(PATIENCE_S)
        return self._answer(what, is_blocked=hold is self._looked or what != "events")

    def _answer(self, what: str, *, is_blocked: bool) -> httpx.Response:
        at = "2026-11-24T00:00:00.000Z"
        event = {"n": 1, "resource_id": "tsk_1", "type": "task.blocked", "at": at, "data": {}}
        items = [event] if is_blocked else []
        status = "blocked" if is_blocked else "planning"
        task = {"id": "tsk_1", "objective": "Something", "status": status, "created_at": at}
        data = {"items": items, "count": len(items)} if what == "events" else task
        return httpx.Response(200, json={"id": "tsk_1", "data": data})


def test_who_begins_to_look_as_something_happens_is_told_at_once() -> None:
    """Given one who looks, when another begins to as work is blocked, then it is read for both.

    Else the second would wait for what happens next, which may be nothing.
    """
    service = ScriptedTask()
    with Client("http://a.test", "key", transport=httpx.MockTransport(service)) as client:
        task = client.tasks.get("tsk_1")
        looking = task.follow(beyond_end=True)
        looking.take(0)
        wait_until(lambda: service.asked, "the reader asks")
        task.wait()
        assert task.status == "blocked"
        assert service.asked[:3] == ["events", "tsk_1", "tsk_1"]
        looking.close()
        service.finished.set()
