# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""HTTP of the client: sends requests to `/v1`, and repeats them if that is safe."""

import time
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import httpx

from toolkit.client._client_state import ClientState
from toolkit.client._wire.errors import check_stream, make_unreachable_error, parse_error
from toolkit.client._wire.links import (
    find_link,
    make_link_options,
    make_storage_error,
    read_linked_bytes,
)
from toolkit.client._wire.messages import (
    HttpAnswer,
    RecordPage,
    parse_events,
)
from toolkit.client._wire.retries import RetrySchedule
from toolkit.client._wire.tls import choose_ssl_context, load_ssl_context
from toolkit.client._wire.twin_clients import TwinClient, adopt_client
from toolkit.contract.errors import ServiceError, ToolkitError
from toolkit.profiles.resolution import ServerAccess

if TYPE_CHECKING:
    from pydantic import BaseModel

    from toolkit.client._collections import Collection
    from toolkit.client._record_view import RecordView
    from toolkit.client._replies import Reply
    from toolkit.client._wire.operations import EngineAnswer, OperationChannel
    from toolkit.contract.events import Event, TextDelta
    from toolkit.contract.operations.messages import EventTest, OperationAnswer

    Channel: TypeAlias = OperationChannel[Reply[OperationAnswer], Iterator[Event | TextDelta]]

R = TypeVar("R", bound="BaseModel")
V = TypeVar("V")
W = TypeVar("W", bound="RecordView[Any]")
# A long poll keeps its connection; with httpx's own limit of 100, other requests would wait.
CONNECTION_LIMITS = httpx.Limits(max_connections=1_000, max_keepalive_connections=100)


class HttpClient(ClientState):
    """The sender of all requests of a client, by HTTP or to an engine in this process."""

    channel: "Channel | None"

    def __init__(
        self,
        access: ServerAccess,
        transport: httpx.BaseTransport | None,
        http_client: httpx.Client | TwinClient | None,
        timeout: float | httpx.Timeout | None,
        max_retries: int | None,
        cache: bool | None,
        max_wait_s: float | None,
        cacert: str | Path | None,
    ) -> None:
        client = None
        if http_client is not None:
            client = adopt_client(http_client, httpx.Client)
            if transport is not None or cacert is not None:
                raise TypeError(
                    "http_client has its own transport and certificates: leave out"
                    " transport and cacert"
                )
        super().__init__(access, client, timeout, max_retries, cache, max_wait_s)
        self._cacert = cacert
        self._storage_client: httpx.Client | None = None
        self._client = client or httpx.Client(
            transport=transport,
            verify=choose_ssl_context(access, cacert) if transport is None else True,
            limits=CONNECTION_LIMITS,
        )

    def _send(
        self,
        method: str,
        path: str,
        *,
        max_wait_s: float | None = None,
        deadline: float | None = None,
        **options: Any,
    ) -> httpx.Response:
        """Send a request by HTTP, and repeat it after a failure if that is safe.

        The options are those of `_build_request` and `_make_retries`.

        Raises:
            ToolkitError: the error that the service answered, or that it could not be reached.
        """
        request = self._build_request(self._client, method, path, deadline=deadline, **options)
        repeatable = method in ("GET", "DELETE") or "idempotency-key" in request.headers
        retries = self._make_retries(
            method, repeatable=repeatable, max_wait_s=max_wait_s, deadline=deadline
        )
        self._await_turn(deadline)
        while True:
            try:
                response = self._client.send(request)
            except httpx.TransportError as error:
                failed: ToolkitError = make_unreachable_error(
                    error, request.url, has_answered=self._has_answered
                )
                sent = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            else:
                self._has_answered = True
                if response.status_code < 400:
                    return response
                failed, sent = parse_error(response, self.access), True
            delay_s = retries.next_delay_s(failed, sent=sent)
            if delay_s is None:
                raise failed
            self._await_retry(failed, delay_s, deadline)
            if deadline is not None and time.monotonic() >= deadline:
                raise failed

    def _await_retry(
        self, failed: ToolkitError, delay_s: float, deadline: float | None = None
    ) -> None:
        """Wait until a request that failed may be sent again."""
        if self._pacer.note_refusal(failed):
            self._await_turn(deadline)
        else:
            time.sleep(delay_s)

    def _await_turn(self, deadline: float | None) -> None:
        """Wait until the service's rate limit allows this client a request, or the deadline."""
        while delay_s := self._pacer.reserve_delay_s():
            if deadline is not None:
                delay_s = min(delay_s, max(0.0, deadline - time.monotonic()))
            time.sleep(delay_s)
            # Another request may have been refused meanwhile.
            if not self._pacer.is_closed or (deadline is not None and time.monotonic() >= deadline):
                return

    def _ask(
        self, method: str, path: str, *, is_last: "EventTest | None" = None, **options: Any
    ) -> "HttpAnswer | EngineAnswer":
        """Request an operation from the engine in this process if there is one, else over HTTP."""
        if self.channel is not None:
            from toolkit.client._wire.operations import EngineAnswer

            answer = self._call(self.channel, method, path, is_last=is_last, **options)
            return EngineAnswer(answer)
        return HttpAnswer(self._send(method, path, **options))

    def request_json(self, path: str, **options: Any) -> Any:
        """Read the value at a path as plain JSON."""
        return (self._ask("GET", path, **options)).parse_data()

    def request_record(self, model: type[R], method: str, path: str, **options: Any) -> R:
        """Send a request and return the record in the answer."""
        return (self._ask(method, path, **options)).parse_record(model)

    def request_view(
        self, view: Callable[[R], V], model: type[R], method: str, path: str, **options: Any
    ) -> V:
        """Send a request and return the result of `view` for the record in the answer."""
        return view(self.request_record(model, method, path, **options))

    def request_list(
        self, view: Callable[[R], W], kind: str, model: type[R], path: str, **options: Any
    ) -> "Collection[W]":
        """Read a list that comes as one page, and return a collection of views of its records."""
        from toolkit.client._collections import Collection

        page = self.request_page(model, path, **options)
        return Collection([view(record) for record in page.records], kind)

    def request_page(
        self,
        model: type[R],
        path: str,
        params: Mapping[str, str | int] | None = None,
        **options: Any,
    ) -> RecordPage[R]:
        """Read one page of a list, with the records as instances of a model."""
        return (self._ask("GET", path, params=params, **options)).parse_page(model)

    def _ask_events(
        self, path: str, after: int, wait_s: int, **options: Any
    ) -> "HttpAnswer | EngineAnswer":
        params = {"after": after, "wait": wait_s}
        return self._ask("GET", f"{path}/events", params=params, hold_s=wait_s, **options)

    def request_events(
        self, path: str, after: int, wait_s: int, deadline: float | None = None
    ) -> "list[Event]":
        """Read a resource's events above number `after`, waiting up to `wait_s` s for the first."""
        from toolkit.contract.events import Event

        answer = self._ask_events(path, after, wait_s, deadline=deadline)
        return list(answer.parse_page(Event).records)

    def request_end(
        self, model: type[R], path: str, wait_s: int, deadline: float | None = None
    ) -> tuple[R, bool]:
        """Read some work once it has ended or is blocked, or `wait_s` seconds are over.

        Returns:
            the work, and whether the service waited: a proxy may have dropped the preference.
        """
        answer = self._ask("GET", path, prefer_wait_s=wait_s, deadline=deadline)
        return answer.parse_record(model), answer.has_waited

    def request_progress(
        self, model: type[R], path: str, after: int, wait_s: int, is_last: "EventTest"
    ) -> "tuple[list[Event], R | None]":
        """Read the next events of some work, waiting up to `wait_s` seconds, and then the work.

        The work is not read, and None, if these events show that it is not over.

        Args:
            is_last: function that checks whether the work may be over after some events.
        """
        from toolkit.contract.events import Event

        answer = self._ask_events(path, after, wait_s, is_last=is_last)
        events = list(answer.parse_page(Event).records)
        if answer.work is not None:
            return events, answer.work.parse(model)
        if events and not is_last(events):
            return events, None
        return events, self.request_record(model, "GET", path)

    def stream_events(
        self,
        path: str,
        after: int,
        deadline: float | None = None,
        begin: Callable[[], None] | None = None,
    ) -> "Generator[Event | TextDelta]":
        """Yield a resource's events numbered above `after`, and its texts as they are written.

        This ends with the resource's stream, or at the deadline.

        A stream that breaks goes on after its last event, and repeats unfinished texts.

        Args:
            begin: function that is called at the start of each stream.

        Raises:
            ToolkitError: the error that the service answered, or that it could not be reached.
        """
        if self.channel is not None:
            from toolkit.client._wire.operations import make_operation

            params = {"after": after}
            request = make_operation(self.access, "GET", f"{path}/events", params=params)
            if begin is not None:
                begin()
            for item in self.channel.stream(request, deadline):
                yield item
            return
        from toolkit.contract.events import Event
        from toolkit.contract.server_sent_events import EventDecoder

        retries = self._make_retries()
        self._await_turn(deadline)
        while True:
            decoder = EventDecoder()
            options = self._make_stream_options(after, deadline)
            url = httpx.URL(f"{self.url}{path}/events")
            if begin is not None:
                begin()
            try:
                with self._client.stream("GET", url, **options) as response:
                    if response.status_code >= 400:
                        response.read()
                    check_stream(response, self.access)
                    for chunk in response.iter_bytes():
                        for item in parse_events(decoder, chunk):
                            yield item
                            if isinstance(item, Event):
                                after, retries = item.n, self._make_retries()
                        if deadline is not None and time.monotonic() >= deadline:
                            return
                return
            except httpx.TransportError as error:
                failed: ToolkitError = make_unreachable_error(error, url, has_answered=True)
            except ToolkitError as error:
                failed = error
            if deadline is not None and time.monotonic() >= deadline:
                return
            delay_s = retries.next_delay_s(failed, sent=True)
            if delay_s is None:
                raise failed
            self._await_retry(failed, delay_s, deadline)

    def request_bytes(self, path: str, span: tuple[int, int | None] = (0, None)) -> bytes:
        """Read the bytes at a path: all, or from the start of `span` to before its end."""
        if self.channel is not None:
            return (self._call(self.channel, "GET", path, span=span)).content
        start, end = span
        headers = {} if end is None else {"Range": f"bytes={start}-{end - 1}"}
        retries = self._make_retries()
        while True:
            response = self._send("GET", path, headers=headers)
            link = find_link(response)
            if link is None:
                break
            try:
                return read_linked_bytes(self._get_link(link, headers), response, span)
            except ServiceError as error:
                # Try again only with a new link, because this one may be too old.
                delay_s = retries.next_delay_s(error, sent=True)
                if delay_s is None:
                    raise
            time.sleep(delay_s)
        data = response.content
        # Stream and response refer to each other: break the cycle to free the bytes at once.
        response.stream = httpx.ByteStream(b"")
        return data

    def _get_link(self, link: str, headers: Mapping[str, str]) -> httpx.Response:
        """Read bytes from object storage by a signed URL, without sending the API key or cookies.

        Raises:
            ServiceError: `UNAVAILABLE`.
        """
        if self._storage_client is None:
            context = load_ssl_context(self._cacert or self.access.cacert)
            self._storage_client = httpx.Client(verify=context, timeout=self._timeout)
        try:
            return self._storage_client.get(**make_link_options(link, headers))
        except httpx.TransportError as error:
            failed = f"could not be reached ({type(error).__name__})"
        raise make_storage_error(failed, away=True)  # here, because httpx's error names the link

    def _call(
        self,
        channel: "Channel",
        method: str,
        path: str,
        *,
        deadline: float | None = None,
        **options: Any,
    ) -> "OperationAnswer":
        """Call an operation of the engine in this process, with retries if they may help."""
        from toolkit.client._wire.operations import make_operation

        request = make_operation(self.access, method, path, **options)
        repeatable = method in ("GET", "DELETE")
        retries = RetrySchedule(method, repeatable, self._max_retries, None, deadline)
        while True:
            try:
                return channel.call(request)
            except ToolkitError as error:
                delay_s = retries.next_delay_s(error, sent=True)
                if delay_s is None:
                    raise
            time.sleep(delay_s)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
        if self._storage_client is not None:
            self._storage_client.close()
