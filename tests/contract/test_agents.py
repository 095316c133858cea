"""Agents: an objective under a name, run as one."""

import pytest

from toolkit import Client, RequestError

pytestmark = pytest.mark.embedded

OBJECTIVE = "A short written summary of {topic}"


def test_an_agent_runs_as_a_task(client: Client) -> None:
    """Given an agent, when it is run, then a task is planned, reviewed and told of as the run."""
    agent = client.agents.create("summarist", OBJECTIVE, max_cost_usd=0.5)
    assert (agent.name, agent.parameters) == ("summarist@1", ["topic"])
    run = agent.run(topic="tidal power").wait()
    assert (run.status, run.record.target, run.record.capability) == (
        "completed",
        "agent",
        "summarist@1",
    )
    task = client.tasks.get(run.record.task_id)
    assert task.record.objective == "A short written summary of tidal power"
    assert task.record.constraints.max_cost_usd == 0.5
    assert run.output["final_artifact_id"] == task.final_artifact_id == run.artifact_id
    assert run.output["review"]["decision"] == "pass"
    assert "tid" in client.artifacts.get(run.artifact_id).text().lower()


def test_its_events_are_the_runs(client: Client) -> None:
    """Given a run of an agent, then its events are numbered, and the last one ends it."""
    agent = client.agents.create("summarist", OBJECTIVE)
    run = agent.run(topic="tea").wait()
    events = run.events()
    assert [event.n for event in events] == list(range(1, len(events) + 1))
    assert {event.type for event in events} == {"run.running", "run.completed"}
    assert [event.terminal for event in events] == [False] * (len(events) - 1) + [True]
    assert {event.data["status_detail"] for event in events[:-1]} >= {"planning", "executing"}


def test_runs_of_agents_and_capabilities_are_listed_together(client: Client) -> None:
    """Given runs of both kinds, then pages hold them newest first, each once."""
    agent = client.agents.create("summarist", OBJECTIVE)
    made = []
    for _ in range(3):
        made.append(client.runs.create("llm.generate", {"objective": "Tea"}).wait().id)
        made.append(agent.run(topic="tea").wait().id)
    seen: list[str] = []
    page = client.read("/runs", {"limit": 2})
    assert page["total"] == len(made)
    while True:
        seen += [run["id"] for run in page["items"]]
        if page["next_cursor"] is None:
            break
        page = client.read("/runs", {"limit": 2, "cursor": page["next_cursor"]})
    assert seen == made[::-1]


def test_the_newest_version_is_run(client: Client) -> None:
    """Given two versions, then the newest is run unless one is named."""
    client.agents.create("summarist", OBJECTIVE)
    client.agents.create("summarist", "A teaser about {topic}", version="2")
    given = {"topic": "tea"}
    for asked, wanted in (({}, "2"), ({"version": "1"}, "1")):
        run = client.runs.create("summarist", given, target="agent", **asked).wait()
        assert run.record.capability == f"summarist@{wanted}"
    named = client.runs.create("summarist@1", given, target="agent")
    assert named.cancel().status in ("cancelled", "completed")
    with pytest.raises(RequestError, match=r"^INVALID_REQUEST:"):
        client.runs.create("summarist@1", given, target="agent", version="2")


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({}, "input.topic"),
        ({"topic": "tea", "mood": "glad"}, "input.mood"),
        ({"topic": 3}, "input.topic"),
    ],
)
def test_an_input_that_does_not_fit(client: Client, given: dict[str, object], path: str) -> None:
    """Given an input that is not what the objective needs, then nothing is run."""
    client.agents.create("summarist", OBJECTIVE)
    with pytest.raises(RequestError) as refused:
        client.runs.create("summarist", given, target="agent")
    assert refused.value.code.name == "INVALID_REQUEST"
    assert path in [detail.path for detail in refused.value.details]
    assert len(client.tasks.list()) == 0


@pytest.mark.parametrize("options", [{"provider": "openai"}, {"cache": True}, {"deadline_s": 3}])
def test_options_of_single_calls_do_not_apply(client: Client, options: dict[str, object]) -> None:
    """Given an option of one call, then a run of an agent with it is refused."""
    client.agents.create("summarist", OBJECTIVE)
    with pytest.raises(RequestError) as refused:
        client.runs.create("summarist", {"topic": "tea"}, target="agent", **options)
    assert refused.value.details[0].path == f"options.{next(iter(options))}"


def test_a_run_may_only_ask_for_less_money(client: Client) -> None:
    """Given a limit of the agent's, then the lower one holds, be it the run's or the agent's."""
    client.agents.create("summarist", OBJECTIVE, max_cost_usd=0.5)
    for asked, kept in ((0.2, 0.2), (3.0, 0.5)):
        run = client.runs.create(
            "summarist", {"topic": "tea"}, target="agent", max_cost_usd=asked
        ).wait()
        assert client.tasks.get(run.record.task_id).record.constraints.max_cost_usd == kept


def test_only_its_capabilities_are_used(client: Client) -> None:
    """Given an agent that may only write, then it cannot be had to speak, and never does."""
    speaker = client.agents.create(
        "speaker", "A spoken summary of {topic}", capabilities=["llm.generate"]
    )
    with pytest.raises(RequestError, match=r"^CAPABILITY_UNAVAILABLE:"):
        speaker.run(topic="tea")
    writer = client.agents.create("writer", OBJECTIVE, capabilities=["llm.generate"])
    # What fills a parameter is data: what it asks for is planned with what may be used, or not.
    with pytest.raises(RequestError):
        writer.run(topic="tea, and read it aloud as an MP3")
    run = writer.run(topic="tea").wait()
    task = client.tasks.get(run.record.task_id)
    used = {node.capability for node in client.workflows.get(task.workflow_id).nodes}
    assert used == {"llm.generate@1"}


def test_what_is_missing_is_said_before_anything_is_stored(bare: Client) -> None:
    """Given no connection, then a run of an agent is refused at once."""
    agent = bare.agents.create("narrator", "A narration about {topic}")
    with pytest.raises(RequestError, match=r"^CREDENTIALS_MISSING:"):
        agent.run(topic="tea")
    assert len(bare.tasks.list()) == len(bare.runs.list()) == 0


def test_names_are_taken_once_and_freed(bare: Client) -> None:
    """Given a name and version, then they are taken, until the agent is deleted."""
    agent = bare.agents.create("summarist", OBJECTIVE)
    with pytest.raises(RequestError, match=r"^CONFLICT:"):
        bare.agents.create("summarist", "Another {thing}")
    assert bare.agents.delete(agent.id).record.deleted
    assert len(bare.agents.list()) == 0
    with pytest.raises(RequestError, match=r"^NOT_FOUND:"):
        bare.runs.create("summarist", {"topic": "tea"}, target="agent")
    assert bare.agents.create("summarist", "Another {thing}").parameters == ["thing"]


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"name": "Not a name"}, "INVALID_REQUEST"),
        ({"capabilities": ["moon.phase"]}, "NOT_FOUND"),
        ({"endpoint_id": "ep_01kaaaaaaaaaaaaaaaaaaaaaaa"}, "NOT_FOUND"),
    ],
)
def test_what_is_no_agent(bare: Client, given: dict[str, object], code: str) -> None:
    """Given an agent that could never run, then it is not registered."""
    with pytest.raises(RequestError) as refused:
        bare.agents.create(**{"name": "summarist", "objective": OBJECTIVE, **given})
    assert refused.value.code.name == code


def test_usage_tells_what_agents_did(client: Client) -> None:
    """Given a run of an agent and one of none, then usage tells them apart."""
    agent = client.agents.create("summarist", OBJECTIVE)
    agent.run(topic="tea").wait()
    client.runs.create("llm.generate", {"objective": "Tea"}).wait()
    lines = {line.record.agent_id: line.record.jobs for line in client.usage.list(["agent"])}
    assert lines[None] == 1
    assert lines[agent.id] >= 1


def test_braces_in_a_value_stay_text(client: Client) -> None:
    """Given a value that looks like a parameter, then it is taken as it is."""
    agent = client.agents.create("summarist", "A written note on {topic} and {other}")
    run = agent.run(topic="{other} and {topic}", other="tea")
    task = client.tasks.get(run.record.task_id)
    assert task.record.objective == "A written note on {other} and {topic} and tea"
    run.cancel()
