"""The move of a data directory into a database of PostgreSQL, with its artifacts' bytes."""

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.blob_places.copying import copy_blobs
from toolkit.store.blob_places.place import BlobPlace
from toolkit.store.data_dir.location import COPY_NUMBER, find_database, is_copy
from toolkit.store.data_dir.owners import find_active_owners
from toolkit.store.data_dir.world import LIVE_WORLD, SANDBOX_WORLD
from toolkit.store.extras import needs_postgres
from toolkit.store.read_statements import STORED_DIGESTS_SQL
from toolkit.store.schema import check_not_later, read_schema_version
from toolkit.store.sqlite.connections import BUSY_TIMEOUT_MS, translate_errors

MOVED_NAME = "state.db.moved"
_NAME_LENGTH = 16
_ACCOUNTS_SQL = "SELECT min(id), min(created_at) FROM accounts"


@dataclass(frozen=True, slots=True)
class MoveResult:
    """The result of a move.

    Attributes:
        rows: how many there are, all of which were compared.
        copied: how many of them this call copied.
        artifacts: how many artifacts' bytes were read, and fit their SHA-256.
        lost: the SHA-256 of bytes that a record refers to, and that were in no place, or damaged.
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
    """Move a data directory into a database, or go on with a move that was interrupted.

    Nothing is deleted. The directory's own database is set aside, so that what is stored in the
    directory from then on is not taken for what no record names.

    Args:
        data_dir: of the newest revision; nobody has it open.
        url: of a database without tables of the toolkit, or the one of the interrupted move.
        sources: where its artifacts' bytes may be.
        target_place: where they are from then on.
        may_be_lost: whether some of them may be lost.

    Raises:
        ServiceError: `UNAVAILABLE` when one of them cannot be used, they differ afterwards, or
            bytes are lost, before which nothing is written to either database.
    """
    with needs_postgres():
        from toolkit.store.postgres.artifact_place import check_unclaimed, set_artifact_place
        from toolkit.store.postgres.opening import open_postgres
        from toolkit.store.postgres.upkeep.moving import RowMove
    database = find_database(data_dir, newest=True)
    if find_active_owners(data_dir):
        raise ServiceError(
            ErrorCode.UNAVAILABLE, "A process has this data directory open; stop it first."
        )
    with _open_source(database) as source, open_postgres(url) as target:
        move = RowMove(source, target, _compute_name(source))
        if is_copy(data_dir, source) and not move.is_begun:
            raise ServiceError(
                ErrorCode.UNAVAILABLE,
                "It is a copy of another data directory, or was moved already: go on with it by"
                " `toolkit serve --take-up` first.",
            )
        move.check_free()
        check_unclaimed(target, target_place)
        digests = [str(row[0]) for row in source.execute(STORED_DIGESTS_SQL).fetchall()]
        moved = copy_blobs(digests, sources, target_place, may_be_lost=may_be_lost)
        move.begin()
        copied = move.copy_rows()
        rows = move.verify()
        (world,) = source.execute("PRAGMA application_id").fetchone()
        # Cut off from here on, it has open work that the database's engines go on with.
        source.execute(f"PRAGMA user_version = {COPY_NUMBER}")
        source.execute("COMMIT")
        set_artifact_place(target, target_place)
        move.end(sandbox={SANDBOX_WORLD: True, LIVE_WORLD: False}.get(world))
    for suffix in ("", "-wal", "-shm"):
        file = database.with_name(database.name + suffix)
        if file.exists():
            file.replace(database.with_name(f"{MOVED_NAME}{suffix}"))
    return MoveResult(rows, copied.total(), moved.artifacts, moved.lost)


@contextmanager
def _open_source(database: Path) -> Iterator[sqlite3.Connection]:
    """Open a database that nobody else writes to meanwhile."""
    with translate_errors(), closing(sqlite3.connect(database, isolation_level=None)) as source:
        source.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        source.execute("BEGIN IMMEDIATE")
        check_not_later(read_schema_version(source))
        yield source


def _compute_name(source: sqlite3.Connection) -> str:
    """Compute a name of a directory that stays when it is marked as a copy."""
    facts = repr(source.execute(_ACCOUNTS_SQL).fetchone())
    return hashlib.sha256(facts.encode()).hexdigest()[:_NAME_LENGTH]
