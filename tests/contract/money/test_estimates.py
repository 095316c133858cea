"""Estimates of cost: a range that contains the cost, null if it is unknown, and budgets."""

import pytest

from toolkit import Client, RequestError, WorkError, Workflow
from toolkit.contract.plans import CostRange

pytestmark = [pytest.mark.embedded, pytest.mark.sqlite("other tests have its statements")]

CARD = "A social card with a spoken summary about tidal power"


@pytest.mark.parametrize("policy", [None, "balanced", "cost", "latency", "quality"])
def test_a_budget_is_kept_under_any_optimization(client: Client, policy: str | None) -> None:
    """Given the specification's constraints, then plan, task, workflow and run keep the budget."""
    options = {} if policy is None else {"optimize_for": policy}
    estimate = client.plans.create(CARD, max_cost_usd=1.0, **options).estimated_cost_usd
    assert 0 < estimate.low <= estimate.expected <= estimate.high
    task = client.tasks.create(CARD, max_cost_usd=1.0, **options).wait()
    assert (task.status, task.error) == ("completed", None)
    assert estimate.low <= task.cost_usd <= estimate.high
    assert task.cost_incurred_usd <= 1.0
    assert task.estimated_cost_usd == pytest.approx(estimate.expected)
    wf = Workflow("budget", max_cost_usd=0.5, **options)
    facts = wf.add("facts", "research.gather", topic="Tidal power", synthesize=False)
    wf.add("copy", "text.generate", objective="A 20-word teaser", depends_on=[facts])
    flow = client.workflows.submit(wf).wait()
    assert 0 < flow.cost_incurred_usd <= 0.5
    total = sum(node.estimated_cost_usd for node in flow.nodes)
    assert flow.estimated_cost_usd == pytest.approx(total)
    run = client.runs.create("llm.generate", {"objective": "Hi"}, max_cost_usd=0.5, **options)
    assert 0 < run.wait().cost_incurred_usd <= 0.5
    assert all(attempt.reservation_usd is not None for attempt in run.attempts)


@pytest.mark.parametrize(
    "objective",
    [
        CARD,
        "A narration about tea",
        "A headline about the moon",
        "A short article on how bees dance",
        "A social card about tea",
    ],
)
def test_the_cost_lies_in_the_estimated_range(client: Client, objective: str) -> None:
    """Given a plan, which spends nothing, then the cost of its task lies in the estimated range."""
    estimate = client.plans.create(objective).estimated_cost_usd
    assert len(client.jobs.list()) == 0
    task = client.tasks.create(objective).wait()
    assert estimate.low <= task.cost_usd <= estimate.high
    assert estimate.low <= estimate.expected <= estimate.high
    assert task.cost_usd / 10 <= estimate.expected <= task.cost_usd * 10 + 0.001
    # A budget that fits is accepted. A budget below the least cost fails before it is spent.
    limit = 2 * task.cost_usd + 0.01
    second = client.tasks.create(objective, max_cost_usd=limit).wait()
    assert second.status == "completed"
    assert second.cost_incurred_usd <= limit
    if estimate.low:
        with pytest.raises(WorkError, match=r"^BUDGET_EXCEEDED:"):
            client.tasks.create(objective, max_cost_usd=estimate.low * 0.9).wait()


def test_work_without_a_connection_has_no_known_cost(bare: Client) -> None:
    """Given a part without a connection, then the estimate is null; free work is estimated as 0."""
    unknown = CostRange(low=None, expected=None, high=None)
    assert bare.plans.create("A narration about tea").estimated_cost_usd == unknown
    assert bare.plans.create("A video about tea").estimated_cost_usd == unknown
    bare.connections.create("anthropic", "environment", "ANTHROPIC_API_KEY")
    assert bare.plans.create(CARD).estimated_cost_usd == unknown  # it has no voice
    free = bare.plans.create("A social card about tea", max_cost_usd=0)
    assert free.executable
    assert free.estimated_cost_usd == CostRange(low=0, expected=0, high=0)


def test_a_budget_names_the_only_candidate_without_a_price(bare: Client) -> None:
    """Given only a vendor without prices, then a budget rejects the work and names the vendor."""
    bare.connections.create("minimax", "environment", "MINIMAX_API_KEY")
    spoken = bare.runs.create("speech.generate", {"text": "The kettle sings. " * 20}).wait()
    input = {"name": "narrator", "reference_audio": spoken.artifact_id}
    with pytest.raises(RequestError, match=r"^BUDGET_EXCEEDED:.*minimax \(voice-clone\)"):
        bare.runs.create("voice.clone", input, max_cost_usd=1.0)
    wf = Workflow("voices", max_cost_usd=1.0)
    wf.add("voice", "voice.clone", **input)
    with pytest.raises(RequestError, match=r"^BUDGET_EXCEEDED:") as error:
        bare.workflows.submit(wf)
    assert "`voice`" in error.value.message
    assert "minimax (voice-clone)" in error.value.message
