"""Pins of a provider or of one connection, several connections, and options through every door."""

import inspect

import pytest

from toolkit import Client, RequestError, Workflow
from toolkit.cli.resources.jobs import create as job_command
from toolkit.cli.resources.runs import run as run_command
from toolkit.contract.jobs import Options
from toolkit.contract.workflows import WorkflowCreate
from toolkit.notebook.magics import ToolkitMagics

pytestmark = pytest.mark.embedded

LINE = {"objective": "A line about tea"}
GIVEN: dict[str, object] = {
    "optimize_for": "cost",
    "provider": "openai",
    "endpoint_id": "ep_01m7xrhddbvq3n2zjx4fe01326",
    "compute_id": "cmp_01m7xrhddbvq3n2zjx4fe01326",
    "max_cost_usd": 0.5,
    "fallback_on_rejection": True,
    "cache": True,
    "deadline_s": 30.0,
}


def connect(client: Client, variable: str = "OPENAI_API_KEY") -> str:
    """Make one more connection to openai."""
    return client.connections.create("openai", "environment", variable).id


def test_one_connection_is_pinned(client: Client) -> None:
    """Given two connections to a vendor, when one is pinned by its id, then that one is used."""
    old = connect(client)
    new = connect(client)
    for pin in (old, new):
        run = client.runs.create("llm.generate", LINE, provider=pin).wait(progress=False)
        assert (run.provider, run.record.connection_id) == ("openai", pin)
        assert run.record.options.provider == pin
        shown = client.route("llm.generate", LINE, provider=pin)
        assert (shown.record.provider, shown.record.connection_id) == ("openai", pin)
    unpinned = client.runs.create("llm.generate", LINE, provider="openai").wait(progress=False)
    assert unpinned.record.connection_id == new, "the newest among equals"


def test_a_connection_that_is_not_there_is_unknown(client: Client) -> None:
    """Given the id of a connection that nobody has, or that is gone, then it is not found."""
    gone = connect(client)
    client.connections.delete(gone)
    for pin in ("prv_01m7xrhddbvq3n2zjx4fe01326", gone, "prv_x"):
        with pytest.raises(RequestError, match=r"^NOT_FOUND:"):
            client.runs.create("llm.generate", LINE, provider=pin)
    kept = connect(client)
    with pytest.raises(RequestError, match=r"^PROVIDER_NOT_ALLOWED:"):
        client.runs.create("speech.generate", {"text": "Tea"}, provider=kept)


def test_a_workflow_keeps_every_option() -> None:
    """Given each option of the contract, then a workflow has it, to a body and back."""
    assert GIVEN.keys() == Options.model_fields.keys()
    for name, value in GIVEN.items():
        made = Workflow("w", **{name: value})  # type: ignore[arg-type]
        made.add("a", "llm.generate", input=LINE, options={name: value})
        body = made.to_dict()
        checked = WorkflowCreate.model_validate(body)
        told = checked.options.model_dump() | checked.model_dump(
            include={"endpoint_id", "compute_id"}
        )
        assert told[name] == value
        assert getattr(checked.nodes[0].options, name) == value
        again = Workflow.from_dict(body)
        assert again.to_dict() == body
        inside = Workflow.from_dict({**body, "options": {name: value}})
        assert getattr(inside, name) == value


def test_every_door_takes_every_option(client: Client) -> None:
    """Given each option of the contract, then every way to ask for a capability takes it."""
    names = set(Options.model_fields)
    doors = (client.runs.create, client.route, Workflow, run_command)
    for door in doors:
        assert names <= set(inspect.signature(door).parameters), door
    # A compute is where the work is: there is no endpoint beside it.
    for door in (client.jobs.create, job_command):
        assert names - {"endpoint_id"} <= set(inspect.signature(door).parameters), door
    magic = {action.dest for action in ToolkitMagics.run.parser._actions}
    assert names <= magic


def test_a_fork_keeps_every_option(client: Client) -> None:
    """Given options of nodes and of the workflow, then a fork's jobs have the same."""
    pin = connect(client)
    chosen = {"provider": pin, "fallback_on_rejection": True, "deadline_s": 30.0, "cache": True}
    wf = Workflow("w", provider="openai", fallback_on_rejection=True)
    wf.add("a", "llm.generate", input=LINE, options=chosen)
    wf.add("b", "llm.generate", input=LINE)
    done = client.workflows.submit(wf).wait(progress=False)
    forked = client.workflows.fork(done.id, "a").wait(progress=False)
    retold = client.workflows.fork(forked.id, "b").wait(progress=False)
    a = client.jobs.get(str(forked.nodes[0].job_id)).record.options
    b = client.jobs.get(str(retold.nodes[1].job_id)).record.options
    assert a.model_dump(include=set(chosen)) == chosen
    assert (b.provider, b.fallback_on_rejection) == ("openai", True)
