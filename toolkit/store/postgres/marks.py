"""The marks of a PostgreSQL database: comments of tables, so that its dumps have them, too.

The first mark says whether the work is real or the sandbox's (its world), and names the database's
own place: the numbers of the cluster and of the database. A copy that was restored elsewhere has
other numbers. The second mark names the place of its artifacts.
"""

import logging
from contextlib import suppress
from typing import Final

from psycopg import errors, sql

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.blob_places.ownership import PlaceOwnership
from toolkit.store.blob_places.place import BlobPlace
from toolkit.store.data_dir.location import make_world_error
from toolkit.store.limits.limit_store import ENGINE_LIFE_S, ENGINE_PREFIX
from toolkit.store.postgres.connections import Session, describe_holder, hold_lock, take_lock
from toolkit.store.postgres.writing.writes import CLOCK_SQL

log = logging.getLogger(__name__)

_LOCK, _ARTIFACTS_LOCK = "mark", "artifacts"
# Unresponsive storage blocks the holder of the lock for minutes, one engine after another.
LOCK_WAIT_S: Final = 10.0
_COMMENT_SQL: Final = "SELECT obj_description(to_regclass('{table}'), 'pg_class')"
_CLUSTER_SQL: Final = "SELECT system_identifier::text FROM pg_control_system()"
_DATABASE_SQL: Final = "SELECT oid::text FROM pg_database WHERE datname = current_database()"
_WORLDS: Final = ("live", "sandbox")
_UNKNOWN: Final = "-"
_SAMPLE_SQL: Final = (
    "SELECT sha256 FROM artifacts WHERE content IS NULL AND deleted = FALSE LIMIT 5"
)
_ENGINES_SQL: Final = (
    f"SELECT id, doc FROM shared_limits WHERE id LIKE '{ENGINE_PREFIX}%'"  # noqa: S608 - our names
    f" AND changed_at >= {CLOCK_SQL} - {ENGINE_LIFE_S}"
)


def claim_mark(connection: Session, *, sandbox: bool | None, take_up: bool) -> bool:
    """Mark a new database as an original, and also a copy if `take_up` is true.

    Args:
        connection: connection to the database, in no transaction.
        sandbox: whether it is opened for the sandbox; None for any world.
        take_up: whether to resume the open work of a copy, which then is a copy no longer.

    Returns:
        Whether it is a copy.

    Raises:
        ServiceError: `UNAVAILABLE` if it belongs to the other world.
    """
    place = _read_place(connection)
    with connection.transaction():
        take_lock(connection, _LOCK)
        words = _read_comment(connection, "configuration").split()
        world, home = words if len(words) == 2 else (_UNKNOWN, _UNKNOWN)
        target_world = world if sandbox is None else _WORLDS[sandbox]
        if world not in (_UNKNOWN, target_world):
            raise make_world_error("The database", "database, --database", sandbox=sandbox is True)
        is_copy = home not in (_UNKNOWN, place) and not take_up
        mark = f"{target_world} {home if is_copy else place}"
        if mark.split() != words:
            _write_comment(connection, "configuration", mark)
    return is_copy


def is_marked_as_copy(connection: Session) -> bool:
    """Check whether a database is a copy of another database."""
    words = _read_comment(connection, "configuration").split()
    return len(words) == 2 and words[1] not in (_UNKNOWN, _read_place(connection))


def _read_place(connection: Session) -> str:
    cluster = _UNKNOWN
    with suppress(errors.InsufficientPrivilege):
        cluster = _fetch_text(connection, _CLUSTER_SQL)
    return f"{cluster}/{_fetch_text(connection, _DATABASE_SQL)}"


def _read_comment(connection: Session, table: str) -> str:
    """Read the comment of a table; return an empty text if the comment or table is missing."""
    return _fetch_text(connection, _COMMENT_SQL.format(table=table))


def _write_comment(connection: Session, table: str, text: str) -> None:
    statement = sql.SQL("COMMENT ON TABLE {} IS {}")
    connection.execute(statement.format(sql.Identifier(table), sql.Literal(text)))


def _fetch_text(connection: Session, query: str) -> str:
    row = connection.execute(query.encode()).fetchone()
    return str(row[0] or "") if row is not None else ""


class PostgresPlaceRecords:
    """A PostgreSQL database's records of the place where its artifacts' bytes are."""

    def __init__(self, connection: Session) -> None:
        self._connection = connection

    def read_mark(self) -> str:
        """Read the text by which the database names its artifacts' place; empty without one."""
        return _read_comment(self._connection, "artifacts")

    def write_mark(self, text: str) -> None:
        """Write the text by which the database names its artifacts' place."""
        _write_comment(self._connection, "artifacts", text)

    def list_samples(self) -> list[str]:
        """List the SHA-256 of some bytes that the artifacts' place should have."""
        return [str(row[0]) for row in self._connection.execute(_SAMPLE_SQL).fetchall()]

    def has_other_engines(self, engine_id: str) -> bool:
        """Check whether another engine has the database open."""
        return bool(list_engines(self._connection).keys() - {engine_id})


def list_engines(connection: Session) -> dict[str, str]:
    """List the engines that have a database open, each with the document of its row."""
    rows = connection.execute(_ENGINES_SQL.encode()).fetchall()
    return {str(row[0]).removeprefix(ENGINE_PREFIX): str(row[1]) for row in rows}


def open_ownership(connection: Session, place: BlobPlace) -> PlaceOwnership:
    """Make the check of whether a folder or object storage has a database's artifacts."""
    return PlaceOwnership(PostgresPlaceRecords(connection), place)


def claim_artifact_place(connection: Session, place: BlobPlace, engine_id: str) -> str | None:
    """Record a database and its artifacts' place in each other, one engine at a time.

    Args:
        engine_id: id of the engine, whose row the other engines already see.

    Returns:
        A warning if this engine's folder is its own and other engines have theirs, or None.

    Raises:
        ServiceError: `UNAVAILABLE` if the place is not the database's, or another engine takes
            too long to check its own place.
    """
    ownership = open_ownership(connection, place)
    try:
        with hold_lock(connection, _ARTIFACTS_LOCK, timeout_s=LOCK_WAIT_S):
            return ownership.claim(engine_id)
    except errors.LockNotAvailable as error:
        mark, holder = ownership.read_mark(), describe_holder(connection, _ARTIFACTS_LOCK)
        if mark is None or mark.name != place.name or not place.is_remote:
            raise ServiceError(
                ErrorCode.UNAVAILABLE,
                f"The owner of the artifacts in {place.name} cannot be checked, because {holder}"
                f" has been checking it for more than {LOCK_WAIT_S:g} s: retry later.",
                retry_after=LOCK_WAIT_S,
            ) from error
        log.warning(
            "%s cannot be checked now, because %s has been checking it for more than %g s;"
            " it is assumed to be the database's", place.name, holder, LOCK_WAIT_S,
        )  # fmt: skip
    return None
