"""Examples for `sql.yaml`: a line below `ruleid` is found, one below `ok` is left alone."""

from sqlalchemy import text


def written(connection, table: str, value: str) -> None:
    # ruleid: no-composed-sql
    connection.execute(f"DELETE FROM {table}")
    # ruleid: no-composed-sql
    connection.execute("SELECT * FROM jobs WHERE id = " + value)
    # ruleid: no-composed-sql
    connection.execute("SELECT * FROM jobs WHERE id = '%s'" % value)
    # ruleid: no-composed-sql
    text(f"SELECT {value}")
    # ok: no-composed-sql
    connection.execute(f"DELETE FROM {table}")  # noqa: S608 - one of our own names
    # ok: no-composed-sql
    connection.execute("SELECT * FROM jobs WHERE id = ?", (value,))
