"""Amounts, estimates and costs."""

import re
from decimal import Decimal
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.views import render_views
from toolkit import Client, RequestError, WorkError, Workflow
from toolkit.cli.output import ClientOutput
from toolkit.cli.resources.workflows import NODE_COLUMNS
from toolkit.contract.money import format_usd
from toolkit.contract.plans import CostRange
from toolkit.notebook import TaskReview, WorkflowGraph, widget_html
from toolkit.sandbox import Fault, Faults
from toolkit.settings import Settings

pytestmark = [pytest.mark.embedded, pytest.mark.sqlite("other tests have its statements")]


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Settings without retries of calls."""
    return settings.model_copy(update={"retries": 0})


def sum_delivered_cost(client: Client, workflow) -> float:
    """Sum the costs of the two calls that delivered a result, by the attempts of its jobs."""
    attempts = [
        attempt
        for node in workflow.nodes
        for attempt in client.jobs.get(node.job_id).attempts
        if attempt.provider and attempt.status == "completed"
    ]
    assert len(attempts) == 2
    return sum(attempt.cost_usd for attempt in attempts)


def test_a_workflow_shows_one_cost_in_every_view(
    client: Client, faults: Faults, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given a workflow whose text was paid twice, then every view shows the cost of its results."""
    faults.mangle("openai", "garbage", times=1)
    wf = Workflow("twice", max_retries=1)
    facts = wf.add("facts", "research.gather", topic="Tidal power", synthesize=False)
    options = {"provider": "openai"}
    copy = wf.add("copy", "llm.generate", objective="A teaser", depends_on=[facts], options=options)
    wf.add("voice", "speech.generate", depends_on=[copy])
    workflow = client.workflows.submit(wf).wait()
    assert workflow.retries == 1
    cost = pytest.approx(sum_delivered_cost(client, workflow), abs=1e-9)
    text = format_usd(workflow.cost_usd)
    total = format_usd(workflow.record.cost_incurred_usd)
    assert workflow.cost_usd == cost
    assert workflow.record.cost_incurred_usd > workflow.cost_usd > 0
    # As data.
    assert workflow.to_dict()["cost_usd"] == client.workflows.list().cost_usd == cost
    assert workflow.to_frame()["cost_usd"].sum() == cost
    assert workflow.timeline().to_frame()["cost_usd"].sum() == cost
    assert sum(node["cost_usd"] for _, node in workflow.to_networkx().nodes(data=True)) == cost
    assert workflow.events()[-1].data["cost_usd"] == cost
    # As pictures, which also show the cost with all attempts.
    for picture in (workflow.picture(), workflow.timeline().picture()):
        assert f"{text} ({total} with all attempts)" in unescape(picture)
    labels = [label.get_text() for axes in workflow.plot().axes for label in axes.texts]
    assert any(text in label.replace("\\$", "$") for label in labels)
    # As text.
    assert f" {text}>" in repr(workflow)
    assert text in client.workflows.list()._repr_html_()
    ClientOutput(client).print_record(client.workflows.get(workflow.id), "nodes", NODE_COLUMNS)
    ClientOutput(client).print_table(client.workflows.list(), ("id", "cost_usd"))
    assert capsys.readouterr().out.count(text) == 2
    graph = WorkflowGraph(client.workflows.get(workflow.id))
    assert text in graph.headline.value
    assert text in unescape(graph.snapshot())
    graph.close()
    # Usage and bill count all attempts.
    (usage,) = client.usage.list(["day"])
    assert usage.cost_usd == pytest.approx(workflow.record.cost_incurred_usd, abs=1e-9)
    assert client.billing.get().total_usd == pytest.approx(usage.cost_usd, abs=1e-9)


def test_a_task_costs_the_sum_of_its_workflows(
    client: Client, faults: Faults, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given a task that was retried in part, then every view shows the same sum."""
    faults.mangle("minimax", "garbage", times=1, path_contains="t2a")
    task = client.tasks.create("A narration about tea").wait()
    client.tasks.submit_review(task.id, "retry", node_id="narration")
    task = client.tasks.get(task.id).wait()
    first, second = (client.workflows.get(workflow_id) for workflow_id in task.workflow_ids)
    assert task.cost_usd == pytest.approx(first.cost_usd + second.cost_usd, abs=1e-9)
    incurred = first.cost_incurred_usd + second.cost_incurred_usd
    assert task.cost_incurred_usd == pytest.approx(incurred, abs=1e-9)
    assert task.cost_incurred_usd > task.cost_usd > 0
    text = format_usd(task.cost_usd)
    assert f" {text}>" in repr(task)
    assert text in render_views(task)
    assert task.to_frame()["cost_usd"].item() == client.tasks.list().cost_usd == task.cost_usd
    assert task.events()[-1].data["cost_usd"] == task.cost_usd
    ClientOutput(client).print_record(task)
    ClientOutput(client).print_table(client.tasks.list(), ("id", "cost_usd"))
    assert capsys.readouterr().out.count(text) == 2
    review = TaskReview(task)
    assert text in review.headline.value
    for workflow in (first, second):
        assert format_usd(workflow.cost_usd) in review.attempts.value
    review.close()
    (usage,) = client.usage.list(["day"])
    assert usage.cost_usd == pytest.approx(task.cost_incurred_usd, abs=1e-9)


def test_work_that_was_never_billed_costs_nothing(client: Client, faults: Faults) -> None:
    """Given failures that no vendor bills, then they cost 0, which is not unknown."""
    faults.add(Fault("openai", status=400, times=None))
    nonsense = {"topic": "zzzz qqqq xxyyzz"}
    for run in (
        client.runs.create("llm.generate", {"objective": "x"}, provider="openai"),
        client.runs.create("research.gather", nonsense),
    ):
        run.wait(check=False)
        assert run.status == "failed"
        assert (run.cost_usd, run.cost_incurred_usd) == (0, 0)
        assert run.record.cost_source == "metered"
        assert "unknown" not in render_views(run)
        assert repr(run).endswith("$0>")
        assert {attempt.cost_usd for attempt in run.attempts} == {0}
    wf = Workflow("never")
    bad = wf.add("bad", "research.gather", nonsense)
    wf.add("behind", "llm.generate", objective="Say it", depends_on=[bad])
    flow = client.workflows.submit(wf).wait(check=False)
    assert flow.cost_usd == 0
    assert [node.cost_usd for node in flow.nodes] == [0, 0]
    task = client.tasks.create("A narration about tea", max_cost_usd=1e-7).wait(check=False)
    assert (task.status, task.error.code) == ("failed", "BUDGET_EXCEEDED")
    assert (task.cost_usd, task.cost_incurred_usd) == (0, 0)
    assert repr(task).endswith("$0>")


def test_a_failed_call_costs_the_amount_that_may_be_billed(client: Client, faults: Faults) -> None:
    """Given an unreadable answer, then the failed run shows its cost."""
    faults.mangle("openai", "garbage", times=None)
    run = client.runs.create("llm.generate", {"objective": "x"}, provider="openai")
    run.wait(check=False)
    assert (run.status, run.error.code) == ("failed", "PROVIDER_BAD_RESPONSE")
    assert run.cost_usd == run.cost_incurred_usd == run.attempts[0].cost_usd > 0
    assert run.record.cost_source == "estimated"


EXPONENT = re.compile(r"\d[eE][+-]?\d")


@given(st.decimals(min_value=0, max_value=10**9, allow_nan=False, places=12))
def test_an_amount_is_plain_digits(amount: Decimal) -> None:
    """Given any amount, then its text has 3 significant digits, or all of them if exact."""
    text = format_usd(amount)
    assert re.fullmatch(r"\$\d+(\.\d*[1-9])?", text)
    value = Decimal(text[1:])
    assert abs(value - amount) <= amount / 200
    assert (value == 0) == (amount == 0)
    assert Decimal(format_usd(amount, exact=True)[1:]) == amount


def test_names_a_tiny_budget_in_full(client: Client) -> None:
    """Given a budget of a ten-millionth, when it rejects a run, then the message is exact."""
    with pytest.raises(RequestError, match=r"^BUDGET_EXCEEDED:") as error:
        client.runs.create("llm.generate", {"objective": "x"}, max_cost_usd=1e-07)
    assert error.value.code.http_status == 402
    assert "$0.0000001" in error.value.message
    assert "$0.000000 " not in f"{error.value.message} "
    assert not EXPONENT.search(error.value.message)


def test_shows_prices_in_plain_digits(client: Client) -> None:
    """Given list prices of a millionth and less, then no view of them has an exponent."""
    models = client.catalog.models()
    assert any(0 < usd < 1e-4 for model in models for usd in model.record.prices_usd.values())
    rows = [model.to_dict() for model in models]
    for html in (
        models._repr_html_(),
        *map(render_views, models),
        widget_html.render_table(rows, ["provider", "model", "prices_usd"]),
    ):
        assert not EXPONENT.search(re.sub(r"<[^>]*>", " ", html))
    assert "$" in render_views(models[0])


def test_shows_a_tiny_bill(client: Client) -> None:
    """Given one short call, then the bill shows its cost and not $0.0000."""
    run = client.runs.create("llm.generate", {"objective": "Hi"}, provider="openai").wait()
    bill = client.billing.get()
    assert bill.total_usd == pytest.approx(run.cost_usd)
    assert format_usd(bill.total_usd) in repr(bill)


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
