"""Reads of the rows of maps."""

import json
from collections.abc import Sequence
from typing import Final

from toolkit.store.dialects import list_given_ids
from toolkit.store.read_connection import ReadConnection, Row
from toolkit.store.tables import name_columns

_COUNT_SQL: Final = (
    "SELECT map_id, status, reason, count(*) AS n, CAST(sum(nano) AS BIGINT) AS nano"
    " FROM {maps} JOIN map_rows ON map_rows.map_id = wanted.value"
    " GROUP BY map_id, status, reason"
)
# The numbers of rows have no gap, and each maximum is the end of an index.
_SIZE_SQL: Final = (
    "SELECT (SELECT max(n) + 1 FROM map_rows WHERE map_id = :map_id) AS n,"
    " (SELECT max(ended) FROM map_rows WHERE map_id = :map_id AND ended IS NOT NULL) AS ended"
)
_BY_STATUS_SQL: Final = (
    f"SELECT {name_columns('map_rows')} FROM map_rows"  # noqa: S608 - our names
    " WHERE map_id = :map_id AND status = :status AND n > :after ORDER BY n LIMIT :limit"
)
_IN_BATCH_SQL: Final = (
    f"SELECT {name_columns('map_rows')}, jobs.doc AS job_doc, jobs.ranking,"  # noqa: S608 - ours
    " jobs.capability, jobs.created_at FROM map_rows JOIN jobs ON jobs.id = map_rows.job_id"
    " WHERE map_rows.batch_id = :batch_id AND map_rows.n > :after"
    " AND map_rows.status = 'running' ORDER BY map_rows.n LIMIT :limit"
)
_ENDED_SQL: Final = (
    "SELECT map_rows.id, map_rows.n, map_rows.ended, map_rows.status, map_rows.job_id,"
    " map_rows.nano, map_rows.reason, map_rows.error, jobs.doc FROM map_rows"
    " LEFT JOIN jobs ON jobs.id = map_rows.job_id"
    " WHERE map_rows.map_id = :map_id AND map_rows.ended > :after"
    " AND map_rows.status NOT IN ('queued', 'running')"
    " ORDER BY map_rows.ended LIMIT :limit"
)


class MapRowReader:
    """A reader of the rows of maps; its methods raise `ServiceError` with `UNAVAILABLE`."""

    def __init__(self, connection: ReadConnection) -> None:
        self._fetch = connection.fetch_rows
        given = list_given_ids(connection.kind)
        self._count_sql = _COUNT_SQL.format(maps=given)
        self._find_sql = (
            "SELECT map_rows.id, map_rows.n, map_rows.status"  # noqa: S608 - our names
            f" FROM {given} JOIN map_rows ON map_rows.id = wanted.value"
        )

    async def count(self, *map_ids: str) -> list[Row]:
        """Count the rows of maps and the amounts paid for them, by map, status and reason."""
        return await self._fetch(self._count_sql, {"ids": json.dumps(map_ids)})

    async def measure(self, map_id: str) -> tuple[int, int]:
        """Return the number of a map's rows, and the number of the last end; 0 before the first."""
        (row,) = await self._fetch(_SIZE_SQL, {"map_id": map_id})
        return int(row["n"] or 0), int(row["ended"] or 0)

    async def find(self, ids: Sequence[str]) -> dict[str, Row]:
        """Find those of some rows that exist: the number and the status of each, by its id."""
        rows = await self._fetch(self._find_sql, {"ids": json.dumps(list(ids))})
        return {str(row["id"]): row for row in rows}

    async def list_by_status(
        self, map_id: str, status: str, after: int = -1, limit: int = 256
    ) -> list[Row]:
        """List rows in a status, with numbers above `after`, in order."""
        parameters = {"map_id": map_id, "status": status, "after": after, "limit": limit}
        return await self._fetch(_BY_STATUS_SQL, parameters)

    async def list_in_batch(self, batch_id: str, after: int = -1, limit: int = 256) -> list[Row]:
        """List rows in a batch without a result, by number, with their jobs as `job_doc`."""
        parameters = {"batch_id": batch_id, "after": after, "limit": limit}
        return await self._fetch(_IN_BATCH_SQL, parameters)

    async def list_ended(self, map_id: str, after: int, limit: int) -> list[Row]:
        """List rows that ended after an end's number, in that order, with their jobs' `doc`."""
        parameters = {"map_id": map_id, "after": after, "limit": limit}
        return await self._fetch(_ENDED_SQL, parameters)
