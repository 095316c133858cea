"""Lists read to their last page, and events to the last of them."""

from itertools import islice

from toolkit import Client, Workflow

CARD = {"title": "Tea", "width": 300, "height": 200}


def test_every_page_of_a_list_is_read(bare: Client) -> None:
    """Given more than a page, then each comes once, the newest first, also while more are made."""
    ids = [bare.plans.create("A card about tea").id for _ in range(55)]
    listed, found = bare.plans.list(), iter(bare.plans)
    seen = [plan.id for plan in islice(found, 3)]
    bare.plans.create("A card about salt")
    assert [*seen, *(plan.id for plan in found)] == ids[::-1]
    assert [plan.id for plan in listed] == ids[::-1]
    assert len(list(bare.plans)) == 56


def test_events_come_to_the_last(bare: Client) -> None:
    """Given work of each kind, then its events are numbered without gaps and end with its end."""
    run = bare.runs.create("composition.layout", CARD)
    events = list(bare.events(run.id))
    assert [event.n for event in events] == list(range(1, len(events) + 1))
    assert events[-1].type == "run.completed"
    assert [event.n for event in bare.events(run.id, after=events[0].n)] == [
        event.n for event in events[1:]
    ]
    job = run.refresh().record.job_id
    assert [event.type for event in bare.events(job)][-1] == "job.completed"
    assert list(bare.events(run.id, after=events[-1].n)) == []


def test_events_go_on_when_work_is_retried(bare: Client) -> None:
    """Given a workflow that failed and is retried, then reading from the first has both ends."""
    wf = Workflow("w")
    wf.add("a", "research.gather", topic="qqqzzz")
    failed = bare.workflows.submit(wf).wait(progress=False, check=False)
    bare.workflows.retry(failed.id).wait(progress=False, check=False)
    ends = [event.type for event in bare.events(failed.id) if event.terminal]
    assert ends == ["workflow.failed", "workflow.failed"]


def test_an_id_is_enough_to_cancel(bare: Client) -> None:
    """Given an id of work that has ended, then cancelling by it answers the record as it is."""
    run = bare.runs.create("composition.layout", CARD).wait(progress=False)
    assert bare.runs.cancel(run.id).status == "completed"
