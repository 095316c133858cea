"""Tasks: every combination of the constraints shown, the record, the states, the manager's flow."""

from itertools import product

import pytest

from tests.contract.raw_http import NAMES, Json, RawCaller
from tests.contract.specification.sections import section
from tests.contract.tasks.scripts import ALWAYS, REFUSED

TASKS = "Endpoints > Tasks"
TASK = "Resources and their fields > Task (tsk_)"
STATES = "States and transitions > Task status"
TEXT = "A short text about tea"
PICTURE = "A picture of a lighthouse"


def story(caller: RawCaller, task: Json) -> list[str]:
    """The states that a task went through, as its events tell them."""
    events = caller.get(f"/v1/tasks/{task['id']}/events")["data"]["items"]
    return [event["type"].removeprefix("task.") for event in events]


# --- POST /v1/tasks ---


@section(TASKS)
@section(STATES)
def test_a_task_is_accepted_and_being_planned(caller: RawCaller) -> None:
    """Given an objective alone, then 202 with a `tsk_` id, in `planning`."""
    answer = caller.send("POST", "/v1/tasks", {"objective": TEXT})
    assert answer.status_code == 202
    assert answer.json()["id"].startswith("tsk_")
    assert answer.json()["data"]["status"] == "planning"


# Every combination: each constraint that is shown, with each of its values, or left out.
CONSTRAINTS = {
    "max_cost_usd": [None, 1, 1.0],
    "optimize_for": [None, "balanced", "cost"],
    "endpoint_id": [None, "ep_"],
    "compute_id": [None, "cmp_"],
}


@pytest.fixture(scope="module")
def places(caller: RawCaller) -> dict[str, str]:
    """An endpoint and a compute, by their prefixes."""
    gpu = caller.get("/v1/catalog/gpus")["data"]["items"][0]["id"]
    made = caller.create("/v1/compute", {"name": "easel", "gpu_type": gpu})
    return {"ep_": caller.create("/v1/endpoints", {})["id"], "cmp_": made["id"]}


@section(TASKS)
def test_a_gpu_step_runs_where_the_constraints_say(
    caller: RawCaller, places: dict[str, str]
) -> None:
    """Given both places, then the picture is made on the endpoint."""
    task = caller.task(PICTURE, endpoint_id=places["ep_"], compute_id=places["cmp_"])
    assert task["status"] == "completed", task.get("error")
    workflow = caller.get(f"/v1/workflows/{task['data']['workflow_id']}")["data"]
    jobs = [caller.get(f"/v1/jobs/{node['job_id']}")["data"] for node in workflow["nodes"]]
    drawn = [job["model"] for job in jobs if job["capability"] == "image.generate@1"]
    assert drawn == ["serverless"]


@section(TASKS)
@pytest.mark.parametrize(
    ("constraints", "path"),
    [
        ({"max_cost_usd": "1"}, "constraints.max_cost_usd"),
        ({"max_cost_usd": True}, "constraints.max_cost_usd"),
        ({"max_cost_usd": -1}, "constraints.max_cost_usd"),
        ({"optimize_for": "luck"}, "constraints.optimize_for"),
        ({"optimize_for": 1}, "constraints.optimize_for"),
        ({"endpoint_id": 1}, "constraints.endpoint_id"),
        ({"compute_id": []}, "constraints.compute_id"),
        ({"model": "gpt"}, "constraints.model"),
        ([], "constraints"),
    ],
)
def test_constraints_of_another_kind_are_refused(
    caller: RawCaller, constraints: object, path: str
) -> None:
    """Given a constraint that is not as shown, then it is named."""
    answer = caller.send("POST", "/v1/tasks", {"objective": TEXT, "constraints": constraints})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_REQUEST")
    assert answer.json()["error"]["details"][0]["path"] == path


@section(TASKS)
@pytest.mark.parametrize("body", [{}, {"objective": ""}, {"objective": 1}, {"constraints": {}}])
def test_an_objective_is_required(caller: RawCaller, body: Json) -> None:
    """Given no objective, or none that is a text, then it is named."""
    answer = caller.send("POST", "/v1/tasks", body)
    assert (answer.status_code, answer.json()["error"]["details"][0]["path"]) == (400, "objective")


# --- The record ---


@pytest.fixture(scope="module")
def passed(caller: RawCaller) -> Json:
    """A task whose review passed."""
    return caller.task("A social card with a spoken summary about tidal power")


@section(TASK)
@pytest.mark.parametrize(
    ("field", "kind"),
    [
        ("plan_id", "pln_"),
        ("workflow_id", "wfl_"),
        ("final_artifact_id", "art_"),
        ("review", dict),
        ("review_attempts", int),
        ("cost_usd", float),
        ("status", "completed"),
    ],
)
def test_a_task_has_the_field(passed: Json, field: str, kind: str | type) -> None:
    """Given a task that is done, then the field is there, and what it names."""
    value = passed["data"][field]
    assert value.startswith(kind) if isinstance(kind, str) else isinstance(value, kind)


@section(TASK)
@pytest.mark.parametrize("field", ["plan_id", "workflow_id", "final_artifact_id"])
def test_what_a_task_names_is_there(caller: RawCaller, passed: Json, field: str) -> None:
    """Given the ids on a task, then each is of something that can be read."""
    area = {"plan_id": "plans", "workflow_id": "workflows", "final_artifact_id": "artifacts"}[field]
    name = passed["data"][field]
    assert caller.get(f"/v1/{area}/{name}")["id"] == name


@section(TASK)
@section(STATES)
def test_a_review_that_passed_has_its_fields(passed: Json) -> None:
    """Given a pass, then decision, score, criteria and issues are as the table has them."""
    review = passed["data"]["review"]
    assert review["decision"] == "pass"
    assert 0 <= review["score"] <= 1
    criteria = {"objective_alignment", "technical_success", "output_completeness"}
    assert set(review["criteria"]) == criteria
    assert all(0 <= value <= 1 for value in review["criteria"].values())
    assert all(isinstance(issue, str) for issue in review["issues"])
    assert review["recommended_action"] is None
    assert passed["data"]["review_attempts"] == 0


# --- States ---


@section(STATES)
def test_a_task_that_passes_goes_through_each_state(caller: RawCaller, passed: Json) -> None:
    """Given a pass, then planning, executing and reviewing lead to completed, in this order."""
    assert story(caller, passed) == ["planning", "executing", "reviewing", "completed"]
    assert passed["data"]["final_artifact_id"]


@section(STATES)
@pytest.mark.parametrize("objective", ["A narration about tea", "A video about tea"])
def test_a_plan_that_is_not_executable_blocks(stranger: RawCaller, objective: str) -> None:
    """Given what is missing, then the task is blocked, says what, and has no workflow."""
    task = stranger.task(objective)
    assert (task["status"], task["data"]["workflow_id"]) == ("blocked", None)
    assert task["data"]["missing_capabilities"] or task["data"]["missing_connections"]
    assert task["data"]["plan_id"].startswith("pln_")
    assert story(stranger, task) == ["planning", "blocked"]


@section(STATES)
def test_missing_capabilities_are_reported(caller: RawCaller) -> None:
    """Given every connection and an objective that no capability meets, then that one is named."""
    task = caller.task("A video about tea")
    assert task["status"] == "blocked"
    assert len(task["data"]["missing_capabilities"]) == 1


@pytest.fixture
def lame(service: RawCaller) -> RawCaller:
    """A caller whose only vendor refuses whatever it is asked for."""
    alone = service.sign_up(NAMES["V1"])
    service.faults.say("openai", *[REFUSED] * ALWAYS)
    yield alone
    service.faults.clear()


@section(STATES)
@section(TASK)
@section("Limits")
def test_a_review_is_retried_at_most_twice(caller: RawCaller, lame: RawCaller) -> None:
    """Given work that never passes, then it is run again twice, and the task has failed."""
    task = lame.task("A paragraph about tea")
    assert task["status"] == "failed"
    assert task["error"]["code"] == task["data"]["error"]["code"]
    assert task["data"]["review_attempts"] == 2
    assert task["data"]["final_artifact_id"] is None
    once = ["executing", "reviewing"]
    assert story(lame, task) == ["planning", *once, *once, *once, "failed"]


@section(TASKS)
@pytest.mark.parametrize(
    "row", list(product(*CONSTRAINTS.values())), ids=lambda row: "-".join(map(str, row))
)
def test_the_constraints_go_together(
    caller: RawCaller, places: dict[str, str], row: tuple[object, ...]
) -> None:
    """Given a combination of the constraints, then the task completes, within its budget."""
    chosen = {name: value for name, value in zip(CONSTRAINTS, row, strict=True) if value}
    constraints = {name: places.get(str(value), value) for name, value in chosen.items()}
    task = caller.task(TEXT, **constraints)
    assert task["status"] == "completed", task.get("error")
    assert constraints.items() <= task["data"]["constraints"].items()
    assert 0 < task["data"]["cost_usd"] <= 1
    workflow = caller.get(f"/v1/workflows/{task['data']['workflow_id']}")["data"]
    for place in ("endpoint_id", "compute_id"):
        assert workflow[place] == constraints.get(place)


@section(TASK)
def test_a_tasks_cost_is_its_workflows(caller: RawCaller, passed: Json) -> None:
    """Given a task of one workflow, then both show the same cost."""
    workflow = caller.get(f"/v1/workflows/{passed['data']['workflow_id']}")["data"]
    assert passed["data"]["cost_usd"] == pytest.approx(workflow["cost_usd"], abs=1e-9)
