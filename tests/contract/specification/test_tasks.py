"""Tasks: combinations of the constraints shown, the record, the states, reviews."""

from collections.abc import Iterator
from itertools import product

import pytest

from tests.contract.raw_http import NAMES, Json, RawCaller
from tests.contract.specification.sections import section
from tests.contract.tasks.scripts import ALWAYS, REFUSED

pytestmark = [section("Endpoints > Tasks")]

TASK = "Resources and their fields > Task (tsk_)"
STATES = "States and transitions > Task status"
TEXT = "A short text about tea"


def list_states(caller: RawCaller, task: Json) -> list[str]:
    """List the states of a task, by its events."""
    events = caller.get(f"/v1/tasks/{task['id']}/events")["data"]["items"]
    return [event["type"].removeprefix("task.") for event in events]


@section(STATES)
def test_accepts_a_task_that_is_being_planned(caller: RawCaller) -> None:
    """Given an objective alone, then 202 with a `tsk_` id, in `planning`."""
    response = caller.send("POST", "/v1/tasks", {"objective": TEXT})
    assert response.status_code == 202
    assert response.json()["id"].startswith("tsk_")
    assert response.json()["data"]["status"] == "planning"


# Each constraint that is shown, with each of its values, or without it.
CONSTRAINTS = {
    "max_cost_usd": [None, 1, 1.0],
    "optimize_for": [None, "balanced", "cost"],
    "endpoint_id": [False, True],
    "compute_id": [False, True],
}


def test_a_gpu_step_prefers_the_endpoint(caller: RawCaller, places: dict[str, str]) -> None:
    """Given an endpoint and a compute, then the picture is made on the endpoint."""
    task = caller.task("A picture of a lighthouse", **places)
    assert task["status"] == "completed", task.get("error")
    workflow = caller.get(f"/v1/workflows/{task['data']['workflow_id']}")["data"]
    jobs = [caller.get(f"/v1/jobs/{node['job_id']}")["data"] for node in workflow["nodes"]]
    models = [job["model"] for job in jobs if job["capability"] == "image.generate@1"]
    assert models == ["serverless"]


INVALID = [
    *({"max_cost_usd": value} for value in ("1", True, -1)),
    *({"optimize_for": value} for value in ("luck", 1)),
    {"endpoint_id": 1},
    {"compute_id": []},
    {"model": "gpt"},
]


@pytest.mark.parametrize("constraints", INVALID)
def test_rejects_other_constraints(caller: RawCaller, constraints: Json) -> None:
    """Given a constraint of another form than shown, then it is named."""
    body = {"objective": TEXT, "constraints": constraints}
    error = caller.read_error("POST", "/v1/tasks", body)
    assert error[:2] == (400, "INVALID_REQUEST")
    assert error.paths[0] == f"constraints.{next(iter(constraints))}"


@pytest.mark.parametrize("fields", [{"objective": ""}, {"objective": 1}, {"constraints": []}])
def test_names_an_invalid_field(caller: RawCaller, fields: Json) -> None:
    """Given a missing field, or a field of another type, then it is named."""
    body = {"objective": TEXT, **fields}
    error = caller.read_error("POST", "/v1/tasks", body)
    assert (error.status, error.paths) == (400, [next(iter(fields))])
    assert caller.read_error("POST", "/v1/tasks", {}).paths == ["objective"]


@pytest.mark.parametrize(
    "values", list(product(*CONSTRAINTS.values())), ids=lambda values: "-".join(map(str, values))
)
def test_constraints_combine(
    caller: RawCaller, places: dict[str, str], values: tuple[object, ...]
) -> None:
    """Given a combination of the constraints, then the task completes within its budget."""
    constraints = {
        name: places.get(name, value)
        for name, value in zip(CONSTRAINTS, values, strict=True)
        if value
    }
    task = caller.task(TEXT, **constraints)
    assert task["status"] == "completed", task.get("error")
    assert constraints.items() <= task["data"]["constraints"].items()
    assert 0 < task["data"]["cost_usd"] <= 1
    workflow = caller.get(f"/v1/workflows/{task['data']['workflow_id']}")["data"]
    for place in ("endpoint_id", "compute_id"):
        assert workflow[place] == constraints.get(place)


@pytest.fixture(scope="module")
def passed(caller: RawCaller) -> Json:
    """A task whose review passed."""
    return caller.task("A social card with a spoken summary about tidal power")


@section(TASK)
def test_a_completed_task_has_its_fields(caller: RawCaller, passed: Json) -> None:
    """Given a completed task, then its ids name resources, and its cost is its workflow's."""
    data = passed["data"]
    for field, path in (
        ("plan_id", "/v1/plans/pln_"),
        ("workflow_id", "/v1/workflows/wfl_"),
        ("final_artifact_id", "/v1/artifacts/art_"),
    ):
        area, _, prefix = path.rpartition("/")
        assert data[field].startswith(prefix)
        assert caller.get(f"{area}/{data[field]}")["id"] == data[field]
    workflow = caller.get(f"/v1/workflows/{data['workflow_id']}")["data"]
    assert isinstance(data["cost_usd"], float)
    assert data["cost_usd"] == pytest.approx(workflow["cost_usd"], abs=1e-9)


@section(TASK)
@section(STATES)
def test_a_review_that_passed_has_its_fields(passed: Json) -> None:
    """Given a pass, then decision, score, criteria and issues are as in the table."""
    review = passed["data"]["review"]
    assert review["decision"] == "pass"
    assert 0 <= review["score"] <= 1
    criteria = {"objective_alignment", "technical_success", "output_completeness"}
    assert set(review["criteria"]) == criteria
    assert all(0 <= value <= 1 for value in review["criteria"].values())
    assert all(isinstance(issue, str) for issue in review["issues"])
    assert review["recommended_action"] is None
    assert passed["data"]["review_attempts"] == 0


@section(STATES)
def test_a_task_that_passes_goes_through_each_state(caller: RawCaller, passed: Json) -> None:
    """Given a pass, then planning, executing and reviewing lead to completed, in this order."""
    assert list_states(caller, passed) == ["planning", "executing", "reviewing", "completed"]
    assert passed["status"] == passed["data"]["status"] == "completed"


@section(STATES)
@pytest.mark.parametrize("objective", ["A narration about tea", "A video about tea"])
def test_a_plan_that_is_not_executable_blocks(stranger: RawCaller, objective: str) -> None:
    """Given a missing connection or capability, then the task is blocked without a workflow."""
    task = stranger.task(objective)
    assert (task["status"], task["data"]["workflow_id"]) == ("blocked", None)
    assert task["data"]["missing_capabilities"] or task["data"]["missing_connections"]
    assert task["data"]["plan_id"].startswith("pln_")
    assert list_states(stranger, task) == ["planning", "blocked"]


@pytest.fixture
def refused_caller(service: RawCaller) -> Iterator[RawCaller]:
    """A caller whose only vendor refuses every request."""
    account = service.sign_up(NAMES["V1"])
    service.faults.say("openai", *[REFUSED] * ALWAYS)
    yield account
    service.faults.clear()


@section(STATES)
@section(TASK)
@section("Limits")
def test_a_review_is_retried_at_most_twice(refused_caller: RawCaller) -> None:
    """Given work that never passes, then it is run again twice, and the task has failed."""
    task = refused_caller.task("A paragraph about tea")
    assert task["status"] == "failed"
    assert task["error"]["code"] == task["data"]["error"]["code"]
    assert task["data"]["review_attempts"] == 2
    assert task["data"]["final_artifact_id"] is None
    attempt = ["executing", "reviewing"]
    states = ["planning", *attempt, *attempt, *attempt, "failed"]
    assert list_states(refused_caller, task) == states
