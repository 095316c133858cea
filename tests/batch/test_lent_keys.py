"""The key that a batch lends to notebooks on workers: what they can do and spend with it."""

from contextlib import closing
from pathlib import Path

import pytest

from tests.batch.conftest import PROCESSES, Write, run_batch
from tests.conftest import Server
from toolkit import Client, batch
from toolkit.settings import Settings

pytest.importorskip("uvicorn")

# An artifact of the account, but not of the batch, is an input that a row names by its id.
PROBE = """
from toolkit import Client, batch
from toolkit.contract.errors import RequestError

client = Client()
codes = {}
for name, probe in {
    "connect": lambda: client.connections.connect("google"),
    "connections": lambda: client.connections.list(),
    "runs": lambda: client.runs.list(),
    "artifacts": lambda: client.artifacts.list(),
    "usage": lambda: client.usage.list(["day"]),
    "keys": lambda: client.api_keys.create(),
    "agents": lambda: client.agents.list(),
    "compute": lambda: client.compute.list(),
}.items():
    try:
        probe()
        codes[name] = "allowed"
    except RequestError as error:
        codes[name] = error.code.name
batch.record("codes", codes)
batch.record("text", client.artifacts.get(given).text() if given else "")
batch.record("scopes", client.account.get().key.scopes)
spent, end = 0.0, ""
for n in range(40):
    try:
        run = client.runs.create("llm.generate", {"objective": f"Tide {n}", "max_tokens": 100})
    except RequestError as error:
        end = error.code.name
        break
    run.wait(progress=False, check=False)
    spent += run.record.cost_incurred_usd
batch.record("spent", spent)
batch.record("end", end)
"""
LIMIT_USD = 0.0004


def check_row(recorded: dict[str, object]) -> None:
    """Check what a notebook could do: work within the budget, and nothing else."""
    assert set(recorded["codes"].values()) == {"FORBIDDEN"}, recorded["codes"]  # type: ignore[attr-defined]
    assert recorded["scopes"] == ["work"]
    assert recorded["end"] == "BUDGET_EXCEEDED"
    assert 0 < recorded["spent"] <= LIMIT_USD  # type: ignore[operator]


def test_a_notebook_works_within_the_budget_of_its_batch(notebook: Write) -> None:
    """Given an engine of the batch's process, then its key works, to the budget and no further."""
    path = notebook("x: int = 1\ngiven = ''", PROBE)
    table = run_batch(path, {"x": [1]}, executor=PROCESSES, max_cost_usd=LIMIT_USD)
    row = table.iloc[0].to_dict()
    assert row["status"] == "completed", row["error"]
    check_row(row)


def test_a_server_lends_a_key_for_the_batch_alone(notebook: Write, tmp_path: Path) -> None:
    """Given a server, then the key that it lends has the batch's budget, and reads by id only."""
    path = notebook("x: int = 1\ngiven = ''", PROBE)
    with closing(Server(Settings(data_dir=tmp_path / "served", sandbox=True))) as server:
        with Client(server.url, "") as nobody:
            key = nobody.account.create("batch@example.org").api_key
        with Client(server.url, key) as client:
            client.connections.connect("openai")
            given = client.artifacts.upload(b"an input of the batch")
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("TOOLKIT_API_KEY", key)
                table = batch.run(
                    path, {"x": [1], "given": [given.id]}, out=tmp_path / "out", progress=False,
                    base_url=server.url, executor=PROCESSES, max_cost_usd=LIMIT_USD,
                )  # fmt: skip
            (lent,) = [one.record for one in client.api_keys.list() if one.name == "toolkit batch"]
    row = table.iloc[0].to_dict()
    assert row["status"] == "completed", row["error"]
    check_row(row)
    assert row["text"] == "an input of the batch"
    assert (lent.scopes, lent.max_cost_usd) == (["work"], LIMIT_USD)
    assert lent.left_usd == pytest.approx(LIMIT_USD - row["spent"])
    assert lent.revoked_at is not None
