"""Usage and billing: what was done, by whom, and what it cost, whatever became of it."""

from datetime import UTC, datetime, timedelta

import pytest

from toolkit import Client, RequestError, Workflow
from toolkit.contract.billing import BillingLine
from toolkit.settings import Settings

pytestmark = pytest.mark.embedded

TEA = {"objective": "One line on tea"}


def lines(client: Client, *group_by: str) -> dict[tuple[object, ...], dict[str, object]]:
    """Usage lines by what they are grouped by."""
    found = [line.to_dict() for line in client.usage.list(group_by)]
    columns = [
        {"connection": "connection_id", "agent": "agent_id", "key": "key_id"}.get(g, g)
        for g in group_by
    ]
    return {tuple(line[column] for column in columns): line for line in found}


def test_each_call_counts_for_who_was_called(client: Client) -> None:
    """Given runs by two vendors and none, then each is a line, and the sums are the jobs'."""
    runs = [
        client.runs.create("llm.generate", TEA, provider="openai").wait(),
        client.runs.create("llm.generate", TEA, provider="openai").wait(),
        client.runs.create("speech.generate", {"text": "Tea."}).wait(),
        client.runs.create("research.gather", {"topic": "Tea", "synthesize": False}).wait(),
    ]
    today = datetime.now(UTC).date().isoformat()
    found = lines(client, "day", "capability", "provider")
    texts = found[today, "llm.generate@1", "openai"]
    assert (texts["jobs"], texts["calls"], texts["failed"], texts["cached"]) == (2, 2, 0, 0)
    assert texts["cost_usd"] == pytest.approx(sum(run.cost_usd for run in runs[:2]), abs=1e-9)
    assert texts["latency_ms"] == sum(run.record.latency_ms for run in runs[:2])
    assert found[today, "speech.generate@1", "minimax"]["cost_usd"] == runs[2].cost_usd
    gathered = found[today, "research.gather@1", None]
    assert (gathered["jobs"], gathered["calls"], gathered["cost_usd"]) == (1, 0, 0.0)
    (total,) = client.usage.list(["day"])
    assert total.record.jobs == 4
    assert set(lines(client, "connection")) == {
        (None,),
        *((run.record.connection_id,) for run in runs[:3]),
    }


def test_what_was_cached_costs_nothing(client: Client) -> None:
    """Given a run and an equal one from the cache, then one call was paid for."""
    first = client.runs.create("llm.generate", TEA, cache=True).wait()
    again = client.runs.create("llm.generate", TEA, cache=True).wait()
    assert again.record.cached
    (line,) = client.usage.list(["capability"])
    assert (line.record.jobs, line.record.cached, line.record.calls) == (2, 1, 1)
    assert line.record.cost_usd == pytest.approx(first.cost_usd, abs=1e-9)


def test_a_bill_by_vendor(client: Client) -> None:
    """Given calls of two vendors, then each bills its own, the platform nothing."""
    client.runs.create("llm.generate", TEA, provider="openai").wait()
    client.runs.create("speech.generate", {"text": "Tea."}).wait()
    bill = client.billing.get()
    costs = {line.billed_by: line.cost_usd for line in bill.record.lines}
    assert list(costs) == ["minimax", "openai", "platform"]
    assert costs["platform"] == 0
    assert bill.total_usd == pytest.approx(sum(costs.values()))
    assert bill.record.simulated
    assert client.billing.get("2020-01").total_usd == 0


def test_a_bill_has_the_hours_of_pods(client: Client) -> None:
    """Given a pod that was kept for a while, then its hours are billed until it is deleted."""
    pod = client.compute.create("easel", "NVIDIA GeForce RTX 4090")
    price = pod.record.cost_per_hour_usd
    client.compute.delete(pod.id)

    def line() -> BillingLine:
        lines = client.billing.get().record.lines
        return next(line for line in lines if line.billed_by == "runpod")

    kept = line()
    assert kept.pod_hours > 0
    assert kept.cost_usd == pytest.approx(kept.pod_hours * price)
    assert line().pod_hours == kept.pod_hours


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
def test_a_span_that_is_none_is_refused(bare: Client, query: dict[str, object]) -> None:
    """Given groups or days that there are not, then the request is refused."""
    with pytest.raises(RequestError, match=r"^INVALID_REQUEST:"):
        bare.usage.list(**query)


def test_what_is_not_in_the_span_is_not_told(client: Client) -> None:
    """Given a run of today, then yesterday tells nothing of it."""
    client.runs.create("llm.generate", TEA).wait()
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    assert len(client.usage.list(first=yesterday, last=yesterday)) == 0
    assert len(client.usage.list(first=yesterday)) == 1


def test_a_crash_counts_a_call_once(settings: Settings) -> None:
    """Given an engine that goes away in mid-call, then the call is counted once for both."""
    client = Client.local(settings=settings)
    flow, before = Workflow("long"), []
    for i in range(40):
        before = [flow.add(f"n{i}", "llm.generate", **TEA, depends_on=before)]
    run = client.workflows.submit(flow)
    while client.workflows.get(run.id).nodes[3].status != "completed":
        pass
    client.close()
    with Client.local(settings=settings) as again:
        done = again.workflows.get(run.id).wait()
        (line,) = again.usage.list(["capability"])
        attempts = [a for n in done.nodes for a in again.jobs.get(n.job_id).attempts]
        assert (line.record.jobs, line.record.calls) == (40, len(attempts))
        paid = sum(attempt.cost_usd or 0 for attempt in attempts)
        assert line.record.cost_usd == pytest.approx(paid, abs=1e-7)
