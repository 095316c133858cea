"""Optional nodes: their dependents run without them if they fail, and the workflow warns."""

import pytest

from tests.contract.conftest import expect_refusal
from tests.support.timing import PATIENCE_S, wait_until
from toolkit import Client, WorkError, Workflow
from toolkit.cli.output import ClientOutput
from toolkit.cli.work import wait_for_work
from toolkit.sandbox import Faults
from toolkit.settings import Settings

pytestmark = pytest.mark.embedded


def build_article() -> Workflow:
    """Build a workflow whose text uses optional facts."""
    flow = Workflow("article")
    facts = flow.add("facts", "research.gather", topic="Tides", optional=True)
    text = flow.add("text", "llm.generate", objective="One line on tides", depends_on=[facts])
    flow.add("card", "composition.layout", title="Tides", depends_on=[text])
    return flow


@pytest.fixture
def failing(faults: Faults) -> Faults:
    """Faults that fail every lookup of facts."""
    faults.fail("encyclopedia", status=400, times=None)
    return faults


def test_dependents_run_without_a_failed_optional_node(client: Client, failing: Faults) -> None:
    """Given an optional node that fails, then its dependents complete, and the record warns."""
    run = client.workflows.submit(build_article()).wait(PATIENCE_S)
    assert (run.status, run.error) == ("completed", None)
    assert [node.status for node in run.nodes] == ["failed", "completed", "completed"]
    assert run["facts"].optional
    assert run.job("text").record.input.get("from_artifacts", {}) == {}
    assert run.final_artifact_id == run["card"].artifact_id
    assert run.sink_artifact_ids == {"card": run["card"].artifact_id}
    (warning,) = run.warnings
    assert "facts" in warning
    assert run["facts"].error is not None
    assert run["facts"].error.code in warning
    assert "1 warning" in repr(run)
    event = run.events()[-1]
    assert (event.type, event.data["warnings"]) == ("workflow.completed", run.warnings)


def test_dependents_use_a_completed_optional_node(client: Client) -> None:
    """Given an optional node that completes, then its dependents receive its artifact."""
    run = client.workflows.submit(build_article()).wait()
    assert run.warnings == []
    assert run.job("text").record.input["from_artifacts"] == {"facts": run["facts"].artifact_id}


def test_retries_an_optional_node_first(client: Client, faults: Faults) -> None:
    """Given an optional node and retries, then it fails after them, and they are counted."""
    faults.fail("encyclopedia", status=503, times=None)
    flow = build_article()
    flow.max_retries = 2
    run = client.workflows.submit(flow).wait()
    assert (run["facts"].retry_count, run.retries) == (2, 2)


def test_rejects_a_required_field_from_an_optional_node(client: Client) -> None:
    """Given a required field that only an optional node could fill, then the graph is rejected."""
    flow = Workflow("reading")
    text = flow.add("text", "llm.generate", objective="One line on tides", optional=True)
    flow.add("voice", "speech.generate", depends_on=[text])
    with expect_refusal("INVALID_REQUEST", "nodes.1.input.text", match="optional"):
        client.workflows.submit(flow)
    flow.nodes[1]["input"]["text"] = "Tides rise."
    assert client.workflows.submit(flow).wait().status == "completed"


def test_a_workflow_without_a_result_has_failed(client: Client, failing: Faults) -> None:
    """Given only optional nodes that fail, then the workflow fails with the first error."""
    flow = Workflow("facts")
    flow.add("facts", "research.gather", topic="Tides", optional=True)
    with pytest.raises(WorkError, match=r"^PROVIDER_REJECTED:"):
        client.workflows.submit(flow).wait()


def test_delivers_the_last_node_with_a_result(client: Client, failing: Faults) -> None:
    """Given a last node that is optional and fails, then the node before it is delivered."""
    flow = Workflow("text and facts")
    flow.add("text", "llm.generate", objective="One line on tides")
    flow.add("facts", "research.gather", topic="Tides", optional=True)
    run = client.workflows.submit(flow).wait()
    assert run.final_artifact_id == run["text"].artifact_id
    assert run.sink_artifact_ids == {"text": run["text"].artifact_id}


def test_a_failed_required_node_fails_the_workflow(client: Client, faults: Faults) -> None:
    """Given an optional node that completes and another that fails, then the workflow fails."""
    flow = build_article()
    flow.nodes[1]["options"] = {"provider": "openai"}
    faults.fail("openai", status=400, times=None)
    run = client.workflows.submit(flow).wait(check=False)
    assert [node.status for node in run.nodes] == ["completed", "failed", "cancelled"]
    assert (run.status, run.warnings) == ("failed", [])


def test_a_fork_reruns_an_optional_node_only_with_its_dependents(
    client: Client, failing: Faults
) -> None:
    """Given a failed optional node, then a fork of its dependent runs it again, a later not."""
    run = client.workflows.submit(build_article()).wait()
    later = run.fork("card", {"card": {"title": "Tides, again"}}).wait()
    assert later["facts"].job_id == run["facts"].job_id
    assert (later.status, later.warnings) == ("completed", run.warnings)
    failing.clear()
    earlier = run.fork("text").wait()
    assert (earlier["facts"].status, earlier.warnings) == ("completed", [])


def test_a_retry_reruns_an_optional_node_only_with_its_dependents(
    client: Client, failing: Faults
) -> None:
    """Given a workflow that failed elsewhere, then a retry leaves the optional node failed."""
    failing.fail("openai", status=400, times=None)
    flow = build_article()
    flow.add("side", "llm.generate", objective="Salt", options={"provider": "openai"})
    run = client.workflows.submit(flow).wait(check=False)
    assert run.status == "failed"

    def count_lookups() -> int:
        return sum(call.vendor == "encyclopedia" for call in failing.calls)

    lookups = count_lookups()
    failing.clear()
    run.retry().wait()
    assert (run.status, run["facts"].status) == ("completed", "failed")
    assert count_lookups() == lookups


def test_a_command_prints_the_warning(
    client: Client, failing: Faults, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given a warning, then a command that waits for the work prints it."""
    run = client.workflows.submit(build_article())
    wait_for_work(ClientOutput(client), "workflows", run, quiet=True)
    assert "Warning: `facts` is optional and failed" in capsys.readouterr().err


def test_another_engine_continues_without_the_optional_node(
    settings: Settings, failing: Faults
) -> None:
    """Given an engine that stops after the failure, then the next does not run the node again."""
    failing.latency("minimax", mean_ms=60_000)
    flow = build_article()
    flow.nodes[1]["options"] = {"provider": "minimax"}
    with Client.local(settings=settings, faults=failing) as client:
        run = client.workflows.submit(flow)
        wait_until(lambda: client.workflows.get(run.id)["text"].status == "running")
    with Client.local(settings=settings) as client:
        run = client.workflows.get(run.id).wait()
        assert (run.status, len(run.warnings)) == ("completed", 1)
        assert run["facts"].error is not None
