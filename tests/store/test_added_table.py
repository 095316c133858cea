"""A new table needs one edit: upkeep reads its definition, on both databases."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

import toolkit
from tests._postgres import find_postgres
from toolkit.store.stored_bytes import ROW_OVERHEAD_BYTES

TABLE = """

remarks = _make_table(
    "remarks",
    *_make_text_columns("account_id", "job_id"),
    _make_doc_column(),
    roles=TableRoles(counted=("doc",), decisive=("doc",), deleted_with={"job_id": ("job",)}),
)
"""
# Runs the command of each input line, and prints its output.
PROGRAM = """
import json, sys
from typer.testing import CliRunner
from toolkit import Client
from toolkit.cli import app
with Client.local(sys.argv[1], sandbox=True) as client:
    client.runs.create("speech.generate", {"text": "Salt."}).wait(progress=False)
print(json.dumps("worked"), flush=True)
for line in sys.stdin:
    words, database = json.loads(line)
    done = CliRunner().invoke(app, words, env={"TOOLKIT_DATABASE": database})
    if done.exit_code:
        raise SystemExit(done.output) from done.exception
    print(json.dumps(done.stdout), flush=True)
"""
DOC = '{"text": "salt"}'
INSERT = f"INSERT INTO remarks SELECT 'rem_1', account_id, id, '{DOC}' FROM jobs"
SUM = "SELECT sum(records) FROM stored_bytes"
VERSION = "SELECT version FROM configuration"
REMARKS = "SELECT id, doc FROM remarks"
AGE = "UPDATE roots SET created_at = '2020-01-01T00:00:00.000Z'"

Run = Callable[..., str]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with one more table."""
    package = tmp_path_factory.mktemp("source") / "toolkit"
    shutil.copytree(Path(toolkit.__file__).parent, package)
    with (package / "store" / "tables.py").open("a") as tables:
        tables.write(TABLE)
    return package


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A directory in which the copy has done some work."""
    return tmp_path / "data"


@pytest.fixture
def run(package: Path, data_dir: Path) -> Iterator[Run]:
    """Runs a command of the copy of the package, and returns its output."""
    with subprocess.Popen(
        [sys.executable, "-P", "-c", PROGRAM, str(data_dir)],
        env={**os.environ, "PYTHONPATH": str(package.parent)},
        cwd=data_dir.parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as program:  # fmt: skip
        requests, answers = program.stdin, program.stdout
        assert requests is not None
        assert answers is not None

        def run_command(*words: object, database: str | None = None) -> str:
            print(json.dumps([list(map(str, words)), database]), file=requests, flush=True)
            return str(json.loads(answers.readline()))

        assert json.loads(answers.readline()) == "worked"
        yield run_command
        requests.close()


def check_counted(execute: Callable[[str], Any]) -> None:
    """Check that a new row is counted, and increments the configuration's version."""
    before, version = (execute(query).fetchone()[0] for query in (SUM, VERSION))
    execute(INSERT)
    assert execute(SUM).fetchone()[0] - before == ROW_OVERHEAD_BYTES + len(DOC)
    assert execute(VERSION).fetchone()[0] == version + 1


def prune(run: Run, data_dir: Path, database: str | None = None) -> Any:
    """Prune rows older than a day; return the number of rows deleted from the table."""
    words = ("prune", "--older-than", "1d", "--data-dir", data_dir, "--json")
    dry = json.loads(run(*words, "--dry-run", database=database))
    wet = json.loads(run(*words, database=database))
    assert dry["rows"] == wet["rows"]
    return wet["rows"]["remarks"]


def test_maintains_a_new_table_in_a_directory(run: Run, data_dir: Path, tmp_path: Path) -> None:
    """Given a new table, then upkeep of a directory counts, backs up and prunes its rows."""
    copy = tmp_path / "copy"
    with closing(sqlite3.connect(data_dir / "state.db", isolation_level=None)) as rows:
        check_counted(rows.execute)
        run("backup", copy, "--data-dir", data_dir)
        with closing(sqlite3.connect(copy / "state.db")) as copied:
            assert copied.execute(REMARKS).fetchall() == [("rem_1", DOC)]
        rows.execute(AGE)
        assert prune(run, data_dir) == 1
        assert rows.execute(REMARKS).fetchall() == []


def test_maintains_a_new_table_in_a_database(
    run: Run, data_dir: Path, tmp_path: Path, postgres_url: str
) -> None:
    """Given a new table, then upkeep of a database moves, counts, backs up and prunes its rows."""
    copy = tmp_path / "copy"
    programs = find_postgres()
    assert programs is not None
    with closing(sqlite3.connect(data_dir / "state.db", isolation_level=None)) as source:
        source.execute(INSERT)
    run("migrate", "--from", data_dir, "--to", postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as rows:
        assert rows.execute(REMARKS).fetchall() == [("rem_1", DOC)]
        rows.execute("DELETE FROM remarks")
        check_counted(lambda query: rows.execute(query.encode()))
        run("backup", copy, "--data-dir", data_dir, database=postgres_url)
        restore = [str(programs / "pg_restore"), "--table", "remarks", "--file", "-"]
        dump = subprocess.run(
            [*restore, str(copy / "database.dump")], check=True, capture_output=True, text=True
        )
        assert DOC in dump.stdout
        rows.execute(AGE)
        assert prune(run, data_dir, postgres_url) == 1
        assert rows.execute(REMARKS).fetchall() == []
