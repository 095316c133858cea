"""Agents: a named objective that runs as a task."""

import pytest

from tests.contract.conftest import expect_refusal
from toolkit import Client, RequestError
from toolkit.client import Agent

pytestmark = pytest.mark.embedded

OBJECTIVE = "A short written summary of {topic}"
TEA = {"topic": "tea"}


@pytest.fixture
def agent(client: Client) -> Agent:
    """An agent with a parameter and a budget."""
    return client.agents.create("summarist", OBJECTIVE, max_cost_usd=0.5)


def test_an_agent_runs_as_a_task(client: Client, agent: Agent) -> None:
    """Given an agent, when it is run, then a task completes, and the run reports it."""
    assert (agent.name, agent.parameters) == ("summarist@1", ["topic"])
    run = agent.run(topic="tidal power").wait()
    assert client.info().spent_here_usd == run.cost_usd
    record = run.record
    assert (run.status, record.target, record.capability) == ("completed", "agent", "summarist@1")
    task = client.tasks.get(record.task_id)
    assert task.record.objective == "A short written summary of tidal power"
    assert task.record.constraints.max_cost_usd == 0.5
    assert run.output["final_artifact_id"] == task.final_artifact_id == run.artifact_id
    assert run.output["review"]["decision"] == "pass"
    assert "tid" in client.artifacts.get(run.artifact_id).text().lower()
    events = run.events()
    assert [event.n for event in events] == list(range(1, len(events) + 1))
    assert {event.type for event in events} == {"run.running", "run.completed"}
    assert [event.terminal for event in events] == [False] * (len(events) - 1) + [True]
    assert {event.data["status_detail"] for event in events[:-1]} >= {"planning", "executing"}


def test_lists_runs_of_agents_and_capabilities_together(client: Client, agent: Agent) -> None:
    """Given runs of both kinds, then pages list each once, newest first; usage separates them."""
    run_ids = []
    for _ in range(3):
        run_ids.append(client.runs.create("llm.generate", {"objective": "Tea"}).wait().id)
        run_ids.append(agent.run(topic="tea").wait().id)
    page_ids: list[str] = []
    cursor = {}
    while cursor is not None:
        page = client.read("/runs", {"limit": 2, **cursor})
        page_ids += [run["id"] for run in page["items"]]
        assert page["total"] in (len(run_ids), None)
        cursor = {"cursor": page["next_cursor"]} if page["next_cursor"] else None
    assert page_ids == run_ids[::-1]
    jobs = {line.record.agent_id: line.record.jobs for line in client.usage.list(["agent"])}
    assert jobs[None] == 3
    assert jobs[agent.id] >= 3


def test_runs_the_newest_version(client: Client, agent: Agent) -> None:
    """Given two versions, then the newest runs, unless another is named."""
    client.agents.create("summarist", "A teaser about {topic}", version="2")
    for options, version in (({}, "2"), ({"version": "1"}, "1")):
        run = client.runs.create("summarist", TEA, target="agent", **options)
        assert run.record.capability == f"summarist@{version}"
        assert run.cancel().status in ("cancelled", "completed")
    with pytest.raises(RequestError, match=r"^INVALID_REQUEST:"):
        client.runs.create("summarist@1", TEA, target="agent", version="2")


@pytest.mark.parametrize(
    ("input", "options", "path"),
    [
        ({}, {}, "input.topic"),
        ({**TEA, "mood": "glad"}, {}, "input.mood"),
        ({"topic": 3}, {}, "input.topic"),
        # These options are of a single call.
        (TEA, {"provider": "openai"}, "options.provider"),
        (TEA, {"cache": True}, "options.cache"),
        (TEA, {"deadline_s": 3}, "options.deadline_s"),
    ],
)
def test_rejects_an_invalid_run(
    client: Client, agent: Agent, input: dict[str, object], options: dict[str, object], path: str
) -> None:
    """Given an input or option that the agent does not take, then nothing is run."""
    with expect_refusal("INVALID_REQUEST", path):
        client.runs.create("summarist", input, target="agent", **options)
    assert len(client.tasks.list()) == 0


@pytest.mark.parametrize(("run_limit", "limit"), [(0.2, 0.2), (3.0, 0.5)])
def test_the_lower_of_two_limits_counts(
    client: Client, agent: Agent, run_limit: float, limit: float
) -> None:
    """Given limits of the run and of the agent, then the task has the lower one."""
    run = client.runs.create("summarist", TEA, target="agent", max_cost_usd=run_limit)
    task = client.tasks.get(run.record.task_id)
    assert task.record.constraints.max_cost_usd == limit
    run.cancel()


def test_uses_only_the_allowed_capabilities(client: Client) -> None:
    """Given an agent that may only write, then it is rejected if it should speak."""
    options = {"capabilities": ["llm.generate"]}
    speaker = client.agents.create("speaker", "A spoken summary of {topic}", **options)
    with pytest.raises(RequestError, match=r"^CAPABILITY_UNAVAILABLE:"):
        speaker.run(topic="tea")
    writer = client.agents.create("writer", OBJECTIVE, **options)
    # A parameter is data, so that it cannot allow another capability.
    with pytest.raises(RequestError):
        writer.run(topic="tea, and read it aloud as an MP3")
    task = client.tasks.get(writer.run(topic="tea").wait().record.task_id)
    nodes = client.workflows.get(task.workflow_id).nodes
    assert {node.capability for node in nodes} == {"llm.generate@1"}


def test_a_run_without_its_connection_stores_nothing(bare: Client) -> None:
    """Given no connection, then a run of an agent is rejected at once."""
    agent = bare.agents.create("narrator", "A narration about {topic}")
    with pytest.raises(RequestError, match=r"^CREDENTIALS_MISSING:"):
        agent.run(topic="tea")
    assert len(bare.tasks.list()) == len(bare.runs.list()) == 0


def test_a_name_is_unique_until_its_agent_is_deleted(bare: Client) -> None:
    """Given a name and version, then they cannot be used again before the agent is deleted."""
    agent = bare.agents.create("summarist", OBJECTIVE)
    with pytest.raises(RequestError, match=r"^CONFLICT:"):
        bare.agents.create("summarist", "Another {thing}")
    assert bare.agents.delete(agent.id).record.deleted
    assert len(bare.agents.list()) == 0
    with pytest.raises(RequestError, match=r"^NOT_FOUND:"):
        bare.runs.create("summarist", TEA, target="agent")
    assert bare.agents.create("summarist", "Another {thing}").parameters == ["thing"]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"name": "Not a name"}, "INVALID_REQUEST"),
        ({"capabilities": ["moon.phase"]}, "NOT_FOUND"),
        ({"endpoint_id": "ep_01kaaaaaaaaaaaaaaaaaaaaaaa"}, "NOT_FOUND"),
    ],
)
def test_rejects_an_invalid_agent(bare: Client, fields: dict[str, object], code: str) -> None:
    """Given an agent that could never run, then it is not registered."""
    with pytest.raises(RequestError, match=f"^{code}:"):
        bare.agents.create(**{"name": "summarist", "objective": OBJECTIVE, **fields})


def test_braces_in_a_value_stay_text(client: Client) -> None:
    """Given a value that looks like a parameter, then it is inserted unchanged."""
    agent = client.agents.create("summarist", "A written note on {topic} and {other}")
    run = agent.run(topic="{other} and {topic}", other="tea")
    task = client.tasks.get(run.record.task_id)
    assert task.record.objective == "A written note on {other} and {topic} and tea"
    run.cancel()
