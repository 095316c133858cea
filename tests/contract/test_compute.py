"""GPU work on a pod of the caller, on an endpoint of the caller, or at the vendor's choice."""

import pytest

from tests.contract.conftest import expect_refusal
from tests.contract.raw_http import SMALL_IMAGE
from toolkit import Client, RequestError
from toolkit.contract.errors import WorkError

pytestmark = pytest.mark.embedded

GPU = "NVIDIA GeForce RTX 4090"


def test_a_pod_runs_jobs_until_it_is_deleted(client: Client) -> None:
    """Given a pod, then it starts while it is watched, runs jobs, and is deleted."""
    compute = client.compute.create("easel", GPU)
    assert compute.status == "creating"
    assert compute.record.cost_per_hour_usd > 0
    assert [record.id for record in client.compute.list()] == [compute.id]
    job = client.jobs.create("image", compute.id, SMALL_IMAGE).wait()
    assert (job.provider, job.model, job.record.compute_id) == ("runpod", "pod", compute.id)
    assert job.cost_usd == 0  # because the pod is billed by the hour
    assert job.output["width"] == 256
    assert client.artifacts.get(job.artifact_id).record.media_type == "image/png"
    assert [event.type for event in client.jobs.events(job.id)][-1] == "job.completed"
    assert compute.refresh().status == "ready"
    assert compute.delete() is compute
    assert (compute.status, compute.record.deleted) == ("deleted", True)
    assert list(client.compute.list()) == []
    with pytest.raises(RequestError, match="compute"):
        client.jobs.create("image", compute.id, SMALL_IMAGE)


@pytest.mark.parametrize("table", ["compute", "endpoints"])
def test_uses_a_place_by_the_connection_that_rented_it(client: Client, table: str) -> None:
    """Given a newer connection, then work at a place uses the connection that rented it.

    Another key may be of another account at the vendor, which does not have the place.
    """
    (renter,) = [c.id for c in client.connections.list() if c.record.provider == "runpod"]
    if table == "compute":
        place = {"compute_id": client.compute.create("easel", GPU).id}
    else:
        place = {"endpoint_id": client.endpoints.create(name="studio").id}
    newer = client.connections.create("runpod", "environment", "OPENAI_API_KEY").id
    run = client.runs.create("image.generate", SMALL_IMAGE, **place).wait()
    assert run.record.connection_id == renter
    assert client.route("image.generate", SMALL_IMAGE, **place).record.connection_id == renter
    if table == "compute":
        compute_id = place["compute_id"]
        assert run.model == "pod"
        assert client.route("image.generate", SMALL_IMAGE, **place).record.estimated_cost_usd == 0
        with pytest.raises(RequestError, match="not on both"):
            client.runs.create("image.generate", SMALL_IMAGE, **place, endpoint_id="ep_nope")
        job = client.jobs.create("image", compute_id, SMALL_IMAGE, deadline_s=60).wait()
        assert job.record.connection_id == renter
        assert (job.record.options.provider, job.record.options.deadline_s) == ("runpod", 60)
        job = client.jobs.create("image", compute_id, SMALL_IMAGE, provider=newer).wait()
        assert job.record.connection_id == newer  # because it is pinned
        with expect_refusal(
            "PROVIDER_NOT_ALLOWED", "options.provider", match="only that provider can use it"
        ):
            client.jobs.create("image", compute_id, SMALL_IMAGE, provider="openai")
    client.connections.delete(renter)
    with pytest.raises(RequestError, match=r"^CREDENTIALS_MISSING:"):
        client.runs.create("image.generate", SMALL_IMAGE, **place)
    equal = client.connections.create("runpod", "environment", "RUNPOD_API_KEY").id
    run = client.runs.create("image.generate", SMALL_IMAGE, **place).wait()
    assert run.record.connection_id == equal


def test_a_job_reports_the_refusal_of_its_worker(client: Client) -> None:
    """Given an input that the worker refuses, then the job fails with the worker's message."""
    compute = client.compute.create("comfy", GPU, image="example/comfyui:1")
    with pytest.raises(WorkError, match="workflow"):
        client.jobs.create("image", compute.id, SMALL_IMAGE).wait()


def test_rejects_an_unknown_gpu(client: Client) -> None:
    """Given a GPU that is not in the catalog, then the error names those that are."""
    with expect_refusal("INVALID_REQUEST", "gpu_type", match="NVIDIA A40"):
        client.compute.create("easel", "NVIDIA Nothing")
    assert list(client.compute.list()) == []


def test_a_pod_keeps_its_volume_and_template(client: Client) -> None:
    """Given a pod with both, then it works, and neither can be deleted before the pod."""
    volume = client.storage.create("weights", 20, data_center="US-KS-2")
    template = client.templates.create("worker", "example/sdxl:1", serverless=False)
    compute = client.compute.create("easel", GPU, storage_id=volume.id, template_id=template.id)
    assert compute.error is None
    assert (compute.record.storage_id, compute.record.template_id) == (volume.id, template.id)
    assert client.jobs.create("image", compute.id, SMALL_IMAGE).wait().model == "pod"
    for resource in (volume, template):
        with expect_refusal("CONFLICT", match=compute.id):
            resource.delete()
    compute.delete()
    for resource in (volume, template):
        assert resource.delete().status == "deleted"


@pytest.mark.parametrize("job_type", ["llm", "nonsense"])
def test_rejects_a_job_that_no_pod_runs(client: Client, job_type: str) -> None:
    """Given a type that no pod runs, then no job is stored."""
    compute = client.compute.create("easel", GPU)
    with expect_refusal("INVALID_REQUEST", "type"):
        client.jobs.create(job_type, compute.id, SMALL_IMAGE)
    assert list(client.jobs.list()) == []


def test_rejects_a_provider_that_has_no_pods_for_a_capability(client: Client) -> None:
    """Given text pinned to the GPU cloud and a pod, then the run is rejected."""
    place = {"provider": "runpod", "compute_id": client.compute.create("easel", GPU).id}
    with expect_refusal(
        "PROVIDER_NOT_ALLOWED", "options.compute_id", match="cannot run this in a pod"
    ):
        client.runs.create("llm.generate", {"objective": "Tides."}, **place)
    with expect_refusal("NOT_FOUND"):
        client.jobs.create("image", "cmp_nope", SMALL_IMAGE)
