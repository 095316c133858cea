"""Tags and notes of runs, workflows and tasks, and lists with filters."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.contract.conftest import expect_refusal
from tests.contract.raw_http import RawCaller
from toolkit import Client, Workflow

CARD = {"title": "Tea", "width": 300, "height": 200}
Make = Callable[..., Any]


def make_run(client: Client, **annotations: Any) -> Any:
    """Start a run."""
    return client.runs.create("composition.layout", CARD, **annotations)


def make_workflow(client: Client, **annotations: Any) -> Any:
    """Start a workflow."""
    wf = Workflow("cards", **annotations)
    wf.add("card", "composition.layout", **CARD)
    return client.workflows.submit(wf)


def make_task(client: Client, **annotations: Any) -> Any:
    """Start a task."""
    return client.tasks.create("A social card about tea", **annotations)


MAKERS = [make_run, make_workflow, make_task]


@pytest.mark.parametrize("make", MAKERS)
def test_work_has_its_tags_and_note_in_every_view(bare: Client, make: Make) -> None:
    """Given work with tags and a note, then it has them at once, at its end, and in lists."""
    work = make(bare, tags=["first try", "cards", "first try"], note="Für später.")
    annotations = (["first try", "cards"], "Für später.")
    assert (work.tags, work.note) == annotations
    work.wait(progress=False, check=False)
    assert (work.tags, work.note) == annotations
    area = getattr(bare, work.resource)
    (item,) = area.list()
    for record in (area.get(work.id), item):
        assert (record.tags, record.note) == annotations
    frame = area.list().to_frame()
    assert (frame["tags"][0], frame["note"][0]) == annotations


@pytest.mark.parametrize("make", MAKERS)
def test_tags_and_note_change_independently(bare: Client, make: Make) -> None:
    """Given work without annotations, then tags and note are set, replaced and removed."""
    work = make(bare)
    assert (work.tags, work.note) == ([], "")
    work.annotate(tags=["draft"])
    work.wait(progress=False, check=False)
    assert (work.tags, work.note) == (["draft"], "")
    assert work.annotate(note="Too formal.").tags == ["draft"]
    area = getattr(bare, work.resource)
    assert area.annotate(work.id, tags=["final"]).note == "Too formal."
    assert [record.id for record in area.list(tag="final")] == [work.id]
    assert not len(area.list(tag="draft"))
    work.annotate(tags=[], note="")
    assert (work.tags, work.note) == ([], "")
    assert not len(area.list(tag="final"))


def test_an_agent_s_run_shares_annotations_with_its_task(client: Client) -> None:
    """Given a run of an agent, then its tags are those of its task, and both lists find it."""
    client.agents.create("card-maker", "A social card about {topic}")
    run = client.runs.create("card-maker", {"topic": "tea"}, target="agent", tags=["mine"])
    assert run.tags == ["mine"]
    run.wait(progress=False, check=False).annotate(note="Good.")
    task = client.tasks.get(run.task_id)
    assert (task.tags, task.note) == (["mine"], "Good.")
    assert client.runs.get(run.id).note == "Good."
    runs = client.runs.list(tag="mine", q="TEA", status=run.status, capability="card-maker")
    assert [record.id for record in runs] == [run.id]
    assert [record.id for record in client.tasks.list(tag="mine")] == [task.id]
    assert not len(client.runs.list(tag="mine", provider="openai"))


@pytest.mark.parametrize(
    ("annotations", "path"),
    [
        ({"tags": ["a,b"]}, "tags.0"),
        ({"tags": [" a"]}, "tags.0"),
        ({"tags": ["x" * 65]}, "tags.0"),
        ({"tags": [str(n) for n in range(33)]}, "tags"),
        ({"note": "x" * 2001}, "note"),
    ],
)
def test_rejects_invalid_annotations(bare: Client, annotations: dict[str, Any], path: str) -> None:
    """Given invalid tags or an invalid note, then neither creation nor change accepts them."""
    run = make_run(bare)
    with expect_refusal("INVALID_REQUEST", path):
        make_run(bare, **annotations)
    with expect_refusal("INVALID_REQUEST", path):
        run.annotate(**annotations)
    assert run.refresh().tags == []


def test_filters_find_the_runs_that_match(client: Client) -> None:
    """Given some runs, then each filter finds the matching runs, alone and combined."""
    tea = client.runs.create("llm.generate", {"objective": "On Tea"}, provider="openai")
    salt = client.runs.create("llm.generate", {"objective": "On SALT"}, provider="anthropic")
    card = make_run(client, tags=["card"])
    bad = client.runs.create("research.gather", {"topic": "qqqzzz"})
    for run in (tea, salt, card, bad):
        run.wait(progress=False, check=False)
    names = {tea.id: "tea", salt.id: "salt", card.id: "card", bad.id: "bad"}
    now = datetime.now(UTC)
    for filters, expected in (
        ({}, "bad card salt tea"),
        ({"capability": "llm.generate"}, "salt tea"),
        ({"capability": "llm.generate@1"}, "salt tea"),
        ({"capability": "llm"}, ""),
        ({"provider": "openai"}, "tea"),
        ({"status": "failed"}, "bad"),
        ({"tag": "card"}, "card"),
        ({"q": "salt"}, "salt"),
        ({"q": "on", "provider": "openai"}, "tea"),
        ({"min_cost_usd": 1e-9}, "salt tea"),
        ({"max_cost_usd": 0}, "bad card"),
        ({"since": salt.created_at, "until": bad.created_at}, "card salt"),
        ({"since": now.date()}, "bad card salt tea"),
        ({"since": now + timedelta(days=1)}, ""),
        ({"until": "2026-01-01"}, ""),
    ):
        runs = client.runs.list(**filters)  # type: ignore[arg-type]
        assert " ".join(names[run.id] for run in runs) == expected, filters


def test_filters_search_the_nodes_of_workflows_and_tasks(client: Client) -> None:
    """Given graphs, then capability, provider and text are matched with each node."""
    wf = Workflow("letters")
    wf.add("draft", "llm.generate", objective="On ropes", options={"provider": "openai"})
    wf.add("card", "composition.layout", depends_on=["draft"], **CARD)
    workflow_id = client.workflows.submit(wf).wait(progress=False).id
    task_id = make_task(client).wait(progress=False, check=False).id
    for area, filters, ids in (
        ("workflows", {"capability": "composition.layout", "provider": "openai"}, [workflow_id]),
        ("workflows", {"q": "ROPES"}, [workflow_id]),
        ("workflows", {"q": "letters", "status": "completed"}, [workflow_id]),
        ("workflows", {"capability": "speech.generate"}, []),
        ("workflows", {"q": "completed"}, []),
        ("tasks", {"q": "social CARD"}, [task_id]),
        ("tasks", {"capability": "composition.layout"}, [task_id]),
        ("tasks", {"capability": "image.generate"}, []),
    ):
        assert [record.id for record in getattr(client, area).list(**filters)] == ids, filters


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("status=complete", "Did you mean `completed`?"),
        ("since=yesterday", "since: is not a time"),
        ("until=2026-02-30", "until: is not a time"),
        ("min_cost_usd=free", "not an amount"),
        ("max_cost_usd=-1", "not an amount"),
        ("tag=a,,b", "empty tag before or after a comma"),
        ("q=", "1 to 200 characters"),
        ("label=a", "is not a parameter"),
    ],
)
def test_rejects_an_invalid_filter(caller: RawCaller, query: str, words: str) -> None:
    """Given a filter with a mistake, then it is rejected with the valid form."""
    response = caller.send("GET", f"/v1/runs?{query}")
    assert response.status_code == 400
    detail = response.json()["error"]["details"][0]
    assert words in f"{detail['path']}: {detail['message']}"


def test_the_client_names_the_mistake(bare: Client) -> None:
    """Given an unknown filter, or a text as tags, then the error says what to write."""
    with pytest.raises(TypeError, match="did you mean `provider`"):
        bare.runs.list(providr="openai")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="list of texts"):
        make_run(bare, tags="draft")


def test_a_fork_has_the_annotations_of_its_source(bare: Client) -> None:
    """Given an annotated workflow, then its fork has the same tags and note."""
    source = make_workflow(bare, tags=["cards"])
    source.wait(progress=False)
    source.annotate(tags=["cards", "spring"], note="For the fair.")
    fork = source.fork("card", {"card": {"title": "Salt"}}).wait(progress=False)
    assert (fork.tags, fork.note) == (["cards", "spring"], "For the fair.")
    assert {record.id for record in bare.workflows.list(tag="spring")} == {source.id, fork.id}
    fork.annotate(tags=["salt"])
    assert bare.workflows.get(source.id).tags == ["cards", "spring"]
