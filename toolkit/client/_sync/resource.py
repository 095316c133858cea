# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""The base of the client's resources: reading, listing, and following work under way."""

from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar, Unpack

from toolkit.client._collections import RecordList
from toolkit.client._following import wake_follower
from toolkit.client._options import WorkFilters, document_filters, make_list_query
from toolkit.client._replies import Reply
from toolkit.client._resource_calls import AnnotatedCalls, ResourceCalls, WorkCalls
from toolkit.client._sync.handle import Handle, Waitable
from toolkit.client._sync.http import HttpClient
from toolkit.client._sync.paging import ListSource, PagedCollection
from toolkit.client._unknown_ids import WORK_RESOURCES, explain_unknown_id
from toolkit.contract.errors import RequestError
from toolkit.contract.events import Event

H = TypeVar("H", bound=Handle[Any])
W = TypeVar("W", bound=Waitable[Any])


class Resource(ResourceCalls[Reply[H]], Generic[H]):
    """A `/v1` resource whose records can be read and listed."""

    handle: type[H]
    _http: HttpClient
    _is_paged = True

    def __init__(self, http: HttpClient) -> None:
        self._http = http
        self._known_ids: dict[str, None] = {}

    def _wrap(self, record: Any) -> H:
        handle = self.handle(self._http, record)
        self._remember_id(handle.id)
        return handle

    def __getitem__(self, id: str) -> H:
        return self.get(id)

    def _create(self, body: Mapping[str, object], **options: Any) -> H:
        path = f"/{self.handle.resource}"
        handle = self._wrap(
            self._http.request_record(self.handle.record_type, "POST", path, json=body, **options)
        )
        handle.is_streamed = bool(options.get("watches_text"))
        if self.handle.resource in WORK_RESOURCES:
            self._http.note_started(self.handle.resource, handle.id)
        return handle

    def _call(self, method: str, id: str, what: str = "", **options: Any) -> H:
        path = f"/{self.handle.resource}/{id}"
        handle = self._wrap(
            self._http.request_record(self.handle.record_type, method, f"{path}{what}", **options)
        )
        if method == "POST":
            wake_follower(self._http.shared, path)
        return handle

    def get(self, id: str) -> H:
        """Read the record with this id.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        try:
            return self._call("GET", id)
        except RequestError as error:
            raise explain_unknown_id(error, self._name, id, self._known_ids) from None

    def list(self, limit: int | None = None) -> PagedCollection[H]:
        """List the records, newest first; further pages are read as they are needed.

        Args:
            limit: maximum number of records. Default: None, all records.
        """
        return self._list_records({}, limit)

    def _list_records(
        self, filters: Mapping[str, str | int], limit: int | None
    ) -> PagedCollection[H]:
        return PagedCollection(self._make_source(filters), self._name, limit)

    def _make_source(self, filters: Mapping[str, str | int]) -> ListSource[H]:
        return ListSource(self._http, self.handle, self._wrap, filters, self._is_paged)

    def __iter__(self) -> Iterator[H]:
        """Iterate over all records, newest first, and keep none in memory."""
        return self._make_source({}).__iter__()


class WorkResource(WorkCalls[Reply[H]], Resource[H]):
    """A resource of work that has events and can be cancelled."""

    def events(self, id: str, after: int = 0, wait_s: int = 0) -> list[Event]:
        """Read the events of work above number `after`, waiting up to `wait_s` s for the first."""
        path = f"/{self.handle.resource}/{id}"
        return RecordList(self._http.request_events(path, after, wait_s), "events")


class AnnotatedResource(AnnotatedCalls[Reply[W]], WorkResource[W]):
    """A resource of work with tags and notes, whose lists the service filters."""

    @document_filters
    def list(self, limit: int | None = None, **filters: Unpack[WorkFilters]) -> PagedCollection[W]:
        """List the work, newest first: all records, or the records that match every filter.

        Further pages are read as they are needed.

        Args:
            limit: maximum number of records. Default: None, all records.
            **filters: those of a list.
        """
        return self._list_records(make_list_query(filters), limit)
