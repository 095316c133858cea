"""Modes of the files of a data directory and of its backups."""

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands import run_toolkit, say
from tests.support.timing import wait_until
from toolkit import Client
from toolkit.store.private_files import make_data_dir_private

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")
LARGE = b"tea " * 4096  # too large for a row, so stored in a file


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=lambda mask: f"umask {mask:03o}")
def _umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def list_loose(folder: Path) -> list[str]:
    """List the paths of a folder, with their modes, to which other users have access."""
    paths = [folder, *folder.rglob("*")]
    assert len(paths) > 3
    modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in paths}
    return [
        f"{mode:o} {path}"
        for path, mode in modes.items()
        if mode != (0o700 if path.is_dir() else 0o600)
    ]


def work(client: Client) -> None:
    """Write rows, a log and files of artifacts."""
    client.artifacts.upload(b"small")
    client.artifacts.upload(LARGE + os.urandom(8))
    client.runs.create("llm.generate", {"objective": "Tides"}).wait(progress=False)
    client.runs.create("composition.layout", {"title": "Tides"}).wait(progress=False)


@pytest.mark.sqlite("a database of PostgreSQL is backed up by its address")
@pytest.mark.usefixtures("_umask")
def test_only_the_owner_reads_files(tmp_path: Path) -> None:
    """Given any umask, then only the owner may read the directory, its files and its backups.

    The same applies to later files: logs, artifacts, and files of a backup in use.
    """
    data_dir, backup = tmp_path / "deep" / "data", tmp_path / "copies" / "backup"
    with Client.local(data_dir, sandbox=True) as client:
        assert list_loose(data_dir) == []
        work(client)
        assert (data_dir / "state.db-wal").exists()
        assert list_loose(data_dir) == []
    assert list_loose(data_dir) == []

    (tmp_path / "copies").mkdir()
    say("backup", backup, "--data-dir", data_dir)
    assert list_loose(backup) == []
    with Client.local(backup, sandbox=True, take_up=True) as client:
        work(client)
        assert list_loose(backup) == []


@pytest.mark.sqlite("PostgreSQL repairs its own files")
@pytest.mark.usefixtures("_umask")
def test_only_the_owner_reads_a_repaired_database(tmp_path: Path) -> None:
    """Given a repaired database, then the new file is private."""
    data_dir = tmp_path / "data"
    with Client.local(data_dir, sandbox=True) as client:
        work(client)
    with (data_dir / "state.db").open("r+b") as file:
        file.seek(3 * 4096)
        file.write(b"\xff" * 4096)
    run_toolkit("doctor", "--repair", "--data-dir", data_dir)
    assert list(data_dir.glob("state.db.damaged-*"))
    assert list_loose(data_dir) == []


@pytest.mark.sqlite("the directory of a database of PostgreSQL has fewer files")
def test_makes_a_readable_directory_private(tmp_path: Path) -> None:
    """Given a directory that other users may read, when opened, then it becomes private.

    Files behind a symbolic link keep their modes.
    """
    data_dir, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    with Client.local(data_dir, sandbox=True) as client:
        work(client)
    elsewhere.mkdir(mode=0o755)
    (data_dir / "artifacts").rename(elsewhere / "artifacts")
    (data_dir / "artifacts").symlink_to(elsewhere / "artifacts")
    for path in (data_dir, *data_dir.rglob("*"), elsewhere / "artifacts"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    with Client.local(data_dir, sandbox=True) as client:
        (data_dir / "artifacts").unlink()
        assert list_loose(data_dir) == []
        assert stat.S_IMODE((elsewhere / "artifacts").stat().st_mode) == 0o755
        assert client.runs.list()


def test_ignores_a_file_that_another_process_deletes(tmp_path: Path) -> None:
    """Given a log that other processes create and delete, then the directory becomes private."""
    log, is_over = tmp_path / "state.db-wal", threading.Event()

    def open_and_close() -> None:
        while not is_over.is_set():
            log.touch()
            log.unlink()

    thread = threading.Thread(target=open_and_close)
    thread.start()
    try:
        for _ in range(3_000):
            make_data_dir_private(tmp_path)
    finally:
        is_over.set()
        thread.join()


def test_files_are_private_from_their_creation(tmp_path: Path) -> None:
    """Given work in progress, then other users may read no file at any moment."""
    data_dir = tmp_path / "data"
    before = os.umask(0)
    try:
        with Client.local(data_dir, sandbox=True) as client:
            runs = [
                client.runs.create("composition.layout", {"title": f"Tide {n}"}) for n in range(8)
            ]
            loose: list[str] = []

            def is_over() -> bool:
                for path in data_dir.rglob("*"):
                    try:
                        mode = stat.S_IMODE(path.lstat().st_mode)
                    except FileNotFoundError:
                        continue
                    if mode & 0o077:
                        loose.append(f"{mode:o} {path}")
                return all(run.refresh().done for run in runs)

            wait_until(is_over, "all runs end")
    finally:
        os.umask(before)
    assert loose == []


@pytest.mark.sqlite("the file of its rows")
def test_unrelated_files_keep_their_modes(tmp_path: Path) -> None:
    """Given a folder with unrelated files of similar names, then these keep their modes."""
    tmp_path.chmod(0o755)
    names = ("placeholder.png", "owners.csv", "artifacts.zip")
    for name in names:
        (tmp_path / name).write_text("mine")
        (tmp_path / name).chmod(0o644)
    Client.local(tmp_path, sandbox=True).close()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert {modes[name] for name in names} == {0o644}
    assert modes["state.db"] == 0o600
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
