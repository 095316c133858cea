# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.map`: a job for every row of a table, under one budget."""

from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.client._replies import Reply
from toolkit.client._row_map import RowMap
from toolkit.client._row_results import RowResult
from toolkit.client._sync.http import HttpClient
from toolkit.client._sync.resources.artifacts import Artifacts
from toolkit.client._sync.resources.maps import Maps
from toolkit.client._wire.messages import LONG_POLL_S
from toolkit.contract.collector_pause import pause_collector
from toolkit.contract.jobs import FINAL_STATUSES
from toolkit.contract.maps import MAX_PAGE_ROWS, MapRecord

if TYPE_CHECKING:
    import pandas as pd


class RowMapper(RowMap[Reply["pd.DataFrame"]]):
    """Has the service run a map, and keeps the results as rows end.

    An equal call has the same map, so that an answered row is not paid again, no matter which
    provider would be chosen now.
    """

    http: HttpClient

    def run_all(self) -> "pd.DataFrame":
        return self.build_frame(self.run_rows())

    def run_rows(self) -> list[RowResult]:
        """Run every row, and return their results in order.

        Raises:
            RequestError: as for `run_all`.
        """
        if not self.rows and self.source is None:
            return []
        maps = Maps(self.http)
        try:
            if isinstance(self.source, Path):
                self.source = (Artifacts(self.http).upload(self.source)).id
            self._map = (maps.create({**self._body, "max_cost_usd": self.limit_usd})).record
            if self.source is None and self._map.row_counts.total:
                with pause_collector():
                    self._read_known(maps, self._map.id)
            after = self._last_end
            self._add_rows(maps, self._map.id)
            self._leave_rest(self._follow(maps, self._map, after))
        except KeyboardInterrupt as error:
            self._explain_interrupt(error)
            raise
        return self._list_results()

    def pause(self) -> None:
        """Let the map of an earlier equal call begin no more rows, and wait for those in progress.

        It leaves no budget to the map, so that the other parts of a cascade can share it.
        """
        if self.key is None:
            return
        run = Maps(self.http).create({**self._body, "max_cost_usd": 0.0})
        if run.row_counts.total and not run.done:
            run.add_rows([])  # so that a process works on it
            run.wait(progress=False, check=False)
        self._map = run.record

    def _read_known(self, maps: Maps, map_id: str) -> None:
        """Keep the results that the map has already, so that their rows need not be sent."""
        while True:
            page = maps.rows(map_id, self._last_end)
            self._keep_page(page, are_known=True)
            if len(page.rows) < MAX_PAGE_ROWS:
                return

    def _add_rows(self, maps: Maps, map_id: str) -> None:
        """Add the rows without a result to the map."""
        if self.source is not None:
            self._note_numbers(maps.add_rows(map_id, artifact=str(self.source)))
        for page in self._split_rest():
            maps.add_rows(map_id, page)

    def _follow(self, maps: Maps, record: MapRecord, after: int) -> MapRecord:
        """Keep the results of rows as they end; return the map at the end of the last."""
        while not self._is_complete:
            page = maps.rows(record.id, after, LONG_POLL_S)
            after = self._keep_page(page) or after
            if self._is_complete or not page.is_last:
                continue
            record = (maps.get(record.id)).record
            if record.status in FINAL_STATUSES:
                return record
            if record.status == "queued":  # a process ended the map before it could see these rows
                self._add_rows(maps, record.id)
        return record
