"""The world that a data directory belongs to, the sandbox or the real one: it never holds both."""

from pathlib import Path
from typing import Final

from sqlalchemy import Connection

from toolkit.contract.errors import ErrorCode, ServiceError

# In the database's header (`PRAGMA application_id`), so that every copy of it has it, too.
SANDBOX_WORLD: Final = 0x746B7362
LIVE_WORLD: Final = 0x746B6C76
_USAGE_SQL = """
SELECT coalesce(sum(json_extract(doc, '$.usage.simulated') IS 1), 0), count(*)
FROM jobs WHERE status = 'completed' AND provider IS NOT NULL
AND json_extract(doc, '$.cached_from') IS NULL
"""


def claim_world(connection: Connection, data_dir: Path, *, sandbox: bool) -> None:
    """Mark a directory as the sandbox's or the real world's, if it is not marked yet.

    Where an earlier version left no mark, the completed jobs in it tell.

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
        kind = _read_world(connection) or _infer_world(connection) or wanted
        connection.exec_driver_sql(f"PRAGMA application_id = {kind}")
        connection.exec_driver_sql("COMMIT")
    if kind != wanted:
        raise ServiceError(ErrorCode.UNAVAILABLE, _explain_refusal(data_dir, sandbox=sandbox))


def _explain_refusal(data_dir: Path, *, sandbox: bool) -> str:
    if sandbox:
        return (
            f"The data directory {data_dir} holds real work, which the sandbox's may not be mixed"
            " with: name another one (data_dir, --data-dir) for the sandbox."
        )
    return (
        f"The data directory {data_dir} is the sandbox's: open it with sandbox=True (--sandbox),"
        " or name another one (data_dir, --data-dir) for real work."
    )


def _read_world(connection: Connection) -> int | None:
    kind = int(connection.exec_driver_sql("PRAGMA application_id").scalar_one())
    return kind if kind in (SANDBOX_WORLD, LIVE_WORLD) else None


def _infer_world(connection: Connection) -> int | None:
    """Infer a directory's world from its jobs; None where they do not tell."""
    simulated, used = connection.exec_driver_sql(_USAGE_SQL).one()
    if simulated == used:
        return SANDBOX_WORLD if used else None
    return LIVE_WORLD if not simulated else None
