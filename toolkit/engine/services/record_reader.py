"""The reading of the records of one table, which most areas of `/v1` offer alike."""

from typing import Generic

from toolkit.engine.context import EngineContext
from toolkit.engine.request_context import RequestContext
from toolkit.store import Repository
from toolkit.store.repository import T


class RecordReader(Generic[T]):
    """A service whose records are read by their id, or as pages."""

    def __init__(self, core: EngineContext, records: Repository[T]) -> None:
        self._core = core
        self._records = records

    async def get(self, context: RequestContext, record_id: str) -> T:
        """Return one record.

        Raises:
            RequestError: `NOT_FOUND`, for one that was deleted too.
        """
        return await self._records.get(context.scope, record_id)

    async def list(self, context: RequestContext, limit: int, before: str | None) -> list[T]:
        """List a page of records, newest first."""
        return await self._records.list(context.scope, limit, before)

    async def count(self, context: RequestContext) -> int | None:
        """Count the records of a list; None if there are too many."""
        return await self._records.count(context.scope)
