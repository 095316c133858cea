"""`--read-only` and `read_only=True`, on both databases: they show all accounts and never write."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests._postgres import PostgresCluster
from tests.support.commands import say
from toolkit import Client, RequestError, Workflow
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.settings import Settings
from toolkit.store.postgres.reads import PostgresReadConnection
from toolkit.store.tables import metadata

Run = Callable[..., list[Any]]


@pytest.fixture(params=["sqlite", "postgresql"])
def rows(
    request: pytest.FixtureRequest, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Run]:
    """A function that runs a statement in the database of the settings, and fetches its rows."""
    if request.param == "sqlite":
        Client.local(settings=settings).close()
        with closing(sqlite3.connect(settings.data_dir / "state.db")) as connection:
            yield lambda sql: _finish(connection, connection.execute(sql))
        return
    url = request.getfixturevalue("postgres_url")
    cluster: PostgresCluster = request.getfixturevalue("postgres")
    monkeypatch.setenv("TOOLKIT_DATABASE", url)
    with cluster.connect(url.rpartition("/")[2]) as connection:
        yield lambda sql: _finish(connection, connection.execute(sql.encode()))


def _finish(connection: Any, cursor: Any) -> list[Any]:
    fetched = cursor.fetchall() if cursor.description else []
    connection.commit()
    return list(fetched)


def read_everything(rows: Run, folder: Path) -> tuple[dict[str, list[Any]], dict[Path, bytes]]:
    """Read all rows of all tables, and all files but SQLite's logs."""
    tables = {table: sorted(map(repr, rows(f"SELECT * FROM {table}"))) for table in metadata.tables}
    files = [path for path in folder.rglob("*") if path.is_file() and "state.db-" not in path.name]
    return tables, {path: path.read_bytes() for path in files}


def test_read_only_mode_writes_nothing(rows: Run, settings: Settings, tmp_path: Path) -> None:
    """Given `--read-only`, then all accounts are shown, and neither a byte nor a row is written."""
    with Client.local(settings.data_dir, sandbox=True) as client:
        run = client.runs.create("composition.layout", {"title": "Tea"}, tags=["a"]).wait(
            progress=False
        )
        wf = Workflow("tea")
        wf.add("tea", "llm.generate", objective="Tea")
        workflow = client.workflows.submit(wf).wait(progress=False)
    say("account", "create", "ada@example.org", "--data-dir", settings.data_dir)
    ((ada,),) = rows("SELECT id FROM accounts WHERE email = 'ada@example.org'")
    for table in ("jobs", "artifacts", "roots", "annotations"):
        rows(f"UPDATE {table} SET account_id = '{ada}'")
    before = read_everything(rows, settings.data_dir)
    options = ("--data-dir", settings.data_dir, "--read-only")
    (listed_run,) = json.loads(say("runs", *options, "--json"))
    assert listed_run["id"] == run.id
    card = tmp_path / "card.png"
    say("artifacts", "save", run.artifact_id, card, *options)
    assert card.stat().st_size
    for command in (["events", run.id], ["show", run.id]):
        say("runs", *command, *options)
    for area in ("workflows", "tasks", "keys", "usage", "connections", "health", "endpoints"):
        say(area, *options)
    with Client.local(settings.data_dir, read_only=True) as client:
        runs = client.runs.list(tag="a", capability="composition.layout", q="TEA")
        assert [listed.id for listed in runs] == [run.id]
        assert client.workflows.get(workflow.id).status == "completed"
        assert client.runs.get(run.id).wait(progress=False).status == "completed"
        with pytest.raises(RequestError) as refused:
            client.runs.create("composition.layout", {"title": "Tea"})
        assert refused.value.code is ErrorCode.FORBIDDEN
    assert read_everything(rows, settings.data_dir) == before


def test_read_only_mode_creates_no_tables(tmp_path: Path, postgres_url: str) -> None:
    """Given an empty database, then read-only mode rejects it, and creates nothing."""
    with pytest.raises(ServiceError, match="no tables of the toolkit"):
        Client.local(tmp_path / "none", database=postgres_url, read_only=True)
    assert not (tmp_path / "none").exists()


async def test_server_rejects_writes_of_a_read_only_connection(postgres_url: str) -> None:
    """Given a read-only connection, then PostgreSQL itself rejects a write."""
    url = f"{postgres_url}?options=-c%20statement_timeout%3D1234&target_session_attrs=read-write"
    reads = PostgresReadConnection(url, "toolkit test", is_read_only=True)
    try:
        assert await reads.fetch_values("SHOW statement_timeout", {}) == ("1234ms",)
        with pytest.raises(ServiceError, match="read-only transaction"):
            await reads.fetch_rows("CREATE TABLE t (id text)", {})
    finally:
        await reads.close()


def test_bills_each_account_by_its_own_id(rows: Run, settings: Settings) -> None:
    """Given pods of two accounts, then `--read-only` bills each of them under its own id."""
    with Client.local(settings.data_dir, sandbox=True) as client:
        pods = [client.compute.create(name, "NVIDIA GeForce RTX 4090") for name in "ab"]
        mine = client.account.get().id
    say("account", "create", "ada@example.org", "--data-dir", settings.data_dir)
    ((ada,),) = rows("SELECT id FROM accounts WHERE email = 'ada@example.org'")
    rows(f"UPDATE compute SET account_id = '{ada}' WHERE id = '{pods[0].id}'")
    with Client.local(settings.data_dir, read_only=True) as client:
        bill = client.billing.get(by_account=True).record
    assert {line.account_id for line in bill.lines if line.pod_hours} == {mine, ada}
