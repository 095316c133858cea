"""Work that carries tags and a note: the part that runs, workflows and tasks share."""

from collections.abc import Sequence
from typing import Any, Self, TypeVar, Unpack

from toolkit.client._async.handle import AsyncWaitable
from toolkit.client._async.paging import AsyncPagedCollection
from toolkit.client._async.resource import AsyncWorkResource
from toolkit.client._replies import AsyncReply
from toolkit.client._resource_calls import AnnotatedCalls
from toolkit.client._wire.messages import make_annotation
from toolkit.client._work_filters import WorkFilters, document_filters, make_list_query
from toolkit.client._work_views import AnnotatedView
from toolkit.contract.runs import Run
from toolkit.contract.tasks import Task
from toolkit.contract.workflows import WorkflowRecord

A = TypeVar("A", Run, Task, WorkflowRecord)
H = TypeVar("H", bound=AsyncWaitable[Any])


class AsyncAnnotated(AnnotatedView[A], AsyncWaitable[A]):
    """Work with tags and a note."""

    async def annotate(self, *, tags: Sequence[str] | None = None, note: str | None = None) -> Self:
        """Give it other tags, or another note, whatever its state; what is left out stays.

        Args:
            tags: in place of those that it has; none at all for `[]`.
            note: in place of the one that it has; none for `""`.

        Raises:
            RequestError: `INVALID_REQUEST` for a tag with a comma, or too much of either.
        """
        return await self._call("POST", "/annotate", json=make_annotation(tags, note))


class AsyncAnnotatedResource(AnnotatedCalls[AsyncReply[H]], AsyncWorkResource[H]):
    """A resource of work with tags and notes, whose lists the service filters."""

    @document_filters
    def list(
        self, limit: int | None = None, **filters: Unpack[WorkFilters]
    ) -> AsyncPagedCollection[H]:
        """List them, newest first: all, or those that every filter is true of.

        Further pages are read as they are needed.

        Args:
            limit: greatest number of records; None for all.
            **filters: those of a list.
        """
        return self._list_records(make_list_query(filters), limit)
