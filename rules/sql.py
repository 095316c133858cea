"""What the rule of `sql.yaml` finds, and what it leaves alone."""

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
