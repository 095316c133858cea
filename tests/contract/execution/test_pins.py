"""Pins of a provider or of one connection, and options of workflows and forks."""

import pytest

from tests.contract.raw_http import UNKNOWN_ULID
from toolkit import Client, RequestError, Workflow
from toolkit.contract.jobs import Options
from toolkit.contract.workflows import WorkflowCreate

pytestmark = pytest.mark.embedded

LINE = {"objective": "A line about tea"}
OPTIONS: dict[str, object] = {
    "optimize_for": "cost",
    "provider": "openai",
    "tier": "flex",
    "when": "batch",
    "endpoint_id": f"ep_{UNKNOWN_ULID}",
    "compute_id": f"cmp_{UNKNOWN_ULID}",
    "max_cost_usd": 0.5,
    "fallback_on_rejection": True,
    "cache": True,
    "sealed": "report",
    "deadline_s": 30.0,
}


def connect(client: Client) -> str:
    """Add a connection to openai, and return its id."""
    return client.connections.create("openai", "environment", "OPENAI_API_KEY").id


def test_a_pin_chooses_one_of_two_connections(client: Client) -> None:
    """Given two connections to a vendor, when one is pinned by its id, then it is used."""
    old, new = connect(client), connect(client)
    for pin in (old, new):
        run = client.runs.create("llm.generate", LINE, provider=pin).wait(progress=False)
        assert (run.provider, run.record.connection_id) == ("openai", pin)
        assert run.record.options.provider == pin
        route = client.route("llm.generate", LINE, provider=pin).record
        assert (route.provider, route.connection_id) == ("openai", pin)
    run = client.runs.create("llm.generate", LINE, provider="openai").wait(progress=False)
    assert run.record.connection_id == new, "the newest among equals"


def test_rejects_a_pin_that_cannot_serve(client: Client) -> None:
    """Given the id of no connection, or of one that is not allowed, then the run is rejected."""
    deleted = connect(client)
    client.connections.delete(deleted)
    for pin in (f"prv_{UNKNOWN_ULID}", deleted, "prv_x"):
        with pytest.raises(RequestError, match=r"^NOT_FOUND:"):
            client.runs.create("llm.generate", LINE, provider=pin)
    with pytest.raises(RequestError, match=r"^PROVIDER_NOT_ALLOWED:"):
        client.runs.create("speech.generate", {"text": "Tea"}, provider=connect(client))


def test_a_workflow_keeps_every_option() -> None:
    """Given each option of the contract, then a workflow has it, to a body and back."""
    assert OPTIONS.keys() == Options.model_fields.keys()
    for name, value in OPTIONS.items():
        flow = Workflow("w", **{name: value})  # type: ignore[arg-type]
        flow.add("a", "llm.generate", input=LINE, options={name: value})
        body = flow.to_dict()
        record = WorkflowCreate.model_validate(body)
        fields = record.options.model_dump() | record.model_dump(
            include={"endpoint_id", "compute_id"}
        )
        assert fields[name] == value
        assert getattr(record.nodes[0].options, name) == value
        assert Workflow.from_dict(body).to_dict() == body
        assert getattr(Workflow.from_dict({**body, "options": {name: value}}), name) == value


def test_a_fork_keeps_every_option(client: Client) -> None:
    """Given options of nodes and of the workflow, then the jobs of a fork have them."""
    pin = connect(client)
    options = {"provider": pin, "fallback_on_rejection": True, "deadline_s": 30.0, "cache": True}
    wf = Workflow("w", provider="openai", fallback_on_rejection=True)
    wf.add("a", "llm.generate", input=LINE, options=options)
    wf.add("b", "llm.generate", input=LINE)
    source = client.workflows.submit(wf).wait(progress=False)
    fork = client.workflows.fork(source.id, "a").wait(progress=False)
    second = client.workflows.fork(fork.id, "b").wait(progress=False)
    a = client.jobs.get(str(fork.nodes[0].job_id)).record.options
    b = client.jobs.get(str(second.nodes[1].job_id)).record.options
    assert a.model_dump(include=set(options)) == options
    assert (b.provider, b.fallback_on_rejection) == ("openai", True)
