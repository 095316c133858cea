"""A PostgreSQL database and the place of its artifacts: each names the other."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import psycopg
import pytest
from s3fs import S3FileSystem

from tests._postgres import PostgresCluster
from tests.store.upkeep import diagnose, read_json
from tests.support.commands import run_toolkit
from tests.support.database_pool import execute_sql
from tests.support.timing import wait_until
from toolkit import Client
from toolkit.contract.errors import ServiceError
from toolkit.settings import Settings
from toolkit.store.blob_places.place import MARK_NAME
from toolkit.store.blobs import open_place

DATA = b"leaf" * 5_000


@dataclass
class EngineGroup:
    """Engines of one database, each with its own settings."""

    folder: Path
    database: str
    endpoint: str

    def make_settings(self, data_dir: str, url: str | Path | None = None) -> Settings:
        """Make the settings of an engine."""
        return Settings(
            data_dir=self.folder / data_dir,
            sandbox=True,
            database=self.database,
            artifact_url=None if url is None else str(url),
            artifact_endpoint_url=self.endpoint,
        )

    def open(self, data_dir: str, url: str | Path | None = None) -> Client:
        """Open an engine."""
        return Client.local(settings=self.make_settings(data_dir, url))

    def get_refusal(self, data_dir: str, url: str | Path | None = None) -> str:
        """Return the error of one line by which an engine is refused."""
        with pytest.raises(ServiceError) as refused:
            self.open(data_dir, url)
        assert "\n" not in str(refused.value)
        return str(refused.value)


@pytest.fixture
def engines(tmp_path: Path, postgres_url: str, s3_server: str) -> EngineGroup:
    """Engines of a database that none has opened yet."""
    return EngineGroup(tmp_path, postgres_url, s3_server)


@pytest.fixture
def other(tmp_path: Path, postgres: PostgresCluster, s3_server: str) -> Iterator[EngineGroup]:
    """Engines of another database."""
    url = postgres.create_database()
    yield EngineGroup(tmp_path, url, s3_server)
    postgres.drop_database(url)


@pytest.fixture(params=["bucket", "folder"])
def url(request: pytest.FixtureRequest, s3_url: str, tmp_path: Path) -> str:
    """The URL of a place that engines can share."""
    return s3_url if request.param == "bucket" else str(tmp_path / "a")


def test_refuses_an_engine_with_another_place(engines: EngineGroup, url: str) -> None:
    """Given a database with artifacts, then an engine with another place is refused."""
    with engines.open("one", url) as client:
        artifact = client.artifacts.upload(DATA)
        for other_url in (f"{url}/deeper", None):
            message = engines.get_refusal("two", other_url)
            assert url in message
            assert "--artifact-url" in message
            assert "toolkit migrate" in message
        with engines.open("two", url) as second:
            assert second.artifacts.get(artifact.id).content() == DATA
            assert second.health().status == "ok"


def test_refuses_a_place_of_another_database(
    engines: EngineGroup, other: EngineGroup, url: str
) -> None:
    """Given a place of one database, then engines of another database are refused."""
    engines.open("one", url).close()
    message = other.get_refusal("two", url)
    assert url in message
    assert "belong to another database" in message
    engines.open("one", url).close()


def test_an_empty_place_can_be_replaced(engines: EngineGroup, s3_url: str) -> None:
    """Given no bytes yet, then the next engine may name another place once no engine runs."""
    with engines.open("one") as client:
        client.artifacts.upload(b"few bytes stay in the database")
        assert "one/artifacts" in engines.get_refusal("two", s3_url)
    with engines.open("two", s3_url) as client:
        client.artifacts.upload(DATA)
    engines.get_refusal("one")


@pytest.mark.parametrize("is_moved", [False, True])
def test_marks_a_place_without_a_mark(
    engines: EngineGroup, tmp_path: Path, caplog: pytest.LogCaptureFixture, is_moved: bool
) -> None:
    """Given a folder without a mark, also if it was moved, then its next engine marks it.

    The database of the restored folder still names the old place.
    """
    with engines.open("one") as client:
        artifact = client.artifacts.upload(DATA)
    (tmp_path / "one" / "artifacts" / MARK_NAME).unlink()
    if is_moved:
        (tmp_path / "one").rename(tmp_path / "two")
    else:
        execute_sql(tmp_path, engines.database, "COMMENT ON TABLE artifacts IS NULL")
    folder = "two" if is_moved else "one"
    with caplog.at_level(logging.WARNING), engines.open(folder) as client:
        assert client.artifacts.get(artifact.id).content() == DATA
        assert caplog.text == ""
        assert (tmp_path / folder / "artifacts" / MARK_NAME).exists()
        assert f"{folder}/artifacts" in engines.get_refusal("three", tmp_path / "b")


def test_recognizes_a_place_without_a_mark_by_its_bytes(
    engines: EngineGroup, url: str, files: S3FileSystem, tmp_path: Path
) -> None:
    """Given a place without its mark, then the engine opens it only if the bytes are there.

    A folder that is not mounted, or a bucket of another service, has no bytes.
    """
    is_bucket = url.startswith("s3:")
    place = open_place(tmp_path, url, endpoint_url=engines.endpoint)
    with engines.open("one", url) as client:
        client.artifacts.upload(DATA)
    mark = place.read_mark()
    assert mark
    if is_bucket:
        files.rm_file(f"{url}/{MARK_NAME}")
    else:
        (tmp_path / "a" / MARK_NAME).unlink()
    engines.open("one", url).close()
    assert place.read_mark() == mark
    if is_bucket:
        files.rm(url, recursive=True)
    else:
        (tmp_path / "a").rename(tmp_path / "elsewhere")
    engines.get_refusal("one", url)
    place.close()


def test_warns_of_engines_without_a_shared_place(
    engines: EngineGroup, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Given engines with folders of their own, then the log, health and doctor report it.

    The engines accept new work.
    """
    with caplog.at_level(logging.WARNING), engines.open("one") as first:
        first.artifacts.upload(DATA)
        assert caplog.text == ""
        with engines.open("two") as second:
            assert "one/artifacts" in caplog.text
            assert "--artifact-url" in caplog.text
            wait_until(lambda: {c.health().status for c in (first, second)} == {"degraded"})
            assert first.read("/health", {"ready": "true"})["status"] == "degraded"
            for folder, finding in (
                ("one", "1 of 2 engines store"),
                ("two", "and other engines in"),
            ):
                code, output = diagnose(tmp_path / folder, "--database", engines.database)
                assert (code, finding in output) == (1, True)
        wait_until(lambda: first.health().status == "ok")


@pytest.mark.parametrize("is_lost", [False, True])
def test_migrate_moves_artifacts_to_another_place(
    engines: EngineGroup, s3_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    is_lost: bool,
) -> None:  # fmt: skip
    """Given a database, then its artifacts move to another place, once no engine runs.

    The old place may be lost if the new place has all bytes, as a replica has.
    """
    monkeypatch.setenv("TOOLKIT_ARTIFACT_ENDPOINT_URL", engines.endpoint)
    words = ["migrate", "--database", engines.database, "--artifacts", s3_url]
    words += ["--data-dir", str(tmp_path / "one")]
    with engines.open("one") as client:
        artifact = client.artifacts.upload(DATA)
        assert "stop all engines" in str(run_toolkit(*words).exception)
    if is_lost:
        (tmp_path / "one").rename(tmp_path / "lost")
        result = run_toolkit(*words)
        assert isinstance(result.exception, ServiceError), result.output
        place = open_place(tmp_path, s3_url, endpoint_url=engines.endpoint)
        place.write(sha256(DATA).hexdigest(), DATA)
        place.close()
    assert read_json(*words) == {"artifacts": 1, "copied": 1 - is_lost, "lost": []}
    with engines.open("two", s3_url) as client:
        assert client.artifacts.get(artifact.id).content() == DATA
    assert s3_url in engines.get_refusal("one")


def test_an_engine_starts_while_storage_is_unavailable(
    engines: EngineGroup, s3_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Given a bucket that cannot be reached, then an engine of its database starts."""
    with engines.open("one", s3_url) as client:
        artifact = client.artifacts.upload(DATA)
    engines.endpoint = "http://127.0.0.1:9"
    with caplog.at_level(logging.WARNING), engines.open("two", s3_url) as client:
        assert "cannot be checked now" in caplog.text
        assert [item.id for item in client.artifacts.list()] == [artifact.id]


def test_keeps_the_first_mark(s3_url: str, s3_server: str, tmp_path: Path) -> None:
    """Given a mark that is written twice, then the first one stays unless it is replaced."""
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


def test_a_hung_check_blocks_no_other_start(
    engines: EngineGroup,
    s3_url: str,
    postgres_url: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Given an engine whose check of its place hangs, then other engines of the place start.

    An engine of another place is refused, and the error names the session that it waits for.
    """
    engines.open("one", s3_url).close()
    monkeypatch.setattr("toolkit.store.postgres.marks.LOCK_WAIT_S", 0.2)
    with psycopg.connect(postgres_url) as holder:
        holder.execute("SELECT pg_advisory_lock(hashtextextended('toolkit artifacts', 0))")
        session = f"session {holder.info.backend_pid} of the server"
        with engines.open("two", s3_url) as client:
            assert session in caplog.text
            artifact = client.artifacts.upload(DATA)
            assert client.artifacts.get(artifact.id).content() == DATA
        assert session in engines.get_refusal("three", f"{s3_url}/deeper")
    engines.open("two", s3_url).close()
