"""Lists that read their pages as they are needed."""

from collections.abc import AsyncIterator, Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

from toolkit.client._async.handle import AsyncHandle
from toolkit.client._async.http import AsyncHttpClient
from toolkit.client._collections import AsyncPagedView
from toolkit.client._wire.messages import make_page_query
from toolkit.client._wire.pages import RecordPage
from toolkit.contract.money import sum_usd
from toolkit.display.records.data_frame import to_data_frame
from toolkit.display.records.tables import to_arrow, to_polars

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

H = TypeVar("H", bound=AsyncHandle[Any])
FIRST_PAGE = 50  # records of the first page: few, because a display needs no more
NEXT_PAGE = 200  # records of each further page, the most that the service answers


class AsyncListSource(Generic[H]):
    """A list of the service, read page by page.

    Args:
        http: the HTTP client.
        handle: the class of the handles.
        wrap: makes a handle of a record.
        filters: the filters of the list, as the service takes them.
        is_paged: False if the service answers the whole list at once.
    """

    def __init__(
        self,
        http: AsyncHttpClient,
        handle: type[H],
        wrap: Callable[[Any], H],
        filters: Mapping[str, str | int],
        *,
        is_paged: bool = True,
    ) -> None:
        self.handle = handle
        self.is_filtered = bool(filters)
        self._http = http
        self._wrap = wrap
        self._filters = filters
        self._is_paged = is_paged

    async def read_page(self, size: int, cursor: str | None = None) -> RecordPage[H]:
        """Read a page: the first page, or the page that a cursor leads to."""
        query = {**self._filters, **make_page_query(size, cursor)} if self._is_paged else {}
        page = await self._http.request_page(
            self.handle.record_type, f"/{self.handle.resource}", query
        )
        handles = [self._wrap(record) for record in page.records]
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

    Args:
        source: the list.
        kind: the word for many of the records.
        limit: greatest number of records; None for all.
    """

    def __init__(self, source: AsyncListSource[H], kind: str, limit: int | None = None) -> None:
        super().__init__((), kind, source.handle.record_type)
        self._source = source
        self._limit = limit
        self._cursor: str | None = None
        self._is_cut = False
        self._is_filtered = source.is_filtered
        self._begin()

    def __await__(self) -> Generator[Any, None, Self]:
        return self._read_first_page().__await__()

    async def _read_first_page(self) -> Self:
        """Read the first page, unless it was read before."""
        if self._is_begun:
            return self
        size = FIRST_PAGE if self._limit is None else min(self._limit, NEXT_PAGE)
        page = await self._source.read_page(size)
        if not self._is_begun:  # otherwise another reader has read it meanwhile
            self._is_begun = True
            self._items = list(page.records[: self._limit])
            self._first = len(self._items)
            self._is_cut = len(page.records) > len(self._items)
            self._cursor = page.next_cursor
            self.total = page.total
        return self

    @property
    def _has_more(self) -> bool:
        is_full = self._limit is not None and len(self._items) >= self._limit
        return self._cursor is not None and not is_full

    @property
    def _has_unshown(self) -> bool:
        is_whole = self._cursor is None and not self._is_cut
        return not is_whole and (self.total is None or self.total > len(self._shown))

    async def _read_to(self, count: int | None = None) -> None:
        """Read pages until there are so many records, or all."""
        await self._read_first_page()
        while self._has_more and (count is None or len(self._items) < count):
            cursor, known = self._cursor, len(self._items)
            left = NEXT_PAGE if self._limit is None else self._limit - known
            page = await self._source.read_page(min(NEXT_PAGE, left), cursor)
            if cursor == self._cursor:  # otherwise another reader has read this page meanwhile
                self._items += page.records
                self._cursor = page.next_cursor

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
        """Find the handle with an id.

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

    @property
    async def cost_usd(self) -> float | None:
        """The known costs of all records in US dollars, or None if no cost is known."""
        await self._read_to()
        return sum_usd(self._costs) if self._costs else None

    async def to_frame(self) -> "pd.DataFrame":
        """Return all records as a table, one row each."""
        await self._read_to()
        return to_data_frame(self._records, self._model)

    async def to_polars(self) -> "pl.DataFrame":
        """Return all records as a polars table; nested values are JSON."""
        await self._read_to()
        return to_polars(self._records, self._model)

    async def to_arrow(self) -> "pa.Table":
        """Return all records as an Arrow table; nested values are JSON."""
        await self._read_to()
        return to_arrow(self._records, self._model)

    async def to_dict(self) -> list[dict[str, object]]:
        """Return all records as JSON values."""
        await self._read_to()
        return [item.to_dict() for item in self._items]
