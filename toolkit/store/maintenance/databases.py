"""What an operator's commands do with a database of PostgreSQL, whose driver is an extra."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from toolkit.store.blob_places.copying import BlobCopy
from toolkit.store.blob_places.place import BlobPlace
from toolkit.store.data_dir.location import find_database
from toolkit.store.extras import needs_postgres
from toolkit.store.maintenance.backup import BackupResult
from toolkit.store.maintenance.doctor import DataDirIssue
from toolkit.store.maintenance.prune import PruneResult, prune_records
from toolkit.store.read_connection import Row
from toolkit.store.schema import SchemaVersion
from toolkit.store.sqlite.database import migrate_data_dir


def check_database(url: str) -> None:
    """Check that a database has the tables of the toolkit.

    Args:
        url: its address.

    Raises:
        ServiceError: `UNAVAILABLE` when it has none, or those of a later version.
    """
    with needs_postgres():
        from toolkit.store.postgres.opening import open_existing
    with open_existing(url):
        pass


def bring_up_to_date(data_dir: Path, url: str | None) -> SchemaVersion:
    """Run the missing migrations, or make the tables of a database that has none.

    Args:
        data_dir: the directory whose database it is, unless there is an address.
        url: the address of a database of PostgreSQL.

    Returns:
        the version of the tables from then on.

    Raises:
        ServiceError: `UNAVAILABLE` when that cannot be done now, or not by this version.
    """
    if url is None:
        return migrate_data_dir(find_database(data_dir).parent)
    with needs_postgres():
        from toolkit.store.postgres.opening import migrate_database
    return migrate_database(url)


def examine_database(
    url: str, place: BlobPlace, *, deep: bool, repair: bool
) -> tuple[list[str], list[DataDirIssue]]:
    """Examine a database, and make the repairs that are possible if that is asked for.

    Args:
        url: its address.
        place: of its artifacts' bytes.
        deep: also read all of them.
        repair: make the repairs first.

    Returns:
        a line for each repair, and what is wrong then.

    Raises:
        ServiceError: `UNAVAILABLE` when it cannot be used, or is of another version.
    """
    with needs_postgres():
        from toolkit.store.postgres.upkeep.checks import check_postgres, repair_postgres
    done = repair_postgres(url, place) if repair else []
    return done, check_postgres(url, place, deep=deep)


def prune_database(
    url: str, older_than: timedelta, place: BlobPlace, *, dry_run: bool
) -> PruneResult:
    """Delete what ended long ago in a database (`prune_records`).

    Args:
        url: its address.
        older_than: counted from when the work was asked for.
        place: of its artifacts' bytes.
        dry_run: only return what would be deleted.

    Raises:
        ServiceError: `UNAVAILABLE` when it cannot be used, or its artifacts are elsewhere.
    """
    with needs_postgres():
        from toolkit.store.postgres.upkeep.database import PostgresUpkeep
    with PostgresUpkeep.open(url) as database:
        return prune_records(database, older_than, place, dry_run=dry_run)


def read_managed_resources_of(url: str) -> dict[str, list[Row]]:
    """Read the rows of connections and of managed resources in a database, by table.

    Args:
        url: its address.

    Raises:
        ServiceError: `UNAVAILABLE` when it cannot be read, or is of another version.
    """
    with needs_postgres():
        from toolkit.store.postgres.upkeep.checks import read_managed_rows
    return read_managed_rows(url)


def back_up_database(url: str, target: Path, place: BlobPlace) -> BackupResult:
    """Copy a database, and its artifacts' bytes, while engines use both.

    Args:
        url: its address.
        target: the new directory.
        place: of its artifacts' bytes.

    Raises:
        ServiceError: `UNAVAILABLE` when it cannot be used, there is no pg_dump, or `target` exists.
    """
    with needs_postgres():
        from toolkit.store.postgres.upkeep.dumping import back_up_postgres
    return back_up_postgres(url, target, place)


def move_artifacts_of(
    url: str, sources: Sequence[BlobPlace], target: BlobPlace, *, may_be_lost: bool = False
) -> BlobCopy:
    """Move the artifacts of a database to another place, which it remembers from then on.

    Args:
        url: its address; no engine has it open.
        sources: where they have been, and then where else they may be.
        target: where they are from now on.
        may_be_lost: whether some of them may be lost.

    Raises:
        ServiceError: `UNAVAILABLE` when one of them cannot be used, an engine is running, or bytes
            are lost.
    """
    with needs_postgres():
        from toolkit.store.postgres.upkeep.artifact_moving import move_artifacts
    return move_artifacts(url, sources, target, may_be_lost=may_be_lost)
