"""API keys for workers: they submit work within a budget, and reach nothing else."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from tests.conftest import Server
from toolkit import Client, RequestError
from toolkit.contract.base import now
from toolkit.contract.errors import ErrorCode
from toolkit.contract.operations.table import OPERATIONS
from toolkit.settings import Settings
from toolkit.store.blob_places.folder import BlobFolder
from toolkit.store.maintenance.prune import prune_records
from toolkit.store.sqlite.upkeep import SqliteUpkeep

# The operations that such a key may call; all others must be rejected.
WORK = {
    *(f"POST /v1/{kind}" for kind in ("runs", "jobs", "workflows", "tasks", "plans", "route")),
    *(f"GET /v1/{kind}/{{id}}" for kind in ("runs", "jobs", "workflows", "tasks", "plans")),
    *(f"GET /v1/{kind}/{{id}}/events" for kind in ("runs", "jobs", "workflows", "tasks")),
    *(f"POST /v1/{kind}/{{id}}/cancel" for kind in ("runs", "jobs", "workflows", "tasks")),
    "POST /v1/workflows/{id}/retry", "POST /v1/workflows/{id}/fork", "POST /v1/tasks/{id}/resume",
    "POST /v1/artifacts", "GET /v1/artifacts/{id}", "GET /v1/artifacts/{id}/content",
    "GET /v1/artifacts/{id}/lineage", "GET /v1/capabilities", "GET /v1/capabilities/{id}",
    "GET /v1/providers", "GET /v1/account",
}  # fmt: skip


@contextmanager
def open_owner(data_dir: Path) -> Iterator[Client]:
    """The client of an account that has a connection, at a server."""
    with (
        closing(Server(Settings(data_dir=data_dir, sandbox=True))) as server,
        Client(server.url, server.sign_up("openai")) as client,
    ):
        yield client


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[Client]:
    """The client of an account that has a connection, at a server."""
    with open_owner(tmp_path / "data") as client:
        yield client


def test_work_key_reaches_only_work(owner: Client) -> None:
    """Given a key for work alone, then every other operation is rejected."""
    key = owner.api_keys.create(scopes=["work"]).api_key
    url = str(owner.access.base_url).removesuffix("/").removesuffix("/v1")
    rejected, accepted = set[str](), set[str]()
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}) as http:
        for operation in OPERATIONS:
            if operation.scope is not None:
                path = operation.path.replace("{id}", "none")
                is_rejected = http.request(operation.method, path, json={}).status_code == 403
                name = f"{operation.method} {operation.path}"
                (rejected if is_rejected else accepted).add(name)
    assert accepted == WORK
    assert "POST /v1/providers/connections" in rejected


def test_work_key_keeps_its_total_budget(owner: Client) -> None:
    """Given a total budget, then work is done until it is spent, also by rotated keys."""
    work_key = owner.api_keys.create(scopes=["work"], max_cost_usd=0.0004, expires_in_s=3600)
    assert work_key.expires_at is not None
    assert abs(work_key.expires_at - now() - timedelta(hours=1)) < timedelta(minutes=2)
    fields = {"objective": "A line on tides", "max_tokens": 100}
    statuses = []
    with Client(owner.access.base_url, work_key.api_key) as worker:
        assert worker.info().spent_today_usd is None
        for _ in range(40):
            try:
                run = worker.runs.create("llm.generate", fields)
            except RequestError as error:
                assert error.code is ErrorCode.BUDGET_EXCEEDED  # noqa: PT017
                break
            statuses.append(run.wait(progress=False, check=False).status)
        else:
            pytest.fail("a budget has no end")
        with pytest.raises(RequestError, match="FORBIDDEN"):
            worker.connections.connect("google")
    assert "completed" in statuses
    spent = sum(run.record.cost_incurred_usd for run in owner.runs.list())
    assert 0 < spent <= 0.0004
    left_usd = owner.api_keys.get(work_key.id).record.left_usd
    assert left_usd == pytest.approx(0.0004 - spent)
    rotated = owner.api_keys.rotate(work_key.id)
    assert rotated.expires_at is not None
    with (
        Client(owner.access.base_url, rotated.api_key) as worker,
        pytest.raises(RequestError, match="in total"),
    ):
        worker.runs.create("llm.generate", fields)


@pytest.mark.sqlite("a data directory is pruned by its path")
def test_pruning_keeps_the_spent_part_of_a_total_budget(tmp_path: Path) -> None:
    """Given a partly spent budget, when old records are pruned, then it stays partly spent."""
    data_dir = tmp_path / "data"
    with open_owner(data_dir) as owner:
        work_key = owner.api_keys.create(scopes=["work"], max_cost_usd=1)
        with Client(owner.access.base_url, work_key.api_key) as worker:
            worker.runs.create("llm.generate", {"objective": "Tides"}).wait(progress=False)
        left_usd = owner.api_keys.get(work_key.id).record.left_usd
        assert left_usd is not None
        assert left_usd < 1
        with SqliteUpkeep.open(data_dir) as records:
            prune_records(records, timedelta(0), BlobFolder(data_dir / "artifacts"))
        assert not list(owner.runs.list())
        assert owner.api_keys.get(work_key.id).record.left_usd == left_usd


def test_key_grants_only_scopes_that_it_has(owner: Client) -> None:
    """Given a key with two scopes, then the keys that it creates have no other scope."""
    key = owner.api_keys.create(scopes=["work", "admin"]).api_key
    with Client(owner.access.base_url, key) as narrow:
        with pytest.raises(RequestError, match="scope that it lacks"):
            narrow.api_keys.create(scopes=["read"])
        assert narrow.api_keys.create(scopes=["work"]).scopes == ["work"]
