"""Budgets: what a limit says is what is paid at most, whatever is asked for."""

import pytest

from benchmarks._texts import KINDS, PROSE
from tests.support.timing import PATIENCE_S
from toolkit import Client, RequestError, WorkError, Workflow
from toolkit.engine.money.budget import Budget

pytestmark = pytest.mark.embedded

DENSE = {
    "numbers": KINDS["numbers as JSON"],
    "chinese": PROSE["chinese"] * 8,
    "amharic": PROSE["amharic"] * 4,
    "english": PROSE["english"] * 4,
}
VENDORS = ("minimax", "openai", "anthropic", "aws")


@pytest.mark.parametrize("text", DENSE)
def test_a_run_limited_to_its_reservation_runs_within_it(client: Client, text: str) -> None:
    """Given a limit of just what a preview reserves, then the run completes and pays no more."""
    asked = {"objective": DENSE[text], "max_tokens": 400}
    for provider in VENDORS:
        route = client.route("llm.generate", asked, provider=provider)
        limit = route.record.reservation_usd
        assert limit is not None
        assert limit > (route.record.estimated_cost_usd or 0)
        run = client.runs.create(
            "llm.generate", asked, provider=provider, max_cost_usd=limit
        ).wait()
        assert run.record.reservation_usd == limit
        assert 0 < run.record.cost_usd <= run.record.cost_incurred_usd <= limit


@pytest.mark.parametrize("text", DENSE)
def test_a_run_limited_to_its_estimate_never_pays_more(client: Client, text: str) -> None:
    """Given a limit of what is expected, then the run pays no more, or is refused beforehand."""
    asked = {"objective": DENSE[text]}
    limit = client.route("llm.generate", asked).record.estimated_cost_usd
    assert limit is not None
    if client.route("llm.generate", asked, max_cost_usd=limit).provider is not None:
        run = client.runs.create("llm.generate", asked, max_cost_usd=limit).wait()
        assert 0 < run.record.cost_incurred_usd <= limit
        return
    with pytest.raises(RequestError) as refused:
        client.runs.create("llm.generate", asked, max_cost_usd=limit)
    assert refused.value.code.name == "BUDGET_EXCEEDED"
    assert "minimax (MiniMax-M3) may cost up to $" in str(refused.value)
    assert "raise max_cost_usd" in str(refused.value)


def test_a_cap_that_nobody_set_is_lowered_to_fit_and_the_record_shows_it(client: Client) -> None:
    """Given room for less than the usual answer, then less is allowed; a cap of one's own holds."""
    asked = {"objective": "One line on tea"}
    least = client.route("llm.generate", {**asked, "max_tokens": 300}, provider="anthropic")
    limit = least.record.reservation_usd
    route = client.route("llm.generate", asked, provider="anthropic", max_cost_usd=limit)
    (candidate,) = [c for c in route.record.candidates if not c.excluded]
    assert candidate.max_tokens == 300
    run = client.runs.create("llm.generate", asked, provider="anthropic", max_cost_usd=limit).wait()
    assert run.record.attempts[0].max_tokens == 300
    assert run.record.cost_usd <= limit
    own = {**asked, "max_tokens": 1024}
    with pytest.raises(RequestError, match=r"^BUDGET_EXCEEDED:"):
        client.runs.create("llm.generate", own, provider="anthropic", max_cost_usd=limit)


def test_a_cap_is_not_lowered_below_an_answer_nor_with_a_schema(client: Client) -> None:
    """Given room for a few words, or a schema to fill, then the run is refused beforehand."""
    few = client.route("llm.generate", {"objective": "Tea", "max_tokens": 100}, provider="aws")
    shape = {"type": "object", "properties": {"line": {"type": "string"}}}
    cut = client.route(
        "llm.generate",
        {"objective": "Tea", "max_tokens": 600, "output_schema": shape},
        provider="aws",
    )
    for asked, limit in (
        ({"objective": "Tea"}, few.record.reservation_usd),
        ({"objective": "Tea", "output_schema": shape}, cut.record.reservation_usd),
    ):
        with pytest.raises(RequestError, match=r"^BUDGET_EXCEEDED:"):
            client.runs.create("llm.generate", asked, provider="aws", max_cost_usd=limit)


@pytest.mark.parametrize("policy", [None, "cost", "latency", "quality", "balanced"])
def test_a_workflow_pays_no_more_than_its_limit(client: Client, policy: str | None) -> None:
    """Given dense texts side by side under a limit, then what is paid stays within it."""
    wf = Workflow("dense", max_cost_usd=0.03, max_retries=1, optimize_for=policy)
    for name, text in DENSE.items():
        wf.add(name, "llm.generate", objective=text)
    done = client.workflows.submit(wf).wait(check=False)
    assert done.record.cost_incurred_usd <= 0.03
    for node in done.record.nodes:
        assert node.status == "completed" or node.error.code == "BUDGET_EXCEEDED"


def test_a_node_keeps_to_a_limit_of_its_own(client: Client) -> None:
    """Given a node with a limit that its second call would pass, then it fails and says so."""
    asked = {"objective": PROSE["english"], "max_tokens": 400}
    limit = client.route("llm.generate", asked, provider="openai").record.reservation_usd
    body = {
        "name": "own limit",
        "nodes": [
            {
                "id": "a",
                "capability": "llm.generate",
                "input": asked,
                "options": {"provider": "openai", "max_cost_usd": limit / 2},
            }
        ],
    }
    with pytest.raises(RequestError, match=r"^BUDGET_EXCEEDED:"):
        client.workflows.submit(Workflow.from_dict(body))


def test_expectation_and_bound_stand_apart(client: Client) -> None:
    """Given any candidate with a price, then what is expected is below what is reserved."""
    route = client.route("llm.generate", {"objective": "One line on tea"}, optimize_for="cost")
    priced = [c for c in route.record.candidates if c.reservation_usd is not None]
    assert len(priced) > 8
    assert all(0 < c.estimated_cost_usd < c.reservation_usd for c in priced)
    assert {"estimated_cost_usd", "reservation_usd"} <= set(route.to_frame().columns)


def test_a_worker_of_ones_own_is_bounded_by_the_time_that_it_may_take(client: Client) -> None:
    """Given an endpoint, then its worker's longest time is reserved, and what it took is paid."""
    endpoint = client.endpoints.create("studio", gpu_ids="ADA_24")
    (pool,) = {gpu.record.pool: gpu.record for gpu in client.catalog.gpus()}.keys() & {"ADA_24"}
    prices = [
        gpu.record.prices_per_hour_usd["serverless"]
        for gpu in client.catalog.gpus()
        if gpu.record.pool == pool
    ]
    assert endpoint.record.price_per_hour_usd == max(prices)
    asked = {"prompt": "a lighthouse", "steps": 4, "width": 256, "height": 256}
    route = client.route("image.generate", asked, endpoint_id=endpoint.id)
    limit = route.record.reservation_usd
    # Ten minutes of work at most, five for a start, and what it waits for more.
    assert limit == pytest.approx(max(prices) / 3600 * (600 + 300 + 5), rel=1e-6)
    run = client.runs.create(
        "image.generate", asked, endpoint_id=endpoint.id, max_cost_usd=limit
    ).wait()
    assert 0 < run.record.cost_usd == run.record.cost_incurred_usd < limit
    assert run.record.cost_source == "estimated"
    with pytest.raises(RequestError) as refused:
        client.runs.create("image.generate", asked, endpoint_id=endpoint.id, max_cost_usd=limit / 2)
    assert refused.value.code.name == "BUDGET_EXCEEDED"
    assert "raise max_cost_usd" in str(refused.value)


def test_a_run_ends_though_ranking_and_budget_disagree(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given candidates that rank as affordable, when no budget covers them, then the run fails."""
    monkeypatch.setattr(Budget, "could_reserve", lambda _budget, _amount: False)
    asked = {"objective": "One line on tea"}
    run = client.runs.create("llm.generate", asked, max_cost_usd=0.05)
    with pytest.raises(WorkError, match=r"^BUDGET_EXCEEDED:"):
        run.wait(timeout=PATIENCE_S)
    assert run.record.attempts == []
