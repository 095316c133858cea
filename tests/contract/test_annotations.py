"""Tags and notes on runs, workflows and tasks, and the lists that are filtered by them and more."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.contract.raw_http import RawCaller
from toolkit import Client, Workflow
from toolkit.contract.errors import ErrorCode, RequestError

CARD = {"title": "Tea", "width": 300, "height": 200}


def _make_run(client: Client, **more: object):
    return client.runs.create("composition.layout", CARD, **more)  # type: ignore[arg-type]


def _make_workflow(client: Client, **more: object):
    wf = Workflow("cards", **more)  # type: ignore[arg-type]
    wf.add("card", "composition.layout", **CARD)
    return client.workflows.submit(wf)


def _make_task(client: Client, **more: object):
    return client.tasks.create("A social card about tea", **more)  # type: ignore[arg-type]


MAKERS = [_make_run, _make_workflow, _make_task]


@pytest.mark.parametrize("make", MAKERS)
def test_work_keeps_the_tags_and_note_it_was_made_with(
    bare: Client, make: Callable[..., object]
) -> None:
    """Given work with tags and a note, then it has them at once, when it ends, and in lists."""
    made = make(bare, tags=["first try", "cards", "first try"], note="Für später.")
    expected = (["first try", "cards"], "Für später.")

    assert (made.tags, made.note) == expected  # type: ignore[attr-defined]
    ended = made.wait(progress=False, check=False)  # type: ignore[attr-defined]
    assert (ended.tags, ended.note) == expected
    area = getattr(bare, ended.resource)
    assert (area.get(ended.id).tags, area.get(ended.id).note) == expected
    (listed,) = area.list()
    assert (listed.tags, listed.note) == expected
    frame = area.list().to_frame()
    assert (frame["tags"][0], frame["note"][0]) == expected


@pytest.mark.parametrize("make", MAKERS)
def test_tags_and_note_are_changed_one_by_one(bare: Client, make: Callable[..., object]) -> None:
    """Given work with neither, then each is set, replaced and taken away, whatever its state."""
    made = make(bare)
    assert (made.tags, made.note) == ([], "")  # type: ignore[attr-defined]

    made.annotate(tags=["draft"])  # type: ignore[attr-defined]
    ended = made.wait(progress=False, check=False)  # type: ignore[attr-defined]
    assert (ended.tags, ended.note) == (["draft"], "")
    assert ended.annotate(note="Too formal.").tags == ["draft"]
    area = getattr(bare, ended.resource)
    assert area.annotate(ended.id, tags=["final"]).note == "Too formal."
    assert [one.id for one in area.list(tag="final")] == [ended.id]
    assert not len(area.list(tag="draft"))
    cleared = ended.annotate(tags=[], note="")
    assert (cleared.tags, cleared.note) == ([], "")
    assert not len(area.list(tag="final"))


def test_an_agents_run_and_its_task_are_one(client: Client) -> None:
    """Given a run of an agent, then its tags are its task's, and both lists find it."""
    client.agents.create("card-maker", "A social card about {topic}")
    run = client.runs.create("card-maker", {"topic": "tea"}, target="agent", tags=["mine"])
    assert run.tags == ["mine"]
    run.wait(progress=False, check=False).annotate(note="Good.")

    task = client.tasks.get(run.task_id)
    assert (task.tags, task.note) == (["mine"], "Good.")
    assert client.runs.get(run.id).note == "Good."
    found = client.runs.list(tag="mine", q="TEA", status=run.status, capability="card-maker")
    assert [one.id for one in found] == [run.id]
    assert [one.id for one in client.tasks.list(tag="mine")] == [task.id]
    assert not len(client.runs.list(tag="mine", provider="openai"))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"tags": ["a,b"]}, "tags.0"),
        ({"tags": [" a"]}, "tags.0"),
        ({"tags": ["x" * 65]}, "tags.0"),
        ({"tags": [str(n) for n in range(33)]}, "tags"),
        ({"note": "x" * 2001}, "note"),
    ],
)
def test_too_much_or_the_wrong_is_refused(
    bare: Client, given: dict[str, object], words: str
) -> None:
    """Given tags or a note that no work can have, then neither making nor changing takes them."""
    run = _make_run(bare)
    for ask in (lambda: _make_run(bare, **given), lambda: run.annotate(**given)):  # type: ignore[arg-type]
        with pytest.raises(RequestError) as refused:
            ask()
        assert refused.value.code is ErrorCode.INVALID_REQUEST
        assert words in str(refused.value)
    assert run.refresh().tags == []


def test_a_tag_is_no_text(bare: Client) -> None:
    """Given one text for the tags, then it is not taken for a tag a letter."""
    with pytest.raises(TypeError, match="list of texts"):
        _make_run(bare, tags="draft")


def test_each_filter_lets_through_what_it_is_true_of(client: Client) -> None:
    """Given some runs, then every filter finds those and no others, alone and together."""
    tea = client.runs.create("llm.generate", {"objective": "On Tea"}, provider="openai")
    salt = client.runs.create("llm.generate", {"objective": "On SALT"}, provider="anthropic")
    card = _make_run(client, tags=["card"])
    bad = client.runs.create("research.gather", {"topic": "qqqzzz"})
    for run in (tea, salt, card, bad):
        run.wait(progress=False, check=False)
    names = {tea.id: "tea", salt.id: "salt", card.id: "card", bad.id: "bad"}

    def find(**filters: object) -> list[str]:
        return [names[run.id] for run in client.runs.list(**filters)]  # type: ignore[arg-type]

    assert find() == ["bad", "card", "salt", "tea"]
    assert find(capability="llm.generate") == ["salt", "tea"]
    assert find(capability="llm.generate@1") == ["salt", "tea"]
    assert find(capability="llm") == []
    assert find(provider="openai") == ["tea"]
    assert find(status="failed") == ["bad"]
    assert find(tag="card") == ["card"]
    assert find(q="salt") == ["salt"]
    assert find(q="on", provider="openai") == ["tea"]
    assert find(min_cost_usd=1e-9) == ["salt", "tea"]
    assert find(max_cost_usd=0) == ["bad", "card"]
    assert find(since=salt.created_at, until=bad.created_at) == ["card", "salt"]
    now = datetime.now(UTC)
    assert find(since=now.date()) == ["bad", "card", "salt", "tea"]
    assert find(since=now + timedelta(days=1)) == []
    assert find(until="2026-01-01") == []


def test_workflows_and_tasks_are_found_by_their_nodes(client: Client) -> None:
    """Given graphs, then capability, provider and text are looked for in each node."""
    wf = Workflow("letters")
    wf.add("draft", "llm.generate", objective="On ropes", options={"provider": "openai"})
    wf.add("card", "composition.layout", depends_on=["draft"], **CARD)
    made = client.workflows.submit(wf).wait(progress=False)
    task = _make_task(client).wait(progress=False, check=False)

    for found in (
        client.workflows.list(capability="composition.layout", provider="openai"),
        client.workflows.list(q="ROPES"),
        client.workflows.list(q="letters", status="completed"),
    ):
        assert [one.id for one in found] == [made.id]
    assert not len(client.workflows.list(capability="speech.generate"))
    assert not len(client.workflows.list(q="completed"))
    assert [one.id for one in client.tasks.list(q="social CARD")] == [task.id]
    assert [one.id for one in client.tasks.list(capability="composition.layout")] == [task.id]
    assert not len(client.tasks.list(capability="image.generate"))


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
def test_a_filter_that_cannot_be_is_refused(caller: RawCaller, query: str, words: str) -> None:
    """Given a filter with a mistake, then it is refused with what would do, and not left out."""
    answer = caller.send("GET", f"/v1/runs?{query}")
    assert answer.status_code == 400
    detail = answer.json()["error"]["details"][0]
    assert words in f"{detail['path']}: {detail['message']}"


def test_a_wrong_name_of_a_filter_says_which_there_are(bare: Client) -> None:
    """Given a name that is no filter, then the message says what was meant."""
    with pytest.raises(TypeError, match="did you mean `provider`"):
        bare.runs.list(providr="openai")  # type: ignore[call-arg]


def test_tags_are_kept_when_the_process_is_another(tmp_path: Path) -> None:
    """Given annotated work, when the directory is opened again, then it has what it was given."""
    with Client.local(tmp_path, sandbox=True) as client:
        run = _make_run(client, tags=["kept"]).wait(progress=False)
        run.annotate(note="Still here.")
    with Client.local(tmp_path, sandbox=True) as client:
        (found,) = client.runs.list(tag="kept")
        assert (found.id, found.note) == (run.id, "Still here.")


def test_a_fork_has_the_tags_and_note_of_its_source(bare: Client) -> None:
    """Given a workflow that was tagged, and noted later, then a fork of it is found likewise."""
    source = _make_workflow(bare, tags=["cards"])
    source.wait(progress=False)
    source.annotate(tags=["cards", "spring"], note="For the fair.")

    fork = source.fork("card", {"card": {"title": "Salt"}}).wait(progress=False)
    assert (fork.tags, fork.note) == (["cards", "spring"], "For the fair.")
    assert {one.id for one in bare.workflows.list(tag="spring")} == {source.id, fork.id}
    fork.annotate(tags=["salt"])
    assert bare.workflows.get(source.id).tags == ["cards", "spring"]
