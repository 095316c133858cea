"""Keys that are lent to workers: they ask for work within a budget, and reach nothing else."""

from collections.abc import Iterator
from contextlib import closing
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

# The paths that such a key may ask for; any other has to be refused.
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


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[Client]:
    """The client of an account that has a connection, at a server."""
    with closing(Server(Settings(data_dir=tmp_path / "data", sandbox=True))) as server:
        with Client(server.url, "") as nobody:
            key = nobody.account.create("lead@example.org").api_key
        with Client(server.url, key) as client:
            client.connections.connect("openai")
            yield client


def test_a_work_key_reaches_work_and_nothing_else(owner: Client) -> None:
    """Given a key for work alone, then each other operation of the service is refused."""
    key = owner.api_keys.create(scopes=["work"]).api_key
    url = str(owner.access.base_url).removesuffix("/").removesuffix("/v1")
    refused, let_in = set(), set()
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}) as http:
        for operation in OPERATIONS:
            if operation.scope is None:
                continue
            named = f"{operation.method} {operation.path}"
            answer = http.request(operation.method, operation.path.replace("{id}", "none"), json={})
            is_refused = answer.status_code == 403
            (refused if is_refused else let_in).add(named)
    assert let_in == WORK
    assert refused.isdisjoint(WORK)
    assert "POST /v1/providers/connections" in refused


def test_a_work_key_works_within_its_total_budget(owner: Client) -> None:
    """Given a budget in total, then work is done until it is spent, by rotated keys too."""
    made = owner.api_keys.create(scopes=["work"], max_cost_usd=0.0004, expires_in_s=3600)
    assert made.expires_at is not None
    assert abs(made.expires_at - now() - timedelta(hours=1)) < timedelta(minutes=2)
    asked = {"objective": "A line on tides", "max_tokens": 100}
    statuses = []
    with Client(owner.access.base_url, made.api_key) as lent:
        assert lent.info().spent_today_usd is None
        for _ in range(40):
            try:
                run = lent.runs.create("llm.generate", asked)
            except RequestError as error:
                assert error.code is ErrorCode.BUDGET_EXCEEDED  # noqa: PT017
                break
            statuses.append(run.wait(progress=False, check=False).status)
        else:
            pytest.fail("a budget has no end")
        with pytest.raises(RequestError, match="FORBIDDEN"):
            lent.connections.connect("google")
    assert "completed" in statuses
    spent = sum(run.record.cost_incurred_usd for run in owner.runs.list())
    assert 0 < spent <= 0.0004
    kept = owner.api_keys.get(made.id).record
    assert kept.left_usd == pytest.approx(0.0004 - spent)

    again = owner.api_keys.rotate(made.id)
    assert again.expires_at is not None
    with (
        Client(owner.access.base_url, again.api_key) as lent,
        pytest.raises(RequestError, match="in total"),
    ):
        lent.runs.create("llm.generate", asked)


@pytest.mark.sqlite("a data directory is pruned by its path")
def test_pruning_keeps_what_is_spent_of_a_total_budget(tmp_path: Path) -> None:
    """Given a total budget that is partly spent, when old records are pruned, then it stays so."""
    data_dir = tmp_path / "data"
    with closing(Server(Settings(data_dir=data_dir, sandbox=True))) as server:
        with Client(server.url, "") as nobody:
            key = nobody.account.create("lead@example.org").api_key
        with Client(server.url, key) as owner:
            owner.connections.connect("openai")
            made = owner.api_keys.create(scopes=["work"], max_cost_usd=1)
            with Client(server.url, made.api_key) as lent:
                lent.runs.create("llm.generate", {"objective": "Tides"}).wait(progress=False)
            left = owner.api_keys.get(made.id).record.left_usd
            assert left is not None
            assert left < 1
            with SqliteUpkeep.open(data_dir) as records:
                prune_records(records, timedelta(0), BlobFolder(data_dir / "artifacts"))
            assert not list(owner.runs.list())
            assert owner.api_keys.get(made.id).record.left_usd == left


def test_a_key_hands_out_work_but_no_more_than_it_has(owner: Client) -> None:
    """Given a key for work alone, then it makes no keys, and one with an allowance none either."""
    key = owner.api_keys.create(scopes=["work", "admin"]).api_key
    with Client(owner.access.base_url, key) as narrow:
        with pytest.raises(RequestError, match="scope that it lacks"):
            narrow.api_keys.create(scopes=["read"])
        assert narrow.api_keys.create(scopes=["work"]).scopes == ["work"]
