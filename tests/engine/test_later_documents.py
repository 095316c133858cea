"""Documents with members of a later version: they are read, updated, and keep these members."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.timing import wait_until
from toolkit import Client, Workflow
from toolkit.sandbox import Faults
from toolkit.settings import Settings

TABLES = ("jobs", "workflows", "tasks", "connections", "artifacts", "plans")
RUNS = 5  # of which one is called at a time, because running calls complete at close
ADDED = {"later": {"a": [1, None]}, "later_note": "kept"}


def rows(folder: Path, sql: str) -> list[tuple[object, ...]]:
    """Return the rows of the directory's database."""
    with closing(sqlite3.connect(folder / "state.db")) as connection:
        return connection.execute(sql).fetchall()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data directory with a completed task, a plan, and an unfinished workflow and runs."""
    folder, faults, work = tmp_path / "data", Faults(), Workflow("a chain")
    node = work.add("first", "llm.generate", objective="Tea")
    for n in range(5):
        node = work.add(f"n{n}", "llm.generate", objective="Salt", depends_on=[node])
    narrow = Settings(max_concurrent_calls=1)
    with Client.local(folder, sandbox=True, faults=faults, settings=narrow) as client:
        client.plans.create("A poem about tea")
        assert client.tasks.create("A poem about tea").wait().status == "completed"
        for vendor in {connection.record.provider for connection in client.connections.list()}:
            faults.latency(vendor, 2000)
        workflow = client.workflows.submit(work)
        wait_until(lambda: workflow.refresh().nodes[0].status == "completed", "a node is completed")
        for _ in range(RUNS):
            client.runs.create("llm.generate", {"objective": "Tea"})
    return folder


@pytest.mark.sqlite("the documents in a directory's file")
def test_keeps_members_of_a_later_version(folder: Path) -> None:
    """Given documents with unknown members, when work continues, then the members are kept."""
    with closing(sqlite3.connect(folder / "state.db")) as database:
        for table in TABLES:
            database.execute(f"UPDATE {table} SET doc = json_patch(doc, ?)", (json.dumps(ADDED),))
        database.commit()
    (status,) = rows(folder, "SELECT status FROM workflows WHERE task_id IS NULL")[0]
    assert status == "running"
    before = {table: dict(rows(folder, f"SELECT id, doc FROM {table}")) for table in TABLES}
    with Client.local(folder, sandbox=True) as client:
        (workflow_id,) = rows(folder, "SELECT id FROM workflows WHERE task_id IS NULL")[0]
        workflow = client.workflows.get(str(workflow_id)).wait()
        assert workflow.status == "completed"
        for run in client.runs.list(limit=RUNS):
            assert run.wait().status == "completed"
        task = client.tasks.list()[0]
        assert client.connections.list()[0].record.provider
        client.connections.delete(client.connections.list()[0].id)
        assert task.refresh().status == "completed"
    rewritten = set()
    for table in TABLES:
        now = dict(rows(folder, f"SELECT id, doc FROM {table}"))
        for row_id, doc in before[table].items():
            document = json.loads(str(now[row_id]))
            assert {name: document.get(name) for name in ADDED} == ADDED, (table, row_id)
            rewritten |= {table} if now[row_id] != doc else set()
    assert rewritten >= {"jobs", "workflows", "connections"}
