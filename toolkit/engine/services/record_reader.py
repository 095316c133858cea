"""The reader of the records of a table, which most areas of `/v1` share."""

from typing import Generic, TypeVar

from toolkit.contract.annotations import WorkAnnotate
from toolkit.contract.operations.work_queries import NO_FILTER, WorkFilter
from toolkit.contract.tasks import Task
from toolkit.contract.workflows import WorkflowRecord
from toolkit.engine.annotations import annotate_record
from toolkit.engine.context import EngineContext
from toolkit.engine.request_context import RequestContext
from toolkit.store import Repository, Row
from toolkit.store.repository import T
from toolkit.store.work_lists import WorkList

W = TypeVar("W", bound=Task | WorkflowRecord)


class RecordReader(Generic[T]):
    """The base of services whose records are read by id or in pages."""

    def __init__(self, core: EngineContext, records: Repository[T]) -> None:
        self._core = core
        self._records = records

    async def get(self, context: RequestContext, record_id: str) -> T:
        """Return one record.

        Raises:
            RequestError: `NOT_FOUND`, also for a deleted record.
        """
        return await self._records.get(context.scope, record_id)

    async def list(self, context: RequestContext, limit: int, before: str | None) -> list[T]:
        """List a page of records, newest first."""
        return await self._records.list(context.scope, limit, before)

    async def count(self, context: RequestContext) -> int | None:
        """Count the records of a list; None if there are too many."""
        return await self._records.count(context.scope)


class WorkReader(Generic[W]):
    """The base of services for workflows or tasks: with tags and notes, and with filtered lists."""

    def __init__(self, core: EngineContext, records: Repository[W], work_list: WorkList) -> None:
        self._core = core
        self._records = records
        self._work_list = work_list

    async def get_row(self, context: RequestContext, work_id: str) -> Row:
        """Return the row of a work record.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        return await self._records.get_row(context.scope, work_id)

    async def get(self, context: RequestContext, work_id: str) -> W:
        """Return the current record.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        return await self.read_current(await self.get_row(context, work_id))

    async def read_current(self, row: Row) -> W:
        """Read a record from its row, which has annotations if it is from a list."""
        record = self._records.read(row)
        if "note" in row:
            return annotate_record(record, row)
        return await self._core.annotations.show(record, record.id)

    async def list(
        self,
        context: RequestContext,
        limit: int,
        before: str | None,
        work_filter: WorkFilter = NO_FILTER,
    ) -> list[W]:
        """Return a page of the work that matches a filter, newest first."""
        rows = await self._core.store.list_work(
            self._work_list, context.scope, work_filter, limit, before
        )
        return [await self.read_current(row) for row in rows]

    async def count(
        self, context: RequestContext, work_filter: WorkFilter = NO_FILTER
    ) -> int | None:
        """Count the work that matches a filter; None if that takes too long."""
        return await self._core.store.count_work(self._work_list, context.scope, work_filter)

    async def annotate(self, context: RequestContext, work_id: str, request: WorkAnnotate) -> W:
        """Change the tags or the note of a work record.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        await self.get_row(context, work_id)
        await self._core.annotations.change(context.account_id, work_id, request)
        return await self.get(context, work_id)
