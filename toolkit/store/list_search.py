"""The search for a page of a filtered list, in batches of ids from the index that fits best."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from toolkit.contract.operations.queries import MAX_TOTAL
from toolkit.contract.operations.work_queries import NO_FILTER, WorkFilter
from toolkit.store.account_scope import ReadScope
from toolkit.store.list_branches import (
    FEW_BRANCHES,
    build_branch_count,
    build_branch_ids,
    find_branches,
    is_filtered,
)
from toolkit.store.read_connection import ReadConnection, Row
from toolkit.store.text_index import find_candidates
from toolkit.store.work_lists import (
    SLICE_ROWS,
    IndexedField,
    WorkList,
    WorkListQuery,
    build_candidate_ids,
    build_id_count,
    build_ids,
    build_unindexed_ids,
    make_list_query,
)

# A status of most records excludes too few of them to look it up before anything else.
_FREQUENT_STATUS: Final = "completed"
_GROWTH: Final = 4
_NEWEST_ROWS: Final = 200  # that a page or a count reads before the index of texts
_COUNTED_ROWS: Final = 5_000  # that a count checks by their columns
COUNTED_DOCUMENTS: Final = 100  # that a count reads
_COUNTED_BRANCHES: Final = 100  # that a count reads in an index
# A text that more of the newest rows have is not counted: PostgreSQL reads all entries of a term.
_MAX_NEWEST_MATCHES: Final = 50


class WorkSearch:
    """A search in a list of work."""

    def __init__(
        self, connection: ReadConnection, work: WorkList, scope: ReadScope, filters: WorkFilter
    ) -> None:
        self._connection = connection
        self._work = work
        self._scope = scope
        self._filters = filters

    async def find_rows(self, limit: int, before: str | None) -> list[Row]:
        """Find the newest rows below the last id of the previous page, at most `limit`."""
        query = make_list_query(
            self._connection.kind, self._work, self._scope, self._filters, before
        )
        if self._filters == NO_FILTER:
            bounds = {"lowest": query.lowest, "before": query.highest, "limit": limit}
            return await self._connection.fetch_rows(query.rows_sql, {**query.parameters, **bounds})
        rows: list[Row] = []
        async for ids in self._iter_ids(query, limit):
            for start in range(0, len(ids), SLICE_ROWS):
                batch = ids[start : start + SLICE_ROWS]
                rows += await self._read_batch(query, batch, limit - len(rows))
                if len(rows) == limit:
                    return rows
                if start:
                    await asyncio.sleep(0)  # there may be many candidates: let other tasks run
        return rows

    async def count_rows(self) -> int | None:
        """Count the rows of all pages.

        An index counts the rows of a filter with one condition on an indexed field. Any other
        filter is checked row by row, so only a filter with few candidates is counted.

        Returns:
            None if there are more than 10,000 rows, or too many rows would be checked.
        """
        filters = self._filters
        query = make_list_query(self._connection.kind, self._work, self._scope, filters, None)
        if filters == NO_FILTER:
            statement = build_id_count(self._scope.kind, self._work)
            return _limit_total(await self._count_ids(query, statement, {}))
        for field in self._work.indexed:
            if field.name != "cost" and filters == _keep_field(filters, field):
                branches = await find_branches(self._connection, field, self._scope, filters)
                if branches is None or len(branches) > _COUNTED_BRANCHES:
                    return None
                parameters = {"branches": json.dumps(branches, ensure_ascii=False)}
                statement = build_branch_count(self._connection.kind, field)
                return _limit_total(await self._count_ids(query, statement, parameters))
        return await self._count_candidates(query)

    async def _count_ids(
        self, query: WorkListQuery, statement: str, parameters: Mapping[str, object]
    ) -> int:
        """Sum up the counts that a statement reads in an index."""
        bounds = {"lowest": query.lowest, "before": query.highest, "limit": MAX_TOTAL + 1}
        rows = await self._connection.fetch_rows(
            statement, {**query.parameters, **parameters, **bounds}
        )
        return sum(int(row["n"]) for row in rows)

    async def _count_candidates(self, query: WorkListQuery) -> int | None:
        """Count the candidates that fit the filter; None if there are too many candidates."""
        maximum = COUNTED_DOCUMENTS if query.reads_documents else _COUNTED_ROWS
        total = checked = 0
        if self._filters.text is not None and not self._filters.tags and self._work.has_text_index:
            statement = build_ids(self._scope.kind, self._work)
            newest = await self._read_values(statement, query, limit=_NEWEST_ROWS)
            total = await self._count_batch(query, newest)
            if len(newest) < _NEWEST_ROWS:
                return total
            if total > _MAX_NEWEST_MATCHES:
                return None
            query = replace(query, highest=newest[-1])
        async for ids in self._iter_ids(query, SLICE_ROWS, is_count=True):
            for start in range(0, len(ids), SLICE_ROWS):
                batch = ids[start : start + SLICE_ROWS]
                checked += len(batch)
                if checked > maximum:
                    return None
                total += await self._count_batch(query, batch)
        return total

    async def _read_values(
        self, statement: str, query: WorkListQuery, **bounds: object
    ) -> list[str]:
        """Read ids of the list between its bounds, without checking their rows."""
        parameters = {**query.parameters, "lowest": query.lowest, "before": query.highest, **bounds}
        return [row["value"] for row in await self._connection.fetch_rows(statement, parameters)]

    async def _count_batch(self, query: WorkListQuery, ids: list[str]) -> int:
        """Count the rows of a batch of ids that fit the filter."""
        if query.fits is not None:
            return len(await self._read_batch(query, ids, len(ids)))
        parameters = {**query.parameters, "ids": json.dumps(ids)}
        return int((await self._connection.fetch_rows(query.count_sql, parameters))[0]["n"])

    async def _read_batch(self, query: WorkListQuery, ids: list[str], limit: int) -> list[Row]:
        """Read the rows of a batch of ids that fit the filter, up to the limit."""
        parameters = {**query.parameters, "ids": json.dumps(ids), "limit": query.get_limit(limit)}
        return query.choose(await self._connection.fetch_rows(query.rows_sql, parameters), limit)

    async def _iter_ids(
        self, query: WorkListQuery, limit: int, *, is_count: bool = False
    ) -> AsyncIterator[list[str]]:
        """Yield batches of ids that may fit the filter, newest first.

        Args:
            limit: size of the first batch.
            is_count: True if the ids are counted, up to a number of them.
        """
        text = self._filters.text if self._work.has_text_index else None
        field, branches = await self._choose_field(is_text_indexed=text is not None)
        lowest, before = query.lowest, query.highest
        read = partial(self._read_ids, query.parameters, limit)
        all_ids = partial(read, build_ids(self._scope.kind, self._work))
        if is_count and len(branches) > FEW_BRANCHES:
            # To read each branch takes longer than a count may take.
            async for ids in all_ids(lowest, before):
                yield ids
            return
        is_text_search = field is None and text is not None
        if not is_count and (is_text_search or len(branches) > FEW_BRANCHES):
            # A filter that many records fit fills a page with the newest.
            newest: list[str] = []
            rows = _NEWEST_ROWS if field is None else SLICE_ROWS
            async for newest in all_ids(lowest, before, rows):
                yield newest
            before = newest[-1] if newest else lowest
        batches = None
        if field is None and text is not None:
            row_ids = await find_candidates(self._connection, text.casefold())
            if row_ids is None:
                field, branches = await self._choose_field(is_text_indexed=False)
            else:
                kinds = self._connection.kind, self._scope.kind
                found_ids = build_candidate_ids(*kinds, self._work)
                candidates = await self._read_values(
                    found_ids, query, before=before, ids=json.dumps(row_ids)
                )
                unindexed_ids = build_unindexed_ids(*kinds, self._work)
                batches = merge_ids(candidates, read(unindexed_ids, lowest, before))
        if field is not None:
            branches_sql = build_branch_ids(self._connection.kind, field, self._filters)
            parameters = {**query.parameters, "branches": json.dumps(branches, ensure_ascii=False)}
            batches = self._read_ids(parameters, limit, branches_sql, lowest, before)
        async for ids in batches or all_ids(lowest, before):
            yield ids

    async def _choose_field(
        self, *, is_text_indexed: bool
    ) -> tuple[IndexedField | None, list[list[str]]]:
        """Choose the indexed field whose ids are read, and find its branches; None reads all ids.

        A text usually excludes more records than a field does, apart from a tag or a rare status.
        """
        filters = self._filters
        for field in self._work.indexed:
            if not is_filtered(field, filters):
                continue
            if is_text_indexed and field.name != "tag":
                is_rare_status = field.name == "status" and filters.status != _FREQUENT_STATUS
                if not is_rare_status:
                    continue
            branches = await find_branches(self._connection, field, self._scope, filters)
            if branches is not None:
                return field, branches
        return None, []

    async def _read_ids(
        self,
        parameters: Mapping[str, object],
        limit: int,
        statement: str,
        lowest: str,
        before: str,
        maximum: int | None = None,
    ) -> AsyncIterator[list[str]]:
        """Yield ids between two bounds, newest first, in batches that grow.

        Args:
            maximum: number of ids after which it ends; all by default.
        """
        size, total = min(limit, SLICE_ROWS), 0
        while lowest < before:
            values = {**parameters, "lowest": lowest, "before": before, "limit": size}
            rows = await self._connection.fetch_rows(statement, values)
            if rows:
                yield [row["value"] for row in rows]
            total += len(rows)
            if len(rows) < size or (maximum is not None and total >= maximum):
                return
            before = rows[-1]["value"]
            size = min(_GROWTH * size, SLICE_ROWS)
            await asyncio.sleep(0)  # a batch may have taken a while: let other tasks run


def _keep_field(filters: WorkFilter, field: IndexedField) -> WorkFilter:
    """Return the conditions of a filter that an indexed field answers alone."""
    if field.name == "tag":
        return WorkFilter(tags=filters.tags[:1])
    return replace(NO_FILTER, **{field.name: getattr(filters, field.name)})


def _limit_total(count: int) -> int | None:
    return None if count > MAX_TOTAL else count


async def merge_ids(
    candidates: list[str], batches: AsyncIterator[list[str]]
) -> AsyncIterator[list[str]]:
    """Merge two sources of ids, both newest first, that have no id in common; yield batches."""
    start = 0
    async for ids in batches:
        end = start
        while end < len(candidates) and candidates[end] > ids[-1]:
            end += 1
        yield sorted([*ids, *candidates[start:end]], reverse=True)
        start = end
    yield candidates[start:]
