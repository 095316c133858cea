"""The base of the client's resources: reading, listing, and following what is under way."""

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from toolkit.client._async.follower import wake_follower
from toolkit.client._async.handle import AsyncHandle
from toolkit.client._async.http import AsyncHttpClient
from toolkit.client._async.paging import AsyncListSource, AsyncPagedCollection
from toolkit.client._record_list import RecordList
from toolkit.client._unknown_ids import explain_unknown_id
from toolkit.client._wire.messages import drop_none
from toolkit.contract.errors import RequestError
from toolkit.contract.events import Event
from toolkit.contract.short_tracebacks import UnknownAttributeError

H = TypeVar("H", bound=AsyncHandle[Any])
STARTED = ("runs", "jobs", "workflows", "tasks")  # work that costs something
MAX_KNOWN_IDS = 500  # ids for completion, of each resource


class AsyncResource(Generic[H]):
    """A `/v1` resource whose records can be read and listed."""

    handle: type[H]
    _is_paged = True

    def __init__(self, http: AsyncHttpClient) -> None:
        self._http = http
        self._known_ids: dict[str, None] = {}

    if not TYPE_CHECKING:  # a name that there is not is found by mypy, too

        def __getattr__(self, name: str) -> object:
            if name.startswith("_"):
                raise AttributeError(name)
            raise UnknownAttributeError(self, name)

    def _wrap(self, record: Any) -> H:
        made = self.handle(self._http, record)
        self._remember_id(made.id)
        return made

    def _remember_id(self, id: str) -> None:
        self._known_ids[id] = None
        if len(self._known_ids) > MAX_KNOWN_IDS:
            del self._known_ids[next(iter(self._known_ids))]

    async def __getitem__(self, id: str) -> H:
        return await self.get(id)

    def _ipython_key_completions_(self) -> list[str]:
        """Return the ids seen so far, newest last: completing sends no request."""
        return list(self._known_ids)

    async def _create(
        self,
        body: Mapping[str, object],
        hold_s: float = 0.0,
        *,
        prefer_wait_s: int = 0,
        watches_text: bool = False,
        idempotency_key: str | None = None,
    ) -> H:
        path = f"/{self.handle.resource}"
        made = self._wrap(
            await self._http.request_record(
                self.handle.record_type,
                "POST",
                path,
                json=body,
                hold_s=hold_s,
                prefer_wait_s=prefer_wait_s,
                watches_text=watches_text,
                headers=drop_none(**{"Idempotency-Key": idempotency_key}),
            )
        )
        if self.handle.resource in STARTED:
            self._http.note_started(self.handle.resource, made.id)
        return made

    async def _call(
        self,
        method: str,
        id: str,
        what: str = "",
        body: Mapping[str, object] | None = None,
    ) -> H:
        path = f"/{self.handle.resource}/{id}"
        made = self._wrap(
            await self._http.request_record(
                self.handle.record_type, method, f"{path}{what}", json=body
            )
        )
        if method == "POST":
            wake_follower(self._http, path)
        return made

    @property
    def _name(self) -> str:
        """The word for many of them."""
        return self.handle.resource.rpartition("/")[2]

    async def get(self, id: str) -> H:
        """Read one.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        try:
            return await self._call("GET", id)
        except RequestError as error:
            raise explain_unknown_id(error, self._name, id, self._known_ids) from None

    def list(self, limit: int | None = None) -> AsyncPagedCollection[H]:
        """List them, newest first; further pages are read as they are needed.

        Args:
            limit: greatest number of records; None for all.
        """
        return self._list_records({}, limit)

    def _list_records(
        self, filters: Mapping[str, str | int], limit: int | None
    ) -> AsyncPagedCollection[H]:
        return AsyncPagedCollection(self._make_source(filters), self._name, limit)

    def _make_source(self, filters: Mapping[str, str | int]) -> AsyncListSource[H]:
        return AsyncListSource(
            self._http, self.handle, self._wrap, filters, is_paged=self._is_paged
        )

    def __aiter__(self) -> AsyncIterator[H]:
        """Iterate over all of them, newest first, and keep none in memory."""
        return self._make_source({}).__aiter__()


class AsyncDeletableResource(AsyncResource[H]):
    """A resource whose records can be deleted."""

    async def delete(self, id: str) -> H:
        """Delete one; what a vendor has of it is deleted there, too, and no longer billed.

        Raises:
            RequestError: `NOT_FOUND`; `CONFLICT` while it is in use, or the vendor did not do it.
        """
        return await self._call("DELETE", id)


class AsyncWorkResource(AsyncResource[H]):
    """A resource of work that has events and can be cancelled."""

    async def events(self, id: str, after: int = 0, wait_s: int = 0) -> list[Event]:
        """Read the events of one, numbered above `after`."""
        path = f"/{self.handle.resource}/{id}"
        return RecordList(await self._http.request_events(path, after, wait_s), "events")

    async def cancel(self, id: str) -> H:
        """Cancel one; one that has ended stays as it is."""
        return await self._call("POST", id, "/cancel")
