"""Workflows: a graph of capabilities."""

import pytest

from toolkit import Client, RequestError, WorkError, Workflow


def launch_card() -> Workflow:
    """The workflow of the README."""
    wf = Workflow("launch-card", max_retries=2)
    facts = wf.add("facts", "research.gather", topic="Tidal power")
    copy = wf.add("copy", "text.generate", objective="A 20-word teaser", depends_on=[facts])
    wf.add("card", "composition.layout", title="Tidal power", depends_on=[copy])
    return wf


def test_a_workflow_runs_in_dependency_order(client: Client) -> None:
    """Given three nodes in a row, when submitted, then each is fed by the one before it."""
    result = client.workflows.submit(launch_card()).wait()
    assert result.status == "completed"
    assert [node.id for node in result.nodes] == ["facts", "copy", "card"]
    assert all(node.status == "completed" and node.job_id for node in result.nodes)
    assert result.final_artifact_id == result.nodes[-1].artifact_id
    assert result.record.sink_artifact_ids == {"card": result.final_artifact_id}
    assert result.retries == 0
    assert result.latency_ms > 0
    copy = client.jobs.get(result.nodes[1].job_id)
    assert copy.record.input["from_artifacts"] == {"facts": result.nodes[0].artifact_id}
    jobs = [client.jobs.get(node.job_id).record for node in result.nodes]
    assert result.cost_usd == pytest.approx(sum(job.cost_usd for job in jobs))
    assert result.record.cost_incurred_usd == result.cost_usd  # there was no retry


def test_a_failure_cancels_only_what_lies_behind_it(client: Client) -> None:
    """Given two branches, when one fails, then the other finishes and the workflow has failed."""
    wf = Workflow("two branches")
    bad = wf.add("bad", "research.gather", topic="zzzz qqqq xxyyzz")
    wf.add("behind", "llm.generate", objective="Say it", depends_on=[bad])
    wf.add("good", "research.gather", topic="Tea")
    result = client.workflows.submit(wf).wait(check=False)
    by_id = {node.id: node for node in result.nodes}
    assert result.status == "failed"
    assert by_id["good"].status == "completed"
    assert (by_id["behind"].status, by_id["behind"].error.code) == ("cancelled", "UPSTREAM_FAILED")
    assert result.record.error.code == by_id["bad"].error.code == "PROVIDER_REJECTED"
    with pytest.raises(WorkError):
        client.workflows.get(result.id).wait()


FAULTS = {
    "cycle": ([("a", ["b"]), ("b", ["a"])], "cycle"),
    "self": ([("a", ["a"])], "itself"),
    "unknown": ([("a", ["ghost"])], "unknown"),
    "duplicate": ([("a", []), ("a", [])], "earlier"),
    "empty": ([], "at least one"),
}


@pytest.mark.parametrize(("edges", "word"), FAULTS.values(), ids=FAULTS)
def test_a_graph_that_cannot_run_is_refused(
    bare: Client, edges: list[tuple[str, list[str]]], word: str
) -> None:
    """Given a faulty graph, when submitted, then every fault is named and nothing is stored."""
    body = {
        "name": "faulty",
        "nodes": [
            {"id": i, "capability": "research.gather", "input": {"topic": "Tea"}, "depends_on": d}
            for i, d in edges
        ],
    }
    with pytest.raises(RequestError) as refused:
        bare.workflows.create(body)
    assert refused.value.code.name == "INVALID_WORKFLOW"
    assert any(word in detail.message for detail in refused.value.details)
    assert len(bare.workflows.list()) == 0


def test_a_cancelled_workflow_ends(client: Client) -> None:
    """Given a workflow under way, when cancelled, then it and its open nodes are cancelled."""
    wf = Workflow("long")
    last = wf.add("n0", "research.gather", topic="Tea")
    for i in range(1, 40):
        last = wf.add(f"n{i}", "llm.generate", objective=f"Line {i} on tea", depends_on=[last])
    running = client.workflows.submit(wf)
    cancelled = running.cancel()
    assert cancelled.status == "cancelled"
    assert {node.status for node in cancelled.nodes} <= {"completed", "cancelled"}
    assert client.workflows.get(running.id).cancel().status == "cancelled"
