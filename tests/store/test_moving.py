"""Moves by `toolkit migrate` and artifacts' bytes: where they are looked for, and what is lost."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.support.s3_server import ACCESS_KEY, BUCKET, TcpRelay, make_bucket, run_s3_server
from toolkit import Client
from toolkit.cli import app
from toolkit.contract.errors import ServiceError

DATA = b"leaf" * 5_000
MORE = b"salt" * 5_000
VARIABLE = "TOOLKIT_ARTIFACT_URL"
ENDPOINT_VARIABLE = "TOOLKIT_ARTIFACT_ENDPOINT_URL"
PROFILES = """[old]
aws_access_key_id = AKIDOLDEXAMPLE
aws_secret_access_key = example-of-another
"""  # pragma: allowlist secret


def run_migrate(*words: str | Path) -> Result:
    """Run the command."""
    return CliRunner().invoke(app, ["migrate", *map(str, words), "--json"])


def run_move(folder: Path, url: str, *words: str) -> dict[str, object]:
    """Move a data directory; return what came of it."""
    done = run_migrate("--from", folder, "--to", url, *words)
    assert done.exit_code == 0, done.output
    told: dict[str, object] = json.loads(done.stdout)
    return told


def find_file(folder: Path, data: bytes) -> Path:
    """Find the file of an artifact in its folder."""
    digest = sha256(data).hexdigest()
    return folder / "artifacts" / digest[:2] / digest[2:]


@contextmanager
def told_nothing_moved(done: Result) -> Iterator[str]:
    """Yield the one line by which a move was refused."""
    assert isinstance(done.exception, ServiceError), done.output
    line = str(done.exception)
    assert "Nothing was moved" in line
    assert "--without-lost" in line
    assert "\n" not in line
    yield line


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data directory with two artifacts in it, whose bytes are in files."""
    with Client.local(tmp_path / "data", sandbox=True) as client:
        for each in (DATA, MORE):
            client.artifacts.upload(each)
    return tmp_path / "data"


@pytest.fixture(params=["file", "s3"])
def place(
    request: pytest.FixtureRequest, s3_url: str, s3_server: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> str:  # fmt: skip
    """A place that the variables name only once a test sets them."""
    monkeypatch.setenv(ENDPOINT_VARIABLE, s3_server)
    return s3_url if request.param == "s3" else f"file://{tmp_path}/shared"


def read_all(data_dir: Path, url: str) -> set[bytes]:
    """Read all artifacts of a database."""
    with Client.local(data_dir, sandbox=True, database=url) as client:
        return {one.content() for one in client.artifacts.list()}


def test_a_directory_s_artifacts_go_to_the_place_that_is_set(
    folder: Path, place: str, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given bytes in the directory and the variable of the new place, then they move there."""
    monkeypatch.setenv(VARIABLE, place)
    moved = run_move(folder, postgres_url)
    assert (moved["artifacts"], moved["lost"]) == (2, [])
    assert read_all(tmp_path / "new", postgres_url) == {DATA, MORE}


def test_a_directory_s_artifacts_may_be_in_the_place_that_is_set(
    place: str, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a directory with some bytes in the place of the variable, then none is lost."""
    folder = tmp_path / "data"
    with Client.local(folder, sandbox=True) as client:
        client.artifacts.upload(DATA)
    monkeypatch.setenv(VARIABLE, place)
    with Client.local(folder, sandbox=True) as client:
        client.artifacts.upload(MORE)
    moved = run_move(folder, postgres_url)
    assert (moved["artifacts"], moved["lost"]) == (2, [])
    assert read_all(tmp_path / "new", postgres_url) == {DATA, MORE}


@pytest.mark.parametrize("is_damaged", [False, True], ids=["missing", "damaged"])
def test_nothing_is_moved_where_bytes_are_lost(
    folder: Path, place: str, postgres_url: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, is_damaged: bool,
) -> None:  # fmt: skip
    """Given bytes that are lost, then both sides are as before, unless it goes on without them."""
    monkeypatch.setenv(VARIABLE, place)
    path = find_file(folder, MORE)
    path.unlink()
    if is_damaged:
        path.write_bytes(b"x" * len(MORE))
    lost = sha256(MORE).hexdigest()
    with told_nothing_moved(run_migrate("--from", folder, "--to", postgres_url)) as line:
        assert lost in line
        assert sha256(DATA).hexdigest() not in line
    assert not (folder / "state.db.moved").exists()
    with pytest.raises(ServiceError, match="no tables of the toolkit"):
        CliRunner().invoke(
            app, ["account", "list", "--database", postgres_url], catch_exceptions=False
        )
    monkeypatch.delenv(VARIABLE)
    with Client.local(folder, sandbox=True) as client:
        assert DATA in {one.content() for one in client.artifacts.list() if one.sha256 != lost}

    monkeypatch.setenv(VARIABLE, place)
    moved = run_move(folder, postgres_url, "--without-lost")
    assert (moved["artifacts"], moved["lost"]) == (1, [lost])
    with Client.local(tmp_path / "new", sandbox=True, database=postgres_url) as client:
        (kept,) = [one for one in client.artifacts.list() if one.sha256 != lost]
        assert kept.content() == DATA


def test_a_database_s_artifacts_stay_where_bytes_are_lost(
    postgres_url: str, place: str, tmp_path: Path
) -> None:
    """Given a database whose artifact is lost, then they stay, unless it goes on without it."""
    folder = tmp_path / "data"
    with Client.local(folder, sandbox=True, database=postgres_url) as client:
        for each in (DATA, MORE):
            client.artifacts.upload(each)
    aside = find_file(folder, MORE).rename(tmp_path / "aside")
    words = ["--artifacts", place, "--database", postgres_url, "--data-dir", str(folder)]
    with told_nothing_moved(run_migrate(*words)) as line:
        assert sha256(MORE).hexdigest() in line
    aside.rename(find_file(folder, MORE))
    assert read_all(folder, postgres_url) == {DATA, MORE}

    find_file(folder, MORE).rename(aside)
    done = run_migrate(*words, "--without-lost")
    assert json.loads(done.stdout) == {
        "artifacts": 1,
        "copied": 0,  # as the first call copied it
        "lost": [sha256(MORE).hexdigest()],
    }


def test_what_was_left_in_the_data_directory_is_fetched(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a database whose place misses what its directory has, then the command brings it."""
    folder = tmp_path / "data"
    monkeypatch.setenv(VARIABLE, str(tmp_path / "artifacts"))
    with Client.local(folder, sandbox=True, database=postgres_url) as client:
        for each in (DATA, MORE):
            client.artifacts.upload(each)
    find_file(folder, MORE).parent.mkdir(parents=True)
    find_file(tmp_path, MORE).rename(find_file(folder, MORE))
    place = tmp_path / "new"
    run_migrate("--artifacts", place, "--database", postgres_url, "--data-dir", folder)
    monkeypatch.setenv(VARIABLE, str(place))
    assert read_all(folder, postgres_url) == {DATA, MORE}


def test_artifacts_move_from_one_service_to_another(
    s3_url: str, s3_server: str, postgres_url: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Given an old service with an endpoint and credentials of its own, then both are used."""
    (tmp_path / "credentials").write_text(PROFILES)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv(VARIABLE, s3_url)
    with run_s3_server() as old_server:
        make_bucket(old_server, BUCKET)
        monkeypatch.setenv(ENDPOINT_VARIABLE, old_server)
        with Client.local(tmp_path, sandbox=True, database=postgres_url) as client:
            client.artifacts.upload(DATA)
        with TcpRelay(old_server) as old, TcpRelay(s3_server) as new:
            monkeypatch.setenv(ENDPOINT_VARIABLE, new.url)
            words = ["--from-endpoint-url", old.url, "--from-profile", "old"]
            done = run_migrate("--artifacts", s3_url, *words, "--database", postgres_url)
            assert json.loads(done.stdout) == {"artifacts": 1, "copied": 1, "lost": []}
            assert "Credential=AKIDOLDEXAMPLE/" in "".join(old.heads)
            assert f"Credential={ACCESS_KEY}/" in "".join(new.heads)
            for one, theirs in ((old, ACCESS_KEY), (new, "AKIDOLDEXAMPLE")):
                assert theirs not in "".join(one.heads)
    monkeypatch.setenv(ENDPOINT_VARIABLE, s3_server)
    assert read_all(tmp_path, postgres_url) == {DATA}
