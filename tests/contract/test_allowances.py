"""What a key may spend in a day: kept by all processes together, whatever happens in between."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx
import pytest

from tests.conftest import Server
from tests.contract.conftest import signed_up
from tests.engine.dying import die
from tests.waiting import PATIENCE_S
from toolkit import Client, RequestError, Workflow
from toolkit.contract.account import AccountCreate, KeyCreate
from toolkit.contract.connections import ConnectionCreate
from toolkit.contract.errors import ErrorCode
from toolkit.contract.jobs import Job
from toolkit.contract.runs import RunCreate
from toolkit.engine import Engine
from toolkit.local import open_engine
from toolkit.sandbox import Fault, Faults
from toolkit.settings import Settings

ASKED = {"objective": "One line on tides", "max_tokens": 64}


@pytest.fixture
def owner(server: Server) -> Iterator[Client]:
    """The owner of an account that has connected minimax."""
    with signed_up(server.url) as client:
        client.connections.create("minimax", "environment", "MINIMAX_API_KEY")
        yield client


@pytest.fixture
def limited(owner: Client, server: Server) -> Iterator[Callable[[float | None], Client]]:
    """Makes clients with keys of that account that may spend so much in a day."""
    with ExitStack() as clients:

        def make(usd: float | None) -> Client:
            made = owner.account.create_key(max_cost_usd_per_day=usd)
            return clients.enter_context(Client(base_url=server.url, api_key=made.api_key))

        yield make


Limited = Callable[[float | None], Client]


def cost(owner: Client) -> float:
    """What one such run is expected to cost."""
    expected = owner.route("llm.generate", ASKED).record.estimated_cost_usd
    assert expected is not None
    return float(expected)


def test_a_key_is_made_listed_and_used(owner: Client, server: Server) -> None:
    """Given a new key, then it does what its scopes say, and is listed without itself."""
    made = owner.account.create_key(scopes=["read"], max_cost_usd_per_day=0.5)
    assert made.api_key.startswith("sk_live_")
    assert (made.scopes, made.max_cost_usd_per_day) == (["read"], 0.5)
    listed = {key.id: key for key in list(owner.account.keys())}
    assert listed[made.id].record.last4 == made.api_key[-4:]
    assert made.api_key not in str(listed[made.id].to_dict())
    with Client(base_url=server.url, api_key=made.api_key) as reader:
        assert len(reader.connections.list()) == 1
        with pytest.raises(RequestError) as refused:
            reader.runs.create("llm.generate", ASKED)
    assert refused.value.code is ErrorCode.FORBIDDEN


def test_a_run_over_the_allowance_is_refused_at_once(owner: Client, limited: Limited) -> None:
    """Given an allowance below a run's cost, then it is 402 before anything is accepted."""
    poor = limited(cost(owner) * 0.9)
    with pytest.raises(RequestError) as refused:
        poor.runs.create("llm.generate", ASKED)
    assert refused.value.code is ErrorCode.BUDGET_EXCEEDED
    assert "midnight UTC" in str(refused.value)
    assert len(poor.runs.list()) == 0
    assert owner.runs.create("llm.generate", ASKED).wait().status == "completed"


def test_all_work_of_a_key_counts(owner: Client, limited: Limited) -> None:
    """Given runs and workflows with one key, then they end where its allowance ends."""
    poor = limited(cost(owner) * 3.5)
    for _ in range(2):
        poor.runs.create("llm.generate", ASKED).wait()
    flow = Workflow("many")
    for i in range(12):
        flow.add(f"n{i}", "llm.generate", objective=f"Line {i}", max_tokens=64)
    done = poor.workflows.submit(flow).wait(check=False)
    failed = [node for node in done.nodes if node.status == "failed"]
    assert failed
    assert {node.error.code for node in failed} == {"BUDGET_EXCEEDED"}
    spent = sum(run.record.cost_incurred_usd for run in poor.runs.list())
    assert spent + done.record.cost_incurred_usd <= cost(owner) * 3.5
    rich = limited(None)
    assert rich.runs.create("llm.generate", ASKED).wait().status == "completed"


def test_an_allowance_is_not_replayed(owner: Client, server: Server) -> None:
    """Given an idempotency key, then a new key is made all the same: it cannot be told again."""
    headers = {**owner._http._client.headers, "Idempotency-Key": "once"}
    made = [
        httpx.post(f"{server.url}/v1/account/keys", json={}, headers=headers).json()["id"]
        for _ in range(2)
    ]
    assert len(set(made)) == 2


async def test_several_processes_and_a_crash_keep_to_it(settings: Settings) -> None:
    """Given two engines and one that dies, then together they spend no more than is allowed."""
    faults = Faults()
    faults.add(Fault("minimax", delay_ms=15, times=None))
    faults.add(Fault("minimax", mangle="truncate", share=0.2, times=None))
    short = settings.model_copy(update={"lease_s": 0.5, "retry_base_s": 0.001})
    engines = [await open_engine(short, faults=faults) for _ in range(3)]
    created = await engines[0].accounts.create(AccountCreate(email="ada@example.org"))
    pointer = ConnectionCreate(
        provider="minimax", connection_type="environment", secret_ref="MINIMAX_API_KEY"
    )
    await engines[0].connections.create(created.id, pointer)
    limit = 0.0008
    owner = await engines[0].accounts.authenticate(created.api_key)
    key = await engines[0].keys.create(owner, KeyCreate(max_cost_usd_per_day=limit))

    async def ask(engine: Engine, i: int) -> None:
        request = RunCreate(name="llm.generate", input={**ASKED, "objective": f"Line {i}"})
        with contextlib.suppress(RequestError):  # too little is left already
            await engine.runs.create(created.id, request, key_id=key.id)

    await asyncio.gather(*[ask(engines[i % 3], i) for i in range(30)])
    await asyncio.sleep(0.03)
    await die(engines.pop())
    async with asyncio.timeout(PATIENCE_S):
        while {row["status"] for row in await engines[0]._core.store.find("jobs")} & {
            "queued",
            "running",
        }:
            await asyncio.sleep(0.05)
    rows = await engines[0]._core.store.find("jobs")
    jobs = [Job.model_validate_json(str(row["doc"])) for row in rows]
    spent = sum(job.cost_incurred_usd for job in jobs)
    (row,) = await engines[0]._core.store.find("spending")
    assert 0 < round(spent, 9) <= int(row["nano"]) / 1e9 <= limit
    assert sum(job.status == "completed" for job in jobs) >= 3
    assert {job.error.code for job in jobs if job.error} == {"BUDGET_EXCEEDED"}
    paid = sum((a.cost_usd or 0) > 0 for job in jobs for a in job.attempts)
    assert sum(call.billed for call in faults.calls) <= paid
    for engine in engines:
        await engine.close(0)
