"""Upgrades, and moves of a directory to a database."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path

import pytest

from tests.store.conftest import Execute
from tests.store.rows import make_row
from tests.store.upkeep import read_json
from tests.support.commands import run_toolkit, say
from tests.support.database_pool import execute_sql
from tests.support.later_version import LATER, make_later_version
from tests.support.s3_server import ACCESS_KEY, BUCKET, S3Link, make_bucket, run_s3_server
from toolkit import Client
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.operations.work_queries import WorkFilter
from toolkit.store import AccountScope, AddSpending, ReadOnlyStore, Store
from toolkit.store.schema import HEAD_REVISION
from toolkit.store.tables import metadata
from toolkit.store.work_lists import RUN_LIST

LINE = {"objective": "Salt"}


def run_migrate(version: Path, folder: Path, url: str | None) -> subprocess.CompletedProcess[str]:
    """Run `toolkit migrate` of a version of the package."""
    words = [sys.executable, "-m", "toolkit", "migrate", "--data-dir", str(folder)]
    env = {**os.environ, "PYTHONPATH": str(version)}
    if url is not None:
        words += ["--database", url]
    return subprocess.run(words, cwd=version, env=env, capture_output=True, text=True, timeout=60)


def test_the_next_version_upgrades_a_database(
    tmp_path: Path, url: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a run, when the next version migrates its database, then both versions read the run."""
    folder = tmp_path / "data"
    if url is not None:
        monkeypatch.setenv("TOOLKIT_DATABASE", url)
    with Client.local(folder, sandbox=True) as client:
        run = client.runs.create("llm.generate", LINE).wait()
    result = run_migrate(make_later_version(tmp_path / "later"), folder, url)
    assert (result.returncode, LATER in result.stdout) == (0, True), result.stderr
    versions = execute_sql(folder, url, "SELECT version_num, oldest FROM alembic_version")
    assert versions == [(LATER, HEAD_REVISION)]
    assert execute_sql(folder, url, "SELECT later FROM jobs") == [(None,)]
    with Client.local(folder, sandbox=True) as client:
        assert client.runs.get(run.id).output == run.output
        assert client.runs.create("llm.generate", LINE).wait().status == "completed"


async def test_no_incompatible_upgrade_while_engines_run(tmp_path: Path, url: str | None) -> None:
    """Given engines that cannot use the next tables, then no migration runs until they stop."""
    later = make_later_version(tmp_path / "later", oldest=LATER)
    store = await Store.open(tmp_path / "data", database=url)
    try:
        result = run_migrate(later, tmp_path / "data", url)
        assert (result.returncode, "stop them" in result.stderr) == (4, True), result.stderr
        versions = execute_sql(tmp_path / "data", url, "SELECT version_num FROM alembic_version")
        assert versions == [(HEAD_REVISION,)]
    finally:
        await store.close()
    assert run_migrate(later, tmp_path / "data", url).returncode == 0


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE alembic_version SET version_num = '0015'",
        "UPDATE alembic_version SET shape = '0123456789abcdef'",
        "ALTER TABLE alembic_version DROP COLUMN shape",
    ],
    ids=["earlier number", "other columns", "no digest"],
)
async def test_refuses_tables_of_an_unreleased_version(
    tmp_path: Path, url: str | None, change: str
) -> None:
    """Given tables of a version before the first release, then one line says what to do."""
    await (await Store.open(tmp_path, database=url)).close()
    execute_sql(tmp_path, url, change)
    versions = execute_sql(tmp_path, url, "SELECT * FROM alembic_version")
    before = (tmp_path / "state.db").read_bytes() if url is None else b""
    with pytest.raises(ServiceError, match="TOOLKIT_DATA_DIR to a new directory") as refused:
        await Store.open(tmp_path, database=url)
    assert refused.value.code is ErrorCode.UNAVAILABLE
    assert "\n" not in refused.value.message
    options = [] if url is None else ["--database", url]
    result = run_toolkit("doctor", "--no-vendors", "--data-dir", tmp_path, *options)
    assert (result.exit_code, "unreleased" in f"{result.output}{result.exception}") == (1, True)
    assert execute_sql(tmp_path, url, "SELECT * FROM alembic_version") == versions
    assert url is not None or (tmp_path / "state.db").read_bytes() == before


RUN_ID = new_id(Prefix.RUN)

ROWS = (
    make_row("accounts", "acc_a"),
    make_row("accounts", "acc_b", operator=True),
    make_row("connections", "prv_a", account_id="acc_b"),
    make_row("shares", "prv_a|*", connection_id="prv_a", shared_with="*"),
    make_row("roots", RUN_ID, account_id="acc_a", kind="run"),
    make_row("jobs", "job_a", account_id="acc_a", root_id=RUN_ID, run_id=RUN_ID),
)


@pytest.fixture
async def store(tmp_path: Path, url: str | None) -> AsyncIterator[Store]:
    """An open store with two accounts, a run and a shared connection."""
    opened = await Store.open(tmp_path, database=url)
    await opened.write(ROWS)
    yield opened
    await opened.close()


def expand(execute: Execute, oldest: str) -> None:
    """Migrate as a later version: add a column to each table, and a table."""
    # Triggers of SQLite insert whole rows of sums, so a migration of that table replaces them.
    for table in metadata.tables.keys() - {"stored_bytes"}:
        execute(f"ALTER TABLE {table} ADD COLUMN later TEXT")
    execute("CREATE TABLE later (id TEXT PRIMARY KEY)")
    execute(f"UPDATE alembic_version SET version_num = '9999', oldest = '{oldest}'")


async def use(store: Store, number: int) -> None:
    """Read and write all tables that have hand-written statements."""
    await store.write([AddSpending("day", "key", 1, None)])
    assert (await store.get_spending("day"))[0] == number
    (shared,) = await store.list_shared_connections("acc_a")
    assert shared["id"] == "prv_a"
    (run,) = await store.list_work(RUN_LIST, AccountScope("acc_a"), WorkFilter(), 10, None)
    assert run["id"] == "job_a"
    (row,) = await store.find_rows("jobs", account_id="acc_a")
    assert row["root_id"] == RUN_ID
    name = f"plan_{number}"
    await store.write([make_row("plans", name)])
    assert await store.get_row("plans", name) is not None


async def test_a_running_store_tolerates_new_columns(store: Store, execute: Execute) -> None:
    """Given statements in use, when all tables get a column, then the statements still work."""
    for number in range(1, 4):
        await use(store, number)
    expand(execute, HEAD_REVISION)
    for number in range(4, 7):
        await use(store, number)


async def test_opens_a_compatible_later_database(
    store: Store, execute: Execute, tmp_path: Path, url: str | None
) -> None:
    """Given tables of a later version that this version may use, then stores open them."""
    expand(execute, HEAD_REVISION)
    again = await Store.open(tmp_path, database=url)
    await use(again, 1)
    await again.close()
    assert execute("SELECT version_num FROM alembic_version") == [("9999",)]
    looking = await ReadOnlyStore.view(tmp_path, None, database=url)
    assert await looking.get_row("jobs", "job_a") is not None
    await looking.close()


async def test_refuses_an_incompatible_later_database(
    store: Store, execute: Execute, tmp_path: Path, url: str | None
) -> None:
    """Given tables of a later version that removed something, then one line refuses them."""
    expand(execute, "9998")
    with pytest.raises(ServiceError, match="use the later version") as refused:
        await Store.open(tmp_path, database=url)
    assert refused.value.code is ErrorCode.UNAVAILABLE
    assert "\n" not in refused.value.message


async def test_doctor_and_migrate_refuse_a_later_database(
    store: Store, execute: Execute, tmp_path: Path, url: str | None
) -> None:
    """Given the tables of a later version, then doctor and migrate refuse them."""
    await store.close()
    expand(execute, HEAD_REVISION)
    options = [] if url is None else ["--database", url]
    result = run_toolkit("doctor", "--no-vendors", "--data-dir", tmp_path, *options)
    if url is None:
        assert "of a later version" in result.output
        result = run_toolkit("migrate", "--from", tmp_path, "--to", "postgresql://127.0.0.1:1/none")
    assert result.exit_code == 1
    assert "later version" in str(result.exception)


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
        with S3Link(old_server) as old, S3Link(s3_server) as new:
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
