"""Estimates of cost: a range that holds, null where nobody can know, and budgets."""

import pytest

from toolkit import Client, RequestError, WorkError, Workflow
from toolkit.contract.plans import CostRange

pytestmark = [pytest.mark.embedded, pytest.mark.sqlite("other tests have its statements")]

WISHES = [None, "balanced", "cost", "latency", "quality"]
CARD = "A social card with a spoken summary about tidal power"
OBJECTIVES = [
    CARD,
    "A narration about tea",
    "A headline about the moon",
    "A short article on how bees dance",
    "A social card about tea",
]


@pytest.mark.parametrize("wish", WISHES)
def test_a_budget_goes_with_whatever_is_optimized_for(client: Client, wish: str | None) -> None:
    """Given the specification's constraints, then plan, task, workflow and run keep to a budget."""
    given = {} if wish is None else {"optimize_for": wish}
    told = client.plans.create(CARD, max_cost_usd=1.0, **given).estimated_cost_usd
    assert 0 < told.low <= told.expected <= told.high
    task = client.tasks.create(CARD, max_cost_usd=1.0, **given).wait()
    assert (task.status, task.error) == ("completed", None)
    assert told.low <= task.cost_usd <= told.high
    assert task.cost_incurred_usd <= 1.0
    assert task.estimated_cost_usd == pytest.approx(told.expected)
    wf = Workflow("budget", max_cost_usd=0.5, **given)
    facts = wf.add("facts", "research.gather", topic="Tidal power", synthesize=False)
    wf.add("copy", "text.generate", objective="A 20-word teaser", depends_on=[facts])
    flow = client.workflows.submit(wf).wait()
    assert 0 < flow.cost_incurred_usd <= 0.5
    assert flow.estimated_cost_usd == pytest.approx(
        sum(node.estimated_cost_usd for node in flow.nodes)
    )
    run = client.runs.create("llm.generate", {"objective": "Hi"}, max_cost_usd=0.5, **given).wait()
    assert 0 < run.cost_incurred_usd <= 0.5
    assert all(one.reservation_usd is not None for one in run.attempts)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_range_holds_what_is_paid(client: Client, objective: str) -> None:
    """Given a plan, when its task has run, then what it cost lies in the range that was told."""
    told = client.plans.create(objective).estimated_cost_usd
    task = client.tasks.create(objective).wait()
    assert told.low <= task.cost_usd <= told.high
    assert told.low <= told.expected <= told.high
    assert task.cost_usd / 10 <= told.expected <= task.cost_usd * 10 + 0.001
    # A budget that fits is not refused, and one below the least is, before anything is paid.
    fits = client.tasks.create(objective, max_cost_usd=2 * task.cost_usd + 0.01).wait()
    assert fits.status == "completed"
    assert fits.cost_incurred_usd <= 2 * task.cost_usd + 0.01
    if told.low:
        with pytest.raises(WorkError, match=r"^BUDGET_EXCEEDED:"):
            client.tasks.create(objective, max_cost_usd=told.low * 0.9).wait()


def test_what_is_not_connected_has_no_known_cost(bare: Client) -> None:
    """Given no connection, then what a plan may come to is null, and so for a part that lacks one.

    What needs none costs nothing, and says so.
    """
    unknown = CostRange(low=None, expected=None, high=None)
    assert bare.plans.create("A narration about tea").estimated_cost_usd == unknown
    assert bare.plans.create("A video about tea").estimated_cost_usd == unknown
    bare.connections.create("anthropic", "environment", "ANTHROPIC_API_KEY")
    assert bare.plans.create(CARD).estimated_cost_usd == unknown  # nobody is there to speak
    free = bare.plans.create("A social card about tea", max_cost_usd=0)
    assert free.executable
    assert free.estimated_cost_usd == CostRange(low=0, expected=0, high=0)


def test_only_where_nobody_is_left_a_budget_refuses(bare: Client) -> None:
    """Given a vendor without prices, then a budget drops it; alone, it is named in the refusal."""
    bare.connections.create("minimax", "environment", "MINIMAX_API_KEY")
    spoken = bare.runs.create("speech.generate", {"text": "The kettle sings. " * 20}).wait()
    asked = ("voice.clone", {"name": "narrator", "reference_audio": spoken.artifact_id})
    unknown = bare.plans.create("An image of a kettle").estimated_cost_usd
    assert unknown.low is None or unknown.low > 0
    with pytest.raises(RequestError) as refused:
        bare.runs.create(*asked, max_cost_usd=1.0)
    assert refused.value.code.name == "BUDGET_EXCEEDED"
    assert "minimax (voice-clone)" in refused.value.message
    wf = Workflow("voices", max_cost_usd=1.0)
    wf.add("voice", asked[0], **asked[1])
    with pytest.raises(RequestError) as refused:
        bare.workflows.submit(wf)
    assert refused.value.code.name == "BUDGET_EXCEEDED"
    assert "`voice`" in refused.value.message
    assert "minimax (voice-clone)" in refused.value.message
