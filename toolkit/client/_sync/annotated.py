# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""Work that carries tags and a note: the part that runs, workflows and tasks share."""

from collections.abc import Iterator, Sequence
from typing import Any, Self, TypeVar, Unpack

from toolkit.client._collections import Collection
from toolkit.client._members import Member
from toolkit.client._sync.handle import Waitable
from toolkit.client._sync.resource import WorkResource
from toolkit.client._wire.messages import make_annotation
from toolkit.client._work_filters import WorkFilters, document_filters, make_list_query
from toolkit.contract.runs import Run
from toolkit.contract.tasks import Task
from toolkit.contract.workflows import WorkflowRecord

A = TypeVar("A", Run, Task, WorkflowRecord)
H = TypeVar("H", bound=Waitable[Any])


class Annotated(Waitable[A]):
    """Work with tags and a note."""

    tags = Member[list[str]]("The tags that it has, in the order given.")

    @property
    def note(self) -> str:
        """The note on it; empty where there is none."""
        return self.record.note or ""

    def annotate(self, *, tags: Sequence[str] | None = None, note: str | None = None) -> Self:
        """Give it other tags, or another note, whatever its state; what is left out stays.

        Args:
            tags: in place of those that it has; none at all for `[]`.
            note: in place of the one that it has; none for `""`.

        Raises:
            RequestError: `INVALID_REQUEST` for a tag with a comma, or too much of either.
        """
        return self._call("POST", "/annotate", json=make_annotation(tags, note))


class AnnotatedResource(WorkResource[H]):
    """A resource of work with tags and notes, whose lists the service filters."""

    def annotate(self, id: str, *, tags: Sequence[str] | None = None, note: str | None = None) -> H:
        """Give one other tags, or another note, whatever its state; what is left out stays.

        Args:
            id: which.
            tags: in place of those that it has; none at all for `[]`.
            note: in place of the one that it has; none for `""`.

        Raises:
            RequestError: `NOT_FOUND`; `INVALID_REQUEST` for a tag with a comma, or too much.
        """
        return self._call("POST", id, "/annotate", make_annotation(tags, note))

    @document_filters
    def list(
        self, limit: int = 50, cursor: str | None = None, **filters: Unpack[WorkFilters]
    ) -> Collection[H]:
        """Read a page of them, newest first: all, or those that every filter is true of.

        Args:
            limit: how many at most, 1 to 200.
            cursor: the `next_cursor` of the page before; with the same filters.
            **filters: those of a list.
        """
        return self._list_page(make_list_query(limit, cursor, filters))

    @document_filters
    def iterate(self, page: int = 50, **filters: Unpack[WorkFilters]) -> Iterator[H]:
        """Yield all of them, newest first; each page is read when the one before is used up.

        Iterating over the resource itself does the same.

        Args:
            page: how many are read at once, 1 to 200.
            **filters: those of a list.
        """
        found = self.list(page, **filters)
        while True:
            for item in found:
                yield item
            if found.next_cursor is None:
                return
            found = self.list(page, found.next_cursor, **filters)
