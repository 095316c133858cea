"""`toolkit migrate`: the places of artifacts, and the artifacts that are lost."""

from hashlib import sha256
from pathlib import Path

import pytest

from tests.store.upkeep import read_json
from tests.support.commands import run_toolkit, say
from tests.support.s3_server import ACCESS_KEY, BUCKET, TcpRelay, make_bucket, run_s3_server
from toolkit import Client
from toolkit.contract.errors import ServiceError

DATA = b"leaf" * 5_000
MORE = b"salt" * 5_000
VARIABLE = "TOOLKIT_ARTIFACT_URL"
ENDPOINT_VARIABLE = "TOOLKIT_ARTIFACT_ENDPOINT_URL"
PROFILES = """[old]
aws_access_key_id = AKIDOLDEXAMPLE
aws_secret_access_key = example-of-another
"""  # pragma: allowlist secret


def move(folder: Path, url: str, *words: str) -> tuple[int, list[str]]:
    """Move a data directory; return the number of artifacts, and the digests that are lost."""
    summary = read_json("migrate", "--from", folder, "--to", url, *words)
    return summary["artifacts"], summary["lost"]


def find_file(folder: Path, data: bytes) -> Path:
    """Return the file of an artifact."""
    digest = sha256(data).hexdigest()
    return folder / "artifacts" / digest[:2] / digest[2:]


def get_refusal(*words: object) -> str:
    """Return the line by which a move is refused because of lost artifacts."""
    result = run_toolkit("migrate", *words)
    assert isinstance(result.exception, ServiceError), result.output
    line = str(result.exception)
    assert "Nothing was moved" in line
    assert "--without-lost" in line
    assert "\n" not in line
    return line


def upload(data_dir: Path, *contents: bytes, database: str | None = None) -> None:
    """Upload artifacts, whose bytes are too large for rows."""
    with Client.local(data_dir, sandbox=True, database=database) as client:
        for content in contents:
            client.artifacts.upload(content)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data directory with two artifacts."""
    upload(tmp_path / "data", DATA, MORE)
    return tmp_path / "data"


@pytest.fixture(params=["file", "s3"])
def place(
    request: pytest.FixtureRequest, s3_url: str, s3_server: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> str:  # fmt: skip
    """A place that no variable names yet."""
    monkeypatch.setenv(ENDPOINT_VARIABLE, s3_server)
    return s3_url if request.param == "s3" else f"file://{tmp_path}/shared"


def read_all(data_dir: Path, url: str) -> set[bytes]:
    """Read all artifacts of a database."""
    with Client.local(data_dir, sandbox=True, database=url) as client:
        return {artifact.content() for artifact in client.artifacts.list()}


def test_moves_the_artifacts_of_a_directory_to_the_configured_place(
    place: str, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given artifacts in the directory and in the configured place, then all are in the place."""
    upload(tmp_path / "data", DATA)
    monkeypatch.setenv(VARIABLE, place)
    upload(tmp_path / "data", MORE)
    assert move(tmp_path / "data", postgres_url) == (2, [])
    assert read_all(tmp_path / "new", postgres_url) == {DATA, MORE}


@pytest.mark.parametrize("is_damaged", [False, True], ids=["missing", "damaged"])
def test_moves_nothing_if_bytes_are_lost(
    folder: Path, place: str, postgres_url: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, is_damaged: bool,
) -> None:  # fmt: skip
    """Given lost bytes, then no side changes, unless the move goes on without them."""
    monkeypatch.setenv(VARIABLE, place)
    path = find_file(folder, MORE)
    path.unlink()
    if is_damaged:
        path.write_bytes(b"x" * len(MORE))
    lost = sha256(MORE).hexdigest()
    line = get_refusal("--from", folder, "--to", postgres_url)
    assert lost in line
    assert sha256(DATA).hexdigest() not in line
    assert not (folder / "state.db.moved").exists()
    listing = run_toolkit("account", "list", "--database", postgres_url)
    assert "no tables of the toolkit" in str(listing.exception)
    monkeypatch.delenv(VARIABLE)
    with Client.local(folder, sandbox=True) as client:
        (artifact,) = [item for item in client.artifacts.list() if item.sha256 != lost]
        assert artifact.content() == DATA

    monkeypatch.setenv(VARIABLE, place)
    assert move(folder, postgres_url, "--without-lost") == (1, [lost])
    with Client.local(tmp_path / "new", sandbox=True, database=postgres_url) as client:
        assert client.artifacts.get(artifact.id).content() == DATA


def test_moves_no_artifacts_of_a_database_if_bytes_are_lost(
    postgres_url: str, place: str, tmp_path: Path
) -> None:
    """Given a database with a lost artifact, then all stay, unless the move goes on without it."""
    folder = tmp_path / "data"
    upload(folder, DATA, MORE, database=postgres_url)
    lost = sha256(MORE).hexdigest()
    aside = find_file(folder, MORE).rename(tmp_path / "aside")
    words = ["--artifacts", place, "--database", postgres_url, "--data-dir", str(folder)]
    assert lost in get_refusal(*words)
    aside.rename(find_file(folder, MORE))
    assert read_all(folder, postgres_url) == {DATA, MORE}

    find_file(folder, MORE).rename(aside)
    # The first call has copied the other artifact.
    assert read_json("migrate", *words, "--without-lost") == {
        "artifacts": 1, "copied": 0, "lost": [lost],
    }  # fmt: skip


def test_migrate_fetches_bytes_from_the_data_directory(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a place without the bytes that its directory has, then the command moves them."""
    folder = tmp_path / "data"
    monkeypatch.setenv(VARIABLE, str(tmp_path / "artifacts"))
    upload(folder, DATA, MORE, database=postgres_url)
    find_file(folder, MORE).parent.mkdir(parents=True)
    find_file(tmp_path, MORE).rename(find_file(folder, MORE))
    place = tmp_path / "new"
    say("migrate", "--artifacts", place, "--database", postgres_url, "--data-dir", folder)
    monkeypatch.setenv(VARIABLE, str(place))
    assert read_all(folder, postgres_url) == {DATA, MORE}


def test_moves_artifacts_between_services(
    s3_url: str, s3_server: str, postgres_url: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Given an old service with its own endpoint and credentials, then migrate uses both."""
    (tmp_path / "credentials").write_text(PROFILES)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv(VARIABLE, s3_url)
    with run_s3_server() as old_server:
        make_bucket(old_server, BUCKET)
        monkeypatch.setenv(ENDPOINT_VARIABLE, old_server)
        upload(tmp_path, DATA, database=postgres_url)
        with TcpRelay(old_server) as old, TcpRelay(s3_server) as new:
            monkeypatch.setenv(ENDPOINT_VARIABLE, new.url)
            words = ["--from-endpoint-url", old.url, "--from-profile", "old"]
            words += ["--artifacts", s3_url, "--database", postgres_url]
            assert read_json("migrate", *words) == {"artifacts": 1, "copied": 1, "lost": []}
            old_heads, new_heads = "".join(old.heads), "".join(new.heads)
            assert "Credential=AKIDOLDEXAMPLE/" in old_heads
            assert f"Credential={ACCESS_KEY}/" in new_heads
            assert ACCESS_KEY not in old_heads
            assert "AKIDOLDEXAMPLE" not in new_heads
    monkeypatch.setenv(ENDPOINT_VARIABLE, s3_server)
    assert read_all(tmp_path, postgres_url) == {DATA}
