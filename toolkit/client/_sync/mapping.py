# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.map`: a job for every row of a table, under one budget."""

from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.client._replies import Reply
from toolkit.client._row_map import RowMap
from toolkit.client._sync.http import HttpClient
from toolkit.client._sync.resources.artifacts import Artifacts
from toolkit.client._sync.resources.maps import Maps
from toolkit.client._wire.messages import LONG_POLL_S
from toolkit.contract.jobs import FINAL_STATUSES
from toolkit.contract.maps import MapRecord

if TYPE_CHECKING:
    import pandas as pd


class RowMapper(RowMap[Reply["pd.DataFrame"]]):
    """Has the service run a map, and keeps the results as rows end.

    An equal call has the same map, so that an answered row is not paid again, no matter which
    provider would be chosen now.
    """

    _http: HttpClient

    def run_all(self) -> "pd.DataFrame":
        if not self._pages and self._source is None:
            return self._build_frame()
        maps = Maps(self._http)
        try:
            if isinstance(self._source, Path):
                self._source = (Artifacts(self._http).upload(self._source)).id
            self._map = (maps.create(self._body)).record
            self._add_rows(maps, self._map.id)
            record = self._follow(maps, self._map.id)
        except KeyboardInterrupt as error:
            self._explain_interrupt(error)
            raise
        self._leave_rest(record)
        return self._build_frame()

    def _add_rows(self, maps: Maps, map_id: str) -> None:
        """Add all rows to the map, and note their numbers there."""
        self._clear_numbers()
        if self._source is not None:
            self._note_numbers(maps.add_rows(map_id, artifact=str(self._source)))
            self._row_count = self._progress.total = len(self._numbers)
        for page in self._pages:
            self._note_numbers(maps.add_rows(map_id, page))

    def _follow(self, maps: Maps, map_id: str) -> MapRecord:
        """Keep the results of rows as they end; return the map at the end of the last."""
        after = 0
        while True:
            page = maps.rows(map_id, after, LONG_POLL_S)
            for row in page.rows:
                self._keep(row)
                after = row.n
            if not self._is_complete and not page.is_last:
                continue
            record = (maps.get(map_id)).record
            if self._is_complete or record.status in FINAL_STATUSES:
                return record
            if record.status == "queued":  # a process ended the map before it could see these rows
                self._add_rows(maps, map_id)
