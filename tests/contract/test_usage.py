"""Usage and billing: the work of an account, its costs, and who billed them."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.support.timing import wait_until
from toolkit import Client, RequestError, Workflow
from toolkit.settings import Settings

pytestmark = pytest.mark.embedded

TEA = {"objective": "One line on tea"}


def test_counts_each_call_by_day_capability_and_provider(client: Client) -> None:
    """Given runs of two vendors and of none, then each group is a line with its sums."""
    first, second, speech, research = (
        client.runs.create(name, input, **options).wait()
        for name, input, options in (
            ("llm.generate", TEA, {"provider": "openai"}),
            ("llm.generate", TEA, {"provider": "openai"}),
            ("speech.generate", {"text": "Tea."}, {}),
            ("research.gather", {"topic": "Tea", "synthesize": False}, {}),
        )
    )
    today = datetime.now(UTC).date().isoformat()
    columns = ("day", "capability", "provider")
    usage = [line.to_dict() for line in client.usage.list(columns)]
    lines = {tuple(line[column] for column in columns): line for line in usage}
    texts = lines[today, "llm.generate@1", "openai"]
    assert (texts["jobs"], texts["calls"], texts["failed"], texts["cached"]) == (2, 2, 0, 0)
    assert texts["cost_usd"] == pytest.approx(first.cost_usd + second.cost_usd, abs=1e-9)
    assert texts["latency_ms"] == first.record.latency_ms + second.record.latency_ms
    assert lines[today, "speech.generate@1", "minimax"]["cost_usd"] == speech.cost_usd
    facts = lines[today, "research.gather@1", research.provider]
    assert (facts["jobs"], facts["calls"], facts["cost_usd"]) == (1, 0, 0.0)
    (total,) = client.usage.list(["day"])
    assert total.record.jobs == 4
    connections = {line.record.connection_id for line in client.usage.list(["connection"])}
    assert connections == {None, first.record.connection_id, speech.record.connection_id}


def test_a_cached_run_costs_nothing(client: Client) -> None:
    """Given a run and an equal run from the cache, then one call was paid for."""
    first = client.runs.create("llm.generate", TEA, cache=True).wait()
    second = client.runs.create("llm.generate", TEA, cache=True).wait()
    assert second.record.cached
    (line,) = client.usage.list(["capability"])
    assert (line.record.jobs, line.record.cached, line.record.calls) == (2, 1, 1)
    assert line.record.cost_usd == pytest.approx(first.cost_usd, abs=1e-9)


def test_a_bill_has_a_line_for_each_vendor(client: Client) -> None:
    """Given calls of two vendors, then each bills its own calls, and the platform bills nothing."""
    client.runs.create("llm.generate", TEA, provider="openai").wait()
    client.runs.create("speech.generate", {"text": "Tea."}).wait()
    bill = client.billing.get()
    costs = {line.billed_by: line.cost_usd for line in bill.record.lines}
    assert list(costs) == ["minimax", "openai", "platform"]
    assert costs["platform"] == 0
    assert bill.total_usd == pytest.approx(sum(costs.values()))
    assert bill.record.simulated
    assert client.billing.get("2020-01").total_usd == 0
    with pytest.raises(RequestError, match="by key or by account"):
        client.billing.get(by_key=True, by_account=True)


def test_a_bill_has_the_hours_of_pods(client: Client) -> None:
    """Given a deleted pod, then the hours until its deletion are billed."""
    pod = client.compute.create("easel", "NVIDIA GeForce RTX 4090")
    price = pod.record.cost_per_hour_usd
    pod.delete()
    first, second = (
        next(line for line in client.billing.get().record.lines if line.billed_by == "runpod")
        for _ in range(2)
    )
    assert first.pod_hours > 0
    assert first.cost_usd == pytest.approx(first.pod_hours * price)
    assert second.pod_hours == first.pod_hours


@pytest.mark.parametrize(
    "query",
    [
        {"group_by": ["moon"]},
        {"group_by": ["day", "day"]},
        {"first": "2026-02-30"},
        {"first": "2026-02-02", "last": "2026-02-01"},
        {"first": "2020-01-01", "last": "2026-02-01"},
    ],
)
def test_rejects_invalid_groups_and_days(bare: Client, query: dict[str, object]) -> None:
    """Given unknown groups or days, then the request is rejected."""
    with pytest.raises(RequestError, match=r"^INVALID_REQUEST:"):
        bare.usage.list(**query)


def test_usage_has_only_the_days_of_its_span(client: Client) -> None:
    """Given a run of today, then the usage of yesterday does not have it."""
    client.runs.create("llm.generate", TEA).wait()
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    assert len(client.usage.list(first=yesterday, last=yesterday)) == 0
    assert len(client.usage.list(first=yesterday)) == 1


def test_a_crash_counts_a_call_once(settings: Settings) -> None:
    """Given an engine that stops during a call, then the call is counted once."""
    client = Client.local(settings=settings)
    flow, upstream = Workflow("long"), []
    for i in range(40):
        upstream = [flow.add(f"n{i}", "llm.generate", **TEA, depends_on=upstream)]
    run = client.workflows.submit(flow)
    wait_until(lambda: run.refresh().nodes[3].status == "completed")
    client.close()
    with Client.local(settings=settings) as client:
        nodes = client.workflows.get(run.id).wait().nodes
        (line,) = client.usage.list(["capability"])
        attempts = [a for node in nodes for a in client.jobs.get(node.job_id).attempts]
        assert (line.record.jobs, line.record.calls) == (40, len(attempts))
        cost = sum(attempt.cost_usd or 0 for attempt in attempts)
        assert line.record.cost_usd == pytest.approx(cost, abs=1e-7)
