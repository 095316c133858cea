"""The state that the resources of one client share, and the building of its requests."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from typing import IO, TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

import httpx

from toolkit.client._wire.messages import (
    STREAM_SILENCE_S,
    STREAM_TYPE,
    encode_body,
    make_headers,
    make_preference_header,
)
from toolkit.client._wire.retries import (
    RequestPacer,
    RetrySchedule,
    make_idempotency_header,
    resolve_max_wait_s,
)
from toolkit.client._wire.timeouts import bound_timeout, choose_timeout
from toolkit.profiles.resolution import ServerAccess

if TYPE_CHECKING:
    from pydantic import BaseModel

    from toolkit.functions import FunctionTable

R = TypeVar("R", bound="BaseModel")
V = TypeVar("V")
MAX_STARTED = 2_000  # ids that are kept for each resource


class ClientState(ABC):
    """The state that all resources and handles of one client share.

    Args:
        max_retries, max_wait_s: maximum number of repeated requests, and maximum seconds to repeat.

    Attributes:
        channel: the way to an engine in this process; None for a client of a server.
        started: ids of the newest work that this client started, by resource.
        shared: readers of work that followers share, by path, as long as any follower uses them.
    """

    channel: Any = None

    def __init__(
        self,
        access: ServerAccess,
        http_client: httpx.Client | httpx.AsyncClient | None,
        timeout: float | httpx.Timeout | None,
        max_retries: int | None,
        cache: bool | None,
        max_wait_s: float | None,
    ) -> None:
        self.access = access
        self.cache = cache
        self.max_wait_s = resolve_max_wait_s(max_wait_s)
        self.started: dict[str, deque[str]] = {}
        self.functions: FunctionTable | None = None
        self.shared: WeakValueDictionary[str, object] = WeakValueDictionary()
        self._headers = httpx.Headers(make_headers(access))  # their repr hides the key
        self._timeout = choose_timeout(timeout, http_client)
        self._max_retries = max_retries
        self._pacer = RequestPacer()
        self._has_answered = False  # whether the service has answered anything yet

    @abstractmethod
    def request_record(self, model: type[R], method: str, path: str, **options: Any) -> Any:
        """Send a request, and return the record; the async client returns a coroutine for it."""

    @abstractmethod
    def request_view(
        self, view: Callable[[R], V], model: type[R], method: str, path: str, **options: Any
    ) -> Any:
        """Send a request, and return a view of the record; in the async client, a coroutine."""

    @abstractmethod
    def request_list(
        self, view: Callable[[R], V], kind: str, model: type[R], path: str, **options: Any
    ) -> Any:
        """Read a list that comes as one page; return a collection of views, or a coroutine for it.

        Args:
            kind: word for many of its records.
        """

    def note_started(self, resource: str, id: str) -> None:
        """Note that this client has started some work, so that the cost counts as its own."""
        self.started.setdefault(resource, deque(maxlen=MAX_STARTED)).append(id)

    def choose_cache(self, target: str) -> bool | None:
        """Return the caller's choice about the cache; None for agents, which always plan again."""
        return self.cache if target == "capability" else None

    @property
    def url(self) -> str:
        """The address of the API, which ends in `/v1`."""
        return self.access.base_url

    def _build_request(
        self,
        client: httpx.Client | httpx.AsyncClient,
        method: str,
        path: str,
        *,
        json: object = None,
        params: Mapping[str, str | int] | None = None,
        upload: tuple[str, bytes | IO[bytes]] | None = None,
        headers: Mapping[str, str] | None = None,
        hold_s: float = 0.0,
        prefer_wait_s: int = 0,
        watches_text: bool = False,
        deadline: float | None = None,
    ) -> httpx.Request:
        """Build a request, with the key, an idempotency key and a timeout.

        Args:
            upload: name and content of a file.
            hold_s: seconds that the service may hold the request, in addition to the timeout.
            prefer_wait_s: seconds that the service is asked to wait for the end of the work.
            watches_text: True if the caller will watch the texts of the requested work.
            deadline: time on the monotonic clock at which the caller gives up.

        Raises:
            TypeError: the body contains a value that JSON cannot represent.
        """
        return client.build_request(
            method,
            f"{self.url}{path}",
            content=None if json is None else encode_body(json),
            params=params,
            files=None if upload is None else {"file": upload},
            headers={
                **self._headers,
                **({} if json is None else {"Content-Type": "application/json"}),
                **make_idempotency_header(method, path, json),
                **make_preference_header(prefer_wait_s, watches_text=watches_text),
                **(headers or {}),
            },
            timeout=bound_timeout(self._timeout, hold_s + prefer_wait_s, deadline),
        )

    def _make_stream_options(self, after: int, deadline: float | None) -> dict[str, Any]:
        """Make the options of a request for the events above a number, and for texts."""
        headers = httpx.Headers(self._headers)
        headers.update({"Accept": STREAM_TYPE, "Last-Event-ID": str(after)})
        timeout = bound_timeout(self._timeout, STREAM_SILENCE_S, deadline)
        return {"headers": headers, "timeout": timeout}

    def _make_retries(
        self,
        method: str = "GET",
        *,
        repeatable: bool = True,
        max_wait_s: float | None = None,
        deadline: float | None = None,
    ) -> RetrySchedule:
        """Make the schedule of a request that may be sent again.

        Args:
            max_wait_s: maximum seconds to wait for an unreachable service, if less than usual.
        """
        limit_s = self.max_wait_s if max_wait_s is None else min(max_wait_s, self.max_wait_s)
        return RetrySchedule(method, repeatable, self._max_retries, limit_s, deadline)
