"""`client.maps`: the maps that `client.map` and `toolkit map` have begun."""

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolkit.client._async.handle import AsyncAnnotated
from toolkit.client._async.resource import AsyncAnnotatedResource
from toolkit.client._map_view import MapView, read_result, show_result
from toolkit.client._row_tables import Library
from toolkit.client._wire.messages import LONG_POLL_S, drop_none
from toolkit.contract.maps import MapRecord, MapRow, MapRowNumbers, MapRowPage
from toolkit.display.progress import ProgressMode
from toolkit.display.progress.row_progress import RowProgress

if TYPE_CHECKING:
    from pydantic import BaseModel


class AsyncMapRun(MapView, AsyncAnnotated[MapRecord]):
    """A map, with the state of its rows and its cost."""

    noun, resource, record_type = "Map", "maps", MapRecord

    async def iter_rows(self, after: int = 0, *, wait: bool = True) -> AsyncIterator[MapRow]:
        """Iterate over the rows in the order in which they end, until the map has ended.

        Args:
            after: the number `n` of the last known row.
            wait: whether to wait for rows that have not ended.
        """
        while True:
            page = await self.rows(after, LONG_POLL_S if wait else 0)
            for row in page.rows:
                yield row
                after = row.n
            if page.is_last or not (wait or page.rows):
                return

    async def add_rows(
        self, rows: Sequence[Mapping[str, object]] | None = None, *, artifact: str | None = None
    ) -> MapRowNumbers:
        """Add rows, as `client.maps.add_rows` does; failed rows among them run again.

        Returns:
            the number of each row in the map; equal rows have the same number.
        """
        return await self._maps.add_rows(self.id, rows, artifact=artifact)

    async def rows(self, after: int = 0, wait_s: int = 0) -> MapRowPage:
        """Read the rows that ended after the end with this number, at most 1,000.

        Args:
            wait_s: maximum seconds to wait for the first.
        """
        return await self._maps.rows(self.id, after, wait_s)

    @property
    def _maps(self) -> "AsyncMaps":
        return AsyncMaps(self._http)

    async def results(
        self, output_model: "type[BaseModel] | None" = None, *, library: Library = "pandas"
    ) -> Any:
        """Return the rows that have ended so far as a table, by their numbers.

        Args:
            output_model: pydantic model whose fields become columns.
            library: library of the table: pandas, whose index has the numbers, or polars or
                pyarrow, whose column `row` has them.
        """
        rows: list[MapRow] = []
        async for row in self.iter_rows(wait=False):
            rows.append(row)
        return self._build_table(rows, output_model, library)

    async def _watch(self, deadline: float | None, progress: ProgressMode) -> None:
        """Show the progress of the rows, until the map's end or a monotonic deadline."""
        total, limit_usd = self.record.row_counts.total, self.record.max_cost_usd
        display = RowProgress(total, limit_usd, is_shown=progress is not False)
        after, spent_usd = 0, 0.0
        while not self.done:
            left_s = LONG_POLL_S if deadline is None else deadline - time.monotonic()
            if left_s <= 0:
                return
            page = await self.rows(after, min(LONG_POLL_S, max(1, int(left_s))))
            for row in page.rows:
                after, spent_usd = row.n, spent_usd + row.cost_incurred_usd
                show_result(display, read_result(row, None), spent_usd)
            if page.is_last:
                await self.refresh()


class AsyncMaps(AsyncAnnotatedResource[AsyncMapRun]):
    """`client.maps`: list, read, annotate and cancel maps; `client.map` begins one and waits."""

    handle = AsyncMapRun

    async def create(self, body: Mapping[str, object]) -> AsyncMapRun:
        """Begin a map in the JSON form of the contract, without waiting for its end.

        Raises:
            RequestError: `INVALID_REQUEST`, `CREDENTIALS_MISSING` and others.
        """
        return await self._create(body)

    async def add_rows(
        self,
        id: str,
        rows: Sequence[Mapping[str, object]] | None = None,
        *,
        artifact: str | None = None,
    ) -> MapRowNumbers:
        """Add rows, each with its columns; failed rows among them run again.

        Args:
            id: id of the map.
            rows: up to 1,000 rows.
            artifact: id of an artifact with up to 100,000 rows as JSON lines, CSV, Parquet or
                Arrow, in place of `rows`.

        Returns:
            the number of each row in the map; equal rows have the same number.

        Raises:
            RequestError: `INVALID_REQUEST` for a faulty row or table, `NOT_FOUND`.
        """
        body = drop_none(rows=None if rows is None else list(rows), artifact_id=artifact)
        return await self._http.request_record(MapRowNumbers, "POST", f"/maps/{id}/rows", json=body)

    async def rows(self, id: str, after: int = 0, wait_s: int = 0) -> MapRowPage:
        """Read the rows that ended after the end with this number, at most 1,000.

        Args:
            wait_s: maximum seconds to wait for the first.
        """
        return await self._http.request_record(
            MapRowPage, "GET", f"/maps/{id}/rows", params={"after": after, "wait": wait_s}
        )
