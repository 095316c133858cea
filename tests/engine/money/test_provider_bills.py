"""Bills of a server on OpenAI's wire, by its own books: what is shown and reserved covers them."""

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
    """Open a client whose OpenAI is the server, at an operator's own prices, if any are given."""
    vendor: dict[str, Any] = {"base_urls": {"api": server.url}}
    vendors = {"openai": vendor | ({"prices": {"gpt-6-luna": prices}} if prices else {})}
    settings = Settings(data_dir=folder, vendors=vendors, retry_base_s=0.01)
    with Client.local(settings=settings) as client:
        client.connections.connect("openai")
        yield client


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")


def run_within_its_bound(client: Client, given: dict[str, Any]) -> Any:
    """Run under a budget of exactly what the run is said to come to at most."""
    bound = client.route("llm.generate", given, provider="openai").record.reservation_usd
    assert bound is not None
    run = client.runs.create("llm.generate", given, provider="openai", max_cost_usd=bound).wait()
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
def test_shows_what_was_paid_and_pays_no_more_than_the_limit(
    rules: BillingRules, tmp_path: Path
) -> None:
    """Given cache writes or a dearer tier, then shown is what was paid, and within the limit."""
    with BillingServer(rules) as server, open_client(server, tmp_path) as client:
        record = run_within_its_bound(client, LONG)
        assert record.cost_usd == pytest.approx(float(server.paid), rel=1e-6)
        assert record.cost_source == "metered"
        assert float(server.paid) <= record.reservation_usd


def test_records_cached_and_written_tokens(tmp_path: Path) -> None:
    """Given a server that writes each prompt to its cache, then the record shows the tokens."""
    rules = BillingRules(ignored=("prompt_cache_options",))
    with BillingServer(rules) as server, open_client(server, tmp_path) as client:
        record = run_within_its_bound(client, LONG)
        given = server.answered[0]["prompt_tokens"]
        assert record.usage["input_tokens"] == record.usage["cache_write_tokens"] == given
        assert record.usage["cached_input_tokens"] == 0
        assert record.usage["tier"] == "standard"


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
def test_asks_a_server_again_without_the_fields_it_refuses(wording: str, tmp_path: Path) -> None:
    """Given a server that knows neither field, then both are dropped, and not sent again."""
    rules = BillingRules(refused=BILLING_FIELDS, wording=wording)
    with BillingServer(rules) as server, open_client(server, tmp_path) as client:
        for _ in range(2):
            run_within_its_bound(client, LONG)
        assert [name in server.asked[0] for name in BILLING_FIELDS] == [True, True]
        assert len(server.asked) - len(server.ledger) <= 2
        assert not set(BILLING_FIELDS) & set(server.asked[-1])
        assert len(server.ledger) == 2


def test_shows_the_price_of_the_tier_that_was_billed(tmp_path: Path) -> None:
    """Given a server that ignores the tier, then the record has the billed one, at its price."""
    rules = BillingRules(project_tier="priority", ignored=("service_tier",))
    with BillingServer(rules) as server, open_client(server, tmp_path) as client:
        run = client.runs.create("llm.generate", LONG, provider="openai").wait()
        assert run.record.usage["tier"] == "priority"
        assert run.record.cost_usd == pytest.approx(float(server.paid), rel=1e-6)


def test_counts_an_unknown_tier_as_the_most_it_could_be(tmp_path: Path) -> None:
    """Given an operator's own prices and a tier that they are not for, then none is guessed."""
    prices = {"input_tokens": 1, "output_tokens": 1}
    rules = BillingRules(project_tier="priority", ignored=("service_tier",))
    with BillingServer(rules) as server, open_client(server, tmp_path, **prices) as client:
        record = client.runs.create("llm.generate", LONG, provider="openai").wait().record
    assert (record.cost_source, record.cost_usd) == ("estimated", record.reservation_usd)


def test_prices_cache_writes_as_the_operator_says(tmp_path: Path) -> None:
    """Given an operator's price of a cache write, then writes are billed and reserved by it."""
    prices = {"input_tokens": 1, "cache_write_tokens": 3, "output_tokens": 0}
    rules = BillingRules(ignored=("prompt_cache_options",))
    with BillingServer(rules) as server, open_client(server, tmp_path, **prices) as client:
        record = run_within_its_bound(client, LONG)
    written = server.answered[0]["prompt_tokens"]
    assert record.cost_usd == pytest.approx(written * 3 / 1e6)
    assert record.reservation_usd >= record.cost_usd
