"""A data directory belongs to the sandbox or to real work, and never holds both."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.database_pool import ON_POSTGRESQL
from toolkit import Client, ServiceError
from toolkit.store.blobs import open_place
from toolkit.store.maintenance.backup import create_backup
from toolkit.store.maintenance.doctor import repair_data_dir
from toolkit.store.sqlite.upkeep import SqliteUpkeep

LINE = {"objective": "One line on tea"}


def get_refusal(folder: Path, *, sandbox: bool) -> str:
    """Return the error of opening a directory."""
    with pytest.raises(ServiceError) as error:
        Client.local(folder, sandbox=sandbox)
    assert len(str(error.value).splitlines()) == 1
    assert ON_POSTGRESQL or str(folder) in str(error.value)
    return str(error.value)


def test_the_first_opener_decides_the_world(tmp_path: Path) -> None:
    """Given a directory of either world, then the other world is refused, and told what to do."""
    Client.local(tmp_path / "play", sandbox=True).close()
    Client.local(tmp_path / "work").close()
    assert "--sandbox" in get_refusal(tmp_path / "play", sandbox=False)
    assert "set another" in get_refusal(tmp_path / "work", sandbox=True)
    Client.local(tmp_path / "play", sandbox=True).close()
    Client.local(tmp_path / "work").close()


def test_refuses_real_work_next_to_an_open_sandbox(tmp_path: Path) -> None:
    """Given an open sandbox, then real work is refused its directory, and the sandbox goes on."""
    with Client.local(tmp_path, sandbox=True) as client:
        get_refusal(tmp_path, sandbox=False)
        assert client.runs.create("llm.generate", LINE).wait().status == "completed"


@pytest.mark.sqlite("the mark in a file's head")
def test_the_next_opener_marks_a_directory_without_a_mark(tmp_path: Path) -> None:
    """Given a directory without a mark, then its next opener decides the world."""
    Client.local(tmp_path / "empty", sandbox=True).close()
    with closing(sqlite3.connect(tmp_path / "empty" / "state.db")) as connection:
        connection.execute("PRAGMA application_id = 0")
    Client.local(tmp_path / "empty").close()
    get_refusal(tmp_path / "empty", sandbox=True)


@pytest.mark.sqlite("copies and repairs of a directory")
def test_copies_and_repairs_keep_the_world(tmp_path: Path) -> None:
    """Given a backup or a repaired database, then it belongs to the world of the original."""
    Client.local(tmp_path / "play", sandbox=True).close()
    place = open_place(tmp_path / "play", None)
    with SqliteUpkeep.view(tmp_path / "play") as records:
        create_backup(records, tmp_path / "copy", place)
    get_refusal(tmp_path / "copy", sandbox=False)
    database = tmp_path / "play" / "state.db"
    data = bytearray(database.read_bytes())
    data[8 * 4096 : 12 * 4096] = bytes(4 * 4096)
    database.write_bytes(data)
    repair_data_dir(tmp_path / "play", place)
    get_refusal(tmp_path / "play", sandbox=False)
