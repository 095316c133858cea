# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""HTTP of the client: requests to `/v1` are sent, and repeated where that is safe."""

import re
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

import httpx

from toolkit.client._wire.errors import make_foreign_error, make_unreachable_error, parse_error
from toolkit.client._wire.links import find_link, make_storage_error, read_linked_bytes
from toolkit.client._wire.messages import (
    encode_body,
    make_headers,
    make_preference_header,
    parse_data,
    parse_envelope,
)
from toolkit.client._wire.pacing import RequestPacer
from toolkit.client._wire.pages import RecordPage
from toolkit.client._wire.retries import RetrySchedule, make_idempotency_header, resolve_max_wait_s
from toolkit.client._wire.timeouts import bound_timeout, choose_timeout
from toolkit.client._wire.tls import choose_ssl_context, load_ssl_context
from toolkit.client._wire.twin_clients import TwinClient, adopt_client
from toolkit.contract.errors import ServiceError, ToolkitError
from toolkit.profiles.resolution import ServerAccess

if TYPE_CHECKING:
    from pydantic import BaseModel

    from toolkit.client._sync.operation_channel import OperationChannel
    from toolkit.contract.events import Event, TextDelta
    from toolkit.contract.operations.messages import (
        EventTest,
        OperationAnswer,
        OperationRequest,
    )
    from toolkit.functions import FunctionTable

R = TypeVar("R", bound="BaseModel")
# A held request keeps its connection, and httpx's own 100 would have others wait for it.
CONNECTION_LIMITS = httpx.Limits(max_connections=1_000, max_keepalive_connections=100)
MAX_STARTED = 2_000  # ids that are noted, of each resource
# Any other path is read as an address is.
_PLAIN_PATH = re.compile(r"(?:/[\w.@:-]+)+", re.ASCII)


class HttpClient:
    """The HTTP client below the client: the one place that sends requests."""

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
        own = None
        if http_client is not None:
            own = adopt_client(http_client, httpx.Client)
            if transport is not None or cacert is not None:
                raise TypeError("http_client has a transport and certificates of its own")
        self.access = access
        self.cache = cache
        self.max_wait_s = resolve_max_wait_s(max_wait_s)
        self._channel: OperationChannel | None = None
        self.functions: FunctionTable | None = None  # of an engine in this process
        self._headers = httpx.Headers(make_headers(access))  # which do not show the key
        self._timeout = choose_timeout(timeout, own)
        self._max_retries = max_retries
        self._pacer = RequestPacer()
        # The newest work that was started by this client, by resource: what it has spent.
        self.started: dict[str, deque[str]] = {}
        self._has_answered = False  # whether the service has answered anything yet
        # What those who use this client share, by path, as long as any of them holds it.
        self.shared: WeakValueDictionary[str, object] = WeakValueDictionary()
        self._cacert = cacert
        self._storage_client: httpx.Client | None = None
        self._client = own or httpx.Client(
            transport=transport,
            verify=choose_ssl_context(access, cacert) if transport is None else True,
            limits=CONNECTION_LIMITS,
        )

    def note_started(self, resource: str, id: str) -> None:
        """Note that this client has started some work."""
        self.started.setdefault(resource, deque(maxlen=MAX_STARTED)).append(id)

    def attach_channel(self, channel: "OperationChannel") -> None:
        """Attach a way to the operations of an engine in this process."""
        self._channel = channel

    def choose_cache(self, target: str) -> bool | None:
        """Return whether results are used again; agents plan anew each time, so have no say."""
        return self.cache if target == "capability" else None

    @property
    def url(self) -> str:
        """The address of `/v1`."""
        return self.access.base_url

    def send(
        self,
        method: str,
        path: str,
        *,
        json: object = None,
        params: Mapping[str, str | int] | None = None,
        files: Any = None,
        headers: Mapping[str, str] | None = None,
        hold_s: float = 0.0,
        prefer_wait_s: int = 0,
        max_wait_s: float | None = None,
        deadline: float | None = None,
        watches_text: bool = False,
    ) -> httpx.Response:
        """Send a request, again if it could not be served and repeating it is safe.

        Args:
            hold_s: for how long the service may hold the request, beside the timeout.
            prefer_wait_s: the seconds that the service is asked to wait for the end of the work.
            max_wait_s: wait so long for a service that is away, where that is less than usual.
            deadline: the time, by the monotonic clock, at which the caller gives up.
            watches_text: whether the texts of the work that is asked for will be watched.

        Raises:
            ToolkitError: what the service answered, or that it could not be reached.
            TypeError: JSON cannot hold a value of the body.
        """
        request = self._client.build_request(
            method,
            f"{self.url}{path}",
            content=None if json is None else encode_body(json),
            params=params,
            files=files,
            headers={
                **self._headers,
                **({} if json is None else {"Content-Type": "application/json"}),
                **make_idempotency_header(method, path, json),
                **make_preference_header(prefer_wait_s, watches_text=watches_text),
                **(headers or {}),
            },
            timeout=bound_timeout(self._timeout, hold_s + prefer_wait_s, deadline),
        )
        repeatable = method in ("GET", "DELETE") or "idempotency-key" in request.headers
        retries = RetrySchedule(
            method, repeatable, self._max_retries, self._limit_wait_s(max_wait_s), deadline
        )
        self._await_turn(deadline)
        while True:
            try:
                response = self._client.send(request)
            except httpx.TransportError as error:
                failed: ToolkitError = make_unreachable_error(
                    error, request.url, known=self._has_answered
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

    def _limit_wait_s(self, most: float | None) -> float:
        """Return how long a service that is away is waited for."""
        return self.max_wait_s if most is None else min(most, self.max_wait_s)

    def request_json(self, path: str, **options: Any) -> Any:
        """Read what is at a path as plain JSON."""
        if self._channel is not None:
            from pydantic_core import from_json

            answer = self._call_operation(self._channel, "GET", path, **options)
            return from_json(answer.to_json())
        return parse_envelope(self.send("GET", path, **options))["data"]

    def request_record(self, model: type[R], method: str, path: str, **options: Any) -> R:
        """Send a request and return the record that its envelope holds."""
        if self._channel is not None:
            answer = self._call_operation(self._channel, method, path, **options)
            return answer.records[0].parse(model)
        return parse_data(parse_envelope(self.send(method, path, **options)), model)

    def request_page(
        self,
        model: type[R],
        path: str,
        params: Mapping[str, str | int] | None = None,
        **options: Any,
    ) -> RecordPage[R]:
        """Read a page of records."""
        if self._channel is not None:
            answer = self._call_operation(self._channel, "GET", path, params=params, **options)
            records = [one.parse(model) for one in answer.records]
            return RecordPage(records, answer.next_cursor, answer.total)
        found = self.request_json(path, params=params, **options)
        records = [model.model_validate(item) for item in found["items"]]
        return RecordPage(records, found.get("next_cursor"), found.get("total"))

    def request_events(
        self, path: str, after: int, wait_s: int, deadline: float | None = None
    ) -> "list[Event]":
        """Read a resource's events above `after`, held up to `wait_s` seconds for the first."""
        from toolkit.contract.events import Event

        params = {"after": after, "wait": wait_s}
        page = self.request_page(Event, f"{path}/events", params, hold_s=wait_s, deadline=deadline)
        return list(page.records)

    def request_end(
        self, model: type[R], path: str, wait_s: int, deadline: float | None = None
    ) -> tuple[R, bool]:
        """Read some work once it has ended or is blocked, or `wait_s` seconds are over.

        Returns:
            the work, and whether the service waited: a proxy may have dropped the preference.
        """
        if self._channel is not None:
            answer = self._call_operation(
                self._channel, "GET", path, prefer_wait_s=wait_s, deadline=deadline
            )
            return answer.records[0].parse(model), True
        response = self.send("GET", path, prefer_wait_s=wait_s, deadline=deadline)
        work = parse_data(parse_envelope(response), model)
        return work, "wait=" in response.headers.get("preference-applied", "")

    def request_progress(
        self,
        model: type[R],
        path: str,
        after: int,
        wait_s: int,
        is_last: "EventTest",
        deadline: float | None = None,
    ) -> "tuple[list[Event], R | None]":
        """Read the events of some work as they come, and the work itself once it may be over.

        Args:
            model: of the work.
            path: of the work.
            after: the number of the last event that is known already.
            wait_s: how long to wait for one, in seconds.
            is_last: tells whether the work may be over after some events.
            deadline: the time, by the monotonic clock, at which the caller gives up.
        """
        if self._channel is not None:
            from toolkit.contract.events import Event

            answer = self._call_operation(
                self._channel,
                "GET",
                f"{path}/events",
                params={"after": after, "wait": wait_s},
                deadline=deadline,
                is_last=is_last,
            )
            found = [one.parse(Event) for one in answer.records]
            work = answer.work
            return found, None if work is None else work.parse(model)
        found = self.request_events(path, after, wait_s, deadline)
        if found and not is_last(found):
            return found, None
        return found, self.request_record(model, "GET", path, deadline=deadline)

    def stream_events(
        self,
        path: str,
        after: int,
        deadline: float | None = None,
        begin: Callable[[], None] | None = None,
    ) -> "Generator[Event | TextDelta]":
        """Yield a resource's events above `after`, and its texts as they are written.

        It ends with the resource, at the deadline (a time by the monotonic clock), or where the
        service ends it. A stream that breaks goes on after its last event, with what is being
        written then from its beginning.

        Args:
            path: of the resource.
            after: the number of the last event that is known already.
            deadline: the time at which it ends.
            begin: called where a stream begins, also after one that broke.

        Raises:
            ToolkitError: what the service answered, or that it could not be reached.
        """
        if self._channel is not None:
            request = self._make_operation("GET", f"{path}/events", params={"after": after})
            if begin is not None:
                begin()
            for item in self._channel.stream(request, deadline):
                yield item
            return
        from toolkit.client._wire.streams import STREAM_SILENCE_S, STREAM_TYPE, EventParser
        from toolkit.contract.events import Event

        retries = self._make_stream_retries()
        self._await_turn(deadline)
        while True:
            parser = EventParser()
            headers = httpx.Headers(self._headers)
            headers.update({"Accept": STREAM_TYPE, "Last-Event-ID": str(after)})
            limits = bound_timeout(self._timeout, STREAM_SILENCE_S, deadline)
            url = httpx.URL(f"{self.url}{path}/events")
            if begin is not None:
                begin()
            try:
                with self._client.stream("GET", url, headers=headers, timeout=limits) as response:
                    if response.status_code >= 400:
                        response.read()
                        raise parse_error(response, self.access)
                    if not response.headers.get("content-type", "").startswith(STREAM_TYPE):
                        raise make_foreign_error(response)
                    for chunk in response.iter_bytes():
                        for item in parser.parse(chunk):
                            yield item
                            if isinstance(item, Event):
                                after, retries = item.n, self._make_stream_retries()
                        if deadline is not None and time.monotonic() >= deadline:
                            return
                return
            except httpx.TransportError as error:
                failed: ToolkitError = make_unreachable_error(error, url, known=True)
            except ToolkitError as error:
                failed = error
            if deadline is not None and time.monotonic() >= deadline:
                return
            delay_s = retries.next_delay_s(failed, sent=True)
            if delay_s is None:
                raise failed
            self._await_retry(failed, delay_s, deadline)

    def _make_stream_retries(self) -> RetrySchedule:
        return RetrySchedule("GET", True, self._max_retries, self._limit_wait_s(None), None)

    def request_bytes(self, path: str, span: tuple[int, int | None] = (0, None)) -> bytes:
        """Read bytes: all, or those from the first number up to, but not including, the second."""
        if self._channel is not None:
            answer = self._call_operation(self._channel, "GET", path, span=span)
            return answer.content
        start, end = span
        headers = {} if end is None else {"Range": f"bytes={start}-{end - 1}"}
        retries = self._make_stream_retries()
        while True:
            response = self.send("GET", path, headers=headers)
            link = find_link(response)
            if link is None:
                break
            try:
                return read_linked_bytes(self._get_link(link, headers), response, span)
            except ServiceError as error:
                # By a new link, if at all: this one may be too old.
                delay_s = retries.next_delay_s(error, sent=True)
                if delay_s is None:
                    raise
            time.sleep(delay_s)
        data = response.content
        # Stream and response refer to each other: break the cycle to free the bytes at once.
        response.stream = httpx.ByteStream(b"")
        return data

    def _get_link(self, link: str, headers: Mapping[str, str]) -> httpx.Response:
        """Send a request for bytes to their storage, which gets neither key nor cookies.

        Raises:
            ServiceError: `UNAVAILABLE`.
        """
        if self._storage_client is None:
            context = load_ssl_context(self._cacert or self.access.cacert)
            self._storage_client = httpx.Client(verify=context)
        url = httpx.URL(link)
        # The signature stands in the query, and httpx logs the addresses of requests.
        request = self._storage_client.build_request(
            "GET",
            url.copy_with(query=None),
            headers=headers,
            timeout=self._timeout,
            extensions={"target": url.raw_path},
        )
        try:
            return self._storage_client.send(request)
        except httpx.TransportError as error:
            failed = f"could not be reached ({type(error).__name__})"
        raise make_storage_error(failed, away=True)  # here, as the other one names the link

    def send_file(self, model: type[R], path: str, filename: str, source: bytes | IO[bytes]) -> R:
        """Send a file, and return the record of what is stored."""
        if self._channel is not None:
            answer = self._call_operation(self._channel, "POST", path, file=source)
            return answer.records[0].parse(model)
        files = {"file": (filename, source)}
        return parse_data(parse_envelope(self.send("POST", path, files=files)), model)

    def _call_operation(
        self,
        channel: "OperationChannel",
        method: str,
        path: str,
        *,
        deadline: float | None = None,
        **options: Any,
    ) -> "OperationAnswer":
        """Call an operation of the engine in this process, again where that may help."""
        request = self._make_operation(method, path, **options)
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

    def _make_operation(
        self,
        method: str,
        path: str,
        *,
        json: object = None,
        params: Mapping[str, str | int] | None = None,
        file: bytes | IO[bytes] | None = None,
        span: tuple[int, int | None] = (0, None),
        is_last: "EventTest | None" = None,
        prefer_wait_s: int = 0,
        watches_text: bool = False,
        **_options: object,
    ) -> "OperationRequest":
        """Make the request for an operation of the engine in this process.

        The options of a request that are about a network are left out.
        """
        from toolkit.contract.operations.messages import OperationRequest

        if not _PLAIN_PATH.fullmatch(path):
            url = httpx.URL(f"{self.url}{path}")
            path, params = url.path.removeprefix("/v1"), params or dict(url.params)
        key = self.access.api_key
        return OperationRequest(
            method,
            path,
            "" if key is None else key.get_secret_value(),
            b"" if json is None else encode_body(json),
            params or {},
            file,
            span,
            is_last,
            prefer_wait_s,
            watches_text,
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
        if self._storage_client is not None:
            self._storage_client.close()
