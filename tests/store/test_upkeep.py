"""`toolkit prune`, `doctor` and `backup` on both databases, artifacts in each kind of place."""

import json
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests._postgres import PostgresCluster, find_postgres
from tests.support.commands import run_toolkit, say
from tests.support.database_pool import BOTH_DATABASES
from tests.support.deaf_proxy import PLAIN, run_deaf_proxy
from toolkit import Client, Workflow
from toolkit.assembly import list_simulated_ids
from toolkit.contract.errors import ServiceError
from toolkit.engine import Registry
from toolkit.settings import Settings
from toolkit.store.blob_places.place import BlobPlace
from toolkit.store.blobs import open_place
from toolkit.store.postgres import upkeep

LONG_AGO = "2020-01-01T00:00:00.000Z"
SPOKEN = {"text": "Tides turn twice a day, and mills with them. " * 12}
DATA = b"leaf" * 5_000
LEFT = b"of a crash"


def read_json(*arguments: object) -> Any:
    """Run a command that succeeds, and return what it prints as JSON."""
    return json.loads(say(*arguments, "--json"))


@dataclass
class Kept:
    """Records and artifacts, which the environment names.

    Attributes:
        data_dir: the data directory.
        run: runs a statement, and fetches its rows.
        place: of the artifacts.
    """

    data_dir: Path
    run: Callable[[str], list[Any]]
    place: BlobPlace

    def open(self) -> Client:
        """Open an engine."""
        return Client.local(self.data_dir, sandbox=True)

    def list_digests(self) -> set[str | None]:
        """List what the place has."""
        return {entry.digest for entry in self.place.list_entries()}

    def diagnose(self, *options: str) -> tuple[int, str]:
        """Return the exit code of doctor, and what it says."""
        shown = run_toolkit("doctor", "--no-vendors", "--data-dir", self.data_dir, *options)
        assert shown.exception is None or isinstance(shown.exception, SystemExit), shown.exception
        return shown.exit_code, shown.stdout

    def prune(self, *options: str) -> Any:
        """Prune what is older than a day."""
        return read_json("prune", "--older-than", "1d", "--data-dir", self.data_dir, *options)


def _run_all(connection: Any, statement: Any) -> list[Any]:
    cursor = connection.execute(statement)
    return list(cursor.fetchall()) if cursor.description else []


@pytest.fixture(
    params=[*BOTH_DATABASES, pytest.param("postgresql s3", marks=pytest.mark.postgresql)]
)
def kept(
    request: pytest.FixtureRequest, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Kept]:
    """Records in each kind of database, artifacts in each kind of place."""
    url = endpoint_url = None
    if request.param.endswith("s3"):
        url, endpoint_url = (request.getfixturevalue(name) for name in ("s3_url", "s3_server"))
        monkeypatch.setenv("TOOLKIT_ARTIFACT_URL", url)
        monkeypatch.setenv("TOOLKIT_ARTIFACT_ENDPOINT_URL", endpoint_url)
    place = open_place(settings.data_dir, url, endpoint_url=endpoint_url)
    if request.param.startswith("sqlite"):
        Client.local(settings.data_dir, sandbox=True).close()
        path = settings.data_dir / "state.db"
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            yield Kept(settings.data_dir, lambda sql: _run_all(connection, sql), place)
    else:
        database = request.getfixturevalue("postgres_url")
        cluster: PostgresCluster = request.getfixturevalue("postgres")
        monkeypatch.setenv("TOOLKIT_DATABASE", database)
        Client.local(settings.data_dir, sandbox=True).close()
        with cluster.connect(database.rpartition("/")[2]) as server:
            yield Kept(settings.data_dir, lambda sql: _run_all(server, sql.encode()), place)
    place.close()


def do_work(client: Client) -> None:
    """Do a workflow, two runs and a task; one of them says what another one asks, too."""
    flow = Workflow("poster")
    copy = flow.add("copy", "llm.generate", objective="One line on tides")
    flow.add("voice", "speech.generate", depends_on=[copy], **SPOKEN)
    client.workflows.submit(flow).wait(progress=False)
    client.runs.create("speech.generate", SPOKEN, tags=["said"]).wait(progress=False)
    client.runs.create("speech.generate", SPOKEN, cache=True).wait(progress=False)
    client.tasks.create("A social card about tides").wait(progress=False)


@pytest.mark.usefixtures("an_hour_passed")
def test_prune_takes_out_what_is_old(kept: Kept) -> None:
    """Given work of long ago, then prune takes out all of it that is ended, and no more."""
    with kept.open() as client:
        do_work(client)
        gone = client.artifacts.upload(DATA)
        gone.delete()
    assert kept.run("SELECT count(*) FROM cache")[0][0] > 0
    kept.run(f"UPDATE roots SET created_at = '{LONG_AGO}'")
    kept.run(f"UPDATE plans SET created_at = '{LONG_AGO}'")
    kept.run(f"UPDATE artifacts SET created_at = '{LONG_AGO}' WHERE deleted")
    kept.run(f"UPDATE idempotency SET created_at = '{LONG_AGO}'")
    with kept.open() as client:
        fresh = client.runs.create("speech.generate", {"text": "Salt. " * 40}).wait(progress=False)
        said = client.artifacts.get(fresh.artifact_id).content()
        uploaded = client.artifacts.upload(DATA * 2).id
    before = kept.list_digests()
    dry = kept.prune("--dry-run")
    assert kept.list_digests() == before
    assert kept.run(f"SELECT count(*) FROM roots WHERE created_at = '{LONG_AGO}'") == [(4,)]
    with kept.open() as client:  # beside an engine
        wet = kept.prune()
        assert client.artifacts.get(fresh.artifact_id).content() == said
    assert dry == wet
    assert list(wet["rows"])[:3] == ["events", "annotations", "cache"]
    assert (wet["rows"]["roots"], wet["rows"]["workflows"], wet["rows"]["tasks"]) == (4, 2, 1)
    assert wet["files"] == len(before) - len(kept.list_digests()) >= 1
    with kept.open() as client:
        assert [run.id for run in client.runs.list()] == [fresh.id]
        assert (len(client.workflows.list()), len(client.tasks.list())) == (0, 0)
        assert client.artifacts.get(fresh.artifact_id).content() == said
        assert client.artifacts.get(uploaded).content() == DATA * 2
        assert len(client.connections.list()) == len(list_simulated_ids(Registry.load()))
        assert kept.run("SELECT DISTINCT resource_id FROM events") == [(fresh.id,)]
        assert client.runs.create("speech.generate", SPOKEN, cache=True).wait(progress=False).output
    for table in ("annotations", "tags", "tasks", "plans", "idempotency"):
        assert kept.run(f"SELECT * FROM {table}") == [], table
    code, told = kept.diagnose("--deep")
    assert code == 0, told
    assert "sums of stored bytes" not in told
    assert kept.prune("--dry-run")["rows"] == {}


def test_prune_keeps_what_later_work_started_from(kept: Kept) -> None:
    """Given a fork of an old workflow, then its results stay for as long as the fork does."""
    with kept.open() as client:
        do_work(client)
    kept.run(f"UPDATE roots SET created_at = '{LONG_AGO}'")
    with kept.open() as client:
        old = next(flow for flow in client.workflows.list() if flow.record.task_id is None)
        fork = old.fork(from_node="voice").wait(progress=False)
    assert kept.prune("--dry-run") == kept.prune()
    with kept.open() as client:
        assert {flow.id for flow in client.workflows.list()} == {old.id, fork.id}
        artifact_id = client.workflows.get(fork.id).nodes[0].artifact_id
        assert client.artifacts.get(artifact_id).text()


@pytest.mark.usefixtures("an_hour_passed")
def test_what_no_record_names_is_found(kept: Kept) -> None:
    """Given old bytes that no record names, then doctor counts them, and --repair deletes them."""
    with kept.open() as client:
        artifact = client.artifacts.upload(DATA)
    (digest,) = kept.list_digests()
    assert digest is not None
    kept.place.write(sha256(LEFT).hexdigest(), LEFT)
    code, told = kept.diagnose()
    assert (code, "No record names 1 of the files" in told) == (0, True), told
    assert "Deleted 1 files that no record names." in kept.diagnose("--repair")[1]
    assert kept.list_digests() == {digest}
    with kept.open() as client:
        assert client.artifacts.get(artifact.id).content() == DATA
    held = kept.place.hold(digest, -5.0)
    assert held is not None
    held.delete()
    code, told = kept.diagnose()
    assert (code, f"`{artifact.id}` are not there; restore" in told) == (1, True)


def test_prune_leaves_what_is_in_use(
    database: Client, postgres: PostgresCluster, postgres_url: str, settings: Settings
) -> None:
    """Given a root that an engine is about to open again, then prune leaves it, and all of it."""
    runs = [
        database.runs.create("llm.generate", {"objective": f"Salt {n}"}).wait(progress=False).id
        for n in range(3)
    ]
    name = postgres_url.rpartition("/")[2]
    with postgres.connect(name) as engine:
        engine.execute(f"UPDATE roots SET created_at = '{LONG_AGO}'".encode())
        with engine.transaction():
            engine.execute("SELECT 1 FROM roots WHERE id = %s FOR UPDATE", (runs[0],))
            gone = read_json("prune", "--older-than", "1d", "--data-dir", settings.data_dir)
            assert gone["rows"]["roots"] == 2
        left = engine.execute("SELECT run_id FROM jobs").fetchall()
    assert left == [(runs[0],)]
    assert [run.id for run in database.runs.list()] == runs[:1]


def test_prune_beside_work(
    database: Client, postgres: PostgresCluster, postgres_url: str, settings: Settings
) -> None:
    """Given an engine at work for the same account, then neither waits long, and all sums hold."""
    asked = {"objective": "Salt"}
    first = database.runs.create("llm.generate", asked).wait(progress=False)
    with postgres.connect(postgres_url.rpartition("/")[2]) as engine:
        columns = "account_id, kind, open, cancel_requested, lease_until, fence"
        engine.execute(
            f"INSERT INTO roots (id, created_at, {columns})"
            f" SELECT 'run_old' || n, '{LONG_AGO}', {columns} FROM roots, generate_series(1, 400) n"
            " WHERE NOT open".encode()
        )
        engine.execute(
            b"INSERT INTO events (resource_id, n, type, at, data) SELECT id, n, 'run.x', '', '{}'"
            b" FROM roots, generate_series(1, 5) n WHERE id LIKE 'run_old%'"
        )
    where = ("--older-than", "1d", "--data-dir", settings.data_dir)
    with ThreadPoolExecutor(1) as pool:
        pruning = pool.submit(read_json, "prune", *where)
        runs = [database.runs.create("llm.generate", asked) for _ in range(20)]
        assert {run.wait(progress=False).status for run in runs} == {"completed"}
        gone = pruning.result()
    assert (gone["rows"]["roots"], gone["rows"]["events"]) == (400, 2_000)
    assert len(database.runs.list()) == 21
    assert first.id in {run.id for run in database.runs.list()}
    shown = run_toolkit("doctor", "--no-vendors", "--data-dir", settings.data_dir)
    assert "sums of stored bytes" not in shown.stdout


def test_prune_ends_what_was_interrupted(
    database: Client, postgres: PostgresCluster, postgres_url: str, settings: Settings
) -> None:
    """Given artifacts whose job is gone, as an interrupted prune leaves them, then they go."""
    run = database.runs.create("llm.generate", {"objective": "Salt"}).wait(progress=False)
    with postgres.connect(postgres_url.rpartition("/")[2]) as engine:
        engine.execute("DELETE FROM jobs")
        where = ("--older-than", "1d", "--data-dir", settings.data_dir)
        assert read_json("prune", *where)["rows"] == {}  # it may be about to get its record
        engine.execute(f"UPDATE artifacts SET created_at = '{LONG_AGO}'".encode())
        assert read_json("prune", *where)["rows"] == {"artifacts": 1}
    with pytest.raises(Exception, match="artifact"):
        database.artifacts.get(run.artifact_id).content()


@pytest.mark.sqlite("a folder that has a database of its own")
def test_another_place_is_not_pruned(
    database: Client, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a folder that is not the database's, then nothing in it is deleted, by any of them."""
    database.artifacts.upload(DATA)
    with monkeypatch.context() as patched:
        patched.delenv("TOOLKIT_DATABASE")
        with Client.local(tmp_path / "alone", sandbox=True) as client:
            client.artifacts.upload(DATA * 2)
    for where in (["--data-dir", tmp_path / "alone"], ["--artifact-url", tmp_path / "alone"]):
        for command in (["prune", "--older-than", "1d"], ["doctor", "--repair"]):
            shown = run_toolkit(*command, *where)
            assert isinstance(shown.exception, ServiceError), shown.output
            assert f"{settings.data_dir}/artifacts, and not in" in str(shown.exception)
    monkeypatch.delenv("TOOLKIT_DATABASE")
    theirs = ["--artifact-url", settings.data_dir / "artifacts"]
    shown = run_toolkit("prune", "--older-than", "1d", "--data-dir", tmp_path / "alone", *theirs)
    assert "belong to a database" in str(shown.exception)


def test_a_database_that_no_engine_opened_is_not_pruned(
    database: Client, postgres: PostgresCluster, postgres_url: str, settings: Settings
) -> None:
    """Given an earlier version's database, then prune asks for an engine first: where are they?"""
    with postgres.connect(postgres_url.rpartition("/")[2]) as connection:
        connection.execute("COMMENT ON TABLE artifacts IS NULL")
    (settings.data_dir / "artifacts" / ".database").unlink()
    shown = run_toolkit("prune", "--older-than", "1d", "--data-dir", settings.data_dir)
    assert "start an engine" in str(shown.exception)


def test_doctor_knows_the_server(
    database: Client, settings: Settings, postgres: PostgresCluster, postgres_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Given a server, then its clock, its age and its notices are looked at."""
    words = ("doctor", "--no-vendors", "--data-dir", settings.data_dir)
    assert read_json(*words)["findings"] == []
    monkeypatch.setattr(upkeep, "MAX_CLOCK_DIFFERENCE_S", -1.0)
    monkeypatch.setattr(upkeep, "OLDEST_SERVER", 99)
    monkeypatch.setattr(upkeep, "NOTICE_TIMEOUT_S", 0.5)
    with run_deaf_proxy(postgres.port) as port:
        deaf = postgres_url.replace(f":{postgres.port}/", f":{port}/")
        shown = run_toolkit(*words, "--database", f"{deaf}?{PLAIN}")
    assert shown.exit_code == 1
    for told in ("This machine's clock is 0.", "is too old: use 99", "NOTIFY does not arrive"):
        assert told in shown.stdout
    assert database.health().status == "ok"


@pytest.mark.parametrize("remote", [False, True])
def test_a_database_is_backed_up(
    settings: Settings, postgres: PostgresCluster, postgres_url: str, tmp_path: Path,
    s3_url: str, s3_server: str, monkeypatch: pytest.MonkeyPatch, remote: bool,
) -> None:  # fmt: skip
    """Given a backup of a database, then a new database made of it has all; no list has a password.

    Objects stay where they are.
    """
    programs = find_postgres()
    assert programs is not None
    if remote:
        monkeypatch.setenv("TOOLKIT_ARTIFACT_URL", s3_url)
        monkeypatch.setenv("TOOLKIT_ARTIFACT_ENDPOINT_URL", s3_server)
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    spy = bin_dir / "pg_dump"
    spy.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/told\nexec {programs}/pg_dump "$@"\n')
    spy.chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_dir}:/usr/bin:/bin")
    monkeypatch.setenv("TOOLKIT_DATABASE", postgres_url)
    with Client.local(settings.data_dir, sandbox=True) as client:
        kept = client.artifacts.upload(DATA).id
        copy = tmp_path / "copy"
        made = read_json("backup", copy, "--data-dir", settings.data_dir)
    assert (made["artifacts"], made["elsewhere"], made["lost"]) == (1 - remote, remote, [])
    assert postgres.password not in (tmp_path / "told").read_text()
    again = run_toolkit("backup", copy, "--data-dir", settings.data_dir)
    assert "exists" in str(again.exception)

    restored = postgres.create_database()
    restore = [str(programs / "pg_restore"), "--no-owner", "--dbname", restored]
    subprocess.run([*restore, str(copy / "database.dump")], check=True, capture_output=True)
    monkeypatch.setenv("TOOLKIT_DATABASE", restored)
    shutil.copytree(copy / "artifacts", tmp_path / "new" / "artifacts")
    with Client.local(tmp_path / "new", sandbox=True) as client:
        assert client.artifacts.get(kept).content() == DATA
        assert client.is_held
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("TOOLKIT_DATABASE", postgres_url)
    failed = run_toolkit("backup", tmp_path / "other", "--data-dir", settings.data_dir)
    assert "needs pg_dump: install" in str(failed.exception)
    assert not list(tmp_path.glob("other*"))
    postgres.drop_database(restored)
