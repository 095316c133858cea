"""Tasks with a given plan: a preview, an edited plan or a workflow, run unchanged."""

import json
from pathlib import Path

import pytest

from tests.contract.tasks.scripts import build_text_plan
from tests.support.commands import say
from toolkit import Client, RequestError, Workflow
from toolkit.settings import Settings

pytestmark = pytest.mark.embedded

OBJECTIVE = "A paragraph about tea"


def test_runs_an_edited_preview(client: Client) -> None:
    """Given a previewed plan that was edited, then the task runs its nodes, and plans nothing."""
    plan = client.plans.create(OBJECTIVE)
    plan.nodes[-1].input["objective"] = "Ten words about coffee."
    task = client.tasks.create(plan=plan).wait(check=False)
    record = client.plans.get(task.plan_id)
    assert (task.objective, task.plan_given) == (OBJECTIVE, True)
    assert [node.model_dump() for node in record.nodes] == [n.model_dump() for n in plan.nodes]
    assert record.deliverables == plan.deliverables
    nodes = client.workflows.get(task.workflow_id).nodes
    assert [(node.id, node.input) for node in nodes] == [(n.id, n.input) for n in plan.nodes]
    assert task.artifact_ids.keys() == set(plan.deliverables)
    assert task.review is not None


def test_a_workflow_is_a_plan(client: Client) -> None:
    """Given a workflow, then a task runs it with its options, and delivers its last nodes."""
    flow = Workflow("A card about tea", optimize_for="cost", max_cost_usd=0.5, cache=False)
    facts = flow.add("facts", "research.gather", topic="Tea", optional=True)
    options = {"provider": "anthropic"}
    objective = "A 20-word text about tea"
    text = flow.add(
        "text", "llm.generate", objective=objective, depends_on=[facts], options=options
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
    run = client.workflows.get(task.workflow_id)
    assert (run["text"].provider, run["facts"].optional) == ("anthropic", True)


def test_names_every_fault_of_a_plan(client: Client) -> None:
    """Given a plan with several faults, then all of them are named by their place."""
    flow = Workflow("Wrong")
    flow.add("a", "no.such", x=1)
    flow.add("b", "speech.generate", speed=9)
    body = {
        "nodes": [*flow.nodes, {"id": "c", "capability": "llm.generate", "depends_on": ["d"]}],
        "deliverables": ["nothing"],
    }
    with pytest.raises(RequestError, match=r"^INVALID_WORKFLOW:") as error:
        client.tasks.create("Wrong", plan=body)
    assert {
        "plan.nodes.0.capability",
        "plan.nodes.1.input.speed",
        "plan.nodes.1.input.text",
        "plan.nodes.2.depends_on.0",
        "plan.deliverables.0",
    } <= {detail.path for detail in error.value.details}
    assert len(client.tasks.list()) == 0


def test_rejects_a_plan_with_other_capabilities(client: Client) -> None:
    """Given a plan with a capability that the constraints exclude, then it is rejected."""
    with pytest.raises(RequestError) as error:
        client.tasks.create(plan=build_text_plan(), capabilities=["research.gather"])
    assert error.value.details[0].path == "plan.nodes.0.capability"


@pytest.mark.parametrize("plan", [None, {"nodes": build_text_plan().nodes}])
def test_a_task_needs_an_objective_or_a_named_plan(client: Client, plan: object) -> None:
    """Given no plan, or a plan without a name, then the objective is required."""
    with pytest.raises(RequestError, match="objective"):
        client.tasks.create(plan=plan)  # type: ignore[arg-type]


def test_a_missing_connection_blocks_a_given_plan(bare: Client) -> None:
    """Given a plan that needs a connection, then its task is blocked, resumed, and runs it."""
    task = bare.tasks.create(plan=build_text_plan()).wait()
    assert (task.status, task.plan_given) == ("blocked", True)
    assert [gap.capability for gap in task.missing] == ["llm.generate"]
    plan_id = task.plan_id
    bare.connections.create("openai", "environment", "OPENAI_API_KEY")
    task.resume().wait(check=False)
    assert (task.plan_id, task.plan_given) == (plan_id, True)
    assert bare.plans.get(plan_id).executable
    node = bare.workflows.get(task.workflow_ids[0])["copy"]
    assert node.input == build_text_plan().nodes[0]["input"]


def test_a_command_runs_a_plan_from_a_file(settings: Settings, tmp_path: Path) -> None:
    """Given the output of `plans show`, or a workflow, then `task --plan` runs it."""
    folder = ["--data-dir", settings.data_dir, "--sandbox"]
    with Client.local(settings=settings) as client:
        plan = client.plans.create(OBJECTIVE)
    for name, body in (("plan", plan.to_dict()), ("flow", build_text_plan().to_dict())):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(body))
        task = json.loads(say("task", "--plan", path, "--out", tmp_path, "--json", *folder))
        assert task["plan_given"]
