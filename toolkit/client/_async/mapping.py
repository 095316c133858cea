"""`client.map`: a job for every row of a table, under one budget."""

from typing import TYPE_CHECKING

from toolkit.client._async.http import AsyncHttpClient
from toolkit.client._async.resources.maps import AsyncMaps
from toolkit.client._replies import AsyncReply
from toolkit.client._row_map import RowMap
from toolkit.client._row_results import RowResult
from toolkit.client._wire.messages import LONG_POLL_S
from toolkit.contract.jobs import FINAL_STATUSES
from toolkit.contract.maps import MapRecord

if TYPE_CHECKING:
    import pandas as pd


class AsyncRowMapper(RowMap[AsyncReply["pd.DataFrame"]]):
    """Has the service run a map, and keeps the results as rows end.

    An equal call has the same map, so that an answered row is not paid again, no matter which
    provider would be chosen now.
    """

    http: AsyncHttpClient

    async def run_all(self) -> "pd.DataFrame":
        return self.build_frame(await self.run_rows())

    async def run_rows(self) -> list[RowResult]:
        """Run every row, and return their results in order.

        Raises:
            RequestError: as for `run_all`.
        """
        if not self._pages:
            return []
        maps = AsyncMaps(self.http)
        try:
            self._map = (await maps.create({**self._body, "max_cost_usd": self.limit_usd})).record
            for page in self._pages:
                self._note_numbers(await maps.add_rows(self._map.id, page))
            record = await self._follow(maps, self._map.id)
        except KeyboardInterrupt as error:
            self._explain_interrupt(error)
            raise
        self._leave_rest(record)
        return self._list_results()

    async def pause(self) -> None:
        """Let the map of an earlier equal call begin no more rows, and wait for those in progress.

        It leaves no budget to the map, so that the other parts of a cascade can share it.
        """
        if self.key is None:
            return
        run = await AsyncMaps(self.http).create({**self._body, "max_cost_usd": 0.0})
        if run.row_counts.total and not run.done:
            await run.add_rows([])  # so that a process works on it
            await run.wait(progress=False, check=False)
        self._map = run.record

    async def _follow(self, maps: AsyncMaps, map_id: str) -> MapRecord:
        """Keep the results of rows as they end; return the map at the end of the last."""
        after = 0
        while True:
            page = await maps.rows(map_id, after, LONG_POLL_S)
            for row in page.rows:
                self._keep(row)
                after = row.n
            if not self._is_complete and not page.is_last:
                continue
            record = (await maps.get(map_id)).record
            if self._is_complete or record.status in FINAL_STATUSES:
                return record
            if record.status == "queued":  # a process ended the map before it could see these rows
                for rows in self._pages:
                    await maps.add_rows(map_id, rows)
