"""Infrastructure: resources at a GPU cloud, billed there until they are deleted."""

from datetime import datetime
from typing import TypeVar

from toolkit.client._async.handle import AsyncDeletable
from toolkit.contract.base import ErrorInfo
from toolkit.contract.endpoints import Infrastructure

S = TypeVar("S", bound=Infrastructure)


class AsyncInfrastructureHandle(AsyncDeletable[S]):
    """A resource at a GPU cloud, billed there until it is deleted."""

    @property
    def status(self) -> str:
        """`creating`, `ready`, `failed`, `deleting` or `deleted`."""
        return self.record.status

    @property
    def error(self) -> ErrorInfo | None:
        """The error, if there was any."""
        return self.record.error

    @property
    def name(self) -> str:
        """The name that it was given."""
        return self.record.name

    @property
    def status_detail(self) -> str | None:
        """A word on what it waits for, where there is one."""
        return self.record.status_detail

    @property
    def created_at(self) -> datetime:
        """The time at which it was asked for."""
        return self.record.created_at
