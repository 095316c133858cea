"""The mark of a database: the world that it belongs to, and whether it is a copy of another one.

It is the comment of a table, so that dumps and copies have it, too. The place in it is made of the
cluster's number and the database's: a copy that was restored elsewhere has others.
"""

from contextlib import suppress
from typing import Final

from psycopg import errors, sql

from toolkit.store.data_dir.world import make_world_error
from toolkit.store.postgres.advisory_locks import take_lock
from toolkit.store.postgres.connections import Session

_LOCK: Final = "mark"
_READ_SQL: Final = "SELECT obj_description('configuration'::regclass)"
_WRITE_SQL: Final = "COMMENT ON TABLE configuration IS {}"
_CLUSTER_SQL: Final = "SELECT system_identifier::text FROM pg_control_system()"
_DATABASE_SQL: Final = "SELECT oid::text FROM pg_database WHERE datname = current_database()"
_WORLDS: Final = ("live", "sandbox")
_UNKNOWN: Final = "-"


def claim_mark(connection: Session, *, sandbox: bool | None, take_up: bool) -> bool:
    """Mark a new database, and a copy as one of its own where that is asked for.

    Args:
        connection: to the database, in no transaction.
        sandbox: the world that it is opened for; None for any.
        take_up: go on with the open work of a copy, which is no copy from then on.

    Returns:
        whether it is a copy.

    Raises:
        ServiceError: `UNAVAILABLE` when it belongs to the other world.
    """
    place = _read_place(connection)
    with connection.transaction():
        take_lock(connection, _LOCK)
        kept = _fetch_text(connection, _READ_SQL).split()
        world, home = kept if len(kept) == 2 else (_UNKNOWN, _UNKNOWN)
        wanted = world if sandbox is None else _WORLDS[sandbox]
        if world not in (_UNKNOWN, wanted):
            raise make_world_error("The database", "database, --database", sandbox=sandbox is True)
        is_copy = home not in (_UNKNOWN, place) and not take_up
        mark = f"{wanted} {home if is_copy else place}"
        if mark.split() != kept:
            connection.execute(sql.SQL(_WRITE_SQL).format(sql.Literal(mark)))
    return is_copy


def is_marked_as_copy(connection: Session) -> bool:
    """Tell whether a database is a copy of another one."""
    kept = _fetch_text(connection, _READ_SQL).split()
    return len(kept) == 2 and kept[1] not in (_UNKNOWN, _read_place(connection))


def _read_place(connection: Session) -> str:
    cluster = _UNKNOWN
    with suppress(errors.InsufficientPrivilege):
        cluster = _fetch_text(connection, _CLUSTER_SQL)
    return f"{cluster}/{_fetch_text(connection, _DATABASE_SQL)}"


def _fetch_text(connection: Session, query: str) -> str:
    row = connection.execute(query.encode()).fetchone()
    return str(row[0] or "") if row is not None else ""
