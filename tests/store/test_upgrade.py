"""Data directories of every earlier version: opened, migrated, and gone on with.

With the tests on PostgreSQL, each is moved into a database first.
"""

import asyncio
import json
import sqlite3
import tarfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from typer.testing import CliRunner

from tests.support.database_pool import DatabasePool
from toolkit import Client, Workflow
from toolkit.assembly import list_simulated_ids
from toolkit.cli import app
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.engine import Registry
from toolkit.sandbox import Faults
from toolkit.store import Store
from toolkit.store.schema import HEAD_REVISION, MIGRATIONS_DIR

FACTS = Path(__file__).parent / "facts"
EARLIER = sorted(
    path.name[:4]
    for path in (MIGRATIONS_DIR / "versions").glob("[0-9]*.py")
    if path.name[:4] < HEAD_REVISION
)


@pytest.fixture
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A data directory that the version of a migration left behind when it was killed."""
    with tarfile.open(FACTS / f"data_{request.param}.tar.xz") as archive:
        archive.extractall(tmp_path / "data", filter="data")
    return tmp_path / "data"


def rows(folder: Path, sql: str, url: str | None = None) -> list[tuple[object, ...]]:
    """Return the rows of the directory's database, or of the one that it was moved to."""
    if url is not None:
        with psycopg.connect(url) as database:
            return database.execute(sql.encode()).fetchall()
    with closing(sqlite3.connect(folder / "state.db")) as connection:
        return connection.execute(sql).fetchall()


async def _migrate(folder: Path) -> None:
    await (await Store.open(folder, take_up=True)).close()


@pytest.fixture
def move(folder: Path, database_pool: DatabasePool | None) -> Callable[[], str | None]:
    """Moves the directory into a database, whose address it returns; on SQLite it stays."""

    def move_folder() -> str | None:
        if database_pool is None:
            return None
        asyncio.run(_migrate(folder))
        url = database_pool.adopt(folder)
        moved = CliRunner().invoke(app, ["migrate", "--from", str(folder), "--to", url])
        assert moved.exit_code == 0, moved.output
        return url

    return move_folder


@pytest.mark.parametrize("folder", EARLIER, indirect=True)
def test_a_directory_of_an_earlier_version(
    folder: Path, request: pytest.FixtureRequest, move: Callable[[], str | None]
) -> None:
    """Given what an earlier version left, then all of it is there, and what ran goes on."""
    (found,) = rows(folder, "SELECT version_num FROM alembic_version")
    assert found == (request.node.callspec.params["folder"],)
    completed = dict(rows(folder, "SELECT id, doc FROM jobs WHERE status = 'completed'"))
    (workflow_id,) = rows(folder, "SELECT id FROM workflows WHERE task_id IS NULL")[0]
    faults, url = Faults(), move()
    # Unpacked, it is a copy, as the later ones of them know.
    with Client.local(folder, sandbox=True, faults=faults, take_up=True) as client:
        done = client.workflows.get(str(workflow_id)).wait()
        assert (done.status, len(done.nodes)) == ("completed", 150)
        jobs = {node.job_id: node for node in done.nodes}
        kept = [job_id for job_id in completed if job_id in jobs]
        assert len(kept) >= 5
        assert sum(call.billed for call in faults.calls) == 150 - len(kept)
        assert len(client.runs.list()) == 2
        assert client.tasks.list()[0].refresh().status == "completed"
        sizes = [len(client.artifacts.get(one.id).content()) for one in client.artifacts.list(200)]
        assert sizes == [one.record.size_bytes for one in client.artifacts.list(200)]
        assert len(client.connections.list()) == len(list_simulated_ids(Registry.load()))
        first = client.connections.list()[0]
        assert client.connections.share(first.id, "all").record.shared_with == "all"
        assert client.runs.create("llm.generate", {"objective": "Salt"}).wait().output
    assert rows(folder, "SELECT version_num FROM alembic_version", url) == [(HEAD_REVISION,)]
    where = ["--data-dir", str(folder), *(["--database", url] if url is not None else [])]
    shown = CliRunner().invoke(app, ["doctor", *where, "--deep"])
    assert shown.exit_code == 0, shown.stdout


@pytest.mark.parametrize("folder", EARLIER[-1:], indirect=True)
def test_what_jobs_worked_from(folder: Path, move: Callable[[], str | None]) -> None:
    """Given jobs of earlier versions and new ones, then each is stored so that both can read it."""
    found = dict(rows(folder, "SELECT id, doc FROM jobs WHERE doc LIKE '%from_artifacts\":{\"%'"))
    assert found
    url = move()
    with Client.local(folder, sandbox=True) as client:
        for job_id, doc in found.items():
            shown = client.jobs.get(str(job_id)).record.input
            assert shown["from_artifacts"] == json.loads(str(doc))["from_artifacts"]
        wf = Workflow("two")
        tea = wf.add("tea", "research.gather", topic="Tea")
        wf.add("salt", "research.gather", topic="Salt", depends_on=[tea])
        done = client.workflows.submit(wf).wait(progress=False)
    (kept,) = rows(folder, f"SELECT doc FROM jobs WHERE id = '{done.nodes[1].job_id}'", url)
    doc = json.loads(str(kept[0]))
    assert doc["input"] == {"topic": "Salt"}, "an earlier version refuses more than that"
    assert doc["from_artifacts"] == {"tea": done.nodes[0].artifact_id}


def test_every_earlier_version_is_here() -> None:
    """Given the migrations, then each but the last has a directory that it left behind."""
    assert [path.name[5:9] for path in sorted(FACTS.glob("data_*.tar.xz"))] == EARLIER


@pytest.mark.sqlite("a directory's tables; those of a database: test_postgres_schema")
@pytest.mark.parametrize("folder", EARLIER[-1:], indirect=True)
def test_a_directory_of_a_later_version(folder: Path) -> None:
    """Given a directory of a later version, then it is refused in one line, and left alone."""
    with closing(sqlite3.connect(folder / "state.db")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999', oldest = '9999'")
        connection.commit()
    before = (folder / "state.db").read_bytes()
    with pytest.raises(ServiceError, match="later version of the toolkit") as refused:
        Client.local(folder, sandbox=True)
    assert refused.value.code is ErrorCode.UNAVAILABLE
    assert "\n" not in str(refused.value)
    assert (folder / "state.db").read_bytes() == before
    shown = CliRunner().invoke(app, ["doctor", "--data-dir", str(folder)])
    assert (shown.exit_code, "later version" in str(shown.exception)) == (1, True)
