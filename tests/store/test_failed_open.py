"""A failed open leaves no open file and no thread."""

import gc
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from toolkit import Client
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.blob_places.folder import BlobFolder
from toolkit.store.maintenance.prune import prune_records
from toolkit.store.sqlite.upkeep import SqliteUpkeep

OPEN_FILES = Path("/proc/self/fd")
pytestmark = [
    pytest.mark.sqlite("the files of a directory"),
    pytest.mark.skipif(not OPEN_FILES.exists(), reason="needs /proc, which lists open files"),
]


def change(folder: Path, statement: str) -> None:
    """Change the database of a data directory that no process has open."""
    with closing(sqlite3.connect(folder / "state.db", isolation_level=None)) as database:
        database.execute(statement)


def make_newer(folder: Path) -> None:
    """Make the tables those of a later version."""
    change(folder, "UPDATE alembic_version SET version_num = '9999', oldest = '9999'")


def make_older(folder: Path) -> None:
    """Make the tables those of an unreleased version."""
    change(folder, "UPDATE alembic_version SET version_num = '0015'")


def overwrite(folder: Path) -> None:
    """Replace the database with other bytes."""
    (folder / "state.db").write_bytes(b"This is no database. " * 500)


def take_owners(folder: Path) -> None:
    """Replace the folder of owners with a file."""
    (folder / "owners").rmdir()
    (folder / "owners").write_text("")


def drop_leases(folder: Path) -> None:
    """Drop the table that the engine reads last."""
    change(folder, "DROP TABLE roots")


@contextmanager
def check_closed(folder: Path) -> Iterator[None]:
    """Check that a block is refused, and closes all files of a folder."""
    gc.disable()  # because a collection would close files that the code left open
    try:
        with pytest.raises(ServiceError) as refused:
            yield
        links = [link for link in OPEN_FILES.iterdir() if link.is_symlink()]
        assert not [link for link in links if link.readlink().is_relative_to(folder)]
    finally:
        gc.enable()
    assert refused.value.code is ErrorCode.UNAVAILABLE
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("damage", [make_newer, make_older, overwrite, take_owners, drop_leases])
def test_a_failed_open_closes_everything(damage: Callable[[Path], None], tmp_path: Path) -> None:
    """Given a damaged directory, when opened, then it is refused in one line, and closed."""
    folder = tmp_path / "data"
    Client.local(folder, sandbox=True).close()
    damage(folder)
    before = set(threading.enumerate())
    with check_closed(folder):
        Client.local(folder, sandbox=True)
    assert set(threading.enumerate()) <= before


def test_a_failed_prune_closes_the_database(tmp_path: Path) -> None:
    """Given a file that is no database, when pruned, then it is refused and closed."""
    overwrite(tmp_path)
    with check_closed(tmp_path), SqliteUpkeep.open(tmp_path) as database:
        prune_records(database, timedelta(days=1), BlobFolder(tmp_path / "artifacts"))
