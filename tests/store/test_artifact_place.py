"""A database of PostgreSQL and the place of its artifacts: each knows the other."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import psycopg
import pytest
from s3fs import S3FileSystem
from typer.testing import CliRunner

from tests._postgres import PostgresCluster
from tests.support.timing import wait_until
from toolkit import Client
from toolkit.cli import app
from toolkit.contract.errors import ServiceError
from toolkit.settings import Settings
from toolkit.store.blob_places.place import MARK_NAME
from toolkit.store.blobs import open_place

DATA = b"leaf" * 5_000


class Deployment:
    """Engines of one database, each with settings of its own."""

    def __init__(self, folder: Path, database: str, endpoint: str) -> None:
        self._folder = folder
        self._database = database
        self._endpoint = endpoint

    def make_settings(self, data_dir: str, url: str | Path | None = None) -> Settings:
        """Make the settings of an engine."""
        return Settings(
            data_dir=self._folder / data_dir,
            sandbox=True,
            database=self._database,
            artifact_url=None if url is None else str(url),
            artifact_endpoint_url=self._endpoint,
        )

    def open(self, data_dir: str, url: str | Path | None = None) -> Client:
        """Open an engine."""
        return Client.local(settings=self.make_settings(data_dir, url))

    @contextmanager
    def refused(self, data_dir: str, url: str | Path | None = None) -> Iterator[list[str]]:
        """Have an engine refused, in one line, which is there after the block."""
        told: list[str] = []
        with pytest.raises(ServiceError) as refused:
            self.open(data_dir, url)
        told.append(str(refused.value))
        assert "\n" not in told[0]
        yield told


@pytest.fixture
def deployment(tmp_path: Path, postgres_url: str, s3_server: str) -> Deployment:
    """A database that no engine has opened yet."""
    return Deployment(tmp_path, postgres_url, s3_server)


@pytest.fixture
def other(tmp_path: Path, postgres: PostgresCluster, s3_server: str) -> Iterator[Deployment]:
    """Another one."""
    url = postgres.create_database()
    yield Deployment(tmp_path, url, s3_server)
    postgres.drop_database(url)


@pytest.fixture
def files(s3_server: str) -> S3FileSystem:
    """What is in object storage."""
    return S3FileSystem(endpoint_url=s3_server, skip_instance_cache=True, use_listings_cache=False)


@pytest.mark.parametrize("kind", ["bucket", "folder"])
def test_another_place_is_refused(
    deployment: Deployment, s3_url: str, tmp_path: Path, kind: str
) -> None:
    """Given a database with artifacts, then an engine of another place is told theirs, once."""
    theirs, mine = (
        (s3_url, f"{s3_url}/deeper") if kind == "bucket" else (tmp_path / "a", tmp_path / "b")
    )
    with deployment.open("one", theirs) as client:
        kept = client.artifacts.upload(DATA)
        for url in (mine, None):
            with deployment.refused("two", url) as (told,):
                assert str(theirs) in told
                assert "--artifact-url" in told
                assert "toolkit migrate" in told
        with deployment.open("two", theirs) as second:
            assert second.artifacts.get(kept.id).content() == DATA
            assert second.health().status == "ok"


@pytest.mark.parametrize("kind", ["bucket", "folder"])
def test_a_place_of_another_database_is_refused(
    deployment: Deployment, other: Deployment, s3_url: str, tmp_path: Path, kind: str
) -> None:
    """Given a place of one database, then another database's engines are refused it, named so."""
    url = s3_url if kind == "bucket" else tmp_path / "a"
    deployment.open("one", url).close()
    with other.refused("two", url) as (told,):
        assert str(url) in told
        assert "belong to another database" in told
    deployment.open("one", url).close()


def test_a_place_may_be_corrected_while_it_is_empty(deployment: Deployment, s3_url: str) -> None:
    """Given no bytes yet, then the next engine's place counts, but not beside another engine."""
    with deployment.open("one") as client:
        client.artifacts.upload(b"few bytes stay in the database")
        with deployment.refused("two", s3_url) as (told,):
            assert "one/artifacts" in told
    with deployment.open("two", s3_url) as client:
        client.artifacts.upload(DATA)
    with deployment.refused("one"):
        pass


def test_an_earlier_database_takes_the_first_place(
    deployment: Deployment, postgres: PostgresCluster, postgres_url: str, tmp_path: Path
) -> None:
    """Given a database and bytes without marks, then what opens it is its place from then on."""
    with deployment.open("one") as client:
        kept = client.artifacts.upload(DATA)
    with postgres.connect(postgres_url.rpartition("/")[2]) as connection:
        connection.execute("COMMENT ON TABLE artifacts IS NULL")
    mark = tmp_path / "one" / "artifacts" / MARK_NAME
    mark.unlink()
    with deployment.open("one") as client:
        assert client.artifacts.get(kept.id).content() == DATA
        assert mark.exists()
    with deployment.refused("two", tmp_path / "b"):
        pass


@pytest.mark.parametrize("kind", ["bucket", "folder"])
def test_a_place_that_was_restored_without_its_mark(
    deployment: Deployment, s3_url: str, files: S3FileSystem, tmp_path: Path, kind: str
) -> None:
    """Given a place without its mark, then its bytes tell that it is the one; no bytes, that not.

    So it is with a folder that is not mounted, and a bucket of another service.
    """
    url = s3_url if kind == "bucket" else str(tmp_path / "a")
    place = open_place(
        tmp_path, url, endpoint_url=deployment.make_settings("one").artifact_endpoint_url
    )
    with deployment.open("one", url) as client:
        client.artifacts.upload(DATA)
    mark = place.read_mark()
    assert mark
    if kind == "bucket":
        files.rm_file(f"{url}/{MARK_NAME}")
    else:
        (tmp_path / "a" / MARK_NAME).unlink()
    deployment.open("one", url).close()
    assert place.read_mark() == mark
    if kind == "bucket":
        files.rm(url, recursive=True)
    else:
        (tmp_path / "a").rename(tmp_path / "elsewhere")
    with deployment.refused("one", url):
        pass
    place.close()


def test_folders_of_their_own_are_told_of(
    deployment: Deployment, postgres_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Given engines without a shared place, then a line says so, and health while they are two.

    New work is taken all the same.
    """
    with caplog.at_level(logging.WARNING), deployment.open("one") as first:
        first.artifacts.upload(DATA)
        assert caplog.text == ""
        with deployment.open("two") as second:
            assert "one/artifacts" in caplog.text
            assert "--artifact-url" in caplog.text
            wait_until(lambda: {each.health().status for each in (first, second)} == {"degraded"})
            assert first.read("/health", {"ready": "true"})["status"] == "degraded"
            words = ["doctor", "--no-vendors", "--database", postgres_url]
            told = CliRunner().invoke(app, [*words, "--data-dir", str(tmp_path / "one")])
            assert (told.exit_code, "1 of 2 engines store" in told.stdout) == (1, True)
            told = CliRunner().invoke(app, [*words, "--data-dir", str(tmp_path / "two")])
            assert (told.exit_code, "and other engines in" in told.stdout) == (1, True)
        wait_until(lambda: first.health().status == "ok")


def test_a_folder_that_was_moved(
    deployment: Deployment, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Given a data directory that was restored elsewhere, then that is the place from then on."""
    with deployment.open("one") as client:
        kept = client.artifacts.upload(DATA)
    (tmp_path / "one").rename(tmp_path / "two")
    (tmp_path / "two" / "artifacts" / MARK_NAME).unlink()
    with caplog.at_level(logging.WARNING), deployment.open("two") as client:
        assert client.artifacts.get(kept.id).content() == DATA
        assert caplog.text == ""
        with deployment.refused("three", tmp_path / "elsewhere") as (told,):
            assert "two/artifacts" in told


@pytest.mark.parametrize("is_lost", [False, True])
def test_artifacts_are_moved(
    deployment: Deployment, s3_url: str, tmp_path: Path, postgres_url: str,
    monkeypatch: pytest.MonkeyPatch, is_lost: bool,
) -> None:  # fmt: skip
    """Given a database in use, then its artifacts move to another place, and back to none before.

    The old place may be lost where the new one has everything, as one that was replicated has.
    """
    endpoint = deployment.make_settings("one").artifact_endpoint_url
    assert endpoint is not None
    monkeypatch.setenv("TOOLKIT_ARTIFACT_ENDPOINT_URL", endpoint)
    words = ["migrate", "--database", postgres_url, "--artifacts", s3_url, "--json"]
    words += ["--data-dir", str(tmp_path / "one")]
    with deployment.open("one") as client:
        kept = client.artifacts.upload(DATA)
        running = CliRunner().invoke(app, words)
        assert "stop all engines" in str(running.exception)
    if is_lost:
        place = open_place(tmp_path, s3_url, endpoint_url=endpoint)
        (tmp_path / "one").rename(tmp_path / "gone")
        refused = CliRunner().invoke(app, words)
        assert isinstance(refused.exception, ServiceError), refused.output
        place.write(sha256(DATA).hexdigest(), DATA)
        place.close()
    moved = CliRunner().invoke(app, words)
    assert json.loads(moved.stdout) == {"artifacts": 1, "copied": 1 - is_lost, "lost": []}
    with deployment.open("two", s3_url) as client:
        assert client.artifacts.get(kept.id).content() == DATA
    with deployment.refused("one") as (told,):
        assert s3_url in told


def test_storage_that_is_away_keeps_no_engine_from_starting(
    deployment: Deployment, s3_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Given a bucket that cannot be reached, then the engine that belongs to it starts."""
    with deployment.open("one", s3_url) as client:
        kept = client.artifacts.upload(DATA).id
    settings = deployment.make_settings("two", s3_url)
    away = settings.model_copy(update={"artifact_endpoint_url": "http://127.0.0.1:9"})
    with caplog.at_level(logging.WARNING), Client.local(settings=away) as client:
        assert "cannot be checked now" in caplog.text
        assert [one.id for one in client.artifacts.list()] == [kept]


def test_of_two_at_once_the_first_mark_stands(s3_url: str, s3_server: str, tmp_path: Path) -> None:
    """Given a mark that is written twice, then the first one stays until it is to be replaced."""
    urls = (s3_url, f"memory:/{tmp_path}", None)
    for place in (open_place(tmp_path, url, endpoint_url=s3_server) for url in urls):
        assert place.read_mark() is None
        place.write_mark("one a", replace=False)
        place.write_mark("two b", replace=False)
        assert place.read_mark() == "one a"
        place.write_mark("two b", replace=True)
        assert place.read_mark() == "two b"
        assert list(place.list_entries()) == []
        place.close()


def test_who_looks_for_too_long_holds_up_no_other_start(
    deployment: Deployment,
    s3_url: str,
    postgres_url: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Given an engine that looks at storage that hangs, then others of that place start anyway.

    One of another place is refused, and told who it waits for.
    """
    deployment.open("one", s3_url).close()
    monkeypatch.setattr("toolkit.store.postgres.marks.LOCK_WAIT_S", 0.2)
    with psycopg.connect(postgres_url) as holder:
        holder.execute("SELECT pg_advisory_lock(hashtextextended('toolkit artifacts', 0))")
        session = f"session {holder.info.backend_pid} of the server"
        with deployment.open("two", s3_url) as client:
            assert session in caplog.text
            kept = client.artifacts.upload(DATA)
            assert client.artifacts.get(kept.id).content() == DATA
        with deployment.refused("three", f"{s3_url}/deeper") as (told,):
            assert session in told
    deployment.open("two", s3_url).close()
