"""A new database, rebuilt from the readable rows of a damaged database."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Table, create_engine

from toolkit.store.changes import make_unusable_error
from toolkit.store.data_dir.location import COPY_NUMBER, UNMARKED_NUMBER, is_copy
from toolkit.store.private_files import create_private_file
from toolkit.store.schema import HEAD_REVISION, check_not_later, migrate_schema, read_schema_version
from toolkit.store.sqlite.connections import open_read_only, translate_errors
from toolkit.store.stored_bytes import build_recount
from toolkit.store.tables import list_original_tables
from toolkit.store.text_index import index_missing

T = TypeVar("T")
# Roots whose records are lost.
_LOST_ROOTS = (
    "kind = 'run' AND id NOT IN (SELECT run_id FROM jobs WHERE run_id IS NOT NULL)",
    "kind = 'job' AND id NOT IN (SELECT id FROM jobs)",
    "kind = 'workflow' AND id NOT IN (SELECT id FROM workflows)",
    "kind = 'task' AND id NOT IN (SELECT id FROM tasks)",
)


def rebuild_database(database: Path) -> str:
    """Save all readable rows into a new database, and set the damaged database aside.

    Returns:
        A line with the numbers of saved rows.

    Raises:
        ServiceError: `UNAVAILABLE` if another version of the toolkit made it.
    """
    new = database.with_name("state.db.new")
    new.unlink(missing_ok=True)
    saved: Counter[str] = Counter()
    with closing(open_read_only(database)) as source:
        version = _read_or_default(lambda: read_schema_version(source), None)
        check_not_later(version)
        if version is not None and version.revision != HEAD_REVISION:
            raise make_unusable_error(
                "An earlier version of the toolkit made these tables: repair them with that"
                " version."
            )
        _create_database(new)
        with closing(sqlite3.connect(new)) as target:
            _copy_marks(database, source, target)
            for table in list_original_tables():
                names = [column.name for column in table.columns if column.name != "text_number"]
                insertion = f"INSERT OR IGNORE INTO {table.name} ({', '.join(names)}) VALUES "  # noqa: S608
                insertion += f"({', '.join('?' * len(names))})"
                for row in _read_intact_rows(source, table, names):
                    saved[table.name] += target.execute(insertion, row).rowcount
            lost = 0
            for condition in _LOST_ROOTS:
                deleted = target.execute(f"DELETE FROM roots WHERE {condition}")  # noqa: S608
                lost += deleted.rowcount
            for statement in build_recount("sqlite"):
                target.execute(statement)
            index_missing(target)
            target.commit()
    damaged_path = _put_in_place(new, database)
    rows = ", ".join(f"{count} {table}" for table, count in saved.items() if count)
    loss = f" The records of {lost} runs, workflows or tasks are lost." if lost else ""
    return (
        f"Saved {rows or 'nothing'} into a new database; the damaged database is"
        f" {damaged_path.name}.{loss}"
    )


def _create_database(path: Path) -> None:
    create_private_file(path)
    engine = create_engine(f"sqlite:///{path}")
    try:
        with translate_errors(), engine.connect() as connection:
            migrate_schema(connection)
    finally:
        engine.dispose()


def _copy_marks(database: Path, source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    """Copy the marks in the header, if readable: sandbox or real, and whether it is a copy."""

    def read_number(name: str) -> int:
        read = source.execute(f"PRAGMA {name}").fetchone
        return _read_or_default(lambda: int(read()[0]), 0)

    target.execute(f"PRAGMA application_id = {read_number('application_id')}")
    # A copy stays one. The original is known by its new file once it is opened again.
    copy = read_number("user_version") and _read_or_default(
        lambda: is_copy(database.parent, source), False
    )
    target.execute(f"PRAGMA user_version = {COPY_NUMBER if copy else UNMARKED_NUMBER}")


def _put_in_place(new: Path, database: Path) -> Path:
    """Give a new database its name; return the new path of the damaged database."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    damaged_path = database.with_name(f"state.db.damaged-{stamp}")
    database.replace(damaged_path)
    for suffix in ("-wal", "-shm"):
        log = database.with_name(database.name + suffix)
        if log.exists():
            log.replace(damaged_path.with_name(damaged_path.name + suffix))
    new.replace(database)
    return damaged_path


def _read_or_default(read: Callable[[], T], otherwise: T) -> T:
    """Read a value that may be on a damaged page, or return a default."""
    try:
        return read()
    except sqlite3.DatabaseError:
        return otherwise


def _read_intact_rows(
    source: sqlite3.Connection, table: Table, names: list[str]
) -> Iterator[tuple[object, ...]]:
    """Yield the readable rows of a table, from both ends up to the damage."""
    has_rowid = table.dialect_options["sqlite"]["with_rowid"]
    keys = ["rowid"] if has_rowid else table.primary_key.columns.keys()
    columns = ", ".join(names)
    for direction in ("ASC", "DESC"):
        order = ", ".join(f"{key} {direction}" for key in keys)
        select = f"SELECT {columns} FROM {table.name} NOT INDEXED ORDER BY {order}"  # noqa: S608
        try:
            yield from source.execute(select)
        except sqlite3.DatabaseError:
            continue
        return
