"""A database as upkeep sees it: rules are written once, and the two kinds differ only in this."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from sqlalchemy import ClauseElement, text

from toolkit.store.blob_places.place import BlobPlace
from toolkit.store.dialects import DatabaseKind, compile_statement


class UpkeepDatabase(ABC):
    """A database of the newest revision that rows are found in, and taken out of.

    Args:
        connection: the driver's, which begins no transaction by itself.

    Attributes:
        kind: the database's.
        one_of: the condition, without its left side, that a text is in the list of a parameter.
        roots_per_transaction: how many roots are deleted at once: other writers go in between.
        late_tables: tables without an index of their jobs, which take a pass of their own.
        contended: the errors after which a change is tried again, as others had locked its rows.
    """

    kind: ClassVar[DatabaseKind]
    one_of: ClassVar[str]
    roots_per_transaction: ClassVar[int]
    late_tables: ClassVar[frozenset[str]]
    contended: ClassVar[tuple[type[Exception], ...]]

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def fetch(self, statement: ClauseElement | str, **given: object) -> list[tuple[Any, ...]]:
        """Return the rows that a query finds."""
        rows: list[tuple[Any, ...]] = self._execute(statement, given).fetchall()
        return rows

    def run(self, statement: ClauseElement | str, **given: object) -> int:
        """Run a statement; return how many rows it changed."""
        return int(self._execute(statement, given).rowcount)

    def is_one_of(self, name: str, column: str = "") -> str:
        """Build the condition that a column is in the list `:name`; by default without its left."""
        return f"{column} {self.one_of.format(name=name)}".lstrip()

    @abstractmethod
    def begin(self) -> AbstractContextManager[object]:
        """Begin a transaction for writing, which is committed unless an error ends it."""

    @abstractmethod
    def check_place(self, place: BlobPlace) -> None:
        """Refuse a place that is not known to be that of the database's artifacts.

        Raises:
            ServiceError: `UNAVAILABLE`.
        """

    @abstractmethod
    def shares_bytes(self, place: BlobPlace) -> bool:
        """Tell whether another database's records may name the bytes: this one is a copy of it."""

    def _execute(self, statement: ClauseElement | str, given: dict[str, Any]) -> Any:
        wanted = text(statement) if isinstance(statement, str) else statement
        return self._connection.execute(compile_statement(self.kind, wanted), self._adapt(given))

    def _adapt(self, given: dict[str, Any]) -> dict[str, Any]:
        """Adapt parameters to the driver."""
        return given
