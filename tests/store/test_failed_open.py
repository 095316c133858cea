"""A failed open leaves nothing open: no file of the data directory, no thread."""

import gc
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from toolkit import Client
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.blob_places.folder import BlobFolder
from toolkit.store.maintenance.prune import prune_records
from toolkit.store.sqlite.upkeep import SqliteUpkeep

pytestmark = pytest.mark.sqlite("the files of a directory")

OPEN_FILES = Path("/proc/self/fd")


def change(folder: Path, statement: str) -> None:
    """Change a data directory that nobody has open."""
    with closing(sqlite3.connect(folder / "state.db", isolation_level=None)) as database:
        database.execute(statement)


def make_newer(folder: Path) -> None:
    """Make it a later version's."""
    change(folder, "UPDATE alembic_version SET version_num = '9999', oldest = '9999'")


def make_older(folder: Path) -> None:
    """Make it a version's that was never released."""
    change(folder, "UPDATE alembic_version SET version_num = '0015'")


def overwrite(folder: Path) -> None:
    """Put something else in the database's place."""
    (folder / "state.db").write_bytes(b"This is no database. " * 500)


def take_owners(folder: Path) -> None:
    """Put a file where the folder of owners is."""
    (folder / "owners").rmdir()
    (folder / "owners").write_text("")


def drop_leases(folder: Path) -> None:
    """Take away the table that the engine reads last."""
    change(folder, "DROP TABLE roots")


def files_open(folder: Path) -> list[str]:
    """The files below a folder that this process has open."""
    links = [link for link in OPEN_FILES.iterdir() if link.is_symlink()]
    found = [str(link.readlink()) for link in links]
    return [name for name in found if name.startswith(str(folder))]


@pytest.mark.skipif(not OPEN_FILES.exists(), reason="needs /proc, which tells of open files")
@pytest.mark.parametrize("damage", [make_newer, make_older, overwrite, take_owners, drop_leases])
def test_what_cannot_be_opened_leaves_nothing_open(
    damage: Callable[[Path], None], tmp_path: Path
) -> None:
    """Given a directory that cannot be used, when opened, then it is refused and let go of."""
    folder = tmp_path / "data"
    Client.local(folder, sandbox=True).close()
    damage(folder)
    before = set(threading.enumerate())
    gc.disable()  # what is left to the garbage collector was not let go of
    try:
        with pytest.raises(ServiceError) as refused:
            Client.local(folder, sandbox=True)
        assert files_open(folder) == []
    finally:
        gc.enable()
    assert refused.value.code is ErrorCode.UNAVAILABLE
    assert set(threading.enumerate()) <= before


@pytest.mark.skipif(not OPEN_FILES.exists(), reason="needs /proc, which tells of open files")
def test_what_cannot_be_pruned_is_let_go_of(tmp_path: Path) -> None:
    """Given a database that is none, when pruned, then it is refused and let go of."""
    overwrite(tmp_path)
    gc.disable()
    try:
        with pytest.raises(ServiceError), SqliteUpkeep.open(tmp_path) as database:
            prune_records(database, timedelta(days=1), BlobFolder(tmp_path / "artifacts"))
        assert files_open(tmp_path) == []
    finally:
        gc.enable()
