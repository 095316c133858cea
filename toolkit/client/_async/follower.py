"""Following work: one reader of its events and texts, however many look at it by one client."""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeAlias
from weakref import WeakSet

from pydantic import BaseModel

from toolkit.client._async.http import AsyncHttpClient
from toolkit.client._feeds import AsyncMailbox, AsyncReader
from toolkit.client._text_pieces import TextAssembler, TextPiece
from toolkit.contract.events import Event, TextDelta
from toolkit.contract.jobs import FINAL_STATUSES
from toolkit.contract.workflows import WorkflowRecord

# What is told of work: what happened to it, a piece of a text, or the record as it was read anew.
Change: TypeAlias = Event | TextPiece | BaseModel
WINDOW_S = 10.0  # the longest that a reader goes on after the last one has ceased to look
FIRST_CHECK_S = 2.0  # of work that is over: whether it was taken up again
LAST_CHECK_S = 15.0


class AsyncFollower:
    """A follower of some work: it reads for all who look, as long as anyone does.

    Requests are repeated while the service is away, and go on after the last event. Work that was
    taken up again, by whomever, is noticed where somebody looks beyond its end.

    Args:
        http: the service.
        model: the record of the work.
        path: of the work, below `/v1`.
    """

    def __init__(self, http: AsyncHttpClient, model: type[Any], path: str) -> None:
        self._http = http
        self._model = model
        self._path = path
        self._looking: WeakSet[AsyncFollowing] = WeakSet()  # who forgets to close is not read for
        # Who began to look after the record that is being read was asked for: it may be older than
        # what they know, as of work that was over and was then taken up again.
        self._late: WeakSet[AsyncFollowing] = WeakSet()
        self._reader = AsyncReader()
        self._alarm: AsyncMailbox[None] = AsyncMailbox()  # rings where the work may go on again
        self._turn = 0  # of the reader that reads now
        self._reads_texts: bool | None = None  # none while nobody reads
        self._after = 0
        self._texts: dict[str, TextAssembler] = {}  # that are being written, by job

    def follow(
        self, after: int = 0, *, texts: bool = False, beyond_end: bool = False
    ) -> "AsyncFollowing":
        """Begin to look; what is returned tells what changes.

        Args:
            after: the number of the last event that is known already.
            texts: whether texts are told as they are written.
            beyond_end: whether work that is over is looked at on, as it may be taken up again.
        """
        return AsyncFollowing(self._http, self, after, texts=texts, beyond_end=beyond_end)

    def wake(self) -> None:
        """Look now whether work that was over goes on."""
        self._alarm.put()

    async def join(self, one: "AsyncFollowing", after: int) -> Sequence[Change]:
        """Tell one of all that changes, and return what it has missed by then."""
        with self._reader.guard:
            is_late = self._reads_texts is not None
            if not is_late:
                self._after = after
                self._texts.clear()
            self._looking.add(one)
            self._late.add(one)
            if one.texts:
                one.put([texts.repeat() for texts in self._texts.values()])
            if not is_late or (one.texts and not self._reads_texts):
                self._reader.cancel()
                self._turn += 1
                self._reads_texts = one.texts
                self._reader.start(partial(self._read, self._turn))
        if not is_late:
            return ()
        missed = await self.read_missed(after)
        self._alarm.put()
        return missed

    async def read_missed(self, after: int) -> Sequence[Change]:
        """Read the events above a number, and the record."""
        events = await self._http.request_events(self._path, after, 0)
        return [*events, await self._http.request_record(self._model, "GET", self._path)]

    def leave(self, one: "AsyncFollowing") -> None:
        """Tell one of nothing more."""
        with self._reader.guard:
            self._looking.discard(one)
            self._late.discard(one)
            if not self._looking and self._reader.cancel():
                self._reads_texts = None
        self._alarm.put()

    async def _read(self, turn: int) -> None:
        """Read until nobody looks any more, or another reader has the turn."""
        pause_s, is_over = FIRST_CHECK_S, False
        try:
            while self._has_turn(turn, is_over=is_over):
                if is_over:
                    await self._alarm.take(pause_s)
                    pause_s = min(pause_s * 2, LAST_CHECK_S)
                    is_over = await self._read_list(turn, 0)
                    continue
                pause_s = FIRST_CHECK_S
                if self._reads_texts:
                    is_over = await self._read_stream(turn)
                else:
                    is_over = await self._read_list(turn, int(WINDOW_S))
        except Exception as error:  # raised where somebody looks: nobody sees it here
            with self._reader.guard:
                if turn == self._turn:
                    self._reads_texts = None
                    for one in list(self._looking):
                        one.fail(error)

    def _has_turn(self, turn: int, *, is_over: bool = False) -> bool:
        """Tell whether a reader is to read on; another takes its place once it is not."""
        with self._reader.guard:
            if turn != self._turn:
                return False
            ended = [one for one in list(self._looking) if is_over and one not in self._late]
            for one in ended:
                one.end()
            if any(one.beyond_end or one not in ended for one in list(self._looking)):
                return True
            self._reads_texts = None
            return False

    async def _read_list(self, turn: int, wait_s: int) -> bool:
        """Read what has happened, waiting for so long if nothing has; tell if the work is over."""
        self._begin_record(turn)
        found, record = await self._http.request_progress(
            self._model, self._path, self._after, wait_s, may_end
        )
        self._tell_events(turn, found)
        return record is not None and await self._tell_record(turn, record, found)

    async def _read_stream(self, turn: int) -> bool:
        """Read what happens and what is written, for a while; tell if the work is over."""
        if await self._read_list(turn, 0):
            return True
        until = time.monotonic() + WINDOW_S
        stream = self._http.stream_events(self._path, self._after, until, self._begin_texts)
        async with aclosing(stream):
            async for item in stream:
                if isinstance(item, TextDelta):
                    self._tell_text(turn, item)
                else:
                    self._tell_events(turn, [item])
                    if may_end([item]):
                        record = await self._read_record(turn)
                        if await self._tell_record(turn, record, [item]):
                            return True
                if not self._has_turn(turn):
                    return False
        if time.monotonic() >= until:
            return False
        return await self._tell_record(turn, await self._read_record(turn), [])

    def _begin_record(self, turn: int) -> None:
        """Note that all who look by now may be told of the record that is read next."""
        with self._reader.guard:
            if turn == self._turn:
                self._late.clear()

    async def _read_record(self, turn: int) -> BaseModel:
        self._begin_record(turn)
        record: BaseModel = await self._http.request_record(self._model, "GET", self._path)
        return record

    async def _tell_record(self, turn: int, record: BaseModel, found: Sequence[Event]) -> bool:
        """Tell of a record that was read after some events; return whether the work is over."""
        self._tell(turn, record, also_late=False)
        while self._has_late(turn):  # nothing more may happen that they would be told by
            record = await self._read_record(turn)
            self._tell(turn, record, also_late=False)
        if getattr(record, "status", "") not in FINAL_STATUSES:
            return False
        if found and found[-1].terminal:
            return True
        last = await self._http.request_events(self._path, self._after, 0)
        self._tell_events(turn, last)
        return not last

    def _has_late(self, turn: int) -> bool:
        """Tell whether some began to look after the record that was read last was asked for."""
        with self._reader.guard:
            return turn == self._turn and any(one in self._late for one in list(self._looking))

    def _begin_texts(self) -> None:
        """Take what a stream tells first of each text as its beginning."""
        for texts in self._texts.values():
            texts.begin()

    def _tell_text(self, turn: int, delta: TextDelta) -> None:
        with self._reader.guard:
            if turn == self._turn:
                piece = self._texts.setdefault(delta.job_id, TextAssembler()).add(delta)
                for one in list(self._looking):
                    if piece and one.texts:
                        one.put([piece])

    def _tell_events(self, turn: int, found: Sequence[Event]) -> None:
        with self._reader.guard:
            if turn != self._turn:
                return
            new = [event for event in found if event.n > self._after]
            self._tell(turn, *new)
            for event in new:
                self._after = event.n
                if ends_text(event):
                    self._texts.pop(str(event.data.get("job_id") or event.data.get("id")), None)

    def _tell(self, turn: int, *changes: Change, also_late: bool = True) -> None:
        with self._reader.guard:
            if turn == self._turn and changes:
                for one in list(self._looking):
                    if also_late or one not in self._late:
                        one.put(changes)


class AsyncFollowing:
    """What changes of some work, for one who looks: batches, until it is over.

    Who breaks off closes it, which any thread may do; a `with` block does. Of a task it tells of
    its workflows, too: each is told of to its end before the task goes on.

    Attributes:
        texts: whether texts are told as they are written.
        beyond_end: whether it goes on after the end, as the work may be taken up again.
    """

    def __init__(
        self,
        http: AsyncHttpClient,
        follower: AsyncFollower,
        after: int,
        *,
        texts: bool,
        beyond_end: bool,
    ) -> None:
        self.texts = texts
        self.beyond_end = beyond_end
        self._http = http
        self._follower = follower
        self._mailbox: AsyncMailbox[Change] = AsyncMailbox()
        self._after = after
        self._has_joined = False
        self._is_ended = False  # all there is has been put
        self._is_over = False
        self._error: Exception | None = None
        self._held: list[Change] = []  # of a task, until its workflow is over
        self._below: AsyncFollowing | None = None

    @property
    def is_over(self) -> bool:
        """True if all has been told, or it was closed."""
        return self._is_over

    async def take(self, timeout_s: float | None = None) -> list[Change]:
        """Return what has changed since the last time, waiting for so long while nothing has.

        Args:
            timeout_s: how long to wait at most; none is as long as it takes.

        Raises:
            ToolkitError: what the service answered, or that it could not be reached.
        """
        if self._is_over:
            return []
        if self._below is not None:
            below = self._below
            changes = await below.take(timeout_s)
            if below.is_over:
                self._below = None
            return changes
        if self._held:
            held, self._held = self._held, []
            return await self._pass_on(held)
        if not self._has_joined:
            self._has_joined = True
            missed = await self._follower.join(self, self._after)
            if missed:
                return await self._pass_on(missed)
        is_last = self._is_ended
        changes, has_lost = await self._mailbox.take(0 if is_last else timeout_s)
        if has_lost:
            changes = list(await self._follower.read_missed(self._after))
        if self._error is not None and not changes:
            self.close()
            raise self._error
        told = await self._pass_on(changes)
        if is_last and not self._held and self._below is None:
            self.close()
        return told

    async def _pass_on(self, changes: Sequence[Change]) -> list[Change]:
        """Return the changes that were not told before, up to the begin of a workflow."""
        told: list[Change] = []
        for place, change in enumerate(changes):
            if isinstance(change, Event):
                if change.n <= self._after:
                    continue
                self._after = change.n
            told.append(change)
            if isinstance(change, Event) and change.type == "task.executing":
                workflow_id = change.data.get("workflow_id")
                if isinstance(workflow_id, str):
                    self._held = list(changes[place + 1 :])
                    told.append(await self._look_below(f"/workflows/{workflow_id}"))
                    break
        return told

    async def _look_below(self, path: str) -> WorkflowRecord:
        """Begin to look at a workflow of the task, and return it."""
        record = await self._http.request_record(WorkflowRecord, "GET", path)
        follower = find_follower(self._http, WorkflowRecord, path)
        self._below = follower.follow(texts=self.texts)
        return record

    async def __aiter__(self) -> AsyncIterator[list[Change]]:
        try:
            while not self._is_over:
                changes = await self.take()
                if changes:
                    yield changes
        finally:
            self.close()

    def put(self, changes: Sequence[Change]) -> None:
        """Take in what has changed: for the follower."""
        self._mailbox.put(*changes)

    def end(self) -> None:
        """Take in that the work is over: for the follower."""
        if not self.beyond_end and not self._is_ended:
            self._is_ended = True
            self._mailbox.put()

    def fail(self, error: Exception) -> None:
        """Take in that the work can be followed no longer: for the follower."""
        self._error = error
        self._mailbox.put()

    def close(self) -> None:
        """Look no longer; the work goes on."""
        self._is_over = True
        self._follower.leave(self)
        self._mailbox.put()
        if self._below is not None:
            self._below.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def find_follower(http: AsyncHttpClient, model: type[Any], path: str) -> AsyncFollower:
    """Find the follower of some work, which all who look at that by one client share.

    Args:
        http: the service.
        model: the record of the work.
        path: of the work, below `/v1`.
    """
    found = http.shared.get(path)
    if not isinstance(found, AsyncFollower):
        found = http.shared[path] = AsyncFollower(http, model, path)
    return found


def wake_follower(http: AsyncHttpClient, path: str) -> None:
    """Have some work be looked at now, if it is followed: it may go on after its end."""
    found = http.shared.get(path)
    if isinstance(found, AsyncFollower):
        found.wake()


def may_end(found: Sequence[Event]) -> bool:
    """Tell whether some work may be over after these events, be it for a while."""
    return any(event.terminal or event.type.endswith(".blocked") for event in found)


def ends_text(event: Event) -> bool:
    """Tell whether a text is written no more after an event."""
    return event.type.endswith((".completed", ".failed", ".cancelled"))
