"""`toolkit prune`, `doctor` and `backup` on both databases, with each place of artifacts."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import psycopg
import pytest
from s3fs import S3FileSystem

from tests._postgres import PostgresCluster, find_postgres
from tests.store.upkeep import LONG_AGO, SPEECH, diagnose, do_work, read_json
from tests.support.commands import run_toolkit, say
from tests.support.database_pool import BOTH_DATABASES, execute_sql
from tests.support.network_link import PLAIN, DeafLink
from toolkit import Client
from toolkit.assembly import list_simulated_ids
from toolkit.contract.errors import ErrorCode, RequestError, ServiceError
from toolkit.engine import Registry
from toolkit.settings import Settings
from toolkit.store.blob_places.place import BlobPlace
from toolkit.store.blobs import open_place
from toolkit.store.maintenance import prune
from toolkit.store.maintenance.upkeep_database import UpkeepDatabase
from toolkit.store.postgres import upkeep

DATA = b"leaf" * 5_000
ORPHAN = b"of a crash"


@dataclass
class Deployment:
    """Records and artifacts that the environment names.

    Attributes:
        data_dir: data directory.
        run: runs a statement, and returns its rows.
        place: place of the artifacts.
    """

    data_dir: Path
    run: Callable[[str], list[Any]]
    place: BlobPlace

    def list_digests(self) -> set[str | None]:
        """List the digests in the place."""
        return {entry.digest for entry in self.place.list_entries()}

    def diagnose(self, *options: str) -> tuple[int, str]:
        """Run doctor, and return its exit code and its output."""
        return diagnose(self.data_dir, *options)

    def prune(self, *options: str) -> Any:
        """Prune records older than a day, and return the JSON."""
        return read_json("prune", "--older-than", "1d", "--data-dir", self.data_dir, *options)


@pytest.fixture(
    params=[*BOTH_DATABASES, pytest.param("postgresql s3", marks=pytest.mark.postgresql)]
)
def deployment(
    request: pytest.FixtureRequest, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Deployment]:
    """Records in each kind of database, artifacts in each kind of place."""
    url = endpoint_url = None
    if request.param.endswith("s3"):
        url, endpoint_url = (request.getfixturevalue(name) for name in ("s3_url", "s3_server"))
        monkeypatch.setenv("TOOLKIT_ARTIFACT_URL", url)
        monkeypatch.setenv("TOOLKIT_ARTIFACT_ENDPOINT_URL", endpoint_url)
    place = open_place(settings.data_dir, url, endpoint_url=endpoint_url)
    database = None
    if request.param.startswith("postgresql"):
        database = request.getfixturevalue("postgres_url")
        monkeypatch.setenv("TOOLKIT_DATABASE", database)
    Client.local(settings.data_dir, sandbox=True).close()
    yield Deployment(settings.data_dir, partial(execute_sql, settings.data_dir, database), place)
    place.close()


@pytest.mark.usefixtures("without_min_age")
def test_prune_deletes_old_work(deployment: Deployment) -> None:
    """Given old and new work, then prune deletes the completed old work, and nothing else."""
    with Client.local(deployment.data_dir, sandbox=True) as client:
        do_work(client)
        client.artifacts.upload(DATA).delete()
    assert deployment.run("SELECT count(*) FROM cache")[0][0] > 0
    deployment.run(f"UPDATE roots SET created_at = '{LONG_AGO}'")
    deployment.run(f"UPDATE plans SET created_at = '{LONG_AGO}'")
    deployment.run(f"UPDATE artifacts SET created_at = '{LONG_AGO}' WHERE deleted")
    deployment.run(f"UPDATE idempotency SET created_at = '{LONG_AGO}'")
    with Client.local(deployment.data_dir, sandbox=True) as client:
        fresh = client.runs.create("speech.generate", {"text": "Salt. " * 40}).wait(progress=False)
        content = client.artifacts.get(fresh.artifact_id).content()
        uploaded = client.artifacts.upload(DATA * 2).id
    before = deployment.list_digests()
    planned = deployment.prune("--dry-run")
    assert deployment.list_digests() == before
    assert deployment.run(f"SELECT count(*) FROM roots WHERE created_at = '{LONG_AGO}'") == [(4,)]
    with Client.local(deployment.data_dir, sandbox=True) as client:  # while an engine runs
        deleted = deployment.prune()
        assert client.artifacts.get(fresh.artifact_id).content() == content
    assert planned == deleted
    assert list(deleted["rows"])[:3] == ["events", "annotations", "cache"]
    assert [deleted["rows"][table] for table in ("roots", "workflows", "tasks")] == [4, 2, 1]
    assert deleted["files"] == len(before) - len(deployment.list_digests()) >= 1
    with Client.local(deployment.data_dir, sandbox=True) as client:
        assert [run.id for run in client.runs.list()] == [fresh.id]
        assert (len(client.workflows.list()), len(client.tasks.list())) == (0, 0)
        assert client.artifacts.get(fresh.artifact_id).content() == content
        assert client.artifacts.get(uploaded).content() == DATA * 2
        assert len(client.connections.list()) == len(list_simulated_ids(Registry.load()))
        assert deployment.run("SELECT DISTINCT resource_id FROM events") == [(fresh.id,)]
        assert client.runs.create("speech.generate", SPEECH, cache=True).wait(progress=False).output
    for table in ("annotations", "tags", "tasks", "plans", "idempotency"):
        assert deployment.run(f"SELECT * FROM {table}") == [], table
    code, output = deployment.diagnose("--deep")
    assert code == 0, output
    assert "sums of stored bytes" not in output
    assert deployment.prune("--dry-run")["rows"] == {}


def test_prune_keeps_the_source_of_a_fork(deployment: Deployment) -> None:
    """Given a fork of an old workflow, then prune keeps the workflow and its results."""
    with Client.local(deployment.data_dir, sandbox=True) as client:
        do_work(client)
    deployment.run(f"UPDATE roots SET created_at = '{LONG_AGO}'")
    with Client.local(deployment.data_dir, sandbox=True) as client:
        old = next(flow for flow in client.workflows.list() if flow.record.task_id is None)
        fork = old.fork(from_node="voice").wait(progress=False)
    assert deployment.prune("--dry-run") == deployment.prune()
    with Client.local(deployment.data_dir, sandbox=True) as client:
        assert {flow.id for flow in client.workflows.list()} == {old.id, fork.id}
        artifact_id = client.workflows.get(fork.id).nodes[0].artifact_id
        assert client.artifacts.get(artifact_id).text()


def test_repair_deletes_old_orphans(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given bytes that no record names, then prune and `--repair` delete them once they are old."""
    with Client.local(deployment.data_dir, sandbox=True) as client:
        artifact = client.artifacts.upload(DATA)
    (digest,) = deployment.list_digests()
    assert digest is not None
    deployment.place.write(sha256(ORPHAN).hexdigest(), ORPHAN)
    assert deployment.prune()["files"] == 0
    assert "No record names" not in deployment.diagnose("--repair")[1]
    monkeypatch.setattr(prune, "MIN_UNREFERENCED_AGE_S", -5.0)
    assert deployment.prune("--dry-run")["files"] == 1
    code, output = deployment.diagnose()
    assert (code, "No record names 1 of the files" in output) == (0, True), output
    assert "Deleted 1 files that no record names." in deployment.diagnose("--repair")[1]
    assert deployment.list_digests() == {digest}
    with Client.local(deployment.data_dir, sandbox=True) as client:
        assert client.artifacts.get(artifact.id).content() == DATA
    deletion = deployment.place.hold(digest, -5.0)
    assert deletion is not None
    deletion.delete()
    code, output = deployment.diagnose()
    assert (code, f"`{artifact.id}` are not there; restore" in output) == (1, True)


def test_prune_skips_a_reopened_root(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a root that an engine reopened and ended since prune found its rows, then they stay."""
    with Client.local(deployment.data_dir, sandbox=True) as client:
        client.runs.create("llm.generate", {"objective": "Salt"}).wait(progress=False)
    deployment.run(f"UPDATE roots SET created_at = '{LONG_AGO}'")
    change = UpkeepDatabase.change

    def reopen_first(database: UpkeepDatabase, make: Callable[[], Any]) -> Any:
        deployment.run("UPDATE roots SET fence = fence + 1")
        return change(database, make)

    with monkeypatch.context() as patched:
        patched.setattr(UpkeepDatabase, "change", reopen_first)
        assert deployment.prune()["rows"] == {}
    assert deployment.prune()["rows"]["jobs"] == 1


def test_prune_skips_a_root_in_use(database: Client, postgres_url: str, settings: Settings) -> None:
    """Given a root that an engine has locked to reopen it, then prune keeps its records."""
    runs = [
        database.runs.create("llm.generate", {"objective": f"Salt {n}"}).wait(progress=False).id
        for n in range(3)
    ]
    execute_sql(settings.data_dir, postgres_url, f"UPDATE roots SET created_at = '{LONG_AGO}'")
    with psycopg.connect(postgres_url) as session:
        session.execute("SELECT 1 FROM roots WHERE id = %s FOR UPDATE", (runs[0],))
        deleted = read_json("prune", "--older-than", "1d", "--data-dir", settings.data_dir)
        assert deleted["rows"]["roots"] == 2
        assert session.execute("SELECT run_id FROM jobs").fetchall() == [(runs[0],)]
    assert [run.id for run in database.runs.list()] == runs[:1]


def test_prune_and_an_engine_run_concurrently(
    database: Client, postgres_url: str, settings: Settings
) -> None:
    """Given an engine that works for the same account, then prune and its runs complete."""
    payload = {"objective": "Salt"}
    first = database.runs.create("llm.generate", payload).wait(progress=False)
    columns = "account_id, kind, open, cancel_requested, lease_until, fence"
    execute = partial(execute_sql, settings.data_dir, postgres_url)
    execute(
        f"INSERT INTO roots (id, created_at, {columns})"
        f" SELECT 'run_old' || n, '{LONG_AGO}', {columns} FROM roots, generate_series(1, 400) n"
        " WHERE NOT open"
    )
    execute(
        "INSERT INTO events (resource_id, n, type, at, data) SELECT id, n, 'run.x', '', '{}'"
        " FROM roots, generate_series(1, 5) n WHERE id LIKE 'run_old%'"
    )
    with ThreadPoolExecutor(1) as pool:
        words = ("prune", "--older-than", "1d", "--data-dir", settings.data_dir)
        pruning = pool.submit(read_json, *words)
        runs = [database.runs.create("llm.generate", payload) for _ in range(20)]
        assert {run.wait(progress=False).status for run in runs} == {"completed"}
        deleted = pruning.result()
    assert (deleted["rows"]["roots"], deleted["rows"]["events"]) == (400, 2_000)
    assert {run.id for run in database.runs.list()} == {first.id, *(run.id for run in runs)}
    assert "sums of stored bytes" not in diagnose(settings.data_dir)[1]


def test_prune_completes_an_interrupted_prune(
    database: Client, postgres_url: str, settings: Settings
) -> None:
    """Given artifacts without a job, as an interrupted prune leaves them, then prune deletes them.

    A young artifact stays, because its job may not be written yet.
    """
    run = database.runs.create("llm.generate", {"objective": "Salt"}).wait(progress=False)
    execute = partial(execute_sql, settings.data_dir, postgres_url)
    words = ("prune", "--older-than", "1d", "--data-dir", settings.data_dir)
    execute("DELETE FROM jobs")
    assert read_json(*words)["rows"] == {}
    execute(f"UPDATE artifacts SET created_at = '{LONG_AGO}'")
    assert read_json(*words)["rows"] == {"artifacts": 1}
    with pytest.raises(Exception, match="artifact"):
        database.artifacts.get(run.artifact_id).content()


@pytest.mark.sqlite("a folder that has a database of its own")
def test_upkeep_refuses_another_place_of_artifacts(
    database: Client, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a folder that is not the database's, then prune and repair delete nothing in it."""
    database.artifacts.upload(DATA)
    with monkeypatch.context() as patched:
        patched.delenv("TOOLKIT_DATABASE")
        with Client.local(tmp_path / "alone", sandbox=True) as client:
            client.artifacts.upload(DATA * 2)
    for option in ("--data-dir", "--artifact-url"):
        for command in (["prune", "--older-than", "1d"], ["doctor", "--repair"]):
            error = run_toolkit(*command, option, tmp_path / "alone").exception
            assert isinstance(error, ServiceError), error
            assert f"{settings.data_dir}/artifacts, and not in" in str(error)
    monkeypatch.delenv("TOOLKIT_DATABASE")
    place = ["--artifact-url", settings.data_dir / "artifacts"]
    result = run_toolkit("prune", "--older-than", "1d", "--data-dir", tmp_path / "alone", *place)
    assert "belong to a database" in str(result.exception)


def test_prune_refuses_a_database_without_a_place(
    database: Client, postgres_url: str, settings: Settings
) -> None:
    """Given a database that does not name its place of artifacts, then prune refuses it."""
    execute_sql(settings.data_dir, postgres_url, "COMMENT ON TABLE artifacts IS NULL")
    (settings.data_dir / "artifacts" / ".database").unlink()
    result = run_toolkit("prune", "--older-than", "1d", "--data-dir", settings.data_dir)
    assert "start an engine" in str(result.exception)


def test_doctor_checks_the_server(
    database: Client, settings: Settings, postgres: PostgresCluster, postgres_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Given a database server, then doctor checks its clock, its version and its notices."""
    assert read_json("doctor", "--no-vendors", "--data-dir", settings.data_dir)["findings"] == []
    monkeypatch.setattr(upkeep, "MAX_CLOCK_DIFFERENCE_S", -1.0)
    monkeypatch.setattr(upkeep, "OLDEST_SERVER", 99)
    monkeypatch.setattr(upkeep, "NOTICE_TIMEOUT_S", 0.5)
    with DeafLink(postgres.port) as link:
        deaf = postgres_url.replace(f":{postgres.port}/", f":{link.port}/")
        code, output = diagnose(settings.data_dir, "--database", f"{deaf}?{PLAIN}")
    assert code == 1
    for finding in ("This machine's clock is 0.", "is too old: use 99", "NOTIFY does not arrive"):
        assert finding in output
    assert database.health().status == "ok"


@pytest.mark.parametrize("remote", [False, True])
def test_restores_the_backup_of_a_database(
    settings: Settings, postgres: PostgresCluster, postgres_url: str, tmp_path: Path,
    s3_url: str, s3_server: str, monkeypatch: pytest.MonkeyPatch, remote: bool,
) -> None:  # fmt: skip
    """Given a backup of a database, then a restored database has all, and no command a password.

    Objects in object storage stay there.
    """
    programs = find_postgres()
    assert programs is not None
    if remote:
        monkeypatch.setenv("TOOLKIT_ARTIFACT_URL", s3_url)
        monkeypatch.setenv("TOOLKIT_ARTIFACT_ENDPOINT_URL", s3_server)
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    spy = bin_dir / "pg_dump"
    spy.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/words\nexec {programs}/pg_dump "$@"\n')
    spy.chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_dir}:/usr/bin:/bin")
    monkeypatch.setenv("TOOLKIT_DATABASE", postgres_url)
    with Client.local(settings.data_dir, sandbox=True) as client:
        artifact_id = client.artifacts.upload(DATA).id
        copy = tmp_path / "copy"
        backup = read_json("backup", copy, "--data-dir", settings.data_dir)
    assert (backup["artifacts"], backup["elsewhere"], backup["lost"]) == (1 - remote, remote, [])
    assert postgres.password not in (tmp_path / "words").read_text()
    again = run_toolkit("backup", copy, "--data-dir", settings.data_dir)
    assert "exists" in str(again.exception)

    restored = postgres.create_database()
    restore = [str(programs / "pg_restore"), "--no-owner", "--dbname", restored]
    subprocess.run([*restore, str(copy / "database.dump")], check=True, capture_output=True)
    monkeypatch.setenv("TOOLKIT_DATABASE", restored)
    shutil.copytree(copy / "artifacts", tmp_path / "new" / "artifacts")
    with Client.local(tmp_path / "new", sandbox=True) as client:
        assert client.artifacts.get(artifact_id).content() == DATA
        assert client.is_held
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("TOOLKIT_DATABASE", postgres_url)
    failed = run_toolkit("backup", tmp_path / "other", "--data-dir", settings.data_dir)
    assert "needs pg_dump: install" in str(failed.exception)
    assert not list(tmp_path.glob("other*"))
    postgres.drop_database(restored)


@pytest.fixture
def folder(
    settings: Settings, s3_url: str, s3_server: str, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A data directory with an artifact in object storage that the environment names."""
    monkeypatch.setenv("TOOLKIT_ARTIFACT_URL", s3_url)
    monkeypatch.setenv("TOOLKIT_ARTIFACT_ENDPOINT_URL", s3_server)
    with Client.local(settings.data_dir, sandbox=True) as client:
        client.artifacts.upload(DATA)
        client.artifacts.upload(b"few")
    return settings.data_dir


def list_objects(files: S3FileSystem, s3_url: str) -> list[str]:
    """List the names of all objects."""
    return [path.partition("/place")[2].partition("/")[2] for path in files.find(s3_url)]


@pytest.mark.sqlite("upkeep of a directory")
def test_doctor_reports_unavailable_storage(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given storage that cannot be reached, then doctor reports that, and no lost artifact."""
    monkeypatch.setenv("TOOLKIT_ARTIFACT_ENDPOINT_URL", "http://127.0.0.1:9")
    code, output = diagnose(folder)
    assert (code, "could not be checked" in output, "not there" in output) == (1, True, False)


@pytest.mark.sqlite("upkeep of a directory")
@pytest.mark.usefixtures("without_min_age")
def test_prune_deletes_old_orphans(folder: Path, files: S3FileSystem, s3_url: str) -> None:
    """Given old objects that no record names, then doctor counts them, and prune deletes them."""
    objects = list_objects(files, s3_url)
    files.pipe_file(f"{s3_url}/ab/{'c' * 62}", b"of a crash")
    files.pipe_file(f"{s3_url}/.deleting/{'d' * 64}/0", b"of another")
    assert "No record names 2 of the files" in diagnose(folder)[1]
    arguments = ("prune", "--older-than", "1h", "--data-dir", folder)
    assert read_json(*arguments, "--dry-run")["files"] == 2
    assert len(list_objects(files, s3_url)) == 3
    deleted = read_json(*arguments)
    assert (deleted["files"], deleted["freed_bytes"]) == (2, 20)
    assert list_objects(files, s3_url) == objects


@pytest.mark.sqlite("upkeep of a directory")
@pytest.mark.usefixtures("without_min_age")
def test_a_backup_shares_the_objects_of_its_original(
    folder: Path, files: S3FileSystem, s3_url: str, tmp_path: Path
) -> None:
    """Given a backup, then its upkeep deletes no newer object, and a restored backup has all bytes.

    A backup reports an object that is gone.
    """
    copy = tmp_path / "copy"
    assert "1 artifacts are in object storage" in say("backup", copy, "--data-dir", folder)
    with Client.local(folder, sandbox=True) as client:
        client.artifacts.upload(DATA * 2)
    objects = list_objects(files, s3_url)
    assert len(objects) == 2
    output = say("prune", "--older-than", "1h", "--data-dir", copy)
    assert "the original of this copy" in output
    assert diagnose(copy, "--repair")[0] == 0
    assert list_objects(files, s3_url) == objects

    shutil.rmtree(folder)
    shutil.move(copy, folder)
    with Client.local(settings=Settings(data_dir=folder, sandbox=True, take_up=True)) as client:
        assert {artifact.content() for artifact in client.artifacts.list()} == {b"few", DATA}
    files.rm(s3_url, recursive=True)
    backup = run_toolkit("backup", tmp_path / "other", "--data-dir", folder)
    assert (backup.exit_code, "are missing or damaged" in backup.stdout) == (1, True)


def test_presigned_reads_need_a_place_that_signs(settings: Settings) -> None:
    """Given presigned reads of a folder, then no engine opens."""
    with pytest.raises(RequestError, match="signs URLs") as refused:
        Client.local(settings=settings.model_copy(update={"artifact_reads": "presigned"}))
    assert refused.value.code is ErrorCode.INVALID_REQUEST
