"""What an operator's commands do with a database of PostgreSQL, whose driver is an extra."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.blob_places.place import BlobPlace
from toolkit.store.data_dir.location import find_database
from toolkit.store.maintenance.doctor import DataDirIssue
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
        from toolkit.store.postgres.checks import check_postgres, repair_postgres
    done = repair_postgres(url) if repair else []
    return done, check_postgres(url, place, deep=deep)


@contextmanager
def needs_postgres() -> Iterator[None]:
    """Explain a failed import of what the extra installs.

    Raises:
        ServiceError: `UNAVAILABLE` where it is not installed.
    """
    try:
        yield
    except ImportError as error:
        raise ServiceError(
            ErrorCode.UNAVAILABLE,
            "PostgreSQL needs the extra `postgres`: pip install 'capability-toolkit[postgres]'.",
        ) from error
