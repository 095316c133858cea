"""Bills: of a call, of providers, and of vendors."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest

from benchmarks._billed_engine import open_engine
from benchmarks._billing import RULES, Billing, Rule
from benchmarks._budget_features import FEATURES, try_feature
from benchmarks._texts import PROSE
from benchmarks._tokenizers import Count, load_tokenizers
from benchmarks.budget_truth import INTERLEAVINGS, measure_usable, try_rule
from tests.support.billing_server import BillingRules, BillingServer
from toolkit import Client
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.jobs import Options
from toolkit.contract.runs import Run, RunCreate
from toolkit.engine import Engine
from toolkit.engine.money.budget import Budget, Reservation, reserve
from toolkit.engine.money.call_bill import CallBill
from toolkit.engine.request_context import RequestContext
from toolkit.plugins.flow import FREE_EXTENSION
from toolkit.settings import Settings

LONG = {"objective": "Sum up: " + "the tide turns twice a day. " * 60, "max_tokens": 40}

BILLING_FIELDS = ("service_tier", "prompt_cache_options")


@contextmanager
def open_client(server: BillingServer, folder: Path, **prices: float) -> Iterator[Client]:
    """Open a client whose OpenAI is the server, with prices of the operator if any are passed."""
    vendor: dict[str, Any] = {"base_urls": {"api": server.url}}
    vendors = {"openai": vendor | ({"prices": {"gpt-6-luna": prices}} if prices else {})}
    settings = Settings(data_dir=folder, vendors=vendors, retry_base_s=0.01)
    with Client.local(settings=settings) as client:
        client.connections.connect("openai")
        yield client


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")


def run_within_reservation(client: Client) -> Any:
    """Run under a budget that equals the reservation of the preview."""
    bound = client.route("llm.generate", LONG, provider="openai").record.reservation_usd
    assert bound is not None
    run = client.runs.create("llm.generate", LONG, provider="openai", max_cost_usd=bound).wait()
    assert run.status == "completed", run.record.error
    return run.record


@pytest.mark.parametrize(
    "rules",
    [
        BillingRules(),
        BillingRules(refused=("prompt_cache_options",)),
        BillingRules(ignored=("prompt_cache_options",)),
        BillingRules(project_tier="priority"),
        BillingRules(project_tier="flex"),
        BillingRules(project_tier="priority", refused=("prompt_cache_options",)),
    ],
    ids=str,
)
def test_records_the_bill_and_stays_within_the_limit(rules: BillingRules, tmp_path: Path) -> None:
    """Given cache writes or another tier, then the record has the bill, within the limit."""
    with BillingServer(rules) as server, open_client(server, tmp_path) as client:
        record = run_within_reservation(client)
        assert record.cost_usd == pytest.approx(float(server.paid), rel=1e-6)
        assert record.cost_source == "metered"
        assert float(server.paid) <= record.reservation_usd


@pytest.mark.parametrize(
    "wording",
    [
        "Unknown parameter: '{}'.",
        "Unrecognized request argument supplied: {}",
        "property '{}' is unsupported",
        "`{}` must be one of on_demand, performance",
        "[{{'type': 'extra_forbidden', 'loc': ('body', '{}'), 'msg': 'Extra inputs'}}]",
    ],
)
def test_retries_without_fields_that_a_server_rejects(wording: str, tmp_path: Path) -> None:
    """Given a server that rejects fields, then they are left out, then and later."""
    rules = BillingRules(refused=BILLING_FIELDS, wording=wording)
    with BillingServer(rules) as server, open_client(server, tmp_path) as client:
        for _ in range(2):
            run_within_reservation(client)
        assert [name in server.asked[0] for name in BILLING_FIELDS] == [True, True]
        assert len(server.asked) - len(server.ledger) <= 2
        assert not set(BILLING_FIELDS) & set(server.asked[-1])
        assert len(server.ledger) == 2


def test_records_the_billed_tier(tmp_path: Path) -> None:
    """Given a server that ignores the requested tier, then the record has the billed tier."""
    rules = BillingRules(project_tier="priority", ignored=("service_tier",))
    with BillingServer(rules) as server, open_client(server, tmp_path) as client:
        run = client.runs.create("llm.generate", LONG, provider="openai").wait()
        assert run.tier == "priority"
        assert run.record.cost_usd == pytest.approx(float(server.paid), rel=1e-6)


def test_counts_the_reservation_for_a_tier_without_a_price(tmp_path: Path) -> None:
    """Given a billed tier without a price of the operator, then the cost is the reservation."""
    prices = {"input_tokens": 1, "output_tokens": 1}
    rules = BillingRules(project_tier="priority", ignored=("service_tier",))
    with BillingServer(rules) as server, open_client(server, tmp_path, **prices) as client:
        record = client.runs.create("llm.generate", LONG, provider="openai").wait().record
    assert (record.cost_source, record.cost_usd) == ("estimated", record.reservation_usd)


def test_applies_the_price_of_a_cache_write(tmp_path: Path) -> None:
    """Given an operator's price of a cache write, then usage, cost and reservation include it."""
    prices = {"input_tokens": 1, "cache_write_tokens": 3, "output_tokens": 0}
    rules = BillingRules(ignored=("prompt_cache_options",))
    with BillingServer(rules) as server, open_client(server, tmp_path, **prices) as client:
        record = run_within_reservation(client)
    tokens = server.answered[0]["prompt_tokens"]
    assert record.usage["input_tokens"] == record.usage["cache_write_tokens"] == tokens
    assert record.usage["cached_input_tokens"] == 0
    assert record.cost_usd == pytest.approx(tokens * 3 / 1e6)
    assert record.reservation_usd >= record.cost_usd


@pytest.mark.parametrize(
    ("rules", "billed"),
    [
        (BillingRules(), "flex"),
        (BillingRules(refused=("service_tier",)), "standard"),
        (BillingRules(refused_tier="flex"), "standard"),
        (BillingRules(ignored=("service_tier",)), "standard"),
    ],
    ids=str,
)
def test_reserves_the_standard_price_for_flex_at_another_server(
    rules: BillingRules, billed: str, tmp_path: Path
) -> None:
    """Given flex at a compatible server, then any tier that it bills is within the reservation."""
    with BillingServer(rules) as server, open_client(server, tmp_path) as client:
        standard = client.route("llm.generate", LONG, provider="openai").record
        flex = client.route("llm.generate", LONG, provider="openai", tier="flex").record
        assert flex.reservation_usd == standard.reservation_usd
        assert flex.estimated_cost_usd == pytest.approx(standard.estimated_cost_usd / 2)
        for _ in range(2):
            options = {"tier": "flex", "max_cost_usd": flex.reservation_usd}
            run = client.runs.create("llm.generate", LONG, provider="openai", **options).wait()
            assert run.tier == billed
        assert server.asked[0]["service_tier"] == "flex"
        assert len(server.ledger) == 2
        assert len(server.asked) - len(server.ledger) == bool(rules.refused or rules.refused_tier)
        assert run.cost_usd == pytest.approx(float(server.ledger[-1]), rel=1e-6)
        client.runs.create("llm.generate", LONG, provider="openai").wait()
        is_refused = "service_tier" in rules.refused
        assert server.asked[-1].get("service_tier") == (None if is_refused else "default")


def test_records_the_host_behind_a_provider(tmp_path: Path) -> None:
    """Given a server that names the host behind it, then the run, attempt, card and frame do."""
    with (
        BillingServer(BillingRules(upstream="DeepInfra")) as server,
        open_client(server, tmp_path) as client,
    ):
        run = client.runs.create("llm.generate", LONG, provider="openai", cache=True).wait()
        again = client.runs.create("llm.generate", LONG, provider="openai", cache=True).wait()
    assert (run.upstream, run.attempts[0].upstream, again.upstream) == ("DeepInfra",) * 3
    assert (run.tier, run.attempts[0].tier, again.tier) == ("standard", "standard", None)
    assert run.to_frame()["upstream"].tolist() == ["DeepInfra"]
    assert "DeepInfra" in run._repr_mimebundle_()["text/html"]


BOUND = Decimal("0.4")

URL = "https://vendor.example/v1"


async def open_bill(budget: Budget) -> CallBill:
    """Open the bill of a call whose requests cost at most the bound each."""

    async def reserve_again() -> Reservation:
        return await reserve([budget], BOUND)

    return CallBill(await reserve_again(), reserve_again)


async def send(bill: CallBill, *, is_free: bool = False) -> None:
    """Send a request that the vendor answers with 200."""
    request = httpx.Request("POST", URL, extensions={FREE_EXTENSION: True} if is_free else {})
    await bill.cover_request(request)
    bill.note_outcome(request, httpx.Response(200))


async def test_counts_each_request_that_may_be_billed() -> None:
    """Given two requests, then the first counts as reserved, the last at its actual cost."""
    budget = Budget(Decimal(1))
    bill = await open_bill(budget)
    await send(bill)
    await send(bill)
    assert bill.compute_total(Decimal("0.1")) == BOUND + Decimal("0.1")
    bill.settle(Decimal("0.1"))
    assert (budget.spent, budget.reserved) == (BOUND + Decimal("0.1"), 0)


async def test_a_free_request_reserves_nothing() -> None:
    """Given a free request before one that costs, then the bound is reserved once."""
    budget = Budget(Decimal(1))
    bill = await open_bill(budget)
    await send(bill, is_free=True)
    await send(bill)
    await send(bill, is_free=True)
    assert budget.spent + budget.reserved == BOUND
    assert bill.compute_total(Decimal("0.1")) == Decimal("0.1")


TEXTS = {name: PROSE[name] * 3 for name in ("english", "chinese", "amharic", "hindi", "khmer")}


def count(text: str) -> int:
    """Count the tokens of a text by a real tokenizer, which is loaded at the first use."""
    return load_o200k()(text)


@cache
def load_o200k() -> Count:
    """Load the tokenizer."""
    return load_tokenizers()["o200k_base"]


@pytest.mark.parametrize("interleaving", INTERLEAVINGS)
@pytest.mark.parametrize("rule", RULES)
async def test_pays_at_most_the_limit(rule: str, interleaving: str) -> None:
    """Given any billing rule and order of calls, then the paid cost stays within the limit."""
    outcome = await try_rule(count, RULES[rule], interleaving, TEXTS)
    assert outcome.calls
    assert outcome.ratio <= 1
    assert outcome.of_recorded <= 1 + 1e-9  # an unknown cost counts as its bound


async def test_most_of_a_budget_can_be_used() -> None:
    """Given a budget of 50 bounds and concurrent calls, then at least 80 % of it is usable."""
    assert await measure_usable(count) >= 0.8


@pytest.mark.parametrize(
    ("feature", "provider"),
    [(name, provider) for name, feature in FEATURES.items() for provider in feature.providers],
)
async def test_a_feature_stays_within_its_reservation(feature: str, provider: str) -> None:
    """Given the dearest bill of a feature, then it is reserved, and most of a budget is usable."""
    outcome = await try_feature(count, FEATURES[feature], provider)
    assert outcome.ratio <= 1
    assert outcome.usable >= 0.8


async def ask(engine: Engine, context: RequestContext, limit: float | None) -> Run:
    """Run at OpenAI under a limit, and return the record."""
    request = RunCreate(
        name="llm.generate",
        input={"objective": PROSE["english"]},
        options=Options(provider="openai", max_cost_usd=limit),
    )
    run = await engine.runs.create(context, request)
    await engine.wait(context, run.id, 20)
    return await engine.runs.get(context, run.id)


async def test_rejects_an_overbilling_model_until_it_is_trusted(tmp_path: Path) -> None:
    """Given a bill above its reservation, then budgets exclude the model, until it is trusted.

    Another engine on the directory knows it at once, and so does a later process.
    """
    first, context = await open_engine(tmp_path, Billing(count, Rule(template=9_000)))
    second, _ = await open_engine_again(tmp_path)
    try:
        assert (await ask(second, context, 0.05)).status == "completed"
        run = await ask(first, context, 0.05)
        assert run.cost_usd == run.cost_incurred_usd > (run.reservation_usd or 0)
        for engine in (first, second):
            with pytest.raises(RequestError, match="billed more") as caught:
                await ask(engine, context, 0.05)
            assert caught.value.code is ErrorCode.BUDGET_EXCEEDED
        # A health record of the second engine does not undo the judgement.
        assert (await ask(second, context, None)).status == "completed"
        with pytest.raises(RequestError, match="billed more"):
            await ask(second, context, 0.05)
        await first.close(0)
        first, _ = await open_engine_again(tmp_path)
        with pytest.raises(RequestError, match="billed more"):
            await ask(first, context, 0.05)
        connections = await second.connections.list(context, 50, None)
        connection = next(each for each in connections if each.provider == "openai")
        assert connection.overbilled == ["gpt-6-luna"]
        trusted = await second.connections.trust(context, connection.id)
        assert trusted.overbilled == []
        for engine in (second, first):
            assert (await ask(engine, context, 0.05)).status == "completed"
    finally:
        await second.close(0)
        await first.close(0)


async def open_engine_again(folder: Path) -> tuple[Engine, RequestContext]:
    """Open the same data directory with vendors that bill as agreed."""
    return await open_engine(folder, Billing(count, RULES["plain"]), connect=False)
