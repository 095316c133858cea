"""Lists that read their pages as they are needed."""

from collections.abc import AsyncIterator, Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar, overload

from toolkit.client._async.handle import AsyncHandle
from toolkit.client._async.http import AsyncHttpClient
from toolkit.client._collections import AsyncPagedView
from toolkit.client._wire.messages import RecordPage, make_page_query

H = TypeVar("H", bound=AsyncHandle[Any])
FIRST_PAGE = 50  # records of the first page: few, because a display needs no more
NEXT_PAGE = 200  # records of each further page, the most that the service answers


@dataclass(frozen=True, slots=True)
class AsyncListSource(Generic[H]):
    """A list of the service, read page by page.

    Attributes:
        wrap: makes a handle of a record.
        filters: the filters of the list, as the service takes them.
        is_paged: False if the service answers the whole list at once.
    """

    http: AsyncHttpClient
    handle: type[H]
    wrap: Callable[[Any], H]
    filters: Mapping[str, str | int]
    is_paged: bool = True

    async def read_page(self, size: int, cursor: str | None = None) -> RecordPage[H]:
        """Read a page: the first page, or the page that a cursor leads to."""
        query = {**self.filters, **make_page_query(size, cursor)} if self.is_paged else {}
        page = await self.http.request_page(
            self.handle.record_type, f"/{self.handle.resource}", query
        )
        handles = [self.wrap(record) for record in page.records]
        return RecordPage(handles, page.next_cursor, page.total)

    async def __aiter__(self) -> AsyncIterator[H]:
        page = await self.read_page(FIRST_PAGE)
        while True:
            for handle in page.records:
                yield handle
            if page.next_cursor is None:
                return
            page = await self.read_page(NEXT_PAGE, page.next_cursor)


class AsyncPagedCollection(AsyncPagedView[H]):
    """The records of a list, newest first, whose pages are read as they are needed.

    A display shows the first page and the number of all records. Iterating, counting, tables and
    sums cover all records.
    """

    def __init__(self, source: AsyncListSource[H], kind: str, limit: int | None = None) -> None:
        super().__init__(kind, source.handle.record_type, limit, is_filtered=bool(source.filters))
        self._source = source
        self._begin()

    def __await__(self) -> Generator[Any, None, Self]:
        return self._read_first_page().__await__()

    async def _read_first_page(self) -> Self:
        """Read the first page, unless it was read before."""
        if self._is_begun:
            return self
        size = FIRST_PAGE if self._limit is None else min(self._limit, NEXT_PAGE)
        page = await self._source.read_page(size)
        self._keep_first_page(page)
        return self

    async def _read_to(self, count: int | None = None) -> None:
        """Read pages until there are `count` records; None reads all pages."""
        await self._read_first_page()
        while self._has_more and (count is None or len(self._items) < count):
            cursor, size = self._cursor, len(self._items)
            limit = NEXT_PAGE if self._limit is None else self._limit - size
            page = await self._source.read_page(min(NEXT_PAGE, limit), cursor)
            self._keep_page(page, cursor)

    async def __aiter__(self) -> AsyncIterator[H]:
        position = 0
        while True:
            await self._read_to(position + 1)
            if position >= len(self._items):
                return
            yield self._items[position]
            position += 1

    @overload
    async def __getitem__(self, key: int | str) -> H: ...

    @overload
    async def __getitem__(self, key: slice) -> list[H]: ...

    async def __getitem__(self, key: int | str | slice) -> H | list[H]:
        if isinstance(key, str):
            return await self._find(key)
        if isinstance(key, slice):
            is_from_start = all(bound is None or bound >= 0 for bound in (key.start, key.step))
            is_bounded = is_from_start and key.stop is not None and key.stop >= 0
            await self._read_to(key.stop if is_bounded else None)
            return self._items[key]
        await self._read_to(None if key < 0 else key + 1)
        return self._items[key]

    async def _find(self, id: str) -> H:
        """Find the handle with an id, reading further pages until it is found.

        Raises:
            KeyError: the list has no such record.
        """
        async for item in self:
            if item.id == id:
                return item
        raise KeyError(id)

    async def count(self) -> int:
        """Return the number of records; read all pages if the service did not count them."""
        await self._read_first_page()
        if self.total is None or not self._has_more:
            await self._read_to()
            return len(self._items)
        return self.total if self._limit is None else min(self.total, self._limit)
