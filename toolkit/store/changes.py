"""The changes that can be written, and the errors that are not the database's fault.

A node has seven changes: they are tuples, which are made in a third of a frozen dataclass's time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from toolkit.contract.errors import ErrorCode, ServiceError

RETRY_AFTER_S: Final = 1.0


class InsertRow(NamedTuple):
    """A new row; its `doc` may be a function that serializes it, called when it is written."""

    table: str
    values: Mapping[str, object]


class UpdateRow(NamedTuple):
    """New values for some columns of a row; `doc` as for `InsertRow`."""

    table: str
    id: str
    values: Mapping[str, object]


class PatchDocument(NamedTuple):
    """New values for some members of a row's `doc`, which leave its other members alone.

    The writer locks the row, so nothing that another process wrote meanwhile is undone.
    """

    table: str
    id: str
    values: Mapping[str, str | float | None]


class ReplaceRow(NamedTuple):
    """A row that replaces one with the same id, if there is one."""

    table: str
    values: Mapping[str, object]


class DeleteRow(NamedTuple):
    """The deletion of a row."""

    table: str
    id: str


class AddSpending(NamedTuple):
    """An amount added to (or subtracted from) the spending of a key or account, in nano-dollars.

    Attributes:
        id: id of the row of a day or in total, which is inserted if it does not exist.
        limit: maximum of the sum; None for no limit.
    """

    id: str
    key_id: str
    nano_usd: int
    limit: int | None


class IncrementColumns(NamedTuple):
    """Amounts added to the sums of a row, which is inserted if it does not exist.

    Attributes:
        values: other columns of the row, with its id.
        increments: amounts to add, by column.
    """

    table: str
    values: Mapping[str, object]
    increments: Mapping[str, int]


class AppendEvent(NamedTuple):
    """An event; the writer assigns its number within the resource, and within the job."""

    resource_id: str
    type: str
    data: Mapping[str, object]
    at: str
    job_id: str | None = None


Change: TypeAlias = (
    InsertRow
    | UpdateRow
    | PatchDocument
    | ReplaceRow
    | DeleteRow
    | AddSpending
    | IncrementColumns
    | AppendEvent
)


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to work on a root (work item): a run, job, workflow or task for one process.

    `fence` grows each time the lease changes hands.

    Attributes:
        key_id: API key that the work was requested with; None for work of earlier versions.
        agent_id: agent that the work is done as, or None.
    """

    root_id: str
    kind: str
    account_id: str
    fence: int
    key_id: str | None = None
    agent_id: str | None = None


class LeaseLost(Exception):  # noqa: N818 - names what happened
    """Raised if another process has the lease by now; nothing was written."""


class StoreUnavailableError(ServiceError):
    """The database cannot be used now: running work is interrupted and resumed later."""


def make_unusable_error(message: str) -> ServiceError:
    """Make the error for a database or place that cannot be used as it is."""
    return ServiceError(ErrorCode.UNAVAILABLE, message)


def make_retryable_error(message: str) -> StoreUnavailableError:
    """Make the error for a database that may be retried in a moment."""
    return StoreUnavailableError(ErrorCode.UNAVAILABLE, message, retry_after=RETRY_AFTER_S)


class OverLimit(Exception):  # noqa: N818 - names what happened
    """Raised if a key or account would spend more than its limit; nothing was written."""


class Conflict(Exception):  # noqa: N818 - names what happened
    """Raised if a value that must be unique already exists; nothing was written."""
