"""`client.map`: a job for every row of a table, under one budget."""

from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.client._async.http import AsyncHttpClient
from toolkit.client._async.resources.artifacts import AsyncArtifacts
from toolkit.client._async.resources.maps import AsyncMaps
from toolkit.client._replies import AsyncReply
from toolkit.client._row_map import RowMap
from toolkit.client._wire.messages import LONG_POLL_S
from toolkit.contract.collector_pause import pause_collector
from toolkit.contract.jobs import FINAL_STATUSES
from toolkit.contract.maps import MAX_PAGE_ROWS, MapRecord

if TYPE_CHECKING:
    import pandas as pd


class AsyncRowMapper(RowMap[AsyncReply["pd.DataFrame"]]):
    """Has the service run a map, and keeps the results as rows end.

    An equal call has the same map, so that an answered row is not paid again, no matter which
    provider would be chosen now.
    """

    _http: AsyncHttpClient

    async def run_all(self) -> "pd.DataFrame":
        if not self._rows and self._source is None:
            return self._build_frame()
        maps = AsyncMaps(self._http)
        try:
            if isinstance(self._source, Path):
                self._source = (await AsyncArtifacts(self._http).upload(self._source)).id
            self._map = (await maps.create(self._body)).record
            if self._source is None and self._map.row_counts.total:
                with pause_collector():
                    await self._read_known(maps, self._map.id)
            after = self._last_end
            await self._add_rows(maps, self._map.id)
            self._leave_rest(await self._follow(maps, self._map, after))
        except KeyboardInterrupt as error:
            self._explain_interrupt(error)
            raise
        return self._build_frame()

    async def _read_known(self, maps: AsyncMaps, map_id: str) -> None:
        """Keep the results that the map has already, so that their rows need not be sent."""
        while True:
            page = await maps.rows(map_id, self._last_end)
            self._keep_page(page, are_known=True)
            if len(page.rows) < MAX_PAGE_ROWS:
                return

    async def _add_rows(self, maps: AsyncMaps, map_id: str) -> None:
        """Add the rows without a result to the map."""
        if self._source is not None:
            self._note_numbers(await maps.add_rows(map_id, artifact=str(self._source)))
        for page in self._split_rest():
            await maps.add_rows(map_id, page)

    async def _follow(self, maps: AsyncMaps, record: MapRecord, after: int) -> MapRecord:
        """Keep the results of rows as they end; return the map at the end of the last."""
        while not self._is_complete:
            page = await maps.rows(record.id, after, LONG_POLL_S)
            after = self._keep_page(page) or after
            if self._is_complete or not page.is_last:
                continue
            record = (await maps.get(record.id)).record
            if record.status in FINAL_STATUSES:
                return record
            if record.status == "queued":  # a process ended the map before it could see these rows
                await self._add_rows(maps, record.id)
        return record
