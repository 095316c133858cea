"""PostgreSQL as the database: the client, the server and the operator's commands."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests._postgres import PostgresCluster
from tests.conftest import Server
from tests.support.commands import run_toolkit, say
from toolkit import Client, Workflow
from toolkit.contract.errors import ErrorCode, RequestError, ServiceError
from toolkit.settings import Settings

CARD = {"title": "Tea", "width": 300, "height": 200}


def _make_work(client: Client) -> str:
    """Make a run, a workflow and an upload; return the workflow's id."""
    client.runs.create("llm.generate", {"objective": "Salt"}, tags=["mine"]).wait(progress=False)
    wf = Workflow("cards")
    tea = wf.add("tea", "research.gather", topic="Tea")
    wf.add("card", "composition.layout", **CARD, depends_on=[tea])
    workflow = client.workflows.submit(wf).wait(progress=False)
    assert workflow.status == "completed"
    return workflow.id


def test_engine_and_server_share_a_database(
    tmp_path: Path, postgres_url: str, postgres: PostgresCluster
) -> None:
    """Given an engine and a server on one database, then both have the work of each account."""
    with Client.local(tmp_path / "a", sandbox=True, database=postgres_url) as client:
        workflow_id = _make_work(client)
        assert not (tmp_path / "a" / "state.db").exists()
    with Client.local(tmp_path / "a", sandbox=True, database=postgres_url) as client:
        assert client.workflows.get(workflow_id).status == "completed"
        assert [run.tags for run in client.runs.list(tag="mine", q="SALT")] == [["mine"]]

    server = Server(Settings(data_dir=tmp_path / "b", sandbox=True, database=postgres_url))
    try:
        with Client(base_url=server.url) as nobody:
            key = nobody.account.create("ada@example.org").api_key
        options = ["--database", postgres_url, "--data-dir", str(tmp_path / "c")]
        accounts = json.loads(say("account", "list", *options, "--json"))
        assert {row["email"] for row in accounts} >= {"ada@example.org"}
        with Client(base_url=server.url, api_key=key) as client:
            assert client.account.get().email == "ada@example.org"
            say("account", "disable", "ada@example.org", *options)
            with pytest.raises(RequestError) as refused:
                client.account.get()
            assert refused.value.code is ErrorCode.UNAUTHENTICATED
            say("account", "enable", "ada@example.org", *options)
            say("account", "limit", "ada@example.org", "--unlimited", *options)
            assert client.account.get().max_cost_usd_per_day is None
        account = json.loads(say("account", "create", "b@example.org", *options, "--json"))
        with Client(base_url=server.url, api_key=account["api_key"]) as client:
            assert client.account.get().id == account["id"]
    finally:
        server.close()


def test_rejects_a_sandbox_database_for_real_vendors(tmp_path: Path, postgres_url: str) -> None:
    """Given a database of the sandbox, then no engine with real vendors opens it."""
    Client.local(tmp_path, sandbox=True, database=postgres_url).close()
    with pytest.raises(ServiceError, match="The database belongs to the sandbox"):
        Client.local(tmp_path, database=postgres_url)


@pytest.mark.usefixtures("fork_programs")
def test_password_is_in_no_message(
    tmp_path: Path, postgres: PostgresCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given an address with a password, then no message, log line or representation contains it."""
    url = postgres.build_url("nothing_here")
    assert postgres.password not in repr(Settings(database=url))
    bad = [url, url.replace(postgres.password, f"{postgres.password}%zz"), f"mysql{url[10:]}"]
    for address in bad:
        process = subprocess.run(
            [sys.executable, "-m", "toolkit", "serve", "--port", "0", "--data-dir", str(tmp_path)],
            capture_output=True, check=False, text=True, cwd=tmp_path,
            env={**os.environ, "TOOLKIT_DATABASE": address},
        )  # fmt: skip
        assert process.returncode != 0
        assert postgres.password not in process.stdout + process.stderr, address
        monkeypatch.setenv("TOOLKIT_DATABASE", address)
        with pytest.raises((ServiceError, RequestError)) as refused:
            Client.local(tmp_path, sandbox=True)
        assert postgres.password not in str(refused.value)


def test_uses_the_password_of_libpq(
    tmp_path: Path, postgres: PostgresCluster, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given an address without a password, then the password is taken from libpq's sources."""
    bare = postgres_url.replace(f":{postgres.password}@", "@")
    settings = Settings(data_dir=tmp_path, sandbox=True, database=bare, database_wait_s=0.01)
    with pytest.raises(ServiceError):
        Client.local(settings=settings)
    monkeypatch.setenv("PGPASSWORD", postgres.password)
    with Client.local(settings=settings) as client:
        assert len(client.runs.list()) == 0


def test_reports_a_database_without_tables(tmp_path: Path, postgres_url: str) -> None:
    """Given an empty database, then an account command reports it, and creates nothing in it."""
    words = ["account", "create", "ada@example.org", "--database", postgres_url]
    for _ in range(2):
        result = run_toolkit(*words, "--data-dir", str(tmp_path))
        assert isinstance(result.exception, ServiceError)
        assert "no tables of the toolkit" in str(result.exception)


def _fill_directory(folder: Path) -> tuple[str, str]:
    """Fill a data directory; return the ids of a workflow and of a large artifact."""
    with Client.local(folder, sandbox=True) as client:
        workflow_id = _make_work(client)
        upload = client.artifacts.upload(b"salt " * 100_000)
        return workflow_id, upload.id


@pytest.mark.parametrize("elsewhere", [False, True])
def test_moves_a_data_directory(tmp_path: Path, postgres_url: str, elsewhere: bool) -> None:
    """Given a moved directory, then the database has all of its data, and no second move starts."""
    folder, place = tmp_path / "data", tmp_path / "bytes"
    workflow_id, upload = _fill_directory(folder)
    words = ["migrate", "--from", str(folder), "--to", postgres_url, "--json"]
    words += ["--artifacts", str(place)] if elsewhere else []
    moved = json.loads(say(*words))
    assert (moved["copied"], moved["lost"]) == (moved["rows"], [])
    assert moved["artifacts"] == len(list((folder / "artifacts").glob("*/*"))) > 0

    settings = Settings(
        data_dir=tmp_path / "new" if elsewhere else folder, sandbox=True, database=postgres_url,
        artifact_url=str(place) if elsewhere else None,
    )  # fmt: skip
    with Client.local(settings=settings) as client:
        assert client.workflows.get(workflow_id).status == "completed"
        assert [run.tags for run in client.runs.list(tag="mine")] == [["mine"]]
        assert client.artifacts.get(upload).content() == b"salt " * 100_000
        assert client.runs.create("llm.generate", {"objective": "Tea"}).wait(progress=False).output
    with pytest.raises(ServiceError, match="set their place"):
        Client.local(settings=settings.model_copy(update={"artifact_url": str(tmp_path / "x")}))
    if not elsewhere:
        Client.local(folder, sandbox=True).close()
        options = ["--older-than", "1h", "--data-dir", str(folder)]
        pruned = run_toolkit("prune", *options)
        assert "belong to a database" in str(pruned.exception)
        (folder / "state.db").unlink()
    again = run_toolkit(*words)
    assert "There is no data directory" in str(again.exception)
    (folder / "state.db.moved").rename(folder / "state.db")
    again = run_toolkit(*words)
    assert "was moved already" in str(again.exception)


def test_resumes_an_interrupted_move(
    tmp_path: Path, postgres: PostgresCluster, postgres_url: str
) -> None:
    """Given an interrupted move, then no engine opens the database until the next move completes.

    Rows that were changed meanwhile are found when all rows are compared.
    """
    folder = tmp_path / "data"
    workflow_id, _ = _fill_directory(folder)
    words = ["migrate", "--from", str(folder), "--to", postgres_url, "--json"]
    name = postgres_url.rpartition("/")[2]
    with closing(sqlite3.connect(folder / "state.db")) as source:
        source.execute("INSERT INTO plans VALUES ('pln_x', 'acc', 'x', ?)", ("\x00",))
        source.commit()
        cut = run_toolkit(*words)
        assert isinstance(cut.exception, ServiceError), "PostgreSQL has no such text"
        with pytest.raises(ServiceError, match="wait until the move has ended"):
            Client.local(tmp_path / "new", sandbox=True, database=postgres_url)
        source.execute("DELETE FROM plans WHERE id = 'pln_x'")
        source.commit()
    with postgres.connect(name) as target:
        target.execute("UPDATE jobs SET doc = doc || ' '")
        different = run_toolkit(*words)
        assert "the rows of jobs" in str(different.exception)
        target.execute("UPDATE jobs SET doc = rtrim(doc)")
    moved = json.loads(say(*words))
    assert 0 <= moved["copied"] < moved["rows"]
    with Client.local(folder, sandbox=True, database=postgres_url) as client:
        assert client.workflows.get(workflow_id).status == "completed"


def test_doctor_examines_a_database(
    tmp_path: Path, postgres: PostgresCluster, postgres_url: str
) -> None:
    """Given a database, then wrong sums are recounted, and missing or damaged bytes reported."""
    with Client.local(tmp_path, sandbox=True, database=postgres_url) as client:
        lost, damaged = (client.artifacts.upload(byte * 100_000).id for byte in (b"a", b"b"))
    words = ["doctor", "--database", postgres_url, "--data-dir", str(tmp_path)]
    assert "The database is sound." in say(*words, "--deep")

    with postgres.connect(postgres_url.rpartition("/")[2]) as target:
        target.execute("UPDATE stored_bytes SET records = records + 1")
        artifacts = target.execute("SELECT id, sha256 FROM artifacts").fetchall()
    assert "sums of stored bytes" in say(*words)
    assert "Recounted the stored bytes of accounts." in say(*words, "--repair")
    assert "sums of stored bytes" not in say(*words)
    digests = {str(artifact): str(digest) for artifact, digest in artifacts}
    for artifact, data in ((lost, None), (damaged, b"x" * 100_000)):
        path = tmp_path / "artifacts" / digests[artifact][:2] / digests[artifact][2:]
        path.unlink()
        if data is not None:
            path.write_bytes(data)
    result = run_toolkit(*words, "--deep")
    assert result.exit_code == 1
    assert f"`{lost}` are not there" in result.stdout
    assert f"`{damaged}` are damaged" in result.stdout


def test_prune_keeps_the_artifacts_of_a_database(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given settings of a database and its artifacts, then `prune` of a directory removes none."""
    with Client.local(tmp_path / "a", sandbox=True) as client:
        client.runs.create("llm.generate", {"objective": "Salt"}).wait(progress=False)
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "theirs").write_text("bytes")
    monkeypatch.setenv("TOOLKIT_DATABASE", postgres_url)
    monkeypatch.setenv("TOOLKIT_ARTIFACT_URL", str(shared))
    words = ["prune", "--older-than", "1h", "--data-dir", str(tmp_path / "a")]
    refused = run_toolkit(*words)
    assert isinstance(refused.exception, ServiceError)
    assert "The database has no tables" in str(refused.exception)
    assert (shared / "theirs").exists()


def test_warns_of_a_password_on_the_command_line(
    tmp_path: Path, postgres: PostgresCluster, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given an address with a password as an option, then a warning names a safer place for it."""
    Client.local(tmp_path, sandbox=True, database=postgres_url).close()
    bare = postgres_url.replace(f":{postgres.password}@", "@")
    words = ["doctor", "--no-vendors", "--data-dir", str(tmp_path)]
    result = run_toolkit(*words, "--database", postgres_url)
    assert "PGPASSWORD" in result.stderr
    assert postgres.password not in result.output
    monkeypatch.setenv("PGPASSWORD", postgres.password)
    assert run_toolkit(*words, "--database", bare).stderr == ""
    monkeypatch.setenv("TOOLKIT_DATABASE", postgres_url)
    assert run_toolkit(*words).stderr == ""
