"""A database's interface for reads: rows, by a statement and its named parameters."""

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

from toolkit.store.dialects import DatabaseKind

Row: TypeAlias = dict[str, Any]


class ReadConnection(Protocol):
    """A connection that reads committed rows; each statement stands alone.

    Every method raises `ServiceError` `UNAVAILABLE` when the database cannot be read.
    """

    @property
    def kind(self) -> DatabaseKind:
        """The kind of the database, which determines the dialect of its statements."""
        ...

    async def fetch_rows(self, sql: str, parameters: Mapping[str, object]) -> list[Row]:
        """Fetch all rows, each by the names of its columns.

        Args:
            sql: the statement; parameters in it are `:name`, or as its dialect spells them.
        """
        ...

    async def fetch_values(
        self, sql: str, parameters: Mapping[str, object]
    ) -> tuple[Any, ...] | None:
        """Fetch the values of the first row, or None; a fast path for very frequent reads."""
        ...
