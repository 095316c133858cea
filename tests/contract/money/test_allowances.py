"""Daily allowances of keys: kept by all processes together, whatever happens in between."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import Server
from tests.support.commands import say
from tests.support.database_pool import open_rows
from tests.support.embedded import get_thread
from tests.support.process_kill import kill_engine
from tests.support.timing import wait_until_async
from toolkit import Client, RequestError, Workflow
from toolkit.contract.account import AccountCreate, KeyCreate
from toolkit.contract.connections import ConnectionCreate
from toolkit.contract.errors import ErrorCode
from toolkit.contract.jobs import Job
from toolkit.contract.runs import RunCreate
from toolkit.engine import Engine
from toolkit.engine.request_context import RequestContext
from toolkit.local import open_engine
from toolkit.sandbox import Fault, Faults
from toolkit.settings import Settings

ASKED = {"objective": "One line on tides", "max_tokens": 64}


@pytest.fixture
def owner(server: Server) -> Iterator[Client]:
    """The owner of an account that has connected minimax."""
    with Client(base_url=server.url, api_key=server.sign_up("minimax")) as client:
        yield client


@pytest.fixture
def make_limited(owner: Client, server: Server) -> Iterator[Callable[[float | None], Client]]:
    """Makes clients with keys of that account that may spend so much in a day."""
    with ExitStack() as clients:

        def make(usd: float | None) -> Client:
            made = owner.api_keys.create(max_cost_usd_per_day=usd)
            return clients.enter_context(Client(base_url=server.url, api_key=made.api_key))

        yield make


Limited = Callable[[float | None], Client]


def get_expected_cost(owner: Client) -> float:
    """Return the expected cost of one such run."""
    expected = owner.route("llm.generate", ASKED).record.estimated_cost_usd
    assert expected is not None
    return float(expected)


def get_bound_usd(owner: Client) -> float:
    """Return the most that one such run may come to."""
    most = owner.route("llm.generate", ASKED).record.reservation_usd
    assert most is not None
    return float(most)


def test_a_run_over_the_allowance_is_refused_at_once(owner: Client, make_limited: Limited) -> None:
    """Given an allowance below a run's cost, then it is 402 before anything is accepted."""
    poor = make_limited(get_expected_cost(owner) * 0.9)
    with pytest.raises(RequestError) as refused:
        poor.runs.create("llm.generate", ASKED)
    assert refused.value.code is ErrorCode.BUDGET_EXCEEDED
    assert "midnight UTC" in str(refused.value)
    assert len(poor.runs.list()) == 0
    assert owner.runs.create("llm.generate", ASKED).wait().status == "completed"


def test_all_work_of_a_key_counts(owner: Client, make_limited: Limited) -> None:
    """Given runs and workflows with one key, then they end where its allowance ends."""
    poor = make_limited(get_expected_cost(owner) * 3.5)
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
    assert spent + done.record.cost_incurred_usd <= get_expected_cost(owner) * 3.5
    rich = make_limited(None)
    assert rich.runs.create("llm.generate", ASKED).wait().status == "completed"


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
    await engines[0].connections.create(RequestContext(created.id), pointer)
    limit = 0.0014
    owner = await engines[0].accounts.authenticate(created.api_key)
    key = await engines[0].keys.create(owner, KeyCreate(max_cost_usd_per_day=limit))

    async def ask(engine: Engine, i: int) -> None:
        request = RunCreate(name="llm.generate", input={**ASKED, "objective": f"Line {i}"})
        with contextlib.suppress(RequestError):  # too little is left already
            await engine.runs.create(RequestContext(created.id, key.id), request)

    await asyncio.gather(*[ask(engines[i % 3], i) for i in range(30)])
    await wait_until_async(lambda: sum("chat" in call.path for call in faults.calls) >= 4)
    await kill_engine(engines.pop())

    async def have_ended() -> bool:
        rows = await engines[0].core.store.find_rows("jobs")
        return not {row["status"] for row in rows} & {"queued", "running"}

    await wait_until_async(have_ended)
    rows = await engines[0].core.store.find_rows("jobs")
    jobs = [Job.model_validate_json(str(row["doc"])) for row in rows]
    spent = sum(job.cost_incurred_usd for job in jobs)
    (row,) = await engines[0].core.store.find_rows("spending")
    assert 0 < round(spent, 9) <= int(row["nano"]) / 1e9 <= limit
    assert sum(job.status == "completed" for job in jobs) >= 3
    assert {job.error.code for job in jobs if job.error} == {"BUDGET_EXCEEDED"}
    paid = sum((a.cost_usd or 0) > 0 for job in jobs for a in job.attempts)
    assert sum(call.billed for call in faults.calls) <= paid
    for engine in engines:
        await engine.close(0)


def use_up(client: Client) -> None:
    """Run until too little of the allowance is left for the shortest run."""
    for asked in (ASKED, {"objective": "x", "max_tokens": 1}):
        while fits(client, asked):
            pass


def fits(client: Client, asked: dict[str, object]) -> bool:
    """Have a run done, unless the allowance does not cover it."""
    try:
        client.runs.create("llm.generate", asked).wait()
    except RequestError as error:
        if error.code is not ErrorCode.BUDGET_EXCEEDED:
            raise
        return False
    return True


@pytest.fixture
def begun(owner: Client) -> dict[str, str]:
    """Begin a failed workflow, an ended task and a blocked one, by kind."""
    flow, before = Workflow("chain"), []
    for i in range(40):  # more than is done before it is cancelled
        before = [flow.add(f"n{i}", "llm.generate", **ASKED, depends_on=before)]
    cancelled = owner.workflows.submit(flow)
    cancelled.cancel()
    done = owner.tasks.create("A social card about tides").wait(check=False)
    blocked = owner.tasks.create("A picture of a lighthouse").wait(check=False)
    assert blocked.status == "blocked"
    owner.connections.create("runpod", "environment", "RUNPOD_API_KEY")
    return {"workflow": cancelled.id, "task": done.id, "blocked": blocked.id}


MORE_WORK = {
    "retry": lambda c, ids: c.workflows.retry(ids["workflow"]),
    "fork": lambda c, ids: c.workflows.fork(ids["workflow"], "n0"),
    "resume": lambda c, ids: c.tasks.resume(ids["blocked"]),
    "verdict": lambda c, ids: c.tasks.submit_review(ids["task"], "retry", node_id="copy"),
    "workflow": lambda c, ids: c.workflows.create(
        {"name": "w", "nodes": [{"id": "a", "capability": "llm.generate", "input": ASKED}]}
    ),
    "task": lambda c, ids: c.tasks.create("A social card about tides"),
}


def test_a_used_up_allowance_has_no_way_round(
    owner: Client, make_limited: Limited, begun: dict[str, str]
) -> None:
    """Given a used up allowance, then no way to ask for more work is open, and nothing changes."""
    poor = make_limited(get_bound_usd(owner) * 1.5)
    use_up(poor)
    before = {run.id for run in owner.runs.list()}
    for name, ask in MORE_WORK.items():
        with pytest.raises(RequestError) as refused:
            ask(poor, begun)
        assert refused.value.code is ErrorCode.BUDGET_EXCEEDED, name
        assert "midnight UTC" in str(refused.value), name
    assert owner.workflows.get(begun["workflow"]).status == "cancelled"
    assert owner.tasks.get(begun["task"]).record.review_attempts == 0
    assert {run.id for run in owner.runs.list()} == before


def test_more_work_is_charged_to_whoever_asks_for_it(
    owner: Client,
    server: Server,
    begun: dict[str, str],
    settings: Settings,
    find_url: Callable[[Path], str | None],
) -> None:
    """Given a retry and a verdict by a key with an allowance, then they count against that."""
    before = owner.workflows.get(begun["workflow"]).record.cost_incurred_usd
    key = owner.api_keys.create(name="paying", max_cost_usd_per_day=1)
    with Client(base_url=server.url, api_key=key.api_key) as paying:
        assert paying.workflows.retry(begun["workflow"]).wait().status == "completed"
        judged = paying.tasks.submit_review(begun["task"], "retry", node_id="copy").wait()
    assert judged.status == "completed"
    paid = owner.workflows.get(begun["workflow"]).record.cost_incurred_usd - before
    paid += owner.workflows.get(judged.record.workflow_ids[-1]).record.cost_incurred_usd
    with open_rows(settings.data_dir, find_url(settings.data_dir)) as database:
        (nano,) = database.execute(
            f"SELECT nano FROM spending WHERE key_id = '{key.id}'"
        ).fetchone()
        (left,) = database.execute("SELECT count(*) FROM reservations").fetchone()
    assert nano / 1e9 == pytest.approx(paid, abs=1e-8)
    assert left == 0


@pytest.mark.parametrize("rent", ["compute", "storage", "endpoints"])
def test_what_is_rented_by_the_hour_is_not_for_a_key_with_an_allowance(
    owner: Client, make_limited: Limited, rent: str
) -> None:
    """Given an allowance, which no rent can be kept to, then 403 says why, and nothing is made."""
    owner.connections.create("runpod", "environment", "RUNPOD_API_KEY")
    asked = {
        "compute": lambda c: c.compute.create("easel", "NVIDIA GeForce RTX 4090"),
        "storage": lambda c: c.storage.create("disk", 10),
        "endpoints": lambda c: c.endpoints.create(workers_min=1),
    }[rent]
    with pytest.raises(RequestError) as refused:
        asked(make_limited(1000))
    assert refused.value.code is ErrorCode.FORBIDDEN
    assert "billed by the hour" in str(refused.value)
    assert list(getattr(owner, rent).list()) == []
    assert asked(make_limited(None)).id


def test_an_endpoint_that_scales_to_zero_is_for_a_key_with_an_allowance(
    owner: Client, make_limited: Limited
) -> None:
    """Given an allowance, then an endpoint that costs nothing by itself is made and used."""
    owner.connections.create("runpod", "environment", "RUNPOD_API_KEY")
    paying = make_limited(5)
    endpoint = paying.endpoints.create(workers_min=0)
    asked = {"prompt": "a lighthouse", "steps": 2, "width": 256, "height": 256}
    run = paying.runs.create("image.generate", asked, endpoint_id=endpoint.id).wait()
    assert run.record.cost_usd is not None


def test_what_fits_in_the_end_is_not_refused(settings: Settings) -> None:
    """Given two processes on one allowance that holds all, but not reserved at once: none fails."""
    faults = Faults()
    faults.add(Fault("minimax", delay_ms=20, times=None))
    with Client.local(settings=settings, faults=faults) as first:
        expected = first.route("llm.generate", ASKED).record
        assert expected.estimated_cost_usd is not None
        assert expected.reservation_usd is not None
        limit = 12 * expected.estimated_cost_usd + 3 * expected.reservation_usd
        key = first.api_keys.create(max_cost_usd_per_day=limit)
        context = RequestContext(first.account.get().id, key.id)
        with Client.local(settings=settings, faults=faults) as second:
            engines = [get_thread(client) for client in (first, second)]
            runs = []
            for i in range(12):
                asked = {**ASKED, "objective": f"Line {i}"}
                request = RunCreate(name="llm.generate", input=asked)
                made = engines[i % 2].engine.runs.create(context, request)
                runs.append(engines[i % 2].call(made).id)
            ended = [first.runs.get(run_id).wait(check=False) for run_id in runs]
    assert [run.status for run in ended] == ["completed"] * 12


def test_an_account_has_a_limit_of_its_own(
    owner: Client,
    make_limited: Limited,
    settings: Settings,
    name_dir: Callable[[Path], tuple[str, ...]],
) -> None:
    """Given a limit that the operator sets, then all keys of the account keep to it together."""
    folder = name_dir(settings.data_dir)
    email = owner.account.get().email
    usd = get_bound_usd(owner) * 1.5
    assert email in say("account", "limit", email, "--max-cost-usd-per-day", f"{usd:.9f}", *folder)
    assert owner.account.get().max_cost_usd_per_day == pytest.approx(usd)
    use_up(owner)
    for client in (owner, make_limited(None), make_limited(1000)):
        with pytest.raises(RequestError) as refused:
            client.runs.create("llm.generate", ASKED)
        assert refused.value.code is ErrorCode.BUDGET_EXCEEDED
        assert "The account may spend" in str(refused.value)
    with pytest.raises(RequestError, match=r"^FORBIDDEN:"):
        owner.compute.create("easel", "NVIDIA GeForce RTX 4090")
    say("account", "limit", owner.account.get().id, "--unlimited", *folder)
    assert owner.runs.create("llm.generate", ASKED).wait().status == "completed"


def test_the_smaller_of_two_allowances_decides_on_a_workflow(
    owner: Client,
    make_limited: Limited,
    settings: Settings,
    name_dir: Callable[[Path], tuple[str, ...]],
) -> None:
    """Given a key that may spend much in an account that may not, then a graph is refused."""
    usd = f"{get_expected_cost(owner) * 0.5:.9f}"
    folder = name_dir(settings.data_dir)
    say("account", "limit", owner.account.get().id, "--max-cost-usd-per-day", usd, *folder)
    flow = Workflow("two")
    first = flow.add("first", "llm.generate", **ASKED)
    flow.add("second", "llm.generate", depends_on=[first], **ASKED)
    with pytest.raises(RequestError, match=r"^BUDGET_EXCEEDED:"):
        make_limited(1000).workflows.submit(flow)


def test_usage_and_billing_are_told_by_key(owner: Client, server: Server) -> None:
    """Given two keys of an account, then what each of them used and was billed stands apart."""
    keys = [owner.api_keys.create(name=name) for name in ("day", "night")]
    for i, key in enumerate(keys):
        with Client(base_url=server.url, api_key=key.api_key) as client:
            for _ in range(i + 1):
                client.runs.create("llm.generate", ASKED).wait()
    used = [line.to_dict() for line in owner.usage.list(["key"])]
    calls = {line["key_id"]: line["calls"] for line in used}
    assert calls == {keys[0].id: 1, keys[1].id: 2}
    apart = owner.billing.get(by_key=True).record
    billed = {line.key_id: line.cost_usd for line in apart.lines if line.key_id}
    assert billed.keys() == calls.keys()
    (whole,) = [line for line in owner.billing.get().record.lines if line.billed_by == "minimax"]
    assert whole.cost_usd == pytest.approx(sum(billed.values()))
    assert apart.total_usd == pytest.approx(owner.billing.get().record.total_usd)
