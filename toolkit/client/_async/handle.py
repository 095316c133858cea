"""Handles: records of the service with methods, such as `refresh`, `wait` and `delete`."""

import time
from collections.abc import Generator, Sequence
from typing import Any, Self, TypeVar

from pydantic import BaseModel

from toolkit.client._async.follower import AsyncFollowing
from toolkit.client._async.http import AsyncHttpClient
from toolkit.client._collections import RecordList
from toolkit.client._following import wake_follower
from toolkit.client._record_view import RecordView
from toolkit.client._wait_interruption import explain_interrupts
from toolkit.client._wire.messages import LONG_POLL_S, make_annotation
from toolkit.client._work_views import AnnotatedView, WorkView
from toolkit.contract.errors import ErrorCode, ServiceError, ServiceTimeoutError
from toolkit.contract.events import Event, PieceKind
from toolkit.contract.maps import MapRecord
from toolkit.contract.runs import Run
from toolkit.contract.tasks import Task
from toolkit.contract.workflows import WorkflowRecord
from toolkit.display.progress import ProgressMode

R = TypeVar("R", bound=BaseModel)
A = TypeVar("A", MapRecord, Run, Task, WorkflowRecord)


class AsyncHandle(RecordView[R]):
    """A record of the service with methods; `refresh` reads it again."""

    resource = ""
    record_type: type[Any]
    is_streamed = False  # whether to show its texts while they are written

    def __init__(self, http: AsyncHttpClient, record: R) -> None:
        super().__init__(record)
        self._http = http

    @property
    def path(self) -> str:
        """The path of the resource, below `/v1`."""
        return f"/{self.resource}/{self.id}"

    async def refresh(self) -> Self:
        """Read the record again, and return this same handle with the new record."""
        return await self._call("GET")

    async def _call(self, method: str, what: str = "", **options: Any) -> Self:
        self.record = await self._http.request_record(
            self.record_type, method, f"{self.path}{what}", **options
        )
        if method == "POST":
            wake_follower(self._http.shared, self.path)
        return self


class AsyncDeletable(AsyncHandle[R]):
    """A resource that can be deleted."""

    async def delete(self) -> Self:
        """Delete the record; a vendor's resource behind it is deleted, too, and no longer billed.

        Raises:
            RequestError: `NOT_FOUND`; `CONFLICT` if it is in use, or if the vendor failed.
        """
        return await self._call("DELETE")


class AsyncWaitable(WorkView[R], AsyncHandle[R]):
    """Work that can be waited for and cancelled."""

    async def events(self, after: int = 0, wait_s: int = 0) -> list[Event]:
        """Read the events after number `after`, waiting up to `wait_s` seconds for the first."""
        events = await self._http.request_events(self.path, after, wait_s)
        return RecordList(events, "events")

    def follow(
        self,
        after: int = 0,
        *,
        texts: bool | Sequence[PieceKind] = False,
        beyond_end: bool = False,
    ) -> AsyncFollowing:
        """Follow the work: iterate over batches of changes until its end.

        A change is an event, a piece of a text, or a new record. All followers of the same work by
        one client share its requests.

        Args:
            after: number of the last known event.
            texts: True to include the texts of all nodes while they are written, or the kinds of
                pieces to include: `text`, `reasoning`, `tool_call`.
            beyond_end: whether to go on after the end, because the work may be resumed.
        """
        kinds: Sequence[PieceKind] = ("text",) if texts is True else texts or ()
        return AsyncFollowing(
            self._http, self.record_type, self.path, after, kinds=kinds, beyond_end=beyond_end
        )

    async def wait(
        self, timeout: float | None = None, *, progress: ProgressMode = True, check: bool = True
    ) -> Self:
        """Wait for the end, and show the progress: nodes, time, cost and texts.

        An interrupt ends only the wait: get the work by its id to wait again.

        Args:
            timeout: maximum seconds to wait. Default: no limit.
            progress: True for the best display here, "lines" for a line per change, False for none.
            check: raise an error if the work failed or was cancelled.

        Raises:
            WorkError: the work failed or was cancelled, unless `check=False`.
            ServiceTimeoutError: `UNAVAILABLE` after `timeout`; it is a `TimeoutError`.
            KeyboardInterrupt: the wait was interrupted; the message says how to wait again.
            ServiceError: `UNAVAILABLE` if the service cannot be reached for too long.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            with explain_interrupts(self.resource, self.id):
                if progress is False:
                    await self._await_end(deadline)
                else:
                    await self._watch(deadline, progress)
        except ServiceError as error:
            # A server that is away, or limits the rate of requests, is reported as that only if it
            # was given up before the time.
            may_wait = error.is_away or error.code is ErrorCode.RATE_LIMITED
            if deadline is None or not may_wait or time.monotonic() < deadline:
                raise
        if not self.done:
            raise ServiceTimeoutError(
                ErrorCode.UNAVAILABLE,
                f"{self.id} is still {self.status} after {timeout} s; the work continues.",
            )
        return self._raise_if_failed() if check else self

    async def _await_end(self, deadline: float | None) -> None:
        """Wait for the work's end, or for a deadline by the monotonic clock, without a display.

        Events are read only if a proxy drops the header that asks the service to wait.
        """
        # Ended work may have been resumed; and without any time left, one request is all there is.
        if self.done or (deadline is not None and deadline <= time.monotonic()):
            await self._call("GET", deadline=deadline)
        while not self.done:
            left_s = LONG_POLL_S if deadline is None else deadline - time.monotonic()
            if left_s <= 0:
                return
            wait_s = min(LONG_POLL_S, max(1, int(left_s)))
            self.record, was_held = await self._http.request_end(
                self.record_type, self.path, wait_s, deadline
            )
            if not self.done and not was_held:
                for event in await self._http.request_events(
                    self.path, self._last_event, wait_s, deadline
                ):
                    self._last_event = event.n

    async def _watch(self, deadline: float | None, progress: ProgressMode) -> None:
        """Follow the work and show its progress, until its end or a monotonic deadline."""
        from toolkit.display.progress.progress_display import ProgressDisplay

        if self.done or (deadline is not None and deadline <= time.monotonic()):
            await self._call("GET", deadline=deadline)
        if self.done:
            return
        display = ProgressDisplay(progress, self.record, is_streamed=self.is_streamed)
        after = 0 if display.needs_past else self._last_event
        is_over = False
        try:
            async with self.follow(after, texts=display.piece_kinds) as following:
                while not is_over and not following.is_over:
                    left_s = None if deadline is None else deadline - time.monotonic()
                    if left_s is not None and left_s <= 0:
                        return
                    spans = [span for span in (left_s, display.tick_s) if span is not None]
                    for change in await following.take(min(spans, default=None)):
                        is_over = self._show(change, display) or is_over
                    display.refresh()
        finally:
            display.end()

    def __await__(self) -> Generator[Any, None, Self]:
        return self.wait().__await__()

    async def cancel(self) -> Self:
        """Cancel the work; ended work does not change."""
        return await self._call("POST", "/cancel")


class AsyncAnnotated(AnnotatedView[A], AsyncWaitable[A]):
    """Work with tags and a note."""

    async def annotate(self, *, tags: Sequence[str] | None = None, note: str | None = None) -> Self:
        """Replace the tags or the note of work in any state; an omitted value does not change.

        Args:
            tags: new tags; `[]` removes all tags.
            note: new note; `""` removes the note.

        Raises:
            RequestError: `INVALID_REQUEST` for a tag with a comma, or a value over its limit.
        """
        return await self._call("POST", "/annotate", json=make_annotation(tags, note))
