"""Documents to which a later version has added something: read, gone on with, and kept whole."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.store.test_upgrade import FACTS, folder, rows
from toolkit import Client

__all__ = ["folder"]
NEWEST = max(path.name[5:9] for path in FACTS.glob("data_*.tar.xz"))
TABLES = ("jobs", "workflows", "tasks", "connections", "artifacts", "plans")
ADDED = {"later": {"a": [1, None]}, "later_note": "kept"}


@pytest.mark.parametrize("folder", [NEWEST], indirect=True)
def test_what_a_later_version_added_is_kept(folder: Path) -> None:
    """Given documents with unknown members, when work goes on, then they are there at its end."""
    with closing(sqlite3.connect(folder / "state.db")) as database:
        for table in TABLES:
            database.execute(f"UPDATE {table} SET doc = json_patch(doc, ?)", (json.dumps(ADDED),))
        database.commit()
    before = {table: dict(rows(folder, f"SELECT id, doc FROM {table}")) for table in TABLES}
    with Client.local(folder, sandbox=True, take_up=True) as client:
        (workflow_id,) = rows(folder, "SELECT id FROM workflows WHERE task_id IS NULL")[0]
        done = client.workflows.get(str(workflow_id)).wait()
        assert done.status == "completed"
        task = client.tasks.list()[0]
        assert client.connections.list()[0].record.provider
        client.connections.delete(client.connections.list()[0].id)
        assert task.refresh().status == "completed"
    rewritten = set()
    for table in TABLES:
        now = dict(rows(folder, f"SELECT id, doc FROM {table}"))
        for row_id, doc in before[table].items():
            kept = json.loads(str(now[row_id]))
            assert {name: kept.get(name) for name in ADDED} == ADDED, (table, row_id)
            rewritten |= {table} if now[row_id] != doc else set()
    assert rewritten >= {"jobs", "workflows", "connections"}
