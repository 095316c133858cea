"""Modes of the files of a data directory and of its backups, as the system has them."""

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support.timing import wait_until
from toolkit import Client
from toolkit.cli import app
from toolkit.store.private_files import make_data_dir_private

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")
LARGE = b"tea " * 4096  # too large for its record's row, so a file of its own


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=lambda mask: f"umask {mask:03o}")
def _umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def list_loose(folder: Path) -> list[str]:
    """List the modes of a folder, and of all that is in it, that are not its owner's alone."""
    found = [folder, *folder.rglob("*")]
    assert len(found) > 3
    wanted = {path: 0o700 if path.is_dir() else 0o600 for path in found}
    modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in found}
    return [f"{modes[path]:o} {path}" for path in found if modes[path] != wanted[path]]


def work(client: Client) -> None:
    """Have an engine write rows, a log, and files of artifacts."""
    client.artifacts.upload(b"small")
    client.artifacts.upload(LARGE + os.urandom(8))
    client.runs.create("llm.generate", {"objective": "Tides"}).wait(progress=False)
    client.runs.create("composition.layout", {"title": "Tides"}).wait(progress=False)


@pytest.mark.sqlite("a database of PostgreSQL is backed up by its address")
@pytest.mark.usefixtures("_umask")
def test_files_are_their_owners_alone(tmp_path: Path) -> None:
    """Given any umask, then the directory, its files and backups are readable by their owner only.

    So are files that come later: logs, artifacts, those of a backup, and of a backup that is used.
    """
    data_dir, backup = tmp_path / "deep" / "data", tmp_path / "copies" / "backup"
    with Client.local(data_dir, sandbox=True) as client:
        assert list_loose(data_dir) == []
        work(client)
        assert (data_dir / "state.db-wal").exists()
        assert list_loose(data_dir) == []
    assert list_loose(data_dir) == []

    (tmp_path / "copies").mkdir()
    made = CliRunner().invoke(app, ["backup", str(backup), "--data-dir", str(data_dir)])
    assert made.exit_code == 0, made.output
    assert list_loose(backup) == []
    with Client.local(backup, sandbox=True, take_up=True) as client:
        work(client)
        assert list_loose(backup) == []


@pytest.mark.sqlite("PostgreSQL repairs its own files")
@pytest.mark.usefixtures("_umask")
def test_a_repaired_database_is_its_owners_alone(tmp_path: Path) -> None:
    """Given a database that is saved into a new one, then the new one is as private."""
    data_dir = tmp_path / "data"
    with Client.local(data_dir, sandbox=True) as client:
        work(client)
    with (data_dir / "state.db").open("r+b") as file:
        file.seek(3 * 4096)
        file.write(b"\xff" * 4096)
    command = ["doctor", "--repair", "--data-dir", str(data_dir)]
    CliRunner().invoke(app, command)
    assert list(data_dir.glob("state.db.damaged-*"))
    assert list_loose(data_dir) == []


@pytest.mark.sqlite("the directory of a database of PostgreSQL has fewer files")
def test_a_loose_directory_is_made_private(tmp_path: Path) -> None:
    """Given a directory that others may read, when it is opened, then it is its owner's alone.

    Files that a link leads to keep their modes.
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


def test_a_file_that_another_process_deletes_meanwhile_is_left_out(tmp_path: Path) -> None:
    """Given a log that comes and goes as others open and close the database, then it opens."""
    log, is_over = tmp_path / "state.db-wal", threading.Event()

    def open_and_close() -> None:
        while not is_over.is_set():
            log.touch()
            log.unlink()

    others = threading.Thread(target=open_and_close)
    others.start()
    try:
        for _ in range(3_000):
            make_data_dir_private(tmp_path)
    finally:
        is_over.set()
        others.join()


def test_an_upload_that_is_under_way_is_private(tmp_path: Path) -> None:
    """Given work that is under way, then at no moment is a file there that others may read."""
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
def test_files_of_others_with_similar_names_keep_their_modes(tmp_path: Path) -> None:
    """Given a folder with a data directory and other files, then only its own become private."""
    tmp_path.chmod(0o755)
    for name in ("placeholder.png", "owners.csv", "artifacts.zip"):
        (tmp_path / name).write_text("mine")
        (tmp_path / name).chmod(0o644)
    with Client.local(tmp_path, sandbox=True):
        pass
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert {modes[name] for name in ("placeholder.png", "owners.csv", "artifacts.zip")} == {0o644}
    assert modes["state.db"] == 0o600
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
