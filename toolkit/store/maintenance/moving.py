"""The move of a data directory into a database of PostgreSQL, and of artifacts' bytes.

Rows are copied in the order of their keys, some hundred in a transaction. So an interrupted move
continues after the last copied row.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy import Boolean, Table

from toolkit.contract.errors import ServiceError
from toolkit.store.blob_places.ownership import PlaceFit
from toolkit.store.blob_places.place import BlobPlace
from toolkit.store.changes import make_unusable_error
from toolkit.store.data_dir.location import COPY_NUMBER, LIVE_WORLD, SANDBOX_WORLD
from toolkit.store.dialects import needs_postgres
from toolkit.store.maintenance.upkeep_database import UpkeepDatabase
from toolkit.store.read_connection import Row
from toolkit.store.sqlite.upkeep import SqliteUpkeep
from toolkit.store.stored_bytes import build_shortfall_query
from toolkit.store.tables import list_original_tables

if TYPE_CHECKING:
    from toolkit.store.postgres.upkeep import MoveTarget, PostgresUpkeep

from collections.abc import Iterable

from toolkit.store.content import compute_sha256

MOVED_NAME = "state.db.moved"
ROWS_PER_TRANSACTION: Final = 500
_NAME_LENGTH = 16
_ACCOUNTS_SQL = "SELECT min(id), min(created_at) FROM accounts"
# The account of an event is found by these.
_BEFORE_OTHERS: Final = ("roots", "workflows")
# Leases are counted by another clock, and their owners have ended.
_RELEASED: Final[dict[str, object]] = {"owner": None, "lease_until": 0.0}
_MAX_NAMED: Final = 3  # of a message


@dataclass(frozen=True, slots=True)
class MoveResult:
    """The result of a move.

    Attributes:
        rows: number of rows, all of which were compared.
        artifacts: number of artifacts whose bytes were read, and match their SHA-256.
        lost: SHA-256 of bytes that a record refers to, and that no place has intact.
    """

    rows: int
    copied: int
    artifacts: int
    lost: tuple[str, ...]


def move_data_dir(
    data_dir: Path,
    url: str,
    sources: Sequence[BlobPlace],
    target_place: BlobPlace,
    *,
    may_be_lost: bool = False,
) -> MoveResult:
    """Move a data directory into a database, or continue an interrupted move.

    Nothing is deleted. The directory's own database is set aside. Otherwise bytes that are stored
    in the directory from then on would look as if no record named them.

    Args:
        data_dir: data directory of the newest revision, which no process has open.
        url: address of a database without tables of the toolkit, or of the interrupted move.

    Raises:
        ServiceError: `UNAVAILABLE` if one of them cannot be used, or they differ afterwards.
            Also if bytes are lost; then nothing was written to either database.
    """
    with needs_postgres():
        from toolkit.store.postgres.schema import open_postgres
        from toolkit.store.postgres.upkeep import MoveTarget
    with SqliteUpkeep.open(data_dir) as source, open_postgres(url) as connection:
        if source.has_engines():
            raise make_unusable_error("A process has this data directory open; stop it first.")
        # Nobody else writes to it meanwhile.
        with source.begin():
            target = MoveTarget(connection, url, _compute_name(source))
            if source.is_copy() and not target.is_begun():
                raise make_unusable_error(
                    "It is a copy of another data directory, or was moved already: open it with"
                    " `toolkit serve --take-up` first."
                )
            target.check_free(target_place)
            moved = copy_blobs(
                source.list_digests(), sources, target_place, may_be_lost=may_be_lost
            )
            target.create_tables()
            copied = _copy_rows(source, target)
            rows = _compare_rows(source, target)
            world = source.fetch("PRAGMA application_id")[0][0]
            # Cut off from here on, it has open work that the database's engines go on with.
            source.run(f"PRAGMA user_version = {COPY_NUMBER}")
        target.end(target_place, sandbox={SANDBOX_WORLD: True, LIVE_WORLD: False}.get(world))
    for suffix in ("", "-wal", "-shm"):
        file = data_dir / f"state.db{suffix}"
        if file.exists():
            file.replace(data_dir / f"{MOVED_NAME}{suffix}")
    return MoveResult(rows, copied.total(), moved.artifacts, moved.lost)


def _compute_name(source: UpkeepDatabase) -> str:
    """Compute a name for a data directory from its first account; marks do not change it."""
    facts = repr(source.fetch(_ACCOUNTS_SQL)[0])
    return hashlib.sha256(facts.encode()).hexdigest()[:_NAME_LENGTH]


def _list_moved_tables() -> list[Table]:
    """List the tables whose rows are copied, in their order."""
    return sorted(
        list_original_tables(), key=lambda table: (table.name not in _BEFORE_OTHERS, table.name)
    )


def _iter_pages(
    database: UpkeepDatabase, table: Table, after: Row | None = None
) -> Iterator[list[Row]]:
    """Yield the rows of a table in the order of its keys, some at a time, without leases.

    Args:
        after: row after which to begin; None begins with the first row.
    """
    keys = [column.name for column in table.primary_key.columns]
    # Each database has its own index of texts.
    names = [column.name for column in table.columns if column.name != "text_number"]
    truths = [column.name for column in table.columns if isinstance(column.type, Boolean)]
    released = _RELEASED if table.name == "roots" else {}
    order = f"ORDER BY {', '.join(keys)} LIMIT {ROWS_PER_TRANSACTION}"
    behind = f"WHERE ({', '.join(keys)}) > ({', '.join(f':{key}' for key in keys)})"
    while True:
        clause, bounds = ("", {}) if after is None else (behind, {key: after[key] for key in keys})
        query = f"SELECT {', '.join(names)} FROM {table.name} {clause} {order}"  # noqa: S608
        page = [dict(zip(names, row, strict=True)) for row in database.fetch(query, **bounds)]
        if not page:
            return
        for row in page:
            row.update({name: bool(row[name]) for name in truths}, **released)
        yield page
        after = page[-1]


def _copy_rows(source: UpkeepDatabase, target: "MoveTarget") -> Counter[str]:
    """Copy the rows that the target of a move lacks; return how many, by table."""
    copied: Counter[str] = Counter()
    for table in _list_moved_tables():
        keys = [column.name for column in table.primary_key.columns]
        newest_first = ", ".join(f"{key} DESC" for key in keys)
        newest = target.fetch(
            f"SELECT {', '.join(keys)} FROM {table.name} ORDER BY {newest_first} LIMIT 1"  # noqa: S608
        )
        after = dict(zip(keys, newest[0], strict=True)) if newest else None
        for rows in _iter_pages(source, table, after):
            target.insert(table.name, rows)
            copied[table.name] += len(rows)
    return copied


def _compare_rows(source: UpkeepDatabase, target: UpkeepDatabase) -> int:
    """Compare all rows of two databases, and the target's sums; return the number of rows."""
    compared = 0
    for table in _list_moved_tables():
        old, new = (_digest_rows(database, table) for database in (source, target))
        if old != new:
            raise _make_difference(f"the rows of {table.name}")
        compared += old[0]
    if target.fetch(build_shortfall_query(target.kind)):
        raise _make_difference("the sums of bytes")
    return compared


def _digest_rows(database: UpkeepDatabase, table: Table) -> tuple[int, str]:
    """Count rows, and compute a digest of their values."""
    count, digest = 0, hashlib.sha256()
    for rows in _iter_pages(database, table):
        for row in rows:
            digest.update(repr([*row.values()]).encode())
        count += len(rows)
    return count, digest.hexdigest()


def _make_difference(subject: str) -> ServiceError:
    return make_unusable_error(
        f"After the move, {subject} differ from those of the data directory: empty the database,"
        " and move it again."
    )


def move_artifacts(
    database: "PostgresUpkeep",
    sources: Sequence[BlobPlace],
    target: BlobPlace,
    *,
    may_be_lost: bool = False,
) -> "BlobCopy":
    """Copy a database's artifacts to another place, check all of them, and record the place.

    Bytes that are there already are not copied again. So an interrupted move can continue, and a
    place that was restored or replicated is accepted as it is. Nothing is deleted.

    Args:
        database: database that no engine has open.
        sources: the previous places first, and then other places that may have the bytes.

    Raises:
        ServiceError: `UNAVAILABLE` if one of them cannot be used, an engine is running, or bytes
            are lost; the database then keeps its place.
    """
    if database.has_engines():
        raise make_unusable_error(
            "An engine has the database open: stop all engines, and wait some seconds if an engine"
            " was killed."
        )
    old, new = database.open_ownership(sources[0]), database.open_ownership(target)
    digests = database.list_digests()
    new.check(may_be_other=True)
    fit = old.check(may_be_other=True)
    # The old place may be gone for good: then the new place must have all bytes.
    if fit is PlaceFit.OTHER and {*digests} - {entry.digest for entry in target.list_entries()}:
        old.check()
    moved = copy_blobs(digests, sources, target, may_be_lost=may_be_lost)
    new.take(is_default=False)
    return moved


@dataclass(frozen=True, slots=True)
class BlobCopy:
    """The result of copying bytes.

    Attributes:
        artifacts: number of artifacts in the place whose bytes match their SHA-256.
        copied: number of artifacts that this call copied.
        lost: SHA-256 of each artifact that no place has, or whose bytes are damaged.
    """

    artifacts: int
    copied: int
    lost: tuple[str, ...]


def copy_blobs(
    digests: Iterable[str], sources: Sequence[BlobPlace], target: BlobPlace, *, may_be_lost: bool
) -> BlobCopy:
    """Copy the bytes that a place for artifacts lacks, then read all of them there to check them.

    Args:
        sources: places that may have the bytes; the first place with intact bytes is used.

    Raises:
        ServiceError: `UNAVAILABLE` if a place cannot be used, or bytes are lost that must not be.
    """
    present, copied, lost = 0, 0, []
    for digest in digests:
        if _read_whole(target, digest) is None:
            contents = (_read_whole(source, digest) for source in sources)
            data = next((content for content in contents if content is not None), None)
            if data is not None:
                target.write(digest, data)
            if data is None or _read_whole(target, digest) is None:
                lost.append(digest)
                continue
            copied += 1
        present += 1
    if lost and not may_be_lost:
        raise _make_lost_error(lost, [*sources, target])
    return BlobCopy(present, copied, tuple(lost))


def _read_whole(place: BlobPlace, sha256: str) -> bytes | None:
    """Read bytes; return None if they are absent or damaged."""
    try:
        data = place.read(sha256, 0, None)
    except FileNotFoundError:
        return None
    return data if compute_sha256(data) == sha256 else None


def _make_lost_error(lost: Sequence[str], places: Sequence[BlobPlace]) -> ServiceError:
    digests = ", ".join(lost[:_MAX_NAMED])
    suffix = f" and {len(lost) - _MAX_NAMED} more" if len(lost) > _MAX_NAMED else ""
    names = ", ".join(dict.fromkeys(place.name for place in places))
    return make_unusable_error(
        f"Nothing was moved: the bytes with SHA-256 {digests}{suffix} are lost or damaged in"
        f" {names}. Set TOOLKIT_ARTIFACT_URL to the place that has them, restore them from a"
        " backup, or move without them (--without-lost)."
    )
