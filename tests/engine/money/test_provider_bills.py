"""Bills of a server on OpenAI's wire: recorded costs equal them, and reservations cover them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.billing_server import BillingRules, BillingServer
from toolkit import Client
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
        assert run.record.usage["tier"] == "priority"
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
