"""GPU work on a pod of one's own, on an endpoint of one's own, or where the vendor likes."""

import pytest

from toolkit import Client, RequestError
from toolkit.contract.errors import WorkError

pytestmark = pytest.mark.embedded

GPU = "NVIDIA GeForce RTX 4090"
ASKED = {"prompt": "a lighthouse at dusk", "steps": 2, "width": 256, "height": 256}


def test_a_pod_from_birth_to_death(client: Client) -> None:
    """Given a pod, then it comes up while it is watched, does jobs, and is given back."""
    compute = client.compute.create("easel", GPU)
    assert compute.status == "creating"
    assert compute.record.cost_per_hour_usd > 0
    assert [one.id for one in client.compute.list()] == [compute.id]
    job = client.jobs.create("image", compute.id, ASKED).wait()
    assert (job.provider, job.model, job.record.compute_id) == ("runpod", "pod", compute.id)
    assert job.cost_usd == 0  # the pod is billed by the hour, whatever it does
    assert job.output["width"] == 256
    assert client.artifacts.get(job.artifact_id).record.media_type == "image/png"
    assert [event.type for event in client.jobs.events(job.id)][-1] == "job.completed"
    assert client.compute.get(compute.id).status == "ready"
    gone = client.compute.delete(compute.id)
    assert (gone.status, gone.record.deleted) == ("deleted", True)
    assert list(client.compute.list()) == []
    with pytest.raises(RequestError, match="compute"):
        client.jobs.create("image", compute.id, ASKED)


def test_where_an_image_is_made(client: Client) -> None:
    """Given a pod and an endpoint, then the named one is used, and the vendor's own by default."""
    places = {
        "compute_id": client.compute.create("easel", GPU).id,
        "endpoint_id": client.endpoints.create(name="studio").id,
    }
    made = {
        name: client.runs.create("image.generate", ASKED, **{name: place}).wait()
        for name, place in places.items()
    }
    default = client.runs.create("image.generate", ASKED).wait()
    assert made["compute_id"].model == "pod"
    assert made["compute_id"].record.compute_id == places["compute_id"]
    assert made["endpoint_id"].model not in ("pod", default.model)
    assert default.cost_usd > 0
    first = client.route("image.generate", ASKED, compute_id=places["compute_id"]).record
    assert (first.provider, first.estimated_cost_usd) == ("runpod", 0)
    with pytest.raises(RequestError, match="not on both"):
        client.runs.create("image.generate", ASKED, **places)


@pytest.mark.parametrize("table", ["compute", "endpoints"])
def test_a_place_is_used_by_the_connection_that_rented_it(client: Client, table: str) -> None:
    """Given a newer connection, then work at a place goes by the one that made it, while it lasts.

    Another key may be another account's at the vendor, where the place is not there.
    """
    (renter,) = [one.id for one in client.connections.list() if one.record.provider == "runpod"]
    if table == "compute":
        place = {"compute_id": client.compute.create("easel", GPU).id}
    else:
        place = {"endpoint_id": client.endpoints.create(name="studio").id}
    newer = client.connections.create("runpod", "environment", "OPENAI_API_KEY").id
    run = client.runs.create("image.generate", ASKED, **place).wait()
    assert run.record.connection_id == renter
    assert client.route("image.generate", ASKED, **place).record.connection_id == renter
    if table == "compute":
        job = client.jobs.create("image", place["compute_id"], ASKED, deadline_s=60).wait()
        assert job.record.connection_id == renter
        assert (job.record.options.provider, job.record.options.deadline_s) == ("runpod", 60)
        job = client.jobs.create("image", place["compute_id"], ASKED, provider=newer).wait()
        assert job.record.connection_id == newer  # who pins one is taken at their word
        with pytest.raises(RequestError, match="only that provider can use it") as refused:
            client.jobs.create("image", place["compute_id"], ASKED, provider="openai")
        assert refused.value.code.name == "PROVIDER_NOT_ALLOWED"
    client.connections.delete(renter)
    with pytest.raises(RequestError, match=r"^CREDENTIALS_MISSING:"):
        client.runs.create("image.generate", ASKED, **place)
    equal = client.connections.create("runpod", "environment", "RUNPOD_API_KEY").id
    run = client.runs.create("image.generate", ASKED, **place).wait()
    assert run.record.connection_id == equal


def test_what_a_worker_in_a_pod_refuses(client: Client) -> None:
    """Given an input that the worker refuses, then the job fails with its words."""
    compute = client.compute.create("comfy", GPU, image="example/comfyui:1")
    with pytest.raises(WorkError, match="workflow"):
        client.jobs.create("image", compute.id, ASKED).wait()


def test_a_gpu_that_is_not_offered(client: Client) -> None:
    """Given a GPU that the catalogue has not, then nothing is accepted; it says what there is."""
    with pytest.raises(RequestError) as refused:
        client.compute.create("easel", "NVIDIA Nothing")
    assert refused.value.code.name == "INVALID_REQUEST"
    assert [detail.path for detail in refused.value.details] == ["gpu_type"]
    assert "NVIDIA A40" in refused.value.details[0].message
    assert list(client.compute.list()) == []


def test_a_pod_with_a_volume_and_a_template(client: Client) -> None:
    """Given both, then the pod has them and works, and neither goes before it does."""
    volume = client.storage.create("weights", 20, data_center="US-KS-2")
    template = client.templates.create("worker", "example/sdxl:1", serverless=False)
    compute = client.compute.create("easel", GPU, storage_id=volume.id, template_id=template.id)
    assert compute.error is None
    assert (compute.record.storage_id, compute.record.template_id) == (volume.id, template.id)
    job = client.jobs.create("image", compute.id, ASKED).wait()
    assert job.model == "pod"
    for area, used in ((client.storage, volume), (client.templates, template)):
        with pytest.raises(RequestError, match=compute.id) as refused:
            area.delete(used.id)
        assert refused.value.code.name == "CONFLICT"
    client.compute.delete(compute.id)
    assert client.storage.delete(volume.id).status == "deleted"
    assert client.templates.delete(template.id).status == "deleted"


@pytest.mark.parametrize(
    ("job_type", "compute_id", "path"),
    [("llm", None, "type"), ("nonsense", None, "type"), ("image", "cmp_nope", None)],
)
def test_refused_jobs(
    client: Client, job_type: str, compute_id: str | None, path: str | None
) -> None:
    """Given a type that no pod carries out, or no such pod, then nothing is accepted."""
    compute_id = compute_id or client.compute.create("easel", GPU).id
    with pytest.raises(RequestError) as refused:
        client.jobs.create(job_type, compute_id, ASKED)
    assert refused.value.code.name == ("INVALID_REQUEST" if path else "NOT_FOUND")
    assert [detail.path for detail in refused.value.details] == ([path] if path else [])
    assert list(client.jobs.list()) == []


def test_a_provider_that_does_not_work_in_pods(client: Client) -> None:
    """Given text pinned to the GPU cloud and a pod, then it is refused before it is accepted."""
    compute = client.compute.create("easel", GPU)
    with pytest.raises(RequestError, match="cannot run this in a pod") as refused:
        client.runs.create(
            "llm.generate", {"objective": "Tides."}, provider="runpod", compute_id=compute.id
        )
    assert refused.value.code.name == "PROVIDER_NOT_ALLOWED"
