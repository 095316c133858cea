"""What a client knows of its service and of its own work, and how its requests are built."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from typing import IO, TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

import httpx

from toolkit.client._wire.messages import encode_body, make_headers, make_preference_header
from toolkit.client._wire.pacing import RequestPacer
from toolkit.client._wire.retries import RetrySchedule, make_idempotency_header, resolve_max_wait_s
from toolkit.client._wire.timeouts import bound_timeout, choose_timeout
from toolkit.profiles.resolution import ServerAccess

if TYPE_CHECKING:
    from pydantic import BaseModel

    from toolkit.functions import FunctionTable

R = TypeVar("R", bound="BaseModel")
V = TypeVar("V")
MAX_STARTED = 2_000  # ids that are noted, of each resource


class ClientState(ABC):
    """What all resources and handles of one client share.

    Args:
        own: the caller's own HTTP client, where there is one.
        max_retries, max_wait_s: how often, and for how long, a request is sent again at most.

    Attributes:
        channel: the way to an engine in this process; none for a client of a server.
        started: the newest work that was started by this client, by resource: what it has spent.
        functions: those of an engine in this process; none for a client of a server.
        shared: what those who use this client share, by path, as long as any of them holds it.
    """

    channel: Any = None

    def __init__(
        self,
        access: ServerAccess,
        own: httpx.Client | httpx.AsyncClient | None,
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
        self._headers = httpx.Headers(make_headers(access))  # which do not show the key
        self._timeout = choose_timeout(timeout, own)
        self._max_retries = max_retries
        self._pacer = RequestPacer()
        self._has_answered = False  # whether the service has answered anything yet

    @abstractmethod
    def request_record(self, model: type[R], method: str, path: str, **options: Any) -> Any:
        """Send a request, and return the record; what is awaited for it, for the async client."""

    @abstractmethod
    def request_view(
        self, view: Callable[[R], V], model: type[R], method: str, path: str, **options: Any
    ) -> Any:
        """Send a request, and return a view of the record; what is awaited, for the async client.

        Args:
            view: makes it of the record.
            model: of the record.
        """

    def note_started(self, resource: str, id: str) -> None:
        """Note that this client has started some work."""
        self.started.setdefault(resource, deque(maxlen=MAX_STARTED)).append(id)

    def choose_cache(self, target: str) -> bool | None:
        """Return whether results are used again; agents plan anew each time, so have no say."""
        return self.cache if target == "capability" else None

    @property
    def url(self) -> str:
        """The address of `/v1`."""
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
        """Build a request.

        Args:
            upload: the name of a file, and the file.
            hold_s: for how long the service may hold the request, beside the timeout.
            prefer_wait_s: the seconds that the service is asked to wait for the end of the work.
            watches_text: whether the texts of the work that is asked for will be watched.
            deadline: the time, by the monotonic clock, at which the caller gives up.

        Raises:
            TypeError: JSON cannot hold a value of the body.
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
            max_wait_s: wait so long for a service that is away, where that is less than usual.
        """
        most = self.max_wait_s if max_wait_s is None else min(max_wait_s, self.max_wait_s)
        return RetrySchedule(method, repeatable, self._max_retries, most, deadline)
