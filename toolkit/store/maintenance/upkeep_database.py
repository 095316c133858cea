"""A database as upkeep sees it: rules are written once, and the two kinds differ only in this."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import Any, ClassVar, Final, TypeVar

from sqlalchemy import ClauseElement, text

from toolkit.store.blob_places.place import BlobPlace
from toolkit.store.changes import make_unusable_error
from toolkit.store.dialects import DatabaseKind, compile_statement
from toolkit.store.read_statements import STORED_DIGESTS_SQL

T = TypeVar("T")
MAX_TRIES: Final = 10
RETRY_WAIT_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class DataDirIssue:
    """An issue of a data directory, or a database, for its owner.

    Attributes:
        what: description, in one line.
        repair: repair that `--repair` makes; None if none is possible or needed.
        serious: whether something is, or will be, lost or refused.
    """

    what: str
    repair: str | None = None
    serious: bool = True


@dataclass(frozen=True, slots=True)
class PlaceState:
    """Whether a folder or object storage has a database's artifacts, as far as that is known.

    Attributes:
        is_known: whether bytes that it does not have are lost.
        is_own: whether no other database can own the bytes in it that no record names.
        explanation: reason why it is not known, if that is an issue.
    """

    is_known: bool
    is_own: bool
    explanation: str | None = None


class UpkeepDatabase(ABC):
    """A database in which maintenance finds and deletes rows.

    Args:
        connection: driver's connection, which begins no transaction by itself.

    Attributes:
        word: name of the database in messages.
        one_of: SQL condition that a text, `{column}`, is in the list of the parameter `{name}`.
        rows_per_transaction: about how many roots, jobs and artifacts are deleted at once, so that
            other writers get a turn.
        contended: errors after which a change is retried, because others had locked its rows.
        shares_folders: whether a copy may share the artifact folder of the original.
    """

    kind: ClassVar[DatabaseKind]
    word: ClassVar[str]
    one_of: ClassVar[str]
    rows_per_transaction: ClassVar[int]
    contended: ClassVar[tuple[type[Exception], ...]]
    shares_folders: ClassVar[bool]

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def fetch(self, statement: ClauseElement | str, **parameters: object) -> list[tuple[Any, ...]]:
        """Return the rows that a query finds."""
        rows: list[tuple[Any, ...]] = self._execute(statement, parameters).fetchall()
        return rows

    def run(self, statement: ClauseElement | str, **parameters: object) -> int:
        """Run a statement; return how many rows it changed."""
        return int(self._execute(statement, parameters).rowcount)

    def is_one_of(self, column: str, name: str) -> str:
        """Build the condition that a column is in the list `:name`."""
        return self.one_of.format(column=column, name=name)

    def list_digests(self) -> list[str]:
        """List the SHA-256 of all bytes that records refer to and that are outside the database."""
        return [str(row[0]) for row in self.fetch(STORED_DIGESTS_SQL)]

    def change(self, make: Callable[[], T]) -> T:
        """Make a change in a transaction, and repeat it while engines have locked its rows.

        Raises:
            ServiceError: `UNAVAILABLE` if the rows stay locked.
        """
        for _ in range(MAX_TRIES):
            try:
                with self.begin():
                    return make()
            except self.contended:
                sleep(RETRY_WAIT_S)
        raise make_unusable_error(
            "The rows to change stay locked by other work: retry when the database is less busy."
        )

    def shares_bytes(self, place: BlobPlace) -> bool:
        """Check whether another database's records may name the bytes, as this one is its copy."""
        return (place.is_remote or self.shares_folders) and self.is_copy()

    @abstractmethod
    def begin(self) -> AbstractContextManager[object]:
        """Begin a transaction for writing, which is committed unless an error ends it."""

    def hold_lock(self, name: str) -> AbstractContextManager[None]:  # noqa: ARG002
        """Hold a lock against other commands, across transactions; a no-op by default."""
        return nullcontext()

    @abstractmethod
    def is_copy(self) -> bool:
        """Check whether the database is a copy of another database."""

    @abstractmethod
    def has_engines(self) -> bool:
        """Check whether engines have the database open."""

    @abstractmethod
    def count_left(self) -> int:
        """Count the unfinished work items that engines left when they ended."""

    @abstractmethod
    def check_place(self, place: BlobPlace) -> None:
        """Reject artifact storage that is not known to be the database's.

        Raises:
            ServiceError: `UNAVAILABLE`.
        """

    @abstractmethod
    def examine_place(self, place: BlobPlace) -> PlaceState:
        """Check whether artifact storage is the database's.

        Raises:
            ServiceError: `UNAVAILABLE` if it is another place.
        """

    @abstractmethod
    def check_surroundings(self) -> Iterator[DataDirIssue]:
        """Check the machine, or the server, that the database is on."""

    def find_damage(self) -> list[str]:
        """Return the errors that the database finds in its file; empty for a server's database."""
        return []

    @abstractmethod
    def copy_records(self, folder: Path) -> list[str]:
        """Copy all records into a folder, as of one moment, without blocking any writer.

        Returns:
            the SHA-256 of the bytes that they refer to and that are outside the database.

        Raises:
            ServiceError: `UNAVAILABLE` when they cannot be copied.
        """

    def _execute(self, statement: ClauseElement | str, parameters: dict[str, Any]) -> Any:
        clause = text(statement) if isinstance(statement, str) else statement
        return self.connection.execute(
            compile_statement(self.kind, clause), self._adapt(parameters)
        )

    def _adapt(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """Adapt parameters to the driver."""
        return parameters
