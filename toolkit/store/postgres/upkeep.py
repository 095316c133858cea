"""The upkeep of a database of PostgreSQL."""

import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Self

from psycopg import errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from toolkit.contract.errors import ServiceError
from toolkit.store.blob_places.ownership import PlaceFit, PlaceOwnership
from toolkit.store.blob_places.place import BlobPlace
from toolkit.store.changes import make_unusable_error
from toolkit.store.limits.limit_store import APART_DOCUMENT
from toolkit.store.maintenance.upkeep_database import DataDirIssue, PlaceState, UpkeepDatabase
from toolkit.store.postgres.connections import Session, hold_lock
from toolkit.store.postgres.marks import claim_mark, is_marked_as_copy, list_engines, open_ownership
from toolkit.store.postgres.schema import (
    migrate_postgres_schema,
    open_existing,
    open_postgres,
    read_postgres_version,
)
from toolkit.store.postgres.writing.writes import CLOCK_SQL, index_texts, insert_rows
from toolkit.store.private_files import create_private_file
from toolkit.store.read_connection import Row
from toolkit.store.schema import HEAD_REVISION, MOVING, check_not_later
from toolkit.store.text_index import TEXT_TABLES

# A transaction that waits longer than this rolls back and retries.
LOCK_TIMEOUT_MS: Final = 1_000
OLDEST_SERVER: Final = 13
MAX_CLOCK_DIFFERENCE_S: Final = 2.0
NOTICE_TIMEOUT_S: Final = 3.0
DUMP_NAME: Final = "database.dump"
_LEFT_SQL: Final = (
    "SELECT count(*) FROM roots WHERE open AND owner IS NOT NULL"
    " AND lease_until < extract(epoch FROM clock_timestamp())"
)
_SET_REVISION_SQL: Final = "UPDATE alembic_version SET version_num = :revision"


class PostgresUpkeep(UpkeepDatabase):
    """A database that engines may have open meanwhile; made by `open` or `view`."""

    kind = "postgresql"
    word = "database"
    one_of = "{column} = ANY(:{name})"
    rows_per_transaction = 1_000
    contended = (errors.LockNotAvailable, errors.DeadlockDetected)
    shares_folders = True

    def __init__(self, connection: Session, url: str) -> None:
        super().__init__(connection)
        self._url = url

    @classmethod
    @contextmanager
    def open(cls, url: str) -> Iterator[Self]:
        """Open a database of the newest revision.

        Raises:
            ServiceError: `UNAVAILABLE` when it cannot be used.
        """
        with open_existing(url, newest=True) as connection:
            yield cls(connection, url)

    @classmethod
    @contextmanager
    def view(cls, url: str) -> Iterator[Self]:
        """Open a database for reading, which may be of an earlier version.

        Raises:
            ServiceError: `UNAVAILABLE` when it cannot be read, or is of a later version.
        """
        with open_existing(url, is_read_only=True) as connection:
            check_not_later(read_postgres_version(connection))
            yield cls(connection, url)

    @contextmanager
    def begin(self) -> Iterator[None]:
        """Begin a transaction that waits for a lock at most `LOCK_TIMEOUT_MS`."""
        with self.connection.transaction():
            self.connection.execute(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}".encode())
            yield

    def hold_lock(self, name: str) -> AbstractContextManager[None]:
        """Hold a lock against other commands; across transactions."""
        return hold_lock(self.connection, name)

    def is_copy(self) -> bool:
        """Check whether the database is a copy of another database."""
        return is_marked_as_copy(self.connection)

    def has_engines(self) -> bool:
        """Check whether engines have the database open."""
        return bool(list_engines(self.connection))

    def count_left(self) -> int:
        """Count the unfinished work items whose leases have ended."""
        return int(self.fetch(_LEFT_SQL)[0][0])

    def open_ownership(self, place: BlobPlace) -> PlaceOwnership:
        """Make the check of whether a folder or object storage has the database's artifacts."""
        return open_ownership(self.connection, place)

    def check_place(self, place: BlobPlace) -> None:
        """Reject artifact storage that is not known to be the database's."""
        self.open_ownership(place).check_known()

    def examine_place(self, place: BlobPlace) -> PlaceState:
        """Check whether artifact storage is the database's."""
        ownership = self.open_ownership(place)
        fit = ownership.check(may_be_other=True)
        if fit is PlaceFit.OTHER:
            explanation = ownership.explain_folders()
            return PlaceState(is_known=False, is_own=False, explanation=explanation)
        return PlaceState(is_known=True, is_own=fit is not PlaceFit.OPEN)

    def check_surroundings(self) -> Iterator[DataDirIssue]:
        """Check the server, its notices, and the folders of engines that have it open."""
        version = self.connection.info.server_version // 10_000
        if version < OLDEST_SERVER:
            yield DataDirIssue(
                f"PostgreSQL {version} is too old: use {OLDEST_SERVER} or a later version."
            )
        before = time.time()
        at = float(self.fetch(f"SELECT {CLOCK_SQL}")[0][0])
        difference_s = (before + time.time()) / 2 - at
        if abs(difference_s) > MAX_CLOCK_DIFFERENCE_S:
            word = "ahead of" if difference_s > 0 else "behind"
            yield DataDirIssue(
                f"This machine's clock is {abs(difference_s):.1f} s {word} the database's: leases"
                " use the database's clock, and records have the times of the engines' clocks.",
                serious=False,
            )
        if not self._is_notified():
            yield DataDirIssue(
                "NOTIFY does not arrive, so engines learn of each other's work up to a second late:"
                " connect them to PostgreSQL itself, or to a pool that keeps sessions."
            )
        engines = list_engines(self.connection)
        if count := list(engines.values()).count(APART_DOCUMENT):
            yield DataDirIssue(
                f"{count} of {len(engines)} engines store artifacts in folders of their own, where"
                " other engines do not find them: set one place for all (TOOLKIT_ARTIFACT_URL)."
            )

    def _is_notified(self) -> bool:
        """Check whether a notice of one session reaches another session, as engines need."""
        channel = f"toolkit_doctor_{secrets.token_hex(4)}"
        with (
            suppress(ServiceError),
            open_postgres(self._url, is_read_only=True) as listener,
            open_postgres(self._url, is_read_only=True) as sender,
        ):
            listener.execute(f"LISTEN {channel}".encode())
            sender.execute("SELECT pg_notify(%s, '')", (channel,))
            return any(True for _ in listener.notifies(timeout=NOTICE_TIMEOUT_S, stop_after=1))
        return False

    def copy_records(self, folder: Path) -> list[str]:
        """Dump the database as of one moment; return the SHA-256 of all bytes outside it."""
        with self.connection.transaction():
            self.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            _dump_database(self._url, str(self.fetch("SELECT pg_export_snapshot()")[0][0]), folder)
            return self.list_digests()


class MoveTarget(PostgresUpkeep):
    """A database that rows of a data directory are moved to.

    Until all rows are there and have been compared, it is marked by a revision that no engine
    opens.

    Args:
        connection: connection in autocommit mode, to a database that is empty, or that a move
            from the same source began.
        name: name of the source, to distinguish it from others; at most 24 characters.
    """

    def __init__(self, connection: Session, url: str, name: str) -> None:
        super().__init__(connection, url)
        self._moving = f"{MOVING}{name}"

    def is_begun(self) -> bool:
        """Check whether an interrupted move from the same source left the database."""
        version = read_postgres_version(self.connection)
        return version is not None and version.revision == self._moving

    def check_free(self, place: BlobPlace) -> None:
        """Check that the database is empty, or of this move; nothing is written.

        Args:
            place: place of its artifacts' bytes, which must belong to no other database.

        Raises:
            ServiceError: `UNAVAILABLE` if the database or the place is used for something else.
        """
        if not self.is_begun() and read_postgres_version(self.connection) is not None:
            raise make_unusable_error(
                "The database already has tables of the toolkit: choose an empty database, or the"
                " database of an interrupted move of the same data directory."
            )
        self.open_ownership(place).check(may_be_other=True)

    def create_tables(self) -> None:
        """Create the tables, unless this move has created them already."""
        if not self.is_begun():
            with self.begin():
                migrate_postgres_schema(self.connection)
                self.run(_SET_REVISION_SQL, revision=self._moving)

    def insert(self, table: str, rows: Sequence[Row]) -> None:
        """Insert rows, which have the same columns, in one transaction."""
        with self.begin():
            if table in TEXT_TABLES:
                index_texts(self.connection, table, {row["id"]: row for row in rows})
            values = [[*row.values()] for row in rows]
            insert_rows(self.connection, table, tuple(rows[0]), values)

    def end(self, place: BlobPlace, *, sandbox: bool | None) -> None:
        """End a move: record the artifacts' place, and let engines open the database from now on.

        Args:
            sandbox: whether the rows are of the sandbox; None if they do not show it.
        """
        self.open_ownership(place).take()
        with self.begin():
            claim_mark(self.connection, sandbox=sandbox, take_up=False)
            self.run(_SET_REVISION_SQL, revision=HEAD_REVISION)


def _dump_database(url: str, snapshot: str, folder: Path) -> None:
    """Run pg_dump; the password is passed in its environment, which no list of processes shows."""
    program = shutil.which("pg_dump")
    if program is None:
        raise make_unusable_error(
            "A backup of a database needs pg_dump: install PostgreSQL's client programs, such as by"
            " `apt install postgresql-client`."
        )
    parameters: dict[str, Any] = conninfo_to_dict(url)
    password = parameters.pop("password", None)
    environment = {**os.environ, **({"PGPASSWORD": str(password)} if password else {})}
    target = folder / DUMP_NAME
    command = [
        program, "--format", "custom", "--no-password", "--snapshot", snapshot,
        "--file", str(target), "--dbname", make_conninfo(**parameters),
    ]  # fmt: skip
    create_private_file(target)
    process = subprocess.run(command, env=environment, capture_output=True, check=False, text=True)  # noqa: S603
    if process.returncode != 0:
        line = (process.stderr.strip().splitlines() or ["it failed"])[0]
        reason = line.replace(str(password), "…") if password else line
        raise make_unusable_error(f"pg_dump could not copy the database: {reason}.")
