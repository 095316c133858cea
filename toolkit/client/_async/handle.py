"""Handles: a resource, and the methods that any of them has."""

import time
from collections.abc import Generator, Sequence
from typing import Any, Self, TypeVar

from pydantic import BaseModel

from toolkit.client._async.follower import AsyncFollowing, find_follower, wake_follower
from toolkit.client._async.http import AsyncHttpClient
from toolkit.client._deprecation import rename_arguments
from toolkit.client._record_list import RecordList
from toolkit.client._record_view import (
    RecordView,
)
from toolkit.client._wire.messages import LONG_POLL_S
from toolkit.contract.errors import ErrorCode, ServiceError, ServiceTimeoutError
from toolkit.contract.events import Event
from toolkit.contract.jobs import FINAL_STATUSES
from toolkit.display.progress import EventProgress, ProgressMode

R = TypeVar("R", bound=BaseModel)


class AsyncHandle(RecordView[R]):
    """A resource that can be read again."""

    resource = ""
    model: type[Any]

    def __init__(self, http: AsyncHttpClient, record: R) -> None:
        super().__init__(record)
        self._http = http

    @property
    def path(self) -> str:
        """The path of the resource, below `/v1`."""
        return f"/{self.resource}/{self.id}"

    async def refresh(self) -> Self:
        """Read the resource again."""
        return await self._call("GET")

    async def _call(self, method: str, what: str = "", **options: Any) -> Self:
        self.record = await self._http.request_record(
            self.model, method, f"{self.path}{what}", **options
        )
        if method == "POST":
            wake_follower(self._http, self.path)
        return self


class AsyncDeletable(AsyncHandle[R]):
    """A resource that can be deleted."""

    async def delete(self) -> Self:
        """Delete it; what a vendor has of it is deleted there, too, and no longer billed.

        Raises:
            RequestError: `NOT_FOUND`; `CONFLICT` while it is in use, or the vendor did not do it.
        """
        return await self._call("DELETE")


class AsyncWaitable(AsyncHandle[R]):
    """Work that can be waited for and cancelled."""

    ended: frozenset[str] = FINAL_STATUSES
    failed: frozenset[str] = frozenset({"failed", "cancelled"})
    is_streamed = False  # whether its texts are to be watched as they are written
    _last_event = 0  # the number of the last event that was shown

    @property
    def status(self) -> str:
        """The state it was in when last read."""
        return str(getattr(self.record, "status", ""))

    @property
    def done(self) -> bool:
        """True if it was over when last read."""
        return self.status in self.ended

    async def events(self, after: int = 0, wait_s: int = 0) -> list[Event]:
        """Read its events above `after`, holding up to `wait_s` seconds while there is none."""
        found = await self._http.request_events(self.path, after, wait_s)
        return RecordList(found, "events")

    def follow(
        self, after: int = 0, *, texts: bool = False, beyond_end: bool = False
    ) -> AsyncFollowing:
        """Follow it: what is returned yields what has changed, in batches, until it is over.

        A change is an event, a piece of a text, or the record as it was read anew. However many
        follow the same work by one client, it is read once; a service that is away is waited for.

        Args:
            after: the number of the last event that is known already.
            texts: whether texts are told as they are written, of all nodes.
            beyond_end: whether it goes on once the work is over, as that may be taken up again.
        """
        follower = find_follower(self._http, self.model, self.path)
        return follower.follow(after, texts=texts, beyond_end=beyond_end)

    @rename_arguments(timeout_s="timeout")
    async def wait(
        self, timeout: float | None = None, *, progress: ProgressMode = True, check: bool = True
    ) -> Self:
        """Wait until it is over, showing progress.

        An interrupt ends the wait and not the work: get it by its id and wait again. A server that
        is away meanwhile is waited for, and the events go on where they ended.

        Args:
            timeout: how long to wait at most, in seconds; none is as long as it takes.
            progress: True for what fits the place, "lines" for a line each change, False for none.
            check: raise if it failed.

        Raises:
            WorkError: it failed or was cancelled; `check=False` returns it instead.
            ServiceTimeoutError: `UNAVAILABLE` when the time was up first; it is a `TimeoutError`.
            ServiceError: `UNAVAILABLE` for a server that is away for longer than is waited for.
        """
        shown = EventProgress(progress)
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            await self._follow(deadline, shown)
        except ServiceError as error:
            # A server that is away is reported as that only where it was given up before the time.
            if deadline is None or not error.is_away or time.monotonic() < deadline:
                raise
        if not self.done:
            raise ServiceTimeoutError(
                ErrorCode.UNAVAILABLE,
                f"{self.id} is still {self.status} after {timeout} s; it goes on.",
            )
        return self._raise_if_failed() if check else self

    async def _follow(self, deadline: float | None, shown: EventProgress) -> None:
        """Follow the events until it is over, or until a time by the monotonic clock."""
        if self.is_streamed and not self.done and shown.shows_text:
            await self._follow_text(deadline, shown)
        # What has ended may have been taken up again; and without any time, this is all there is.
        if self.done or (deadline is not None and deadline <= time.monotonic()):
            await self._call("GET", deadline=deadline)
        while not self.done:
            left = LONG_POLL_S if deadline is None else deadline - time.monotonic()
            if left <= 0:
                return
            hold_s = min(LONG_POLL_S, max(1, int(left)))
            found, record = await self._http.request_progress(
                self.model,
                self.path,
                self._last_event,
                hold_s,
                self._may_end,
                deadline,
                needs_events=not shown.is_silent,
            )
            for event in found:
                shown.add(event)
                await self._follow_event(event, shown)
                self._last_event = event.n
            self.record = record or self.record

    async def _follow_text(self, deadline: float | None, shown: EventProgress) -> None:
        """Follow the events and the text as it is written, until its end or that of a stream."""
        from toolkit.client._text_pieces import TextAssembler
        from toolkit.contract.events import TextDelta

        texts = TextAssembler()
        try:
            async for item in self._http.stream_events(self.path, self._last_event, deadline):
                if isinstance(item, TextDelta):
                    piece = texts.add(item)
                    shown.add_text(piece, restarts=piece.restarts)
                    continue
                if item.terminal:
                    shown.end_text()
                shown.add(item)
                await self._follow_event(item, shown)
                self._last_event = item.n
        finally:
            shown.end_text()
        await self._call("GET", deadline=deadline)

    @staticmethod
    def _may_end(found: Sequence[Event]) -> bool:
        """Tell whether these events may end the wait, be it for a while."""
        return any(event.terminal or event.type.endswith(".blocked") for event in found)

    async def _follow_event(self, event: Event, shown: EventProgress) -> None:
        """Show events of what is below this resource; most have nothing below."""

    def _raise_if_failed(self) -> Self:
        error = getattr(self.record, "error", None)
        if self.status in self.failed and error is not None:
            raise error.to_exception(of_work=True)
        return self

    def __await__(self) -> Generator[Any, None, Self]:
        return self.wait().__await__()

    async def cancel(self) -> Self:
        """Cancel it; what has ended stays as it is."""
        return await self._call("POST", "/cancel")
