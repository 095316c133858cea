"""Rented infrastructure: endpoints, computes, storage and templates, and jobs on them."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.contract.conftest import expect_refusal
from tests.contract.raw_http import SMALL_IMAGE
from tests.support.database_pool import open_rows
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
        for lists, chosen in (({"only": newer}, newer), ({"ignore": newer}, renter)):
            job = client.jobs.create("image", compute_id, SMALL_IMAGE, **lists).wait()
            assert (job.provider, job.record.connection_id) == ("runpod", chosen)
        with expect_refusal("PROVIDER_NOT_ALLOWED", "options.provider", match="leave no provider"):
            client.jobs.create("image", compute_id, SMALL_IMAGE, ignore="runpod")
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


def test_prefers_the_template_to_the_image(client: Client) -> None:
    """Given both, then the template is used, because the image is for endpoints without one."""
    template = client.templates.create("worker", "example/sdxl:1")
    endpoint = client.endpoints.create(template_id=template.id, image="example/comfyui:1")
    assert endpoint.record.template_id == template.id
    run = client.runs.create("image.generate", SMALL_IMAGE, endpoint_id=endpoint.id)
    assert run.wait().output


@pytest.mark.parametrize(
    ("fields", "code", "paths"),
    [
        ({"workers_min": 3, "workers_max": 2}, "INVALID_REQUEST", ["workers_min"]),
        ({"gpu_ids": "NONE_9"}, "INVALID_REQUEST", ["gpu_ids"]),
        ({"storage_id": "sto_nope"}, "NOT_FOUND", []),
        ({"template_id": "tpl_nope"}, "NOT_FOUND", []),
    ],
)
def test_rejects_invalid_fields(
    client: Client, fields: dict[str, object], code: str, paths: list[str]
) -> None:
    """Given an invalid field, then it is named, and nothing is stored."""
    with expect_refusal(code, *paths):
        client.endpoints.create(**fields)  # type: ignore[arg-type]
    assert list(client.endpoints.list()) == []


def test_rejects_a_deleted_or_failed_volume(client: Client) -> None:
    """Given a volume that is deleted, or that failed, then no endpoint is created with it."""
    deleted = client.storage.create("weights", 20).delete()
    failed = client.storage.create("weights", 20, data_center="XX-XX-9")
    for volume, code in ((deleted, "NOT_FOUND"), (failed, "CONFLICT")):
        with expect_refusal(code):
            client.endpoints.create(storage_id=volume.id)


def test_shows_no_id_of_the_vendor(
    client: Client, data_dir: Path, find_url: Callable[[Path], str | None]
) -> None:
    """Given infrastructure of each kind and work on it, then no record or event has a vendor id."""
    volume = client.storage.create("weights", 20)
    template = client.templates.create("worker", "example/sdxl:1", serverless=False)
    pod = client.compute.create(
        "easel", "NVIDIA A40", storage_id=volume.id, template_id=template.id
    )
    endpoint = client.endpoints.create("studio", storage_id=volume.id)
    runs = [
        client.runs.create("image.generate", SMALL_IMAGE, endpoint_id=endpoint.id).wait(),
        client.runs.create("image.generate", SMALL_IMAGE, compute_id=pod.id).wait(),
    ]
    areas = (client.storage, client.templates, client.compute, client.endpoints)
    records = [resource.to_dict() for area in areas for resource in area.list()]
    records += [client.jobs.get(run.record.job_id).to_dict() for run in runs]
    records += [event.model_dump() for run in runs for event in client.runs.events(run.id)]
    with open_rows(data_dir, find_url(data_dir)) as database:
        vendor_ids = {
            vendor_id
            for table in ("storage", "templates", "compute", "endpoints")
            for (vendor_id,) in database.execute(f"SELECT vendor_id FROM {table}").fetchall()
        }
    assert len(vendor_ids) == 4
    assert None not in vendor_ids
    text = json.dumps(records, default=str)
    assert [vendor_id for vendor_id in vendor_ids if vendor_id in text] == []


def test_a_volume_is_ready_until_it_is_deleted(client: Client) -> None:
    """Given a volume, then it is ready in its data center, and not listed once it is deleted."""
    volume = client.storage.create("weights", 20, data_center="CA-MTL-1")
    record = volume.record
    assert volume.id.startswith("sto_")
    assert (record.status, record.size_gb, record.data_center) == ("ready", 20, "CA-MTL-1")
    assert client.storage.get(volume.id).record == record
    other = client.storage.create("others", 10)
    assert other.record.data_center == "EU-RO-1"  # the default
    volume.delete()
    assert (volume.status, volume.record.deleted) == ("deleted", True)
    page = client.read("/storage", {"limit": 1})
    assert ([listed["id"] for listed in page["items"]], page["total"]) == ([other.id], 1)
    with pytest.raises(RequestError, match="storage"):
        client.storage.get(volume.id)


def test_a_volume_in_an_unknown_data_center_has_failed(client: Client) -> None:
    """Given an unknown data center, then the volume has failed, and names those that exist."""
    volume = client.storage.create("weights", 20, data_center="XX-XX-9")
    assert volume.status == "failed"
    assert "EU-RO-1" in volume.error.message
    assert volume.delete().status == "deleted"


def test_templates_may_share_a_name(client: Client) -> None:
    """Given a name twice, which the vendor would reject, then both templates are ready."""
    templates = [client.templates.create("worker", "example/worker:1") for _ in range(2)]
    for template in templates:
        assert (template.status, template.record.image) == ("ready", "example/worker:1")
        assert (template.record.serverless, template.record.hidden) == (True, False)
    assert {record.id for record in client.templates.list()} == {t.id for t in templates}


@pytest.mark.parametrize("serverless", [True, False])
def test_rejects_a_template_of_the_other_kind(client: Client, serverless: bool) -> None:
    """Given a template for pods, or for endpoints, then the other kind cannot use it."""
    template = client.templates.create("worker", "example/worker:1", serverless=serverless)
    create: Callable[..., object] = client.endpoints.create
    if serverless:
        create = partial(client.compute.create, gpu_type="NVIDIA A40")
    with expect_refusal("INVALID_REQUEST", "template_id"):
        create("studio", template_id=template.id)
