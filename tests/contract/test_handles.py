"""Handles: what they delete, judge and test, and the resources that they lead to."""

from collections.abc import Callable
from typing import Any

import pytest

from toolkit import Client, RequestError, Workflow

GPU = "NVIDIA GeForce RTX 4090"
ASKED = {"objective": "One line on tides"}
DELETABLE: dict[str, Callable[[Client], Any]] = {
    "compute": lambda c: c.compute.create("easel", GPU),
    "endpoints": lambda c: c.endpoints.create("press"),
    "storage": lambda c: c.storage.create("disk", 10),
    "templates": lambda c: c.templates.create("worker", "example/sdxl:1"),
    "agents": lambda c: c.agents.create("card-maker", "A card about {topic}"),
    "artifacts": lambda c: c.artifacts.upload(b"salt"),
    "api_keys": lambda c: c.api_keys.get(c.api_keys.create(name="spare").id),
    "connections": lambda c: c.connections.create("openai", "environment", "OPENAI_API_KEY"),
}


@pytest.mark.parametrize("name", DELETABLE)
def test_what_a_handle_deletes_is_gone(client: Client, name: str) -> None:
    """Given a handle, when it is deleted, then it says so, and the service knows no more of it."""
    made = DELETABLE[name](client)
    assert made.delete() is made
    if name == "api_keys":
        assert made.revoked_at is not None
        return
    assert made.id not in [each.id for each in getattr(client, name).list(200)]


def test_work_leads_to_what_it_made(client: Client) -> None:
    """Given work that is done, then each handle reads what its ids name."""
    run = client.runs.create("llm.generate", ASKED).wait(progress=False)
    assert run.artifact().id == run.artifact_id
    flow = Workflow("lines")
    flow.add("line", "llm.generate", input=ASKED)
    done = client.workflows.submit(flow).wait(progress=False)
    job = done.job("line")
    assert (job.node_id, job.workflow_id) == ("line", done.id)
    assert job.artifact().id == done.artifact("line").id == done.final_artifact_id
    with pytest.raises(KeyError):
        done.job("ghost")
    task = client.tasks.create("A social card about tea").wait(progress=False)
    assert task.workflow().id == task.workflow(task.workflow_ids[-1]).id == task.workflow_id


def test_what_is_not_there_yet_says_so(bare: Client) -> None:
    """Given work that has made nothing, then what it would lead to is not found."""
    task = bare.tasks.create("A narration about tea").wait(progress=False)
    with pytest.raises(RequestError, match="no workflow yet"):
        task.workflow()
    run = bare.runs.create("composition.layout", {"title": "Tea", "theme": "paper"})
    run.record = run.record.model_copy(update={"artifact_id": None})
    with pytest.raises(RequestError, match="no artifact yet"):
        run.artifact()


def test_a_task_is_judged_and_resumed_by_its_handle(bare: Client) -> None:
    """Given a blocked task, when its vendor is there, then it is resumed and judged in place."""
    task = bare.tasks.create("A narration about tea").wait(progress=False)
    assert task.status == "blocked"
    with pytest.raises(RequestError, match=r"^CONFLICT:"):
        task.submit_review("pass")
    bare.connections.connect("minimax", "openai", "elevenlabs")
    assert task.resume().wait(progress=False).status == "completed"
    with pytest.raises(RequestError, match=r"^CONFLICT:"):
        task.resume()
    assert task.submit_review("fail", issues=["It is about coffee."]) is task
    assert (task.status, task.review and task.review.decision) == ("failed", "fail")


def test_a_connection_is_tested_by_its_handle(client: Client) -> None:
    """Given a connection, then it is tested and trusted in place."""
    connection = client.connections.list()[0]
    assert connection.test().ok
    assert connection.trust().record.overbilled == []


def test_a_key_is_rotated_by_its_handle(client: Client) -> None:
    """Given a key, when it is rotated, then the new one is shown, and the old one names it."""
    key = client.api_keys.get(client.api_keys.create(name="ci", scopes=["read"]).id)
    new = key.rotate(overlap_s=0)
    assert new.scopes == key.scopes == ["read"]
    assert key.refresh().record.rotated_to == new.id
    assert new.api_key.startswith("sk_live_")
