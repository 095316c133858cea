"""Pages of lists, as the service answers them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class RecordPage(Generic[R]):
    """A page of a list.

    Attributes:
        records: the records of the page, or handles of them.
        next_cursor: the cursor of the next page, or None after the last page.
        total: number of all records of the list, or None if the service did not count them.
    """

    records: Sequence[R]
    next_cursor: str | None = None
    total: int | None = None
