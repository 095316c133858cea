"""Workflows: how one is asked for, in which order it runs, and what it says when it has ended."""

from datetime import datetime
from itertools import product

import pytest

from tests.contract.raw_http import NAMES, Json, RawCaller
from tests.contract.specification.sections import section
from tests.contract.tasks.scripts import ALWAYS

WORKFLOWS = "Endpoints > Workflows"
WORKFLOW = "Resources and their fields > Workflow (wfl_)"
STATES = "States and transitions > Workflow status"
IMAGE = {"prompt": "a lighthouse", "steps": 2, "width": 256, "height": 256}


def node(node_id: str, *upstream: str, capability: str = "research.gather", **given: str) -> Json:
    """A node as the table has it."""
    made: Json = {"id": node_id, "capability": capability, "input": given or {"topic": "Tea"}}
    return {**made, "depends_on": list(upstream)} if upstream else made


CHAIN = (
    node("facts"),
    node("copy", "facts", capability="text.generate", objective="A line on tea"),
    node("card", "copy", capability="composition.layout", title="Tea"),
)
HOPELESS = node("hopeless", topic="zzzz qqqq xxyyzz")  # nothing in an encyclopedia


def build_failing_workflow(**fields: object) -> Json:
    """A workflow of which one branch fails: with what lies behind it, and one that does not."""
    behind = node("behind", "hopeless", capability="llm.generate", objective="Say it")
    last = node("last", "behind", capability="composition.layout", title="It")
    return {"name": "two branches", "nodes": [HOPELESS, behind, last, node("apart")], **fields}


# --- POST /v1/workflows ---


@section(WORKFLOWS)
@section(STATES)
@section("Resources and their fields > Response envelope")
def test_a_workflow_is_accepted_and_queued(caller: RawCaller) -> None:
    """Given a graph, then 202 with a `wfl_` id and `status: queued`; polling finds the end."""
    answer = caller.send("POST", "/v1/workflows", {"name": "w", "nodes": [node("a")]})
    assert answer.status_code == 202
    assert answer.json()["id"].startswith("wfl_")
    assert answer.json()["status"] == "queued"
    assert caller.poll(f"/v1/workflows/{answer.json()['id']}", "completed", "failed")


@pytest.fixture(scope="module")
def places(caller: RawCaller) -> dict[str, str]:
    """An endpoint and a compute."""
    gpu = caller.get("/v1/catalog/gpus")["data"]["items"][0]["id"]
    made = caller.create("/v1/compute", {"name": "easel", "gpu_type": gpu})
    return {"endpoint_id": caller.create("/v1/endpoints", {})["id"], "compute_id": made["id"]}


@section(WORKFLOWS)
@pytest.mark.parametrize(
    ("retries", "endpoint", "compute"), list(product([None, 0, 3], [False, True], [False, True]))
)
def test_the_optional_fields_go_together(
    caller: RawCaller, places: dict[str, str], retries: int | None, endpoint: bool, compute: bool
) -> None:
    """Given a combination of the optional fields, then the workflow has them, and a GPU step runs
    on the endpoint, else on the compute, else where the vendor likes.
    """
    fields: Json = {} if retries is None else {"max_retries": retries}
    fields |= {"endpoint_id": places["endpoint_id"]} if endpoint else {}
    fields |= {"compute_id": places["compute_id"]} if compute else {}
    step = {"id": "picture", "capability": "image.generate", "input": IMAGE}
    done = caller.workflow(step, **fields)
    assert done["status"] == "completed", done
    assert fields.items() <= done["data"].items()
    job = caller.get(f"/v1/jobs/{done['data']['nodes'][0]['job_id']}")["data"]
    if endpoint or compute:
        assert job["model"] == ("serverless" if endpoint else "pod")
    else:
        assert job["model"] not in ("serverless", "pod")


@section(WORKFLOWS)
@pytest.mark.parametrize("nearer", ["endpoint_id", "compute_id"])
def test_a_node_may_say_where_it_runs(
    caller: RawCaller, places: dict[str, str], nearer: str
) -> None:
    """Given a place on the workflow and another on its node, then the node's own counts."""
    other = ({"endpoint_id", "compute_id"} - {nearer}).pop()
    step = {"id": "picture", "capability": "image.generate", "input": IMAGE}
    step["options"] = {nearer: places[nearer]}
    done = caller.workflow(step, **{other: places[other]})
    job = caller.get(f"/v1/jobs/{done['data']['nodes'][0]['job_id']}")["data"]
    assert job["model"] == {"endpoint_id": "serverless", "compute_id": "pod"}[nearer]


@section(WORKFLOWS)
@pytest.mark.parametrize("place", ["endpoint_id", "compute_id"])
def test_a_place_that_is_not_there_is_not_found(caller: RawCaller, place: str) -> None:
    """Given a place that nobody made, then the workflow and the task that name it are refused."""
    missing = {"endpoint_id": "ep_", "compute_id": "cmp_"}[place] + "01m7xrhddbvq3n2zjx4fe01326"
    for path, body in (
        ("/v1/workflows", {"name": "w", "nodes": [node("a")], place: missing}),
        ("/v1/tasks", {"objective": "Tea", "constraints": {place: missing}}),
    ):
        answer = caller.send("POST", path, body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "NOT_FOUND")


@section("Limits")
@section(WORKFLOW)
@pytest.mark.parametrize("retries", [-1, 4, 1.0, "1", True])
def test_other_max_retries_are_refused(caller: RawCaller, retries: object) -> None:
    """Given what is not a whole number in the limit, then it is named."""
    body = {"name": "w", "max_retries": retries, "nodes": [node("a")]}
    answer = caller.send("POST", "/v1/workflows", body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_REQUEST")
    assert [one["path"] for one in answer.json()["error"]["details"]] == ["max_retries"]


@section(WORKFLOW)
@pytest.mark.parametrize("capability", ["no.such", "image", "research.gather@2", "Research.gather"])
def test_a_nodes_capability_must_exist(caller: RawCaller, capability: str) -> None:
    """Given a capability that is not in the list, then the workflow is not accepted."""
    body = {"name": "w", "nodes": [node("a", capability=capability, x="1")]}
    assert caller.send("POST", "/v1/workflows", body).json()["error"]["code"] == "NOT_FOUND"


@section(WORKFLOW)
@pytest.mark.parametrize("name", ["research.gather", "research.gather@1"])
def test_a_capability_may_name_its_version(caller: RawCaller, name: str) -> None:
    """Given a capability with or without its version, then it runs."""
    assert caller.workflow(node("a", capability=name, topic="Tea"))["status"] == "completed"


@section(WORKFLOW)
@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("id", 1),
        ("id", ""),
        ("capability", 1),
        ("input", []),
        ("input", "Tea"),
        ("depends_on", "a"),
        ("depends_on", [1]),
    ],
)
def test_a_nodes_fields_have_their_types(caller: RawCaller, field: str, wrong: object) -> None:
    """Given a node with a field of another type, then it is named."""
    answer = caller.send(
        "POST", "/v1/workflows", {"name": "w", "nodes": [node("a") | {field: wrong}]}
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_REQUEST")
    assert answer.json()["error"]["details"][0]["path"].startswith(f"nodes.0.{field}")


# --- What has completed ---


@pytest.fixture(scope="module")
def done(caller: RawCaller) -> Json:
    """Three nodes in a row, completed."""
    return caller.workflow(*CHAIN)


@pytest.fixture(scope="module")
def jobs(caller: RawCaller, done: Json) -> dict[str, Json]:
    """Their jobs, by node id."""
    nodes = done["data"]["nodes"]
    return {one["id"]: caller.get(f"/v1/jobs/{one['job_id']}")["data"] for one in nodes}


@section(WORKFLOW)
@section(STATES)
def test_completed_nodes_have_their_fields(done: Json) -> None:
    """Given a completed workflow, then each node has status, job, artifact and retry count."""
    assert done["status"] == "completed"
    assert [one["id"] for one in done["data"]["nodes"]] == ["facts", "copy", "card"]
    for one in done["data"]["nodes"]:
        assert (one["status"], one["retry_count"]) == ("completed", 0)
        assert one["job_id"].startswith("job_")
        assert one["artifact_id"].startswith("art_")


@section(WORKFLOW)
def test_the_final_artifact_is_the_last_nodes(done: Json) -> None:
    """Given a completed workflow, then `final_artifact_id` is the artifact of the last node."""
    assert done["data"]["final_artifact_id"] == done["data"]["nodes"][-1]["artifact_id"]


@section(WORKFLOW)
def test_the_latency_is_from_submit_to_completion(done: Json) -> None:
    """Given a completed workflow, then `latency_ms` is the wall time between its two times.

    The two clocks are not read in the same instant, and on a busy machine not soon after either.
    """
    ends = [datetime.fromisoformat(done["data"][f"{when}_at"]) for when in ("created", "completed")]
    assert done["data"]["latency_ms"] == pytest.approx(
        (ends[1] - ends[0]).total_seconds() * 1000, abs=20, rel=0.2
    )


@section(WORKFLOW)
def test_nodes_run_in_dependency_order(jobs: dict[str, Json]) -> None:
    """Given a chain, then job, then artifact, then the next job: none starts before."""
    for earlier, later in (("facts", "copy"), ("copy", "card")):
        assert jobs[earlier]["completed_at"] <= jobs[later]["created_at"]


@section(WORKFLOW)
@section("Limits")
@pytest.mark.parametrize("retries", [0, 1, 2, 3])
def test_a_node_is_retried_as_often_as_said(
    service: RawCaller, caller: RawCaller, retries: int
) -> None:
    """Given answers with nothing in them, then a node is run again up to `max_retries` times."""
    alone = service.sign_up(NAMES["V1"])
    service.faults.say("openai", *[" "] * ALWAYS)
    try:
        step = node("a", capability="llm.generate", objective="Tea")
        ended = alone.workflow(step, max_retries=retries)
    finally:
        service.faults.clear()
    assert ended["status"] == "failed"
    assert ended["data"]["nodes"][0]["retry_count"] == retries
    assert ended["data"]["retries"] == retries


# --- What has failed ---


@pytest.fixture(scope="module")
def failed(caller: RawCaller) -> Json:
    """A workflow of which one branch failed."""
    made = caller.create("/v1/workflows", build_failing_workflow())
    return caller.poll(f"/v1/workflows/{made['id']}", "completed", "failed")


@section(STATES)
@section("Errors")
def test_a_failed_workflow_has_error_code_on_the_envelope(failed: Json) -> None:
    """Given a node that failed, then so has the workflow, with a code on the envelope."""
    assert failed["status"] == "failed"
    by_id = {one["id"]: one for one in failed["data"]["nodes"]}
    assert failed["error"]["code"] == by_id["hopeless"]["error"]["code"]


@section(STATES)
@section("Errors")
@pytest.mark.parametrize("behind", ["behind", "last"])
def test_what_lies_behind_is_cancelled(failed: Json, behind: str) -> None:
    """Given a failure upstream, then a node not yet started is cancelled, with that code."""
    one = {one["id"]: one for one in failed["data"]["nodes"]}[behind]
    assert (one["status"], one["error"]["code"]) == ("cancelled", "UPSTREAM_FAILED")
    assert one["started_at"] is None
    assert one["artifact_id"] is None


@section(STATES)
def test_what_does_not_lie_behind_is_done(failed: Json) -> None:
    """Given a failure in one branch, then another completes."""
    one = {one["id"]: one for one in failed["data"]["nodes"]}["apart"]
    assert (one["status"], one["retry_count"]) == ("completed", 0)


@section(WORKFLOW)
def test_the_cost_is_the_sum_of_its_jobs(done: Json, jobs: dict[str, Json]) -> None:
    """Given completed jobs, then `cost_usd` is the sum of theirs, and of the nodes'."""
    total = sum(job["cost_usd"] for job in jobs.values())
    assert total > 0
    assert done["data"]["cost_usd"] == pytest.approx(total, abs=1e-9)
    assert sum(n["cost_usd"] for n in done["data"]["nodes"]) == pytest.approx(total, abs=1e-9)


@section(WORKFLOW)
def test_dependents_receive_from_artifacts_in_their_input(
    done: Json, jobs: dict[str, Json]
) -> None:
    """Given a chain, then each job's input maps its upstream node to that one's artifact."""
    made = {one["id"]: one["artifact_id"] for one in done["data"]["nodes"]}
    assert "from_artifacts" not in jobs["facts"]["input"]
    assert jobs["copy"]["input"]["from_artifacts"] == {"facts": made["facts"]}
    assert jobs["card"]["input"]["from_artifacts"] == {"copy": made["copy"]}


@section(WORKFLOW)
def test_many_upstream_artifacts_are_all_mapped(caller: RawCaller) -> None:
    """Given a node behind two others, then its job's input maps both."""
    join = node("join", "a", "b", capability="llm.generate", objective="Compare them")
    ended = caller.workflow(node("a"), node("b", topic="Coffee"), join)["data"]
    made = {one["id"]: one["artifact_id"] for one in ended["nodes"]}
    job = caller.get(f"/v1/jobs/{ended['nodes'][2]['job_id']}")["data"]
    assert job["input"]["from_artifacts"] == {"a": made["a"], "b": made["b"]}
