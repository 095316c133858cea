"""Plans that are given: previewed, edited or made by hand, and run exactly as they are."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.contract.tasks.scripts import plan_text
from toolkit import Client, RequestError, Workflow
from toolkit.cli import app
from toolkit.settings import Settings

pytestmark = pytest.mark.embedded

OBJECTIVE = "A paragraph about tea"


def test_a_previewed_plan_is_run_as_it_is(client: Client) -> None:
    """Given a plan that was previewed, then the task has its nodes and nothing is planned."""
    plan = client.plans.create(OBJECTIVE)
    task = client.tasks.create(plan=plan).wait(check=False)
    stored = client.plans.get(task.plan_id)
    assert (task.objective, task.plan_given) == (OBJECTIVE, True)
    assert [node.model_dump() for node in stored.nodes] == [
        node.model_dump() for node in plan.nodes
    ]
    assert stored.deliverables == plan.deliverables
    ran = client.workflows.get(task.workflow_id).nodes
    assert [(node.id, node.input) for node in ran] == [(n.id, n.input) for n in plan.nodes]
    assert task.artifact_ids.keys() == set(plan.deliverables)
    assert task.review is not None


def test_an_edited_plan_is_run_as_it_was_edited(client: Client) -> None:
    """Given a plan whose input was changed, then that is what runs."""
    plan = client.plans.create(OBJECTIVE)
    plan.nodes[-1].input["objective"] = "Ten words about coffee."
    task = client.tasks.create("Ten words about coffee", plan=plan).wait(check=False)
    assert task.objective == "Ten words about coffee"
    node = client.workflows.get(task.workflow_ids[0]).nodes[-1]
    assert node.input["objective"] == "Ten words about coffee."


def test_a_workflow_is_a_plan(client: Client) -> None:
    """Given a workflow, then it is run as a task, its last nodes are delivered, options and all."""
    flow = Workflow("A card about tea", optimize_for="cost", max_cost_usd=0.5, cache=False)
    facts = flow.add("facts", "research.gather", topic="Tea", optional=True)
    text = flow.add(
        "text",
        "llm.generate",
        objective="A 20-word text about tea",
        depends_on=[facts],
        options={"provider": "anthropic"},
    )
    flow.add("card", "composition.layout", title="Tea", depends_on=[text])
    task = client.tasks.create(plan=flow).wait(check=False)
    plan = client.plans.get(task.plan_id)
    assert (task.objective, plan.deliverables) == ("A card about tea", ["card"])
    assert plan.nodes[0].optional
    assert plan.nodes[1].options is not None
    assert plan.nodes[1].options.provider == "anthropic"
    assert task.record.constraints.optimize_for == "cost"
    assert task.record.constraints.max_cost_usd == 0.5
    ran = client.workflows.get(task.workflow_id)
    assert (ran["text"].provider, ran["facts"].optional) == ("anthropic", True)


def test_every_fault_of_a_plan_is_told(client: Client) -> None:
    """Given a plan with several faults, then all of them are named by their place."""
    flow = Workflow("Wrong")
    flow.add("a", "no.such", x=1)
    flow.add("b", "speech.generate", speed=9)
    body = {
        "nodes": [*flow.nodes, {"id": "c", "capability": "llm.generate", "depends_on": ["d"]}],
        "deliverables": ["nothing"],
    }
    with pytest.raises(RequestError) as refused:
        client.tasks.create("Wrong", plan=body)
    assert refused.value.code.name == "INVALID_WORKFLOW"
    places = {fault.path for fault in refused.value.details}
    assert {
        "plan.nodes.0.capability",
        "plan.nodes.1.input.speed",
        "plan.nodes.1.input.text",
        "plan.nodes.2.depends_on.0",
        "plan.deliverables.0",
    } <= places
    assert len(client.tasks.list()) == 0


def test_a_plan_keeps_to_the_capabilities_that_are_allowed(client: Client) -> None:
    """Given a plan with what the constraints do not allow, then it is refused."""
    with pytest.raises(RequestError) as refused:
        client.tasks.create(plan=plan_text(), capabilities=["research.gather"])
    assert refused.value.details[0].path == "plan.nodes.0.capability"


def test_an_objective_or_a_plan_is_needed(client: Client) -> None:
    """Given neither, or a plan without an objective, then that is said."""
    for plan in (None, {"nodes": plan_text().nodes}):
        with pytest.raises(RequestError, match="objective"):
            client.tasks.create(plan=plan)


def test_what_a_plan_lacks_blocks_it(bare: Client) -> None:
    """Given a plan that needs a connection, then its task is blocked, resumed, and run as it is."""
    task = bare.tasks.create(plan=plan_text()).wait()
    assert (task.status, task.plan_given) == ("blocked", True)
    assert [one.capability for one in task.missing] == ["llm.generate"]
    plan_id = task.plan_id
    bare.connections.create("openai", "environment", "OPENAI_API_KEY")
    done = task.resume().wait(check=False)
    assert (done.plan_id, done.plan_given) == (plan_id, True)
    assert bare.plans.get(plan_id).executable
    assert bare.workflows.get(done.workflow_ids[0])["copy"].input == plan_text().nodes[0]["input"]


def test_a_command_runs_a_plan_from_a_file(settings: Settings, tmp_path: Path) -> None:
    """Given a plan that `plans show` printed, or a workflow, then `task --plan` runs it."""
    folder = ["--data-dir", str(settings.data_dir), "--sandbox"]
    with Client.local(settings=settings) as client:
        plan = client.plans.create(OBJECTIVE)
    for name, body in (("plan", plan.to_dict()), ("flow", plan_text().to_dict())):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(body))
        options = ["task", "--plan", str(path), "--out", str(tmp_path), "--json", *folder]
        done = CliRunner().invoke(app, options)
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["plan_given"]
