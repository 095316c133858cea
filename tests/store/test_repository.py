"""Repositories: a record is its account's alone, and what is hidden is not there."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from toolkit.contract.agents import Agent
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.storage import Storage
from toolkit.store import AccountScope, Repository, Store

ADA, GRACE = AccountScope("acc_ada"), AccountScope("acc_grace")
AT = datetime(2026, 11, 20, 8, tzinfo=UTC)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """An open store."""
    opened = await Store.open(tmp_path / "data")
    yield opened
    await opened.close()


@pytest.fixture
def agents(store: Store) -> Repository[Agent]:
    """The agents, which a column hides."""
    return Repository(store, "agents", "agent", Agent, deleted=False)


def make_agent(number: int) -> Agent:
    """An agent."""
    return Agent(id=f"agt_{number}", name=f"a{number}", version="1", objective="Tea", created_at=AT)


async def insert_agents(store: Store, agents: Repository[Agent], account: str, *ids: int) -> None:
    """Store some agents of an account."""
    made = map(make_agent, ids)
    await store.write([agents.make_insert(account, one, named=one.id) for one in made])


async def test_a_record_is_its_accounts_alone(store: Store, agents: Repository[Agent]) -> None:
    """Given another account's record, then it is neither read, found nor listed."""
    await insert_agents(store, agents, "acc_ada", 1)
    assert await agents.get(ADA, "agt_1") == make_agent(1)
    assert await agents.find(GRACE, "agt_1") is None
    assert await agents.find_row(GRACE, "agt_1", "named") is None
    assert await agents.find_rows(GRACE) == []
    assert await agents.list(GRACE, 10, None) == []
    with pytest.raises(RequestError, match="agt_1") as refused:
        await agents.get(GRACE, "agt_1")
    assert refused.value.code is ErrorCode.NOT_FOUND


async def test_a_page_begins_below_an_id(store: Store, agents: Repository[Agent]) -> None:
    """Given many records, then a page has the newest of them below an id."""
    await insert_agents(store, agents, "acc_ada", 1, 2, 3, 4)
    assert [one.id for one in await agents.list(ADA, 2, "agt_4")] == ["agt_3", "agt_2"]
    assert [row["id"] for row in await agents.list_rows(ADA, 1, None)] == ["agt_4"]


async def test_what_a_column_hides(store: Store, agents: Repository[Agent]) -> None:
    """Given a record that was deleted, then it is in its row and nowhere else."""
    await insert_agents(store, agents, "acc_ada", 1, 2)
    gone = make_agent(1).model_copy(update={"deleted": True})
    await store.write([agents.make_update(gone, deleted=True)])
    assert await agents.find(ADA, "agt_1") is None
    assert [one.id for one in await agents.list(ADA, 10, None)] == ["agt_2"]
    assert [row["id"] for row in await agents.find_rows(ADA)] == ["agt_2"]
    row = await store.get_row("agents", "agt_1")
    assert row is not None
    assert agents.read(row) == gone


async def test_what_a_status_hides(store: Store) -> None:
    """Given a status that hides, then such a record is not there, and others are."""
    volumes = Repository(store, "storage", "storage", Storage, without="deleted")
    columns = {"vendor_id": None, "connection_id": None, "spec": "{}"}
    for status in ("ready", "deleted"):
        one = Storage(
            id=f"sto_{status}",
            name="weights",
            size_gb=20,
            data_center="EU",
            created_at=AT,
            status=status,
        )
        await store.write([volumes.make_insert("acc_ada", one, status=status, **columns)])
    assert await volumes.find(ADA, "sto_deleted") is None
    assert (await volumes.get(ADA, "sto_ready")).size_gb == 20
    assert [one.id for one in await volumes.list(ADA, 10, None)] == ["sto_ready"]
