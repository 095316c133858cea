"""Budgets: a limit is the most that is paid."""

import pytest

from benchmarks._texts import KINDS, PROSE
from tests.contract.raw_http import SMALL_IMAGE
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
LINE = {"objective": "One line on tea"}


def get_bound(client: Client, input: dict[str, object], **options: object) -> float:
    """Return the reservation of a run."""
    bound = client.route("llm.generate", input, **options).record.reservation_usd
    assert bound is not None
    return float(bound)


@pytest.mark.parametrize("text", DENSE)
def test_a_run_limited_to_its_reservation_completes_within_it(client: Client, text: str) -> None:
    """Given a limit equal to the reservation of a preview, then the run pays no more."""
    input = {"objective": DENSE[text], "max_tokens": 400}
    for provider in ("minimax", "openai", "anthropic", "aws"):
        route = client.route("llm.generate", input, provider=provider).record
        limit = route.reservation_usd
        assert limit is not None
        assert limit > (route.estimated_cost_usd or 0)
        run = client.runs.create("llm.generate", input, provider=provider, max_cost_usd=limit)
        record = run.wait().record
        assert record.reservation_usd == limit
        assert 0 < record.cost_usd <= record.cost_incurred_usd <= limit


@pytest.mark.parametrize("text", DENSE)
def test_a_run_limited_to_its_estimate_never_pays_more(client: Client, text: str) -> None:
    """Given a limit equal to the estimate, then the run pays no more, or is rejected."""
    input = {"objective": DENSE[text]}
    limit = client.route("llm.generate", input).record.estimated_cost_usd
    assert limit is not None
    if client.route("llm.generate", input, max_cost_usd=limit).provider is not None:
        run = client.runs.create("llm.generate", input, max_cost_usd=limit).wait()
        assert 0 < run.record.cost_incurred_usd <= limit
        return
    reason = r"(?s)^BUDGET_EXCEEDED:.*minimax \(MiniMax-M3\) may cost up to \$.*raise max_cost_usd"
    with pytest.raises(RequestError, match=reason):
        client.runs.create("llm.generate", input, max_cost_usd=limit)


def test_lowers_the_default_cap_to_fit_the_limit(client: Client) -> None:
    """Given a limit below the default cap, then the cap is lowered; a caller's own cap is kept."""
    limit = get_bound(client, {**LINE, "max_tokens": 300}, provider="anthropic")
    options = {"provider": "anthropic", "max_cost_usd": limit}
    route = client.route("llm.generate", LINE, **options)
    (candidate,) = [c for c in route.record.candidates if not c.excluded]
    assert candidate.max_tokens == 300
    run = client.runs.create("llm.generate", LINE, **options).wait()
    assert run.record.attempts[0].max_tokens == 300
    assert run.record.cost_usd <= limit
    with pytest.raises(RequestError, match=r"^BUDGET_EXCEEDED:"):
        client.runs.create("llm.generate", {**LINE, "max_tokens": 1024}, **options)


@pytest.mark.parametrize(
    ("max_tokens", "fields"),
    [
        (100, {}),
        (600, {"output_schema": {"type": "object", "properties": {"line": {"type": "string"}}}}),
    ],
)
def test_lowers_no_cap_below_an_answer_nor_with_a_schema(
    client: Client, max_tokens: int, fields: dict[str, object]
) -> None:
    """Given room for a few words, or a schema, then the run is rejected."""
    input = {"objective": "Tea", **fields}
    limit = get_bound(client, {**input, "max_tokens": max_tokens}, provider="aws")
    with pytest.raises(RequestError, match=r"^BUDGET_EXCEEDED:"):
        client.runs.create("llm.generate", input, provider="aws", max_cost_usd=limit)


@pytest.mark.parametrize("policy", [None, "cost", "latency", "quality", "balanced"])
def test_a_workflow_pays_no_more_than_its_limit(client: Client, policy: str | None) -> None:
    """Given dense texts that run in parallel, then their cost stays within the limit."""
    wf = Workflow("dense", max_cost_usd=0.03, max_retries=1, optimize_for=policy)
    for name, text in DENSE.items():
        wf.add(name, "llm.generate", objective=text)
    record = client.workflows.submit(wf).wait(check=False).record
    assert record.cost_incurred_usd <= 0.03
    for node in record.nodes:
        assert node.status == "completed" or node.error.code == "BUDGET_EXCEEDED"


def test_rejects_a_node_over_its_own_limit(client: Client) -> None:
    """Given a node whose limit is below its reservation, then the workflow is rejected."""
    input = {"objective": PROSE["english"], "max_tokens": 400}
    limit = get_bound(client, input, provider="openai") / 2
    wf = Workflow("own limit")
    wf.add("a", "llm.generate", input, options={"provider": "openai", "max_cost_usd": limit})
    with pytest.raises(RequestError, match=r"^BUDGET_EXCEEDED:"):
        client.workflows.submit(wf)


def test_reserves_the_longest_time_of_a_worker(client: Client) -> None:
    """Given an endpoint, then the longest time of its worker is reserved, and the used is paid."""
    endpoint = client.endpoints.create("studio", gpu_ids="ADA_24")
    price = max(
        gpu.record.prices_per_hour_usd["serverless"]
        for gpu in client.catalog.gpus()
        if gpu.record.pool == "ADA_24"
    )
    assert endpoint.record.price_per_hour_usd == price
    route = client.route("image.generate", SMALL_IMAGE, endpoint_id=endpoint.id)
    limit = route.record.reservation_usd
    # Ten minutes of work at most, five for a start, and five idle seconds.
    assert limit == pytest.approx(price / 3600 * (600 + 300 + 5), rel=1e-6)

    def create_run(limit: float):
        options = {"endpoint_id": endpoint.id, "max_cost_usd": limit}
        return client.runs.create("image.generate", SMALL_IMAGE, **options)

    run = create_run(limit).wait()
    assert 0 < run.record.cost_usd == run.record.cost_incurred_usd < limit
    assert run.record.cost_source == "estimated"
    with pytest.raises(RequestError, match=r"(?s)^BUDGET_EXCEEDED:.*raise max_cost_usd"):
        create_run(limit / 2)


def test_a_run_ends_though_ranking_and_budget_disagree(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given candidates that rank as affordable, when no budget covers them, then the run fails."""
    monkeypatch.setattr(Budget, "could_reserve", lambda _budget, _amount: False)
    run = client.runs.create("llm.generate", LINE, max_cost_usd=0.05)
    with pytest.raises(WorkError, match=r"^BUDGET_EXCEEDED:"):
        run.wait(timeout=PATIENCE_S)
    assert run.record.attempts == []
