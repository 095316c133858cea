"""Work that carries tags and a note: the part that runs, workflows and tasks share."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Self, TypeVar, Unpack

from toolkit.client._async.handle import AsyncWaitable
from toolkit.client._async.resource import AsyncWorkResource
from toolkit.client._collections import Collection
from toolkit.client._members import Member
from toolkit.client._wire.messages import make_annotation
from toolkit.client._work_filters import WorkFilters, document_filters, make_list_query
from toolkit.contract.runs import Run
from toolkit.contract.tasks import Task
from toolkit.contract.workflows import WorkflowRecord

A = TypeVar("A", Run, Task, WorkflowRecord)
H = TypeVar("H", bound=AsyncWaitable[Any])


class AsyncAnnotated(AsyncWaitable[A]):
    """Work with tags and a note."""

    tags = Member[list[str]]("The tags that it has, in the order given.")

    @property
    def note(self) -> str:
        """The note on it; empty where there is none."""
        return self.record.note or ""

    async def annotate(self, *, tags: Sequence[str] | None = None, note: str | None = None) -> Self:
        """Give it other tags, or another note, whatever its state; what is left out stays.

        Args:
            tags: in place of those that it has; none at all for `[]`.
            note: in place of the one that it has; none for `""`.

        Raises:
            RequestError: `INVALID_REQUEST` for a tag with a comma, or too much of either.
        """
        return await self._call("POST", "/annotate", json=make_annotation(tags, note))


class AsyncAnnotatedResource(AsyncWorkResource[H]):
    """A resource of work with tags and notes, whose lists the service filters."""

    async def annotate(
        self, id: str, *, tags: Sequence[str] | None = None, note: str | None = None
    ) -> H:
        """Give one other tags, or another note, whatever its state; what is left out stays.

        Args:
            id: which.
            tags: in place of those that it has; none at all for `[]`.
            note: in place of the one that it has; none for `""`.

        Raises:
            RequestError: `NOT_FOUND`; `INVALID_REQUEST` for a tag with a comma, or too much.
        """
        return await self._call("POST", id, "/annotate", make_annotation(tags, note))

    @document_filters
    async def list(
        self, limit: int = 50, cursor: str | None = None, **filters: Unpack[WorkFilters]
    ) -> Collection[H]:
        """Read a page of them, newest first: all, or those that every filter is true of.

        Args:
            limit: how many at most, 1 to 200.
            cursor: the `next_cursor` of the page before; with the same filters.
            **filters: those of a list.
        """
        return await self._list_page(make_list_query(limit, cursor, filters))

    @document_filters
    async def iterate(self, page: int = 50, **filters: Unpack[WorkFilters]) -> AsyncIterator[H]:
        """Yield all of them, newest first; each page is read when the one before is used up.

        Iterating over the resource itself does the same.

        Args:
            page: how many are read at once, 1 to 200.
            **filters: those of a list.
        """
        found = await self.list(page, **filters)
        while True:
            for item in found:
                yield item
            if found.next_cursor is None:
                return
            found = await self.list(page, found.next_cursor, **filters)
