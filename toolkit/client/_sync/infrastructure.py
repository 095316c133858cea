# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""Infrastructure: resources at a GPU cloud, billed there until they are deleted."""

from datetime import datetime
from typing import Any, TypeVar

from toolkit.client._sync.handle import Handle
from toolkit.client._sync.resource import Resource
from toolkit.contract.base import ErrorInfo
from toolkit.contract.endpoints import Infrastructure

H = TypeVar("H", bound=Handle[Any])
S = TypeVar("S", bound=Infrastructure)


class InfrastructureHandle(Handle[S]):
    """A resource at a GPU cloud."""

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


class InfrastructureResource(Resource[H]):
    def delete(self, id: str) -> H:
        """Delete one at its vendor; nothing is billed for it from then on.

        Raises:
            RequestError: `NOT_FOUND`; `CONFLICT` when it is in use, or the vendor did not do it.
        """
        return self._call("DELETE", id)
