"""Daily allowances of keys, kept by all processes together, also across a crash."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import Server
from tests.contract.conftest import expect_refusal, use_up
from tests.contract.raw_http import SMALL_IMAGE
from tests.support.commands import say
from tests.support.database_pool import open_rows
from tests.support.embedded import get_thread
from tests.support.engine_accounts import connect_account
from tests.support.process_kill import kill_engine
from tests.support.timing import wait_until_async
from toolkit import Client, RequestError, Workflow
from toolkit.contract.account import KeyCreate
from toolkit.contract.runs import RunCreate
from toolkit.engine import Engine
from toolkit.engine.job_record import read_wire_job
from toolkit.engine.request_context import RequestContext
from toolkit.local import open_engine
from toolkit.sandbox import Fault, Faults
from toolkit.settings import Settings

INPUT = {"objective": "One line on tides", "max_tokens": 64}
SHORTEST = {"objective": "x", "max_tokens": 1}
MakeClient = Callable[[float | None], Client]
NameDir = Callable[[Path], tuple[str, ...]]


@pytest.fixture
def owner(server: Server) -> Iterator[Client]:
    """The owner of an account that has connected minimax."""
    with Client(base_url=server.url, api_key=server.sign_up("minimax")) as client:
        yield client


@pytest.fixture
def make_limited(owner: Client, server: Server) -> Iterator[MakeClient]:
    """Makes clients with keys of the account, each with an allowance in dollars per day."""
    with ExitStack() as clients:

        def make(usd: float | None) -> Client:
            key = owner.api_keys.create(max_cost_usd_per_day=usd)
            return clients.enter_context(Client(base_url=server.url, api_key=key.api_key))

        yield make


def get_costs(owner: Client) -> tuple[float, float]:
    """Return the expected cost of a run with `INPUT`, and the bound that is reserved for it."""
    route = owner.route("llm.generate", INPUT).record
    assert route.estimated_cost_usd is not None
    assert route.reservation_usd is not None
    return route.estimated_cost_usd, route.reservation_usd


def test_rejects_a_run_over_the_allowance_at_once(owner: Client, make_limited: MakeClient) -> None:
    """Given an allowance below a run's cost, then it is rejected before anything is accepted."""
    poor = make_limited(get_costs(owner)[0] * 0.9)
    with expect_refusal("BUDGET_EXCEEDED", match="midnight UTC"):
        poor.runs.create("llm.generate", INPUT)
    assert len(poor.runs.list()) == 0
    assert owner.runs.create("llm.generate", INPUT).wait().status == "completed"


def test_counts_all_work_of_a_key(owner: Client, make_limited: MakeClient) -> None:
    """Given runs and workflows with one key, then they end at its allowance."""
    allowance = get_costs(owner)[0] * 3.5
    poor = make_limited(allowance)
    for _ in range(2):
        poor.runs.create("llm.generate", INPUT).wait()
    flow = Workflow("many")
    for i in range(12):
        flow.add(f"n{i}", "llm.generate", objective=f"Line {i}", max_tokens=64)
    workflow = poor.workflows.submit(flow).wait(check=False)
    errors = {node.error.code for node in workflow.nodes if node.status == "failed"}
    assert errors == {"BUDGET_EXCEEDED"}
    spent = sum(run.record.cost_incurred_usd for run in poor.runs.list())
    assert spent + workflow.record.cost_incurred_usd <= allowance
    assert make_limited(None).runs.create("llm.generate", INPUT).wait().status == "completed"


async def test_several_processes_and_a_crash_keep_the_allowance(settings: Settings) -> None:
    """Given three engines of which one dies, then together they spend at most the allowance."""
    faults = Faults()
    faults.add(Fault("minimax", delay_ms=15, times=None))
    faults.add(Fault("minimax", mangle="truncate", share=0.2, times=None))
    short = settings.model_copy(update={"lease_s": 0.5, "retry_base_s": 0.001})
    engines = [await open_engine(short, faults=faults) for _ in range(3)]
    owner = await connect_account(engines[0], "minimax")
    admin = replace(owner, scopes=frozenset({"read", "write"}))
    limit = 0.0014
    key = await engines[0].keys.create(admin, KeyCreate(max_cost_usd_per_day=limit))
    context = RequestContext(owner.account_id, key.id)

    async def create_run(engine: Engine, i: int) -> None:
        request = RunCreate(name="llm.generate", input={**INPUT, "objective": f"Line {i}"})
        with contextlib.suppress(RequestError):  # too little is left already
            await engine.runs.create(context, request)

    await asyncio.gather(*[create_run(engines[i % 3], i) for i in range(30)])
    await wait_until_async(lambda: sum("chat" in call.path for call in faults.calls) >= 4)
    await kill_engine(engines.pop())

    async def have_ended() -> bool:
        rows = await engines[0].core.store.find_rows("jobs")
        return not {row["status"] for row in rows} & {"queued", "running"}

    await wait_until_async(have_ended)
    rows = await engines[0].core.store.find_rows("jobs")
    jobs = [read_wire_job(row) for row in rows]
    spent = sum(job.cost_incurred_usd for job in jobs)
    (row,) = await engines[0].core.store.find_rows("spending")
    assert 0 < round(spent, 9) <= int(row["nano"]) / 1e9 <= limit
    assert sum(job.status == "completed" for job in jobs) >= 3
    assert {job.error.code for job in jobs if job.error} == {"BUDGET_EXCEEDED"}
    paid_attempts = sum((a.cost_usd or 0) > 0 for job in jobs for a in job.attempts)
    assert sum(call.billed for call in faults.calls) <= paid_attempts
    for engine in engines:
        await engine.close(0)


@pytest.fixture
def earlier_work(owner: Client) -> dict[str, str]:
    """A cancelled workflow, a completed task and a blocked task, by kind."""
    flow, upstream = Workflow("chain"), []
    for i in range(40):  # more nodes than complete before the cancel
        upstream = [flow.add(f"n{i}", "llm.generate", **INPUT, depends_on=upstream)]
    workflow = owner.workflows.submit(flow)
    workflow.cancel()
    task = owner.tasks.create("A social card about tides").wait(check=False)
    blocked = owner.tasks.create("A picture of a lighthouse").wait(check=False)
    assert blocked.status == "blocked"
    owner.connections.create("runpod", "environment", "RUNPOD_API_KEY")
    return {"workflow": workflow.id, "task": task.id, "blocked": blocked.id}


MORE_WORK = {
    "retry": lambda c, ids: c.workflows.retry(ids["workflow"]),
    "fork": lambda c, ids: c.workflows.fork(ids["workflow"], "n0"),
    "resume": lambda c, ids: c.tasks.resume(ids["blocked"]),
    "verdict": lambda c, ids: c.tasks.submit_review(ids["task"], "retry", node_id="copy"),
    "workflow": lambda c, ids: c.workflows.create(
        {"name": "w", "nodes": [{"id": "a", "capability": "llm.generate", "input": INPUT}]}
    ),
    "task": lambda c, ids: c.tasks.create("A social card about tides"),
}


def test_nothing_evades_an_exhausted_allowance(
    owner: Client, make_limited: MakeClient, earlier_work: dict[str, str]
) -> None:
    """Given an exhausted allowance, then every request for more work is rejected without effect."""
    poor = make_limited(get_costs(owner)[1] * 1.5)
    for input in (INPUT, SHORTEST):
        use_up(poor, input)
    run_ids = {run.id for run in owner.runs.list()}
    for submit in MORE_WORK.values():
        with expect_refusal("BUDGET_EXCEEDED", match="midnight UTC"):
            submit(poor, earlier_work)
    assert owner.workflows.get(earlier_work["workflow"]).status == "cancelled"
    assert owner.tasks.get(earlier_work["task"]).record.review_attempts == 0
    assert {run.id for run in owner.runs.list()} == run_ids


def test_more_work_is_charged_to_the_key_that_requests_it(
    owner: Client,
    server: Server,
    earlier_work: dict[str, str],
    settings: Settings,
    find_url: Callable[[Path], str | None],
) -> None:
    """Given a retry and a verdict by a key with an allowance, then they count against it."""

    def get_cost(workflow_id: str) -> float:
        return owner.workflows.get(workflow_id).record.cost_incurred_usd

    before = get_cost(earlier_work["workflow"])
    key = owner.api_keys.create(name="paying", max_cost_usd_per_day=1)
    with Client(base_url=server.url, api_key=key.api_key) as client:
        assert client.workflows.retry(earlier_work["workflow"]).wait().status == "completed"
        task = client.tasks.submit_review(earlier_work["task"], "retry", node_id="copy").wait()
    assert task.status == "completed"
    cost = get_cost(earlier_work["workflow"]) - before + get_cost(task.record.workflow_ids[-1])
    with open_rows(settings.data_dir, find_url(settings.data_dir)) as database:
        (nano,) = database.execute(
            f"SELECT nano FROM spending WHERE key_id = '{key.id}'"
        ).fetchone()
        (reservations,) = database.execute("SELECT count(*) FROM reservations").fetchone()
    assert nano / 1e9 == pytest.approx(cost, abs=1e-8)
    assert reservations == 0


@pytest.mark.parametrize("area", ["compute", "storage", "endpoints"])
def test_a_key_with_an_allowance_rents_nothing_by_the_hour(
    owner: Client, make_limited: MakeClient, area: str
) -> None:
    """Given an allowance, which no rent can keep, then 403 says why, and nothing is created."""
    owner.connections.create("runpod", "environment", "RUNPOD_API_KEY")
    rent = {
        "compute": lambda c: c.compute.create("easel", "NVIDIA GeForce RTX 4090"),
        "storage": lambda c: c.storage.create("disk", 10),
        "endpoints": lambda c: c.endpoints.create(workers_min=1),
    }[area]
    with expect_refusal("FORBIDDEN", match="billed by the hour"):
        rent(make_limited(1000))
    assert list(getattr(owner, area).list()) == []
    assert rent(make_limited(None)).id
    # An endpoint that scales to zero costs nothing by itself, so that it is allowed.
    endpoint_id = make_limited(5).endpoints.create(workers_min=0).id
    run = make_limited(5).runs.create("image.generate", SMALL_IMAGE, endpoint_id=endpoint_id)
    assert run.wait().record.cost_usd is not None


def test_rejects_no_work_that_fits_in_the_end(settings: Settings) -> None:
    """Given two processes and an allowance that fits all runs, but not all reservations at once.

    Then every run completes.
    """
    faults = Faults()
    faults.add(Fault("minimax", delay_ms=20, times=None))
    with (
        Client.local(settings=settings, faults=faults) as first,
        Client.local(settings=settings, faults=faults) as second,
    ):
        expected, bound = get_costs(first)
        key = first.api_keys.create(max_cost_usd_per_day=12 * expected + 3 * bound)
        context = RequestContext(first.account.get().id, key.id)
        threads = [get_thread(client) for client in (first, second)]
        run_ids = []
        for i in range(12):
            request = RunCreate(name="llm.generate", input={**INPUT, "objective": f"Line {i}"})
            creation = threads[i % 2].engine.runs.create(context, request)
            run_ids.append(threads[i % 2].call(creation).id)
        runs = [first.runs.get(run_id).wait(check=False) for run_id in run_ids]
    assert [run.status for run in runs] == ["completed"] * 12


def test_all_keys_share_the_limit_of_their_account(
    owner: Client, make_limited: MakeClient, settings: Settings, name_dir: NameDir
) -> None:
    """Given a limit that the operator sets, then all keys of the account keep it together."""
    folder = name_dir(settings.data_dir)
    email = owner.account.get().email
    usd = get_costs(owner)[1] * 1.5
    assert email in say("account", "limit", email, "--max-cost-usd-per-day", f"{usd:.9f}", *folder)
    assert owner.account.get().max_cost_usd_per_day == pytest.approx(usd)
    use_up(owner, INPUT)
    for client in (owner, make_limited(None), make_limited(1000)):
        with expect_refusal("BUDGET_EXCEEDED", match="The account may spend"):
            client.runs.create("llm.generate", INPUT)
    with pytest.raises(RequestError, match=r"^FORBIDDEN:"):
        owner.compute.create("easel", "NVIDIA GeForce RTX 4090")
    say("account", "limit", owner.account.get().id, "--unlimited", *folder)
    assert owner.runs.create("llm.generate", INPUT).wait().status == "completed"


def test_the_smaller_of_two_allowances_limits_a_workflow(
    owner: Client, make_limited: MakeClient, settings: Settings, name_dir: NameDir
) -> None:
    """Given a key whose allowance is larger than its account's, then the workflow is rejected."""
    usd = f"{get_costs(owner)[0] * 0.5:.9f}"
    folder = name_dir(settings.data_dir)
    say("account", "limit", owner.account.get().id, "--max-cost-usd-per-day", usd, *folder)
    flow = Workflow("two")
    first = flow.add("first", "llm.generate", **INPUT)
    flow.add("second", "llm.generate", depends_on=[first], **INPUT)
    with pytest.raises(RequestError, match=r"^BUDGET_EXCEEDED:"):
        make_limited(1000).workflows.submit(flow)


def test_reports_usage_and_billing_by_key(owner: Client, server: Server) -> None:
    """Given two keys of an account, then usage and bill have the calls and costs of each key."""
    keys = [owner.api_keys.create(name=name) for name in ("day", "night")]
    for i, key in enumerate(keys):
        with Client(base_url=server.url, api_key=key.api_key) as client:
            for _ in range(i + 1):
                client.runs.create("llm.generate", INPUT).wait()
    usage = [line.to_dict() for line in owner.usage.list(["key"])]
    calls = {line["key_id"]: line["calls"] for line in usage}
    assert calls == {keys[0].id: 1, keys[1].id: 2}
    bill = owner.billing.get(by_key=True).record
    costs = {line.key_id: line.cost_usd for line in bill.lines if line.key_id}
    assert costs.keys() == calls.keys()
    total = owner.billing.get().record
    (minimax,) = [line for line in total.lines if line.billed_by == "minimax"]
    assert minimax.cost_usd == pytest.approx(sum(costs.values()))
    assert bill.total_usd == pytest.approx(total.total_usd)
