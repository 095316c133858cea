"""The end of engines' sessions that are idle in a transaction, whose locks others need."""

import asyncio
import logging
from typing import Final

from toolkit.contract.errors import ServiceError
from toolkit.store.postgres.connections import IS_ENGINE_SQL
from toolkit.store.read_connection import ReadConnection

log = logging.getLogger(__name__)
# Longer than a busy machine keeps an engine from its next statement, and shorter than leases are.
SILENT_S: Final = 5.0
LOOK_INTERVAL_S: Final = 2.0
# PostgreSQL's own limit (`idle_in_transaction_session_timeout`) does not count in the middle of a
# pipeline, where the server waits for the next statement as well.
_END_SILENT_SQL: Final = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"  # noqa: S608 - our condition
    f" WHERE {IS_ENGINE_SQL} AND usename = current_user"
    " AND xact_start IS NOT NULL AND wait_event = 'ClientRead'"
    " AND greatest(query_start, state_change)"
    " < clock_timestamp() - make_interval(secs => :silent_s)"
)


class SilentSessions:
    """Ends idle sessions of any engine in a transaction; each engine looks for them.

    A process that is stopped, or whose machine died without notice, keeps its connections open.
    Its locks would stay for hours, and nobody could take over its work. An engine that continues
    afterwards finds its session ended, as after a network cut.
    """

    def __init__(self, reads: ReadConnection) -> None:
        self._reads = reads
        self._looking: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look for them, on the running event loop."""
        self._looking = asyncio.get_running_loop().create_task(self._look_on())

    async def close(self) -> None:
        """Look no longer."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])

    async def _look_on(self) -> None:
        while True:
            await asyncio.sleep(LOOK_INTERVAL_S)
            try:
                row = await self._reads.fetch_values(_END_SILENT_SQL, {"silent_s": SILENT_S})
            except ServiceError as error:
                log.debug("could not look for silent sessions: %s", error)
                continue
            if row and row[0]:
                log.warning(
                    "ended %d sessions of the database whose engines were silent for %g s in a"
                    " transaction", row[0], SILENT_S,
                )  # fmt: skip
