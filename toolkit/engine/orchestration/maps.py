"""The service of `/v1/maps`: accepts maps and their rows; `MapRunner` runs them."""

import asyncio
import time
from collections.abc import Sequence

from toolkit.contract.annotations import WorkAnnotate
from toolkit.contract.base import JsonObject, format_rfc3339, now
from toolkit.contract.errors import Detail, ErrorCode, RequestError, ServiceError, build_not_found
from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.jobs import FINAL_STATUSES
from toolkit.contract.maps import (
    MAX_PAGE_ROWS,
    MapCreate,
    MapRecord,
    MapRowNumbers,
    MapRowPage,
    MapRows,
    RowCounts,
)
from toolkit.contract.operations.queries import EventsQuery
from toolkit.contract.operations.work_queries import NO_FILTER, WorkFilter
from toolkit.contract.row_templates import fill_templates, find_empty, list_columns
from toolkit.engine.annotations import annotate_record, build_annotation, list_given_tags
from toolkit.engine.concurrency.cancellation import finish_before_cancel
from toolkit.engine.context import EngineContext
from toolkit.engine.execution.admission import Admission, check_place
from toolkit.engine.execution.batch_map_runner import BatchMapRunner
from toolkit.engine.execution.job_executor import JobExecutor
from toolkit.engine.execution.leases import LeaseManager
from toolkit.engine.execution.map_runner import MapRunner
from toolkit.engine.orchestration.map_row_records import (
    count_rows,
    name_rows,
    plan_rows,
    read_row,
    select_columns,
)
from toolkit.engine.orchestration.map_tables import RowPage, TableReader, parse_page
from toolkit.engine.request_context import RequestContext
from toolkit.engine.routing.registry import validate_input
from toolkit.engine.services.artifacts import Artifacts
from toolkit.engine.services.idempotency import commit_accepted
from toolkit.engine.services.record_reader import RecordReader
from toolkit.plugins import Capability
from toolkit.store import (
    MAP_LIST,
    AppendEvent,
    Change,
    Conflict,
    InsertRow,
    Lease,
    PatchDocument,
    Row,
    UpdateRow,
)

BATCH_WINDOW_S = 0.05  # wait for more rows to end, because one row an answer would be many requests


class Maps(RecordReader[MapRecord]):
    """The operations of `/v1/maps`."""

    def __init__(
        self, core: EngineContext, leases: LeaseManager, executor: JobExecutor, artifacts: Artifacts
    ) -> None:
        super().__init__(core, core.records.maps)
        self._leases = leases
        self._executor = executor
        self._artifacts = artifacts
        self._tables = TableReader(core, artifacts)
        self._runners: dict[str, MapRunner] = {}  # of the maps that run here
        leases.register_handler("map", self._run)

    async def create(self, context: RequestContext, request: MapCreate) -> MapRecord:
        """Accept a map with its first rows, or return the account's map of the same key.

        Raises:
            RequestError: `INVALID_REQUEST` for a faulty template, row or table, or the key of
                another map, `NOT_FOUND` for an unknown capability or artifact,
                `CREDENTIALS_MISSING`, `PROVIDER_NOT_ALLOWED`, `BUDGET_EXCEEDED`.
        """
        capability = self._core.registry.require(request.capability)
        list_columns(request.input)
        options = request.options
        if options.when == "batch" and options.deadline_s is not None:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                "A batch has the time of its vendor: leave `deadline_s` or `when` out.",
                details=[Detail("options.deadline_s", "cannot be combined with when: batch")],
            )
        await check_place(self._core, context.scope, options.endpoint_id, options.compute_id)
        await self._core.allowances.check_bound(context, None)
        pages = await self._tables.read(context, request.input, request)
        record = await self._find_by_key(context, request)
        if record is None:
            record = await self._insert(context, request, capability, pages)
            if record is not None and len(pages) <= 1:
                return record
            if record is None:
                record = await self._find_by_key(context, request)  # another request was first
            if record is None:
                raise ServiceError(ErrorCode.UNAVAILABLE, "The map could not be stored: try again.")
        if pages:
            await self._add_pages(context, record, pages)
        return await self.get(context, record.id)

    async def _insert(
        self,
        context: RequestContext,
        request: MapCreate,
        capability: Capability,
        pages: Sequence[RowPage],
    ) -> MapRecord | None:
        """Store a new map with its first page of rows, and begin unless other pages follow.

        Returns:
            None if its key exists by now.
        """
        map_id = new_id(Prefix.MAP)
        options = request.options
        if options.sealed is True:
            options = options.model_copy(update={"sealed": map_id})
        members = dict(request)
        del members["rows"], members["artifact_id"], members["note"]
        record = MapRecord(
            **members
            | {
                "id": map_id,
                "capability": capability.name,
                "options": options,
                "tags": list_given_tags(request.tags),
                "note": request.note or None,
                "created_at": now(),
            }
        )
        rows = select_columns(record, parse_page(pages[0])) if pages else []
        is_whole = len(pages) <= 1
        await self._check_any(context, record, rows)
        if rows:
            await self._core.quotas.check_queue(context.account_id)
        row_changes, _ = plan_rows(context.account_id, map_id, name_rows(map_id, rows), {}, 0)
        record.row_counts = RowCounts(total=len(row_changes), queued=len(row_changes))
        insert, lease = self._core.store.leases.build_root(
            map_id, "map", context.account_id, context.key_id
        )
        if not (rows and is_whole):  # no process works on it until it has its rows
            insert = InsertRow("roots", {**insert.values, "open": False, "owner": None})
        changes: list[Change] = [
            insert,
            self._records.make_insert(
                context.account_id,
                record,
                status=record.status,
                key=_make_key(context.account_id, request.key),
            ),
            AppendEvent(map_id, "map.queued", {"id": map_id}, format_rfc3339(record.created_at)),
            *build_annotation(context.account_id, map_id, request.tags, request.note),
            *row_changes,
        ]
        try:
            # The answer to a repeated request is stored once all pages are.
            await commit_accepted(self._core, context, changes, record if is_whole else None)
        except Conflict:
            return None
        if rows and is_whole:
            self._leases.start(lease)
        return record

    async def _find_by_key(self, context: RequestContext, request: MapCreate) -> MapRecord | None:
        """Find the account's map of a key, with the limits of a new request.

        Raises:
            RequestError: `CONFLICT` if it has another capability, input or options.
        """
        if request.key is None:
            return None
        key = _make_key(context.account_id, request.key)
        rows = await self._records.find_rows(context.scope, key=key)
        if not rows:
            return None
        record = self._records.read(rows[0])
        capability = self._core.registry.require(request.capability).name
        options = record.options
        if options.sealed == record.id:
            options = options.model_copy(update={"sealed": True})
        if (capability, request.input, request.options) != (
            record.capability,
            record.input,
            options,
        ):
            raise RequestError(
                ErrorCode.CONFLICT,
                f"`{record.id}` has this key, and another capability, input or options.",
            )
        limits: dict[str, str | float | None] = {
            "max_cost_usd": request.max_cost_usd,
            "on_error": request.on_error,
            "concurrency": request.concurrency,
        }
        await self._core.store.write([PatchDocument("maps", record.id, limits)])
        record = record.model_copy(update=limits)
        if runner := self._runners.get(record.id):
            runner.wake(record)
        return record

    async def rows_create(
        self, context: RequestContext, map_id: str, request: MapRows
    ) -> MapRowNumbers:
        """Add a page of rows or the rows of an artifact, and run those that have no result.

        Returns:
            the number of each given row; a row that the map had already keeps its number.

        Raises:
            RequestError: `NOT_FOUND`, and as for `create` if none of the map's rows could run.
        """
        record = await super().get(context, map_id)
        pages = await self._tables.read(context, record.input, request)
        return await self._add_pages(context, record, pages)

    async def _add_pages(
        self, context: RequestContext, record: MapRecord, pages: Sequence[RowPage]
    ) -> MapRowNumbers:
        """Add pages of rows, and begin after the last, so that a crash before it costs nothing."""
        numbers: list[int] = []
        _, last_end = await self._core.store.map_rows.measure(record.id)
        has_work = record.status not in FINAL_STATUSES
        for page in pages:
            added, is_work = await self._add(context, record, parse_page(page))
            numbers += added
            has_work |= is_work
        if has_work:
            await self._begin(context, record)
        return MapRowNumbers(numbers=numbers, last_end=last_end)

    async def _add(
        self, context: RequestContext, record: MapRecord, rows: Sequence[JsonObject]
    ) -> tuple[list[int], bool]:
        """Add a page of rows; return their numbers, and whether any of them has no result."""
        needed = select_columns(record, rows)
        named = name_rows(record.id, needed)
        size_bytes = sum(len(doc) for _, doc in named)
        await self._core.quotas.check_storage(context.account_id, size_bytes)
        while True:
            known = await self._core.store.map_rows.find([row_id for row_id, _ in named])
            size, _ = await self._core.store.map_rows.measure(record.id)
            if not size:
                await self._check_any(context, record, needed)
            changes, numbers = plan_rows(context.account_id, record.id, named, known, size)
            has_work = bool(changes) or any(row["status"] == "queued" for row in known.values())
            if has_work and record.status in FINAL_STATUSES:
                # At once, so that nobody takes the map for ended until its process has begun.
                queued: dict[str, str | float | None] = {"status": "queued"}
                changes += [
                    UpdateRow("maps", record.id, dict(queued)),
                    PatchDocument("maps", record.id, queued),
                ]
            try:
                if changes:
                    await self._core.store.write(changes)
            except Conflict:  # another request has added rows meanwhile
                continue
            return numbers, has_work

    async def _check_any(
        self, context: RequestContext, record: MapRecord, rows: Sequence[JsonObject]
    ) -> None:
        """Refuse the first rows of a map if none of them can run.

        Raises:
            RequestError: the refusal of the first row.
        """
        capability = self._core.registry.require(record.capability)
        gate = Admission(self._core, self._artifacts, context.scope, is_map=True)
        refusal: RequestError | None = None
        for row in rows:
            if find_empty(row):
                continue
            job_input = fill_templates(record.input, row)
            try:
                value = validate_input(capability, job_input, frozenset(), "input")
                await gate.admit(capability, job_input, record.options, capability.estimate(value))
            except RequestError as error:
                refusal = refusal or error
            else:
                return
        if refusal is not None:
            raise refusal

    async def _begin(self, context: RequestContext, record: MapRecord) -> None:
        """Have the queued rows of a map run, here or in the process that runs the map."""
        runner = self._runners.get(record.id)
        if runner is not None and runner.wake(record):
            return
        await self._core.quotas.check_queue(context.account_id)
        try:
            lease = await self._leases.reacquire(record.id, context.key_id)
        except RequestError as error:
            if error.code is not ErrorCode.CONFLICT:
                raise
            return  # another process runs it, and looks for queued rows before it ends
        self._leases.start(lease)

    async def _run(self, lease: Lease) -> None:
        row = await finish_before_cancel(self._core.store.get_row("maps", lease.root_id))
        if row is None:
            return
        record = self._records.read(row)
        runner_type = BatchMapRunner if record.options.when == "batch" else MapRunner
        runner = runner_type(self._core, self._executor, self._artifacts, record, lease)
        self._runners[record.id] = runner
        try:
            await runner.run()
        finally:
            del self._runners[record.id]

    async def get(self, context: RequestContext, map_id: str) -> MapRecord:
        """Return a map with the present state of its rows.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        record = await super().get(context, map_id)
        counts = await self._core.store.map_rows.count(map_id)
        return await self._core.annotations.show(count_rows(record, counts), map_id)

    async def list(
        self,
        context: RequestContext,
        limit: int,
        before: str | None,
        work_filter: WorkFilter = NO_FILTER,
    ) -> list[MapRecord]:
        """List a page of the maps that match a filter, newest first."""
        rows = await self._core.store.list_work(MAP_LIST, context.scope, work_filter, limit, before)
        counts: dict[str, list[Row]] = {row["id"]: [] for row in rows}
        for count in await self._core.store.map_rows.count(*counts):
            counts[count["map_id"]].append(count)
        return [
            annotate_record(count_rows(self._records.read(row), counts[row["id"]]), row)
            for row in rows
        ]

    async def count(
        self, context: RequestContext, work_filter: WorkFilter = NO_FILTER
    ) -> int | None:
        """Count the maps that match a filter; None if that takes too long."""
        return await self._core.store.count_work(MAP_LIST, context.scope, work_filter)

    async def rows_list(
        self, context: RequestContext, map_id: str, query: EventsQuery
    ) -> MapRowPage:
        """List rows that have ended, by a long poll of up to `wait_s` seconds.

        Raises:
            RequestError: `NOT_FOUND`.
        """
        store, deadline = self._core.store, time.monotonic() + query.wait_s
        while True:
            status = await self._records.find_row(context.scope, map_id, "status")
            if status is None:
                raise build_not_found("map", map_id)
            is_over = status["status"] in FINAL_STATUSES
            last = await store.get_last_event_number(map_id)
            rows = await store.map_rows.list_ended(map_id, query.after, MAX_PAGE_ROWS)
            remaining_s = deadline - time.monotonic()
            if rows or is_over or remaining_s <= 0:
                is_last = is_over and len(rows) < MAX_PAGE_ROWS
                return MapRowPage(rows=[read_row(row) for row in rows], is_last=is_last)
            await store.wait_for_event(map_id, after=last, timeout_s=remaining_s)
            await asyncio.sleep(min(BATCH_WINDOW_S, max(0.0, deadline - time.monotonic())))

    async def cancel(self, context: RequestContext, map_id: str) -> MapRecord:
        """Cancel a map; return a map that has ended unchanged."""
        row = await self._records.get_row(context.scope, map_id)
        if row["status"] not in FINAL_STATUSES:
            await self._leases.cancel(map_id)
        return await self.get(context, map_id)

    async def annotate(
        self, context: RequestContext, map_id: str, request: WorkAnnotate
    ) -> MapRecord:
        """Change the tags or the note of a map."""
        await self._records.get_row(context.scope, map_id)
        await self._core.annotations.change(context.account_id, map_id, request)
        return await self.get(context, map_id)


def _make_key(account_id: str, key: str | None) -> str | None:
    return None if key is None else f"{account_id}/{key}"
