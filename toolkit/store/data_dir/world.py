"""The world that a data directory belongs to, the sandbox or the real one: it never holds both."""

from pathlib import Path
from typing import Final

from sqlalchemy import Connection

from toolkit.contract.errors import ErrorCode, ServiceError

# In the database's header (`PRAGMA application_id`), so that every copy of it has it, too.
SANDBOX_WORLD: Final = 0x746B7362
LIVE_WORLD: Final = 0x746B6C76


def claim_world(connection: Connection, data_dir: Path, *, sandbox: bool) -> None:
    """Mark a directory as the sandbox's or the real world's, if it is not marked yet.

    Args:
        connection: to the database, in no transaction.
        data_dir: how the directory is named in an error.
        sandbox: the world that it is opened for.

    Raises:
        ServiceError: `UNAVAILABLE` when it belongs to the other world.
    """
    wanted = SANDBOX_WORLD if sandbox else LIVE_WORLD
    kind = _read_world(connection)
    if kind is None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")  # another process may be marking it just now
        kind = _read_world(connection) or wanted
        connection.exec_driver_sql(f"PRAGMA application_id = {kind}")
        connection.exec_driver_sql("COMMIT")
    if kind != wanted:
        option = "data_dir, --data-dir"
        raise make_world_error(f"The data directory {data_dir}", option, sandbox=sandbox)


def make_world_error(name: str, option: str, *, sandbox: bool) -> ServiceError:
    """Make the error for what belongs to the other world.

    Args:
        name: of the data directory, or the database.
        option: the ways to name another one.
        sandbox: the world that it was opened for.
    """
    told = (
        f"{name} holds real work, which the sandbox's may not be mixed with: name another one"
        f" ({option}) for the sandbox."
        if sandbox
        else f"{name} is the sandbox's: open it with sandbox=True (--sandbox), or name another one"
        f" ({option}) for real work."
    )
    return ServiceError(ErrorCode.UNAVAILABLE, told)


def _read_world(connection: Connection) -> int | None:
    kind = int(connection.exec_driver_sql("PRAGMA application_id").scalar_one())
    return kind if kind in (SANDBOX_WORLD, LIVE_WORLD) else None
