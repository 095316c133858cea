"""Amounts, small budgets, and holds of engines that died."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import ROUND_CEILING, ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.timing import yield_turns
from tests.support.write_lock import WriteLock
from toolkit import Client
from toolkit.contract.base import now
from toolkit.contract.money import ZERO_USD, from_wire_usd, sum_usd, to_wire_usd
from toolkit.engine import Registry
from toolkit.engine.job_record import AttemptRecord, JobRecord
from toolkit.engine.money.abandoned_holds import make_hold_id, release_abandoned_holds
from toolkit.engine.money.allowance import Allowances, make_account_limit
from toolkit.engine.money.amounts import from_nano_usd, sum_costs, to_nano_usd
from toolkit.engine.money.budget import reserve
from toolkit.plugins import TextRequest
from toolkit.store import AddSpending, InsertRow, Lease, Store

ASK = {"objective": "Name the capital of France in one word."}

SMALL = 0.05

PREMIUM: dict[str, Any] = {"provider": "google", "optimize_for": "quality"}

# Each provider that generates text at its own address.
PROVIDERS = sorted(
    vendor.id for vendor in Registry.load().vendors.values() if TextRequest in vendor.operations
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client in the sandbox, with every vendor connected."""
    with Client.local(tmp_path_factory.mktemp("small"), sandbox=True) as client:
        client.connections.connect("ollama", "vllm")
        yield client


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_one_line_answer_fits_a_small_budget(client: Client, provider: str) -> None:
    """Given a budget of five cents, then each provider's default model answers in one line."""
    run = client.runs.create("llm.generate", ASK, provider=provider, max_cost_usd=SMALL).wait()
    assert run.status == "completed", run.record.error
    assert run.record.provider == provider
    assert run.record.cost_incurred_usd <= (run.record.reservation_usd or 0) <= SMALL


def test_a_premium_model_fits_a_small_budget(client: Client) -> None:
    """Given the policy `quality` and five cents, then Google's premium model answers."""
    run = client.runs.create("llm.generate", ASK, **PREMIUM, max_cost_usd=SMALL).wait()
    assert run.status == "completed", run.record.error
    assert run.record.attempts[0].model.startswith("gemini-4-argon")
    assert run.record.reservation_usd <= SMALL


def test_reserves_more_for_a_larger_answer(client: Client) -> None:
    """Given a higher cap, then the reservation grows, and stays below the model's limit."""
    bounds = []
    for cap in (256, 4_096, 16_384):
        route = client.route("llm.generate", {**ASK, "max_tokens": cap}, provider="google")
        bounds.append(route.record.reservation_usd or 0.0)
    assert bounds[0] < bounds[1] < bounds[2] < 0.1


@pytest.mark.parametrize(("day", "rise"), [("2026-11-30", 1), ("2026-12-01", 2)])
def test_applies_an_announced_price_from_its_day(
    client: Client, monkeypatch: pytest.MonkeyPatch, day: str, rise: int
) -> None:
    """Given an announced price rise, then a running engine applies it from its day on."""
    for module in (
        "provider_directory",
        "execution.attempts",
        "infrastructure.catalog",
        "routing.router",
    ):
        monkeypatch.setattr(f"toolkit.engine.{module}.now", lambda: datetime.fromisoformat(day))
    record = client.runs.create("llm.generate", ASK, **PREMIUM).wait().record
    usage = record.usage
    usd = (usage["input_tokens"] * 2 + usage["output_tokens"] * 10) / 1e6
    assert record.cost_usd == pytest.approx(usd * rise)
    assert record.reservation_usd >= record.cost_usd
    records = {model.record.id: model.record for model in client.catalog.models()}
    listed = records["google/text/gemini-4-argon"]
    assert listed.prices_usd["output_tokens"] == pytest.approx(1e-5 * rise)
    assert len(listed.price_changes) == 2 - rise


# Amounts on the wire: up to a million dollars, in billionths, as the nearest float.
NUMBERS = st.integers(0, 10**15).map(lambda nano: nano / 10**9)


@given(st.lists(NUMBERS, max_size=1000))
def test_sums_exactly_and_rounds_once(numbers: list[float]) -> None:
    """Given costs on the wire, then their sum is the exact sum as the nearest float."""
    exact = sum((Fraction(str(number)) for number in numbers), Fraction(0))
    total = sum_costs(from_wire_usd(number) for number in numbers)
    assert total is not None
    assert to_wire_usd(total) == sum_usd(numbers) == float(exact)
    assert to_nano_usd(total, ROUND_HALF_UP) == round(exact * 10**9)


@given(NUMBERS)
def test_reads_and_writes_wire_amounts_unchanged(number: float) -> None:
    """Given a number of the wire, then the exact amount has the same digits, both ways."""
    amount = from_wire_usd(number)
    assert Fraction(amount) == Fraction(str(number))
    assert to_wire_usd(amount) == number


@given(st.integers(0, 10**18))
def test_stores_billionths_and_rounds_reservations_up(nano: int) -> None:
    """Given billionths of a dollar, then they are stored exactly, and smaller parts round up."""
    assert to_nano_usd(from_nano_usd(nano), ROUND_CEILING) == nano
    assert to_nano_usd(from_nano_usd(nano) + Decimal("1e-10"), ROUND_CEILING) == nano + 1


@given(st.lists(st.one_of(st.none(), st.decimals(0, 1000, places=9)), max_size=20))
def test_a_sum_with_an_unknown_cost_is_unknown(costs: list[Decimal | None]) -> None:
    """Given costs, then their sum is None exactly if a cost is None."""
    assert (sum_costs(costs) is None) == (None in costs)


AT = "2026-11-20T08:00:00.000Z"


def make_job(job_id: str, attempts: int) -> InsertRow:
    """Build the row of a job with this number of attempts."""
    job = JobRecord(id=job_id, capability="llm.generate@1", input={}, created_at=now())
    job.attempts = [
        AttemptRecord(
            n=n + 1, provider="openai", status="running", reservation_usd=ZERO_USD, started_at=now()
        )
        for n in range(attempts)
    ]
    row = {"id": job_id, "account_id": "acc", "root_id": "run_a", "status": "running"}
    row |= {"capability": job.capability, "created_at": AT, "doc": job.to_json()}
    return InsertRow("jobs", row)


async def test_releases_a_hold_whose_work_is_cancelled_meanwhile(
    tmp_path: Path, find_url: Callable[[Path], str | None]
) -> None:
    """Given a hold that is being written, when it is cancelled, then nothing is held or spent."""
    store = await Store.open(tmp_path, database=find_url(tmp_path))
    lock = WriteLock(tmp_path, find_url(tmp_path))
    try:
        inserted, lease = store.leases.build_root("run_a", "run", "acc")
        await store.write([inserted])
        lock.take()
        holding = asyncio.create_task(
            Allowances(store).hold(
                lease,
                ("job_a", 1),
                [make_account_limit("acc", 1.0)],
                Decimal("0.25"),
                await reserve([], Decimal("0.25")),
                partial(store.write, lease=lease),
            )
        )
        await yield_turns(5)
        for _ in range(2):  # a deadline may follow a cancel
            holding.cancel()
            await yield_turns(5)
        lock.release()
        with pytest.raises(asyncio.CancelledError):
            await holding
        await store.write([], lease=lease)  # after all earlier writes
        assert await store.list_reservations("run_a") == []
        (spending,) = await store.find_rows("spending")
        assert spending["nano"] == 0
    finally:
        lock.close()
        await store.close()


@pytest.mark.parametrize(("recorded", "spent"), [(0, 0), (1, 7)])
async def test_counts_only_recorded_calls_as_spent(
    tmp_path: Path, recorded: int, spent: int
) -> None:
    """Given a hold whose engine died, then it is spent if its call is on record, else released."""
    store = await Store.open(tmp_path)
    try:
        inserted, old = store.leases.build_root("run_a", "run", "acc")
        hold_id = make_hold_id(old, "job_a", 1)
        row = {"id": hold_id, "spending_id": "day", "owner": "dead", "nano": 7, "created_at": AT}
        hold = [AddSpending("day", "key", 7, 10), InsertRow("reservations", row)]
        await store.write([inserted, make_job("job_a", recorded), *hold])
        await release_abandoned_holds(store, old)  # an own hold is not abandoned
        assert [hold["id"] for hold in await store.list_reservations("run_a")] == [hold_id]

        await store.leases.release(old, is_done=False)
        (new,) = await store.leases.claim(1)
        assert isinstance(new, Lease)
        await release_abandoned_holds(store, new)
        assert await store.list_reservations("run_a") == []
        assert (await store.get_spending("day"))[0] == spent
    finally:
        await store.close()
