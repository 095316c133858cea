"""A database of PostgreSQL: its connections, its clock, and the end of silent sessions."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Final, Self

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Float,
    TextClause,
    create_engine,
    literal_column,
)

from toolkit.contract.errors import ServiceError
from toolkit.store.blob_places.place import BlobPlace
from toolkit.store.data_dir.owners import Onlooker, SharedOwner
from toolkit.store.database import OpenDatabase, ViewedDatabase, connect_briefly
from toolkit.store.leases.clock import SharedClock
from toolkit.store.postgres.connections import (
    IS_ENGINE_SQL,
    Session,
    format_server,
    is_temporary,
    make_unreachable_error,
    open_connection,
    translate_opening_errors,
    translate_postgres_errors,
)
from toolkit.store.postgres.marks import claim_artifact_place, claim_mark, is_marked_as_copy
from toolkit.store.postgres.notices import CommitListener, build_work_notice
from toolkit.store.postgres.reads import PostgresReadConnection
from toolkit.store.postgres.schema import migrate_postgres_schema, open_existing, open_postgres
from toolkit.store.postgres.writing.writes import CLOCK_SQL, PostgresWriteConnection
from toolkit.store.read_connection import ReadConnection

log = logging.getLogger(__name__)
# Longer than a busy machine keeps an engine from its next statement, and shorter than leases are.
SILENT_S: Final = 5.0
LOOK_INTERVAL_S: Final = 2.0
# PostgreSQL's own limit (`idle_in_transaction_session_timeout`) does not count in the middle of a
# pipeline, where the server waits for the next statement as well.
_END_SILENT_SQL: Final = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"  # noqa: S608 - our condition
    f" WHERE {IS_ENGINE_SQL} AND usename = current_user"
    " AND xact_start IS NOT NULL AND wait_event = 'ClientRead'"
    " AND greatest(query_start, state_change)"
    " < clock_timestamp() - make_interval(secs => :silent_s)"
)
_READ_SQL: Final = f"SELECT {CLOCK_SQL}"
# Start of the oldest open transaction, or of this statement: a transaction that begins meanwhile is
# later. Only engines count, because a dump may take hours and writes nothing.
_HORIZON_SQL: Final = (
    "SELECT extract(epoch FROM coalesce(min(xact_start), statement_timestamp()))::float8"  # noqa: S608 - our condition
    f" FROM pg_stat_activity WHERE {IS_ENGINE_SQL}"
)
LOCK_TIMEOUT_MS: Final = 2_000
POOL_SIZE: Final = 4
SAFETY_POLL_S: Final = 1.0  # a fallback in case other engines' notices of commits fail
OPEN_PAUSE_S: Final = 0.5  # between two attempts to open a database whose server is away


async def end_silent_sessions(reads: ReadConnection) -> None:
    """End idle sessions of any engine in a transaction, until cancelled; each engine does so.

    A process that is stopped, or whose machine died without notice, keeps its connections open.
    Its locks would stay for hours, and nobody could take over its work. An engine that continues
    afterwards finds its session ended, as after a network cut.
    """
    while True:
        await asyncio.sleep(LOOK_INTERVAL_S)
        try:
            row = await reads.fetch_values(_END_SILENT_SQL, {"silent_s": SILENT_S})
        except ServiceError as error:
            log.debug("could not look for silent sessions: %s", error)
            continue
        if row and row[0]:
            log.warning(
                "ended %d sessions of the database whose engines were silent for %g s in a"
                " transaction", row[0], SILENT_S,
            )  # fmt: skip


class PostgresClock(SharedClock):
    """The server's clock."""

    def __init__(self, reads: ReadConnection) -> None:
        self._reads = reads

    async def read(self) -> float:
        """Return the server's time, in seconds since 1970."""
        (at,) = await self._reads.fetch_values(_READ_SQL, {}) or (0.0,)
        return float(at)

    async def read_horizon(self) -> float:
        """Return when the oldest open transaction of an engine began.

        A transaction reads the clock after it began, and is listed until its rows are visible.
        """
        (at,) = await self._reads.fetch_values(_HORIZON_SQL, {}) or (0.0,)
        return float(at)

    def build_now(self) -> ColumnElement[float]:
        """Build the expression for the current time of a statement."""
        return literal_column(f"({CLOCK_SQL})", Float)

    def build_first_end(self, lease_s: float) -> float:
        """Build the value of `lease_until` in a row that is inserted: the writer adds the time."""
        return lease_s


def create_postgres_engine(url: str, application_name: str) -> Engine:
    """Create an engine whose connections are tested before each use."""

    def connect() -> Session:
        connection = open_connection(url, application_name, is_impatient=True)
        try:
            connection.execute(f"SET lock_timeout = {LOCK_TIMEOUT_MS}".encode(), prepare=False)
            connection.autocommit = False
        except BaseException:
            connection.close()
            raise
        return connection

    return create_engine(
        "postgresql+psycopg://",
        creator=connect,
        pool_size=POOL_SIZE,
        pool_pre_ping=True,
        use_native_hstore=False,
    )


@contextmanager
def begin_postgres_transaction(engine: Engine) -> Iterator[Connection]:
    """Begin a transaction on a separate connection; it is rolled back unless the block commits it.

    Raises:
        DatabaseLocked: it may be tried again.
    """
    with translate_postgres_errors(), connect_briefly(engine) as connection:
        yield connection


class PostgresDatabase(OpenDatabase):
    """A database that engines on several machines may have open; made by `open`."""

    poll_interval_s = SAFETY_POLL_S

    def __init__(
        self, url: str, owner: SharedOwner, writes: PostgresWriteConnection, *, is_copy: bool
    ) -> None:
        self._url = url
        self._name = f"toolkit {owner.id}"
        self._engine = create_postgres_engine(url, self._name)
        self._is_closed = False
        self._listener: CommitListener | None = None
        self.is_copy = is_copy
        self.owner = owner
        self.writes = self._writes = writes
        self.reads = self._reads = PostgresReadConnection(url, self._name)
        self.clock = PostgresClock(self._reads)
        self._ending: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        url: str,
        data_dir: Path,
        *,
        sandbox: bool | None,
        take_up: bool | None,
        wait_s: float = 0.0,
    ) -> Self:
        """Open a database, creating and migrating its tables as needed.

        Args:
            data_dir: folder of the lock files that show this machine's live processes.

        Raises:
            ServiceError: `UNAVAILABLE` when it cannot be used.
        """
        deadline = time.monotonic() + wait_s
        is_logged = False
        while True:
            try:
                opening = partial(cls._open_now, url, data_dir, sandbox, take_up is True)
                return await asyncio.to_thread(opening)
            except ServiceError as error:
                left_s = deadline - time.monotonic()
                if left_s <= 0 or not is_temporary(error):
                    raise
            if not is_logged:
                log.warning(
                    "PostgreSQL at %s accepts no connections yet: waiting up to %g s.",
                    format_server(url),
                    wait_s,
                )
                is_logged = True
            await asyncio.sleep(min(OPEN_PAUSE_S, left_s))

    @classmethod
    def _open_now(cls, url: str, data_dir: Path, sandbox: bool | None, take_up: bool) -> Self:
        with ExitStack() as opened, translate_opening_errors():
            with closing(open_connection(url, "toolkit")) as connection:
                migrate_postgres_schema(connection)
                is_copy = claim_mark(connection, sandbox=sandbox, take_up=take_up)
            owner = SharedOwner(data_dir)
            opened.callback(owner.close)
            writes = PostgresWriteConnection(url, owner.id)
            opened.pop_all()
        return cls(url, owner, writes, is_copy=is_copy)

    def begin(self) -> AbstractContextManager[Connection]:
        """Begin a transaction on a separate connection; on any thread.

        Raises:
            ServiceError: `UNAVAILABLE` when the store is closed.
        """
        if self._is_closed:
            raise make_unreachable_error()
        return begin_postgres_transaction(self._engine)

    async def listen(
        self, wake: Callable[[Iterable[str] | None], None], note_work: Callable[[], None]
    ) -> None:
        """Begin to listen for the notices of other engines, and to end idle sessions with locks."""
        self._listener = CommitListener(self._url, self._name, self.owner.id, wake, note_work)
        self._listener.start()
        self._ending = asyncio.get_running_loop().create_task(end_silent_sessions(self._reads))

    def build_work_notice(self, root_id: str) -> TextClause | None:
        """Build the statement that notifies other engines of a work item."""
        return build_work_notice(self.owner.id, root_id)

    async def claim_artifacts(self, place: BlobPlace) -> str | None:
        """Record the database and its artifacts' place in each other; see `OpenDatabase`."""

        def claim() -> str | None:
            with open_postgres(self._url) as connection:
                return claim_artifact_place(connection, place, self.owner.id)

        return await asyncio.to_thread(claim)

    async def close(self) -> None:
        """Close everything; later calls are refused, and open nothing."""
        self._is_closed = True
        if self._listener is not None:
            await self._listener.close()
        if self._ending is not None:
            self._ending.cancel()
            await asyncio.wait([self._ending])
        await self._reads.close()
        self._writes.close()
        self._engine.dispose()
        self.owner.close()


async def view_postgres(url: str) -> ViewedDatabase:
    """Open a database of the newest revision for reading: the server itself refuses every write.

    Raises:
        ServiceError: `UNAVAILABLE` when it cannot be used, or is of another version.
    """

    def look() -> bool:
        with open_existing(url, newest=True, is_read_only=True) as connection:
            return is_marked_as_copy(connection)

    is_copy = await asyncio.to_thread(look)
    reads = PostgresReadConnection(url, "toolkit-reader", is_read_only=True)
    clock = PostgresClock(reads)
    return ViewedDatabase(reads, clock, Onlooker(None), is_copy, None, SAFETY_POLL_S, reads.close)
