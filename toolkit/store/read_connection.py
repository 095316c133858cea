"""What reads need of a database: rows, by a statement and its named parameters."""

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

from toolkit.store.dialects import DatabaseKind

Row: TypeAlias = dict[str, Any]


class ReadConnection(Protocol):
    """A way to read what is committed; each statement by itself.

    Every method raises `ServiceError` `UNAVAILABLE` when the database cannot be read.
    """

    @property
    def kind(self) -> DatabaseKind:
        """The kind of the database, whose dialect statements are in."""
        ...

    async def fetch_rows(self, sql: str, given: Mapping[str, object]) -> list[Row]:
        """Fetch all rows, each by the names of its columns.

        Args:
            sql: the statement; parameters in it are `:name`, or as its dialect spells them.
        """
        ...

    async def fetch_values(self, sql: str, given: Mapping[str, object]) -> tuple[Any, ...] | None:
        """Fetch the values of the first row, if there is one: what is asked for very often."""
        ...
