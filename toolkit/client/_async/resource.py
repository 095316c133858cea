"""The base of the client's resources: reading, listing, and following work under way."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, Generic, TypeVar, Unpack

from toolkit.client._async.handle import AsyncHandle, AsyncWaitable
from toolkit.client._async.http import AsyncHttpClient
from toolkit.client._async.paging import AsyncListSource, AsyncPagedCollection
from toolkit.client._collections import RecordList
from toolkit.client._following import wake_follower
from toolkit.client._options import WorkFilters, document_filters, make_list_query
from toolkit.client._replies import AsyncReply
from toolkit.client._resource_calls import AnnotatedCalls, ResourceCalls, WorkCalls
from toolkit.client._unknown_ids import WORK_RESOURCES, explain_unknown_id
from toolkit.contract.errors import RequestError
from toolkit.contract.events import Event

H = TypeVar("H", bound=AsyncHandle[Any])
W = TypeVar("W", bound=AsyncWaitable[Any])


class AsyncResource(ResourceCalls[AsyncReply[H]], Generic[H]):
    """A `/v1` resource whose records can be read and listed."""

    handle: type[H]
    _http: AsyncHttpClient
    _is_paged = True

    def __init__(self, http: AsyncHttpClient) -> None:
        self._http = http
        self._known_ids: dict[str, None] = {}

    def _wrap(self, record: Any) -> H:
        handle = self.handle(self._http, record)
        self._remember_id(handle.id)
        return handle

    async def __getitem__(self, id: str) -> H:
        return await self.get(id)

    async def _create(self, body: Mapping[str, object], **options: Any) -> H:
        path = f"/{self.handle.resource}"
        handle = self._wrap(
            await self._http.request_record(
                self.handle.record_type, "POST", path, json=body, **options
            )
        )
        handle.is_streamed = bool(options.get("watches_text"))
        if self.handle.resource in WORK_RESOURCES:
            self._http.note_started(self.handle.resource, handle.id)
        return handle

    async def _call(self, method: str, id: str, what: str = "", **options: Any) -> H:
        path = f"/{self.handle.resource}/{id}"
        handle = self._wrap(
            await self._http.request_record(
                self.handle.record_type, method, f"{path}{what}", **options
            )
        )
        if method == "POST":
            wake_follower(self._http.shared, path)
        return handle

    async def get(self, id: str) -> H:
        """Read the record with this id.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        try:
            return await self._call("GET", id)
        except RequestError as error:
            raise explain_unknown_id(error, self._name, id, self._known_ids) from None

    def list(self, limit: int | None = None) -> AsyncPagedCollection[H]:
        """List the records, newest first; further pages are read as they are needed.

        Args:
            limit: maximum number of records. Default: None, all records.
        """
        return self._list_records({}, limit)

    def _list_records(
        self, filters: Mapping[str, str | int], limit: int | None
    ) -> AsyncPagedCollection[H]:
        return AsyncPagedCollection(self._make_source(filters), self._name, limit)

    def _make_source(self, filters: Mapping[str, str | int]) -> AsyncListSource[H]:
        return AsyncListSource(self._http, self.handle, self._wrap, filters, self._is_paged)

    def __aiter__(self) -> AsyncIterator[H]:
        """Iterate over all records, newest first, and keep none in memory."""
        return self._make_source({}).__aiter__()


class AsyncWorkResource(WorkCalls[AsyncReply[H]], AsyncResource[H]):
    """A resource of work that has events and can be cancelled."""

    async def events(self, id: str, after: int = 0, wait_s: int = 0) -> list[Event]:
        """Read the events of work above number `after`, waiting up to `wait_s` s for the first."""
        path = f"/{self.handle.resource}/{id}"
        return RecordList(await self._http.request_events(path, after, wait_s), "events")


class AsyncAnnotatedResource(AnnotatedCalls[AsyncReply[W]], AsyncWorkResource[W]):
    """A resource of work with tags and notes, whose lists the service filters."""

    @document_filters
    def list(
        self, limit: int | None = None, **filters: Unpack[WorkFilters]
    ) -> AsyncPagedCollection[W]:
        """List the work, newest first: all records, or the records that match every filter.

        Further pages are read as they are needed.

        Args:
            limit: maximum number of records. Default: None, all records.
            **filters: those of a list.
        """
        return self._list_records(make_list_query(filters), limit)
