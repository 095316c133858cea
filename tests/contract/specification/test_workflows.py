"""Workflows: the request, the order of nodes, and the record at the end."""

from datetime import datetime
from itertools import product

import pytest

from tests.contract.raw_http import NAMES, SMALL_IMAGE, UNKNOWN_ULID, Json, RawCaller
from tests.contract.specification.sections import section
from tests.contract.tasks.scripts import ALWAYS

pytestmark = [section("Endpoints > Workflows")]

WORKFLOW = "Resources and their fields > Workflow (wfl_)"
STATES = "States and transitions > Workflow status"


def node(node_id: str, *upstream: str, capability: str = "research.gather", **input: str) -> Json:
    """Return a node as the table defines it."""
    fields: Json = {"id": node_id, "capability": capability, "input": input or {"topic": "Tea"}}
    return {**fields, "depends_on": list(upstream)} if upstream else fields


CHAIN = (
    node("facts", capability="research.gather@1"),
    node("copy", "facts", capability="text.generate", objective="A line on tea"),
    node("card", "copy", capability="composition.layout", title="Tea"),
)
IMAGE_NODE: Json = {"id": "picture", "capability": "image.generate", "input": SMALL_IMAGE}
FAILING = (
    node("hopeless", topic="zzzz qqqq xxyyzz"),  # no article of the encyclopedia
    node("behind", "hopeless", capability="llm.generate", objective="Say it"),
    node("last", "behind", capability="composition.layout", title="It"),
    node("apart"),
)


@section(STATES)
@section("Resources and their fields > Response envelope")
def test_accepts_and_queues_a_workflow(caller: RawCaller) -> None:
    """Given a graph, then 202 with a `wfl_` id and `status: queued`; polling reaches the end."""
    response = caller.send("POST", "/v1/workflows", {"name": "w", "nodes": [node("a")]})
    assert response.status_code == 202
    assert response.json()["id"].startswith("wfl_")
    assert response.json()["status"] == "queued"
    assert caller.poll(f"/v1/workflows/{response.json()['id']}", "completed", "failed")


def read_model(caller: RawCaller, workflow: Json) -> str:
    """Return the model of the job of the first node."""
    job_id = workflow["data"]["nodes"][0]["job_id"]
    return str(caller.get(f"/v1/jobs/{job_id}")["data"]["model"])


@pytest.mark.parametrize(
    ("retries", "endpoint", "compute"), list(product([None, 0, 3], [False, True], [False, True]))
)
def test_optional_fields_combine(
    caller: RawCaller, places: dict[str, str], retries: int | None, endpoint: bool, compute: bool
) -> None:
    """Given optional fields, then a GPU step prefers the endpoint, then the compute."""
    fields: Json = {} if retries is None else {"max_retries": retries}
    fields |= {"endpoint_id": places["endpoint_id"]} if endpoint else {}
    fields |= {"compute_id": places["compute_id"]} if compute else {}
    workflow = caller.workflow(IMAGE_NODE, **fields)
    assert workflow["status"] == "completed", workflow
    assert fields.items() <= workflow["data"].items()
    model = read_model(caller, workflow)
    if endpoint or compute:
        assert model == ("serverless" if endpoint else "pod")
    else:
        assert model not in ("serverless", "pod")


@pytest.mark.parametrize(
    ("place", "workflow_place", "model"),
    [("endpoint_id", "compute_id", "serverless"), ("compute_id", "endpoint_id", "pod")],
)
def test_a_node_overrides_the_place_of_its_workflow(
    caller: RawCaller, places: dict[str, str], place: str, workflow_place: str, model: str
) -> None:
    """Given a place on the workflow and another on its node, then the place of the node counts."""
    step = IMAGE_NODE | {"options": {place: places[place]}}
    workflow = caller.workflow(step, **{workflow_place: places[workflow_place]})
    assert read_model(caller, workflow) == model


@pytest.mark.parametrize(("place", "prefix"), [("endpoint_id", "ep_"), ("compute_id", "cmp_")])
def test_an_unknown_place_is_not_found(caller: RawCaller, place: str, prefix: str) -> None:
    """Given an unknown place, then a workflow and a task that name it are rejected."""
    place_id = prefix + UNKNOWN_ULID
    for path, body in (
        ("/v1/workflows", {"name": "w", "nodes": [node("a")], place: place_id}),
        ("/v1/tasks", {"objective": "Tea", "constraints": {place: place_id}}),
    ):
        assert caller.read_error("POST", path, body)[:2] == (404, "NOT_FOUND")


@section("Limits")
@section(WORKFLOW)
@pytest.mark.parametrize("retries", [-1, 4, 1.0, "1", True])
def test_rejects_other_max_retries(caller: RawCaller, retries: object) -> None:
    """Given a value that is no whole number within the limit, then the field is named."""
    body = {"name": "w", "max_retries": retries, "nodes": [node("a")]}
    error = caller.read_error("POST", "/v1/workflows", body)
    assert error == (400, "INVALID_REQUEST", ["max_retries"])


@section(WORKFLOW)
def test_a_workflow_needs_a_node(caller: RawCaller) -> None:
    """Given no nodes, then the field is named."""
    error = caller.read_error("POST", "/v1/workflows", {"name": "w", "nodes": []})
    assert (error.status, error.paths) == (400, ["nodes"])


INVALID_FIELDS = [
    *(({"id": value}, "INVALID_REQUEST", "nodes.0.id") for value in (1, "")),
    *(({"input": value}, "INVALID_REQUEST", "nodes.0.input") for value in ([], "Tea")),
    *(({"depends_on": value}, "INVALID_REQUEST", "nodes.0.depends_on") for value in ("a", [1])),
    ({"capability": 1}, "INVALID_REQUEST", "nodes.0.capability"),
    *(({"capability": name}, "NOT_FOUND", "") for name in ("no.such", "image", "image.generate@2")),
]


@section(WORKFLOW)
@pytest.mark.parametrize(("fields", "code", "path"), INVALID_FIELDS)
def test_rejects_an_invalid_node(caller: RawCaller, fields: Json, code: str, path: str) -> None:
    """Given a node with a field of another type, or an unknown capability, then it is rejected."""
    body = {"name": "w", "nodes": [node("a") | fields]}
    error = caller.read_error("POST", "/v1/workflows", body)
    assert error.code == code
    assert "".join(error.paths[:1]).startswith(path)


@pytest.fixture(scope="module")
def completed(caller: RawCaller) -> Json:
    """Three nodes in a row, completed."""
    return caller.workflow(*CHAIN)


@pytest.fixture(scope="module")
def jobs(caller: RawCaller, completed: Json) -> dict[str, Json]:
    """Jobs of the completed workflow, by node id."""
    return {
        record["id"]: caller.get(f"/v1/jobs/{record['job_id']}")["data"]
        for record in completed["data"]["nodes"]
    }


@section(WORKFLOW)
@section(STATES)
def test_completed_nodes_have_their_fields(completed: Json) -> None:
    """Given a completed workflow, then each node has status, job, artifact and retry count."""
    nodes = completed["data"]["nodes"]
    assert completed["status"] == "completed"
    assert [record["id"] for record in nodes] == ["facts", "copy", "card"]
    for record in nodes:
        assert (record["status"], record["retry_count"]) == ("completed", 0)
        assert record["job_id"].startswith("job_")
        assert record["artifact_id"].startswith("art_")
    assert completed["data"]["final_artifact_id"] == nodes[-1]["artifact_id"]


@section(WORKFLOW)
def test_the_latency_is_from_submit_to_completion(completed: Json) -> None:
    """Given a completed workflow, then `latency_ms` is the wall time between its two times.

    The tolerance is there because the two clocks are not read in the same instant.
    """
    created_at, completed_at = (
        datetime.fromisoformat(completed["data"][f"{event}_at"])
        for event in ("created", "completed")
    )
    assert completed["data"]["latency_ms"] == pytest.approx(
        (completed_at - created_at).total_seconds() * 1000, abs=20, rel=0.2
    )


@section(WORKFLOW)
@section("Limits")
@pytest.mark.parametrize("retries", [0, 1, 2, 3])
def test_retries_a_node_up_to_max_retries(
    service: RawCaller, caller: RawCaller, retries: int
) -> None:
    """Given empty answers, then a node is run again up to `max_retries` times."""
    account = service.sign_up(NAMES["V1"])
    service.faults.say("openai", *[" "] * ALWAYS)
    try:
        step = node("a", capability="llm.generate", objective="Tea")
        workflow = account.workflow(step, max_retries=retries)
    finally:
        service.faults.clear()
    assert workflow["status"] == "failed"
    assert workflow["data"]["nodes"][0]["retry_count"] == retries
    assert workflow["data"]["retries"] == retries


@section(WORKFLOW)
def test_the_cost_is_the_sum_of_its_jobs(completed: Json, jobs: dict[str, Json]) -> None:
    """Given completed jobs, then `cost_usd` is the sum of their costs, and of the nodes'."""
    data = completed["data"]
    total = sum(job["cost_usd"] for job in jobs.values())
    assert total > 0
    assert data["cost_usd"] == pytest.approx(total, abs=1e-9)
    assert sum(record["cost_usd"] for record in data["nodes"]) == pytest.approx(total, abs=1e-9)


@section(WORKFLOW)
def test_dependents_run_with_from_artifacts_in_their_input(
    completed: Json, jobs: dict[str, Json]
) -> None:
    """Given a chain, then each job starts after its upstream job, with the artifact of that job."""
    for earlier, later in (("facts", "copy"), ("copy", "card")):
        assert jobs[earlier]["completed_at"] <= jobs[later]["created_at"]
    artifacts = {record["id"]: record["artifact_id"] for record in completed["data"]["nodes"]}
    assert "from_artifacts" not in jobs["facts"]["input"]
    assert jobs["copy"]["input"]["from_artifacts"] == {"facts": artifacts["facts"]}
    assert jobs["card"]["input"]["from_artifacts"] == {"copy": artifacts["copy"]}


@section(WORKFLOW)
def test_maps_all_upstream_artifacts(caller: RawCaller) -> None:
    """Given a node with two upstream nodes, then its job's input maps both."""
    join = node("join", "a", "b", capability="llm.generate", objective="Compare them")
    nodes = caller.workflow(node("a"), node("b", topic="Coffee"), join)["data"]["nodes"]
    artifacts = {record["id"]: record["artifact_id"] for record in nodes}
    job = caller.get(f"/v1/jobs/{nodes[2]['job_id']}")["data"]
    assert job["input"]["from_artifacts"] == {"a": artifacts["a"], "b": artifacts["b"]}


@section(STATES)
@section("Errors")
def test_cancels_the_dependents_of_a_failed_node(caller: RawCaller) -> None:
    """Given a node that fails, then its dependents are cancelled, and another branch completes.

    The workflow has failed, with error.code on its envelope.
    """
    workflow = caller.workflow(*FAILING)
    nodes = {record["id"]: record for record in workflow["data"]["nodes"]}
    assert workflow["status"] == "failed"
    assert workflow["error"]["code"] == nodes["hopeless"]["error"]["code"]
    for node_id in ("behind", "last"):
        record = nodes[node_id]
        assert (record["status"], record["error"]["code"]) == ("cancelled", "UPSTREAM_FAILED")
        assert record["started_at"] is None
        assert record["artifact_id"] is None
    assert (nodes["apart"]["status"], nodes["apart"]["retry_count"]) == ("completed", 0)
