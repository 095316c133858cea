# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""Infrastructure: resources at a GPU cloud, billed there until they are deleted."""

from datetime import datetime
from typing import TypeVar

from toolkit.client._members import Member
from toolkit.client._sync.handle import Deletable
from toolkit.contract.base import ErrorInfo
from toolkit.contract.endpoints import Infrastructure, InfrastructureStatus

S = TypeVar("S", bound=Infrastructure)


class InfrastructureHandle(Deletable[S]):
    """A resource at a GPU cloud, billed there until it is deleted."""

    status = Member[InfrastructureStatus]("`creating`, `ready`, `failed`, `deleting` or `deleted`.")
    error = Member[ErrorInfo | None]("The error, if there was any.")
    name = Member[str]("The name that it was given.")
    status_detail = Member[str | None]("A word on what it waits for, where there is one.")
    created_at = Member[datetime]("The time at which it was asked for.")
    deleted = Member[bool]("True once it was deleted.")
    deleted_at = Member[datetime | None]("The time at which it was deleted; none while it was not.")
