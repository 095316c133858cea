"""The key that a batch lends to notebooks on workers: its permissions and its budget."""

import pytest

from tests.batch.conftest import PROCESSES, Write, run_batch
from tests.conftest import Server
from toolkit import Client

pytest.importorskip("uvicorn")

# A notebook can read an artifact of the account only by an id that its row names.
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
batch.record("text", client.artifacts.get(source).text() if source else "")
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
NOTEBOOK = ("x: int = 1\nsource = ''", PROBE)
LIMIT_USD = 0.0004


def check_row(row: dict[str, object]) -> None:
    """Check that a notebook could work within the budget, and nothing else."""
    assert row["status"] == "completed", row["error"]
    assert set(row["codes"].values()) == {"FORBIDDEN"}, row["codes"]  # type: ignore[attr-defined]
    assert row["scopes"] == ["work"]
    assert row["end"] == "BUDGET_EXCEEDED"
    assert 0 < row["spent"] <= LIMIT_USD  # type: ignore[operator]


def test_limits_a_notebook_to_the_budget_of_its_batch(notebook: Write) -> None:
    """Given a batch with its own engine, then the lent key works up to the budget."""
    table = run_batch(notebook(*NOTEBOOK), {"x": [1]}, executor=PROCESSES, max_cost_usd=LIMIT_USD)
    check_row(table.iloc[0].to_dict())


def test_a_server_lends_a_key_for_one_batch(
    notebook: Write, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a server, then the lent key has the batch's budget, and reads artifacts by id only."""
    key = server.sign_up("openai")
    monkeypatch.setenv("TOOLKIT_API_KEY", key)
    with Client(server.url, key) as client:
        source = client.artifacts.upload(b"an input of the batch")
        table = run_batch(
            notebook(*NOTEBOOK), {"x": [1], "source": [source.id]}, executor=PROCESSES,
            max_cost_usd=LIMIT_USD, base_url=server.url, data_dir=None, sandbox=False,
        )  # fmt: skip
        records = [api_key.record for api_key in client.api_keys.list()]
    row = table.iloc[0].to_dict()
    check_row(row)
    assert row["text"] == "an input of the batch"
    (record,) = [record for record in records if record.name == "toolkit batch"]
    assert (record.scopes, record.max_cost_usd) == (["work"], LIMIT_USD)
    assert record.left_usd == pytest.approx(LIMIT_USD - row["spent"])
    assert record.revoked_at is not None
