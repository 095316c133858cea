"""Optional nodes: what depends on one that fails runs without it, and the workflow warns."""

import pytest

from tests.support.timing import PATIENCE_S, wait_until
from toolkit import Client, RequestError, WorkError, Workflow
from toolkit.cli.output import ClientOutput
from toolkit.cli.work import wait_for_work
from toolkit.sandbox import Faults
from toolkit.settings import Settings

pytestmark = pytest.mark.embedded


def build_article() -> Workflow:
    """A text that is better with facts and can do without."""
    flow = Workflow("article")
    facts = flow.add("facts", "research.gather", topic="Tides", optional=True)
    text = flow.add("text", "llm.generate", objective="One line on tides", depends_on=[facts])
    flow.add("card", "composition.layout", title="Tides", depends_on=[text])
    return flow


def fail_research(faults: Faults, status: int = 400) -> None:
    """Have every look-up fail from now on."""
    faults.fail("encyclopedia", status=status, times=None)


def test_what_depends_on_it_runs_without_it(client: Client, faults: Faults) -> None:
    """Given an optional node that fails, then the rest is made, and the record warns of it."""
    fail_research(faults)
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
    ended = run.events()[-1]
    assert (ended.type, ended.data["warnings"]) == ("workflow.completed", run.warnings)


def test_what_it_yields_is_used_where_it_completes(client: Client) -> None:
    """Given an optional node that completes, then it is a node like any other."""
    run = client.workflows.submit(build_article()).wait()
    assert run.warnings == []
    assert run.job("text").record.input["from_artifacts"] == {"facts": run["facts"].artifact_id}


def test_it_is_retried_before_it_is_given_up(client: Client, faults: Faults) -> None:
    """Given an optional node and retries, then it fails after them and they are counted."""
    fail_research(faults, status=503)
    flow = build_article()
    flow.max_retries = 2
    run = client.workflows.submit(flow).wait()
    assert (run["facts"].retry_count, run.retries) == (2, 2)


def test_no_required_field_hangs_on_it(client: Client) -> None:
    """Given a required field that only an optional node could fill, then the graph is refused."""
    flow = Workflow("reading")
    text = flow.add("text", "llm.generate", objective="One line on tides", optional=True)
    flow.add("voice", "speech.generate", depends_on=[text])
    with pytest.raises(RequestError) as refused:
        client.workflows.submit(flow)
    (fault,) = refused.value.details
    assert fault.path == "nodes.1.input.text"
    assert "optional" in fault.message
    flow.nodes[1]["input"]["text"] = "Tides rise."
    assert client.workflows.submit(flow).wait().status == "completed"


def test_a_workflow_that_made_nothing_has_failed(client: Client, faults: Faults) -> None:
    """Given nothing but optional nodes that fail, then the workflow fails as the first did."""
    fail_research(faults)
    flow = Workflow("facts")
    flow.add("facts", "research.gather", topic="Tides", optional=True)
    with pytest.raises(WorkError, match=r"^PROVIDER_REJECTED:"):
        client.workflows.submit(flow).wait()


def test_one_that_fails_is_not_what_is_delivered(client: Client, faults: Faults) -> None:
    """Given a last node that is optional and fails, then the last one that made something is."""
    fail_research(faults)
    flow = Workflow("text and facts")
    flow.add("text", "llm.generate", objective="One line on tides")
    flow.add("facts", "research.gather", topic="Tides", optional=True)
    run = client.workflows.submit(flow).wait()
    assert run.final_artifact_id == run["text"].artifact_id
    assert run.sink_artifact_ids == {"text": run["text"].artifact_id}


def test_another_node_that_fails_fails_the_workflow(client: Client, faults: Faults) -> None:
    """Given an optional node that completes and another that fails, then the workflow fails."""
    flow = build_article()
    flow.nodes[1]["options"] = {"provider": "openai"}
    faults.fail("openai", status=400, times=None)
    run = client.workflows.submit(flow).wait(check=False)
    assert [node.status for node in run.nodes] == ["completed", "failed", "cancelled"]
    assert (run.status, run.warnings) == ("failed", [])


def test_a_fork_leaves_it_as_it_is(client: Client, faults: Faults) -> None:
    """Given a fork from after it, then it is not run again; from before what it feeds, it is."""
    fail_research(faults)
    run = client.workflows.submit(build_article()).wait()
    later = run.fork("card", {"card": {"title": "Tides, again"}}).wait()
    assert later["facts"].job_id == run["facts"].job_id
    assert (later.status, later.warnings) == ("completed", run.warnings)
    faults.clear()
    again = run.fork("text").wait()
    assert (again["facts"].status, again.warnings) == ("completed", [])


def test_a_retry_tries_it_again_only_with_what_depends_on_it(
    client: Client, faults: Faults
) -> None:
    """Given a workflow that failed after it, then its retry runs the node that failed."""
    fail_research(faults)
    faults.fail("openai", status=400, times=None)
    flow = build_article()
    flow.add("side", "llm.generate", objective="Salt", options={"provider": "openai"})
    run = client.workflows.submit(flow).wait(check=False)
    assert run.status == "failed"
    looked_up = sum(call.vendor == "encyclopedia" for call in faults.calls)
    faults.clear()
    done = run.retry().wait()
    assert (done.status, done["facts"].status) == ("completed", "failed")
    assert sum(call.vendor == "encyclopedia" for call in faults.calls) == looked_up


def test_a_command_says_so(
    client: Client, faults: Faults, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given a warning, then a command that waits for the work prints it beside the result."""
    fail_research(faults)
    run = client.workflows.submit(build_article())
    wait_for_work(ClientOutput(client), "workflows", run, quiet=True)
    assert "Warning: `facts` is optional and failed" in capsys.readouterr().err


def test_an_engine_that_takes_it_up_goes_on_without_it(settings: Settings, faults: Faults) -> None:
    """Given an engine that stops after it failed, then the next one does not run it again."""
    fail_research(faults)
    faults.latency("minimax", mean_ms=60_000)
    flow = build_article()
    flow.nodes[1]["options"] = {"provider": "minimax"}
    with Client.local(settings=settings, faults=faults) as client:
        run = client.workflows.submit(flow)
        wait_until(lambda: client.workflows.get(run.id)["text"].status == "running")
    with Client.local(settings=settings) as client:
        again = client.workflows.get(run.id).wait()
        assert (again.status, len(again.warnings)) == ("completed", 1)
        assert again["facts"].error is not None
