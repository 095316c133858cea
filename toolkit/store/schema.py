"""Brings a data directory to the newest schema, and refuses one that is newer still."""

from importlib import import_module
from pathlib import Path

from sqlalchemy import Connection, text

from toolkit.contract.errors import ErrorCode, ServiceError

HEAD = "0008"
MIGRATIONS = Path(__file__).parent / "migrations"


def migrate(connection: Connection, to: str = HEAD) -> None:
    """Run the migrations that are missing; alembic is only imported when there are any.

    Args:
        connection: to the database, in no transaction.
        to: the revision to come to.

    Raises:
        ServiceError: `UNAVAILABLE` when a later version of the toolkit made the directory.
    """
    known = {path.name[:4] for path in (MIGRATIONS / "versions").glob("[0-9]*.py")}
    current = _version(connection)
    if current == to:
        return
    if current is not None and current not in known:
        raise ServiceError(
            ErrorCode.UNAVAILABLE,
            "A later version of the toolkit made this data directory; use that version.",
        )
    command = import_module("alembic.command")
    config = import_module("alembic.config").Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    connection.exec_driver_sql("BEGIN EXCLUSIVE")
    # Another process may have been first, while this one waited for the lock.
    if _version(connection) != to:
        command.upgrade(config, to)
    if connection.in_transaction():
        connection.exec_driver_sql("COMMIT")


def _version(connection: Connection) -> str | None:
    made = connection.execute(
        text("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'")
    ).first()
    if made is None:
        return None
    row = connection.execute(text("SELECT version_num FROM alembic_version")).first()
    return None if row is None else str(row[0])
