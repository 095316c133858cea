"""Checks of a data directory, and the repairs that are possible."""

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from shutil import disk_usage
from typing import TypeVar

from sqlalchemy import create_engine

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.accounting import COUNT_AGAIN, find_miscounted
from toolkit.store.blobs import place_of
from toolkit.store.database import is_writable, read_only, translated
from toolkit.store.directory import (
    COPY,
    UNMARKED,
    find_database,
    is_copy,
    kept_in_row,
    reading,
)
from toolkit.store.owner import living
from toolkit.store.prune import named, unnamed
from toolkit.store.reader import Reader, Row
from toolkit.store.schema import HEAD, migrate, read_revision

T = TypeVar("T")
RENTED = ("endpoints", "compute", "templates", "storage")
LITTLE_SPACE = 256 * 1024 * 1024
# In these versions two connections that checkpoint at once can corrupt a database: the toolkit has
# one do it, under a lock.
WAL_RESET = ((3, 7, 0), (3, 51, 2))

# The numbers in a database's header.
_HEADER = ("application_id", "user_version")
# Roots whose records are lost.
_LOST = (
    "kind = 'run' AND id NOT IN (SELECT run_id FROM jobs WHERE run_id IS NOT NULL)",
    "kind = 'job' AND id NOT IN (SELECT id FROM jobs)",
    "kind = 'workflow' AND id NOT IN (SELECT id FROM workflows)",
    "kind = 'task' AND id NOT IN (SELECT id FROM tasks)",
)


@dataclass(frozen=True, slots=True)
class Finding:
    """An issue of a data directory that its owner should know of.

    Attributes:
        what: the issue, in one line.
        repair: the repair that `repair_data_dir` makes; None where none is possible or needed.
        serious: true if something is, or will be, lost or refused.
    """

    what: str
    repair: str | None = None
    serious: bool = True


def examine(data_dir: Path, *, deep: bool = False) -> list[Finding]:
    """Check a data directory without changing anything.

    Args:
        data_dir: where everything is kept.
        deep: also read every artifact's bytes, and check them against their SHA-256.

    Raises:
        ServiceError: `UNAVAILABLE` when there is no data directory.
    """
    database = find_database(data_dir)
    found = [*_about_the_machine(data_dir)]
    faults = _faults(database)
    if faults:
        found.append(
            Finding(
                f"The database is damaged: {faults[0]}"
                + (f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""),
                "save what can be read into a new database, and keep the damaged one",
            )
        )
        return found
    with reading(database) as connection:
        found += _about_the_records(data_dir, connection)
        found += _about_the_bytes(data_dir, connection, deep=deep)
    return found


def repair(data_dir: Path) -> list[str]:
    """Make the repairs that `check_data_dir` offers, and nothing else.

    Returns:
        a line for each repair that was made.

    Raises:
        ServiceError: `UNAVAILABLE` when there is none, or another process has it open.
    """
    database = find_database(data_dir)
    if living(data_dir):
        raise ServiceError(
            ErrorCode.UNAVAILABLE, "A process has this data directory open; stop it first."
        )
    done: list[str] = []
    if _faults(database):
        done.append(_rebuilt(database))
    with reading(database) as connection:
        files = list(unnamed(data_dir, named(connection)))
    for path in files:
        path.unlink()
    if files:
        done.append(f"Deleted {len(files)} files that no record names.")
    if _count_again(database):
        done.append("Counted again what accounts keep.")
    locks = list((data_dir / "owners").glob("*.lock"))
    for path in locks:
        path.unlink()
    if locks:
        done.append(f"Deleted the lock files of {len(locks)} processes that have gone.")
    return done


def _count_again(database: Path) -> bool:
    """Recompute wrong sums of stored bytes; return whether there were any."""
    with translated(), closing(sqlite3.connect(database)) as connection:
        made = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        if made is None or made[0] != HEAD or not find_miscounted(connection):
            return False
        for statement in COUNT_AGAIN:
            connection.execute(statement)
        connection.commit()
    return True


def _about_the_machine(data_dir: Path) -> Iterator[Finding]:
    free = disk_usage(data_dir).free
    if not is_writable(data_dir):
        yield Finding(
            "Nothing can be written to it from here: it can only be looked at (--read-only).",
            serious=False,
        )
    elif free < LITTLE_SPACE:
        yield Finding(f"Only {free // 1024**2} MB are free on its disk: new work may be refused.")
    version = sqlite3.sqlite_version_info
    if WAL_RESET[0] <= version <= WAL_RESET[1]:
        yield Finding(
            f"SQLite {sqlite3.sqlite_version} can corrupt a database that two connections"
            " checkpoint at once; the toolkit has one do it, so open it with nothing else.",
            serious=False,
        )


def _about_the_records(data_dir: Path, connection: sqlite3.Connection) -> Iterator[Finding]:
    copy = is_copy(data_dir, connection)
    if copy:
        yield Finding(
            "It is a copy of another data directory: what was left lying in it is held, and nothing"
            " at GPU clouds is touched, until `toolkit serve --take-up`.",
            serious=False,
        )
    (revision,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    if revision != HEAD:
        yield Finding(
            f"It is of revision {revision}, and is brought to {HEAD} when it is next opened.",
            serious=False,
        )
    elif miscounted := find_miscounted(connection):
        yield Finding(
            f"What {len(miscounted)} accounts keep is not summed up right.",
            "count it again",
            serious=False,
        )
    alive = living(data_dir)
    owners = Counter(
        owner in alive for (owner,) in connection.execute("SELECT owner FROM roots WHERE open")
    )
    if owners[False]:
        goes_on = (
            "they are held" if copy else "the next one to open the directory goes on with them"
        )
        yield Finding(
            f"{owners[False]} runs, workflows or tasks were left by a process that has gone;"
            f" {goes_on}.",
            serious=False,
        )
    for table in _present(connection, RENTED):
        rows = connection.execute(
            f"SELECT id FROM {table} WHERE status = 'deleting'"  # noqa: S608
            " OR status = 'creating' AND vendor_id IS NULL"
        )
        for (record_id,) in rows:
            yield Finding(
                f"`{record_id}` was being made or deleted at its vendor: open the directory with"
                " that connection, and it is settled.",
                serious=not alive and not copy,
            )
    dead = {path.stem for path in (data_dir / "owners").glob("*.lock")} - alive
    if dead:
        yield Finding(f"{len(dead)} processes have gone.", "delete their lock files", serious=False)


def rented(data_dir: Path) -> dict[str, list[Row]]:
    """Read the rows of connections and of managed resources, by table.

    Raises:
        ServiceError: `UNAVAILABLE` when the database cannot be read.
    """
    with reading(find_database(data_dir)) as connection:
        reader = Reader(connection)
        made = set(_present(connection, RENTED))
        tables = {table: reader.find(table) if table in made else [] for table in RENTED}
        return {**tables, "connections": reader.find("connections")}


def _present(connection: sqlite3.Connection, tables: Iterable[str]) -> list[str]:
    """Return those tables that the database has; an earlier version may lack some."""
    names = set(_tables(connection))
    return [table for table in tables if table in names]


def _about_the_bytes(
    data_dir: Path, connection: sqlite3.Connection, *, deep: bool
) -> Iterator[Finding]:
    digests = set()
    for sha256, doc, small in connection.execute(
        f"SELECT sha256, doc, {kept_in_row(connection)} FROM artifacts WHERE NOT deleted"  # noqa: S608
    ):
        digests.add(sha256)
        artifact = json.loads(doc)
        trouble = None if small else _trouble(data_dir, sha256, artifact["size_bytes"], deep=deep)
        if trouble:
            yield Finding(f"The bytes of `{artifact['id']}` are {trouble}; restore a backup.")
    left = sum(1 for _ in unnamed(data_dir, digests))
    if left:
        yield Finding(f"{left} files are named by no record.", "delete them", serious=False)


def _trouble(data_dir: Path, sha256: str, size: int, *, deep: bool) -> str | None:
    path = data_dir / "artifacts" / place_of(sha256)
    if not path.exists():
        return "not there" if (data_dir / "artifacts").exists() else None  # kept elsewhere
    if path.stat().st_size != size:
        return "not whole"
    if deep and hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
        return "damaged"
    return None


def _faults(database: Path) -> list[str]:
    """Return the errors that SQLite finds in its file."""
    try:
        with closing(read_only(database)) as connection:
            rows = connection.execute("PRAGMA integrity_check(20)").fetchall()
    except sqlite3.DatabaseError as error:
        return [str(error)]
    return [str(row[0]) for row in rows if row[0] != "ok"]


def _rebuilt(database: Path) -> str:
    """Save all readable rows into a new database, and set the damaged one aside."""
    new = database.with_name("state.db.new")
    new.unlink(missing_ok=True)
    saved: Counter[str] = Counter()
    with closing(read_only(database)) as source:
        revision = _read_or(lambda: read_revision(source), None) or HEAD
        application_id, number = (_read_or(partial(_header, source, name), 0) for name in _HEADER)
        engine = create_engine(f"sqlite:///{new}")
        try:
            with translated(), engine.connect() as connection:
                migrate(connection, revision)
        finally:
            engine.dispose()
        with closing(sqlite3.connect(new)) as target:
            target.execute(f"PRAGMA application_id = {application_id}")
            # A copy stays one. The original is known by its new file once it is opened again.
            copy = number and _read_or(lambda: is_copy(database.parent, source), False)
            target.execute(f"PRAGMA user_version = {COPY if copy else UNMARKED}")
            for table in _tables(target):
                there = _columns(source, table)
                names = [name for name in _columns(target, table) if name in there]
                into = f"INSERT OR IGNORE INTO {table} ({', '.join(names)}) VALUES "  # noqa: S608
                into += f"({', '.join('?' * len(names))})"
                for row in _readable(source, table, names):
                    saved[table] += target.execute(into, row).rowcount
            lost = sum(target.execute(f"DELETE FROM roots WHERE {one}").rowcount for one in _LOST)  # noqa: S608
            for statement in COUNT_AGAIN if revision == HEAD else ():
                target.execute(statement)
            target.commit()
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    aside = database.with_name(f"state.db.damaged-{stamp}")
    database.replace(aside)
    for suffix in ("-wal", "-shm"):
        log = database.with_name(database.name + suffix)
        if log.exists():
            log.replace(aside.with_name(aside.name + suffix))
    new.replace(database)
    told = ", ".join(f"{count} {table}" for table, count in saved.items() if count)
    gone = f" The records of {lost} runs, workflows or tasks are lost." if lost else ""
    return f"Saved {told or 'nothing'} into a new database; the damaged one is {aside.name}.{gone}"


def _read_or(read: Callable[[], T], otherwise: T) -> T:
    """Read a value that may be on a damaged page, or return a default."""
    try:
        return read()
    except sqlite3.DatabaseError:
        return otherwise


def _header(source: sqlite3.Connection, name: str) -> int:
    return int(source.execute(f"PRAGMA {name}").fetchone()[0])


def _tables(connection: sqlite3.Connection) -> list[str]:
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return [str(name) for (name,) in found if name != "alembic_version"]


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    def read() -> list[str]:
        return [str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")]

    return _read_or(read, [])


def _readable(
    source: sqlite3.Connection, table: str, names: list[str]
) -> Iterator[tuple[object, ...]]:
    """Yield the readable rows of a table, from both ends up to where it is damaged."""
    for order in _orders(source, table):
        try:
            yield from source.execute(
                f"SELECT {', '.join(names)} FROM {table} NOT INDEXED {order}"  # noqa: S608
            )
        except sqlite3.DatabaseError:
            continue
        return


def _orders(source: sqlite3.Connection, table: str) -> tuple[str, str]:
    key = "rowid" if _has_rowid(source, table) else "resource_id, n"
    last = ", ".join(f"{each} DESC" for each in key.split(", "))
    return f"ORDER BY {key}", f"ORDER BY {last}"


def _has_rowid(source: sqlite3.Connection, table: str) -> bool:
    try:
        source.execute(f"SELECT rowid FROM {table} LIMIT 0")  # noqa: S608
    except sqlite3.DatabaseError:
        return False
    return True
