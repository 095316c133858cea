"""`toolkit doctor`, `prune` and `backup` where artifacts are in object storage."""

import json
import shutil
from pathlib import Path

import pytest
from s3fs import S3FileSystem

from tests.support.commands import run_toolkit
from toolkit import Client
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.settings import Settings

pytestmark = pytest.mark.sqlite("upkeep of a directory")

DATA = b"leaf" * 5_000


@pytest.fixture
def folder(
    settings: Settings, s3_url: str, s3_server: str, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A data directory with an artifact in object storage, which the environment names."""
    monkeypatch.setenv("TOOLKIT_ARTIFACT_URL", s3_url)
    monkeypatch.setenv("TOOLKIT_ARTIFACT_ENDPOINT_URL", s3_server)
    with open_client(settings.data_dir) as client:
        client.artifacts.upload(DATA)
        client.artifacts.upload(b"few")
    return settings.data_dir


@pytest.fixture
def files(s3_server: str, folder: Path) -> S3FileSystem:
    """What is in object storage."""
    return S3FileSystem(endpoint_url=s3_server, skip_instance_cache=True, use_listings_cache=False)


def open_client(folder: Path) -> Client:
    """A client of the directory, by the settings of the environment."""
    return Client.local(folder, sandbox=True)


def list_objects(files: S3FileSystem, s3_url: str) -> list[str]:
    """The names of all objects."""
    found = files.find(s3_url)
    return [path.partition("/place")[2].partition("/")[2] for path in found]


def diagnose(folder: Path, *options: str) -> tuple[int, str]:
    """The exit code of doctor, and what it says."""
    shown = run_toolkit("doctor", "--no-vendors", "--data-dir", folder, *options)
    return shown.exit_code, shown.stdout


def test_doctor_misses_what_is_lost(folder: Path, files: S3FileSystem, s3_url: str) -> None:
    """Given objects that changed, were cut short or are gone, then doctor names their artifacts."""
    code, said = diagnose(folder, "--deep")
    assert (code, "is sound" in said) == (0, True), said
    (name,) = list_objects(files, s3_url)
    path = f"{s3_url}/{name}"
    files.pipe_file(path, DATA[:-4] + b"dust")
    assert diagnose(folder)[0] == 0
    assert "are damaged; restore" in diagnose(folder, "--deep")[1]
    files.pipe_file(path, DATA[:-4])
    assert "are not whole; restore" in diagnose(folder)[1]
    files.rm_file(path)
    code, said = diagnose(folder)
    assert (code, "are not there; restore" in said) == (1, True)


def test_doctor_says_that_storage_is_away(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given storage that cannot be reached, then doctor says that, and takes nothing for lost."""
    monkeypatch.setenv("TOOLKIT_ARTIFACT_ENDPOINT_URL", "http://127.0.0.1:9")
    code, said = diagnose(folder)
    assert (code, "could not be checked" in said, "not there" in said) == (1, True, False)


def test_young_orphans_stay(folder: Path, files: S3FileSystem, s3_url: str) -> None:
    """Given objects that no record names, then none is deleted that was stored within the hour."""
    files.pipe_file(f"{s3_url}/ab/{'c' * 62}", b"about to be named")
    run_toolkit("prune", "--older-than", "1h", "--data-dir", folder)
    assert "No record names" not in diagnose(folder, "--repair")[1]
    assert f"ab/{'c' * 62}" in list_objects(files, s3_url)


@pytest.mark.usefixtures("an_hour_passed")
def test_orphans_are_pruned(folder: Path, files: S3FileSystem, s3_url: str) -> None:
    """Given old objects that no record names, then doctor counts them, and prune deletes them."""
    (kept,) = list_objects(files, s3_url)
    files.pipe_file(f"{s3_url}/ab/{'c' * 62}", b"of a crash")
    files.pipe_file(f"{s3_url}/.deleting/{'d' * 64}/0", b"of another")
    assert "No record names 2 of the files" in diagnose(folder)[1]
    arguments = ("prune", "--older-than", "1h", "--data-dir", folder, "--json")
    assert json.loads(run_toolkit(*arguments, "--dry-run").stdout)["files"] == 2
    assert len(list_objects(files, s3_url)) == 3
    gone = json.loads(run_toolkit(*arguments).stdout)
    assert (gone["files"], gone["freed_bytes"]) == (2, 20)
    assert list_objects(files, s3_url) == [kept]
    with open_client(folder) as client:
        (large,) = [one for one in client.artifacts.list() if one.size_bytes == len(DATA)]
        assert client.artifacts.content(large.id) == DATA


@pytest.mark.usefixtures("an_hour_passed")
def test_a_copy_deletes_nothing_of_its_original(
    folder: Path, files: S3FileSystem, s3_url: str, tmp_path: Path
) -> None:
    """Given a copy made before more was stored, then neither prune nor repair deletes that."""
    backup = run_toolkit("backup", tmp_path / "copy", "--data-dir", folder)
    assert (backup.exit_code, "1 artifacts are in object storage" in backup.stdout) == (0, True)
    with open_client(folder) as client:
        client.artifacts.upload(DATA * 2)
    there = list_objects(files, s3_url)
    assert len(there) == 2
    pruned = run_toolkit("prune", "--older-than", "1h", "--data-dir", tmp_path / "copy")
    assert "the original of this copy" in pruned.stdout
    assert diagnose(tmp_path / "copy", "--repair")[0] == 0
    assert list_objects(files, s3_url) == there


def test_a_backup_is_restored_beside_its_objects(
    folder: Path, files: S3FileSystem, s3_url: str, tmp_path: Path
) -> None:
    """Given a directory that is lost, then its backup has all artifacts, whose bytes stayed."""
    run_toolkit("backup", tmp_path / "copy", "--data-dir", folder)
    shutil.rmtree(folder)
    shutil.move(tmp_path / "copy", folder)
    with Client.local(settings=Settings(data_dir=folder, sandbox=True, take_up=True)) as client:
        assert sorted(len(client.artifacts.content(one.id)) for one in client.artifacts.list()) == [
            3,
            len(DATA),
        ]
    (name,) = list_objects(files, s3_url)
    files.rm_file(f"{s3_url}/{name}")
    shown = run_toolkit("backup", tmp_path / "other", "--data-dir", folder)
    assert (shown.exit_code, "are missing or damaged" in shown.stdout) == (1, True)


def test_presigned_reads_need_a_place_that_signs(settings: Settings) -> None:
    """Given presigned reads of a folder, then no engine is opened."""
    with pytest.raises(RequestError, match="signs URLs") as refused:
        Client.local(settings=settings.model_copy(update={"artifact_reads": "presigned"}))
    assert refused.value.code is ErrorCode.INVALID_REQUEST
