"""RunPod's management API: endpoints, pods, templates, network volumes and the catalogue."""

from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import httpx
import pytest

from tests.vendors.conftest import SECRET, VENDORS, VendorDrive, access, ok
from tests.vendors.test_on_sandbox import SandboxDriver
from toolkit.contract.errors import ErrorCode
from toolkit.plugins import Operation, ProviderError, Reply
from toolkit.plugins.infrastructure import (
    EndpointCreation,
    EndpointDeletion,
    EndpointListing,
    GpuListing,
    GpuOffer,
    PodCreation,
    PodDeletion,
    PodListing,
    PodReading,
    ResourceState,
    TemplateCreation,
    TemplateDeletion,
    TemplateListing,
    VolumeCreation,
    VolumeDeletion,
    VolumeListing,
)
from toolkit.sandbox import create_app

GPU = "NVIDIA GeForce RTX 4090"
MADE: dict[str, Any] = {
    "id": "ep9k2",
    "name": "pictures",
    "gpu": {"pools": ["ADA_24"], "count": 1},
    "workers": {"min": 0, "max": 1},
    "requestUrls": {"run": "https://evil.example/run"},
}
CREATION = EndpointCreation(name="pictures", gpu_pool="ADA_24", image="example/worker:1")
TEMPLATE: dict[str, Any] = {
    "id": "tpl1",
    "name": "shared",
    "image": "example/shared:2",
    "args": "--fast",
    "disk": 30,
    "ports": ["8000/http"],
    "env": {"MODE": "fast"},
    "registry": None,
    "mounts": {},
    "serverless": True,
    "public": False,
    "category": "NVIDIA",
    "startSsh": True,
    "startJupyter": True,
    "allowedCudaVersions": ["12.8"],
}


def infrastructure(operation: Operation[Any]) -> Any:
    """RunPod's flow for an operation on infrastructure."""
    return VENDORS["runpod"].infrastructure[operation.kind](operation, access("runpod", "image"))


def build_created_answer(body: dict[str, Any]) -> httpx.Response:
    """HTTP 201 with JSON."""
    return httpx.Response(201, json=body)


def problem(status: int, detail: str = "No.") -> httpx.Response:
    """A failure in the management API's shape."""
    body = {"title": "Problem", "status": status, "detail": detail}
    return httpx.Response(status, json=body, headers={"content-type": "application/problem+json"})


def list_sent_requests(drive: VendorDrive) -> list[str]:
    """Method and path of every request."""
    return [f"{request.method} {request.url.path}" for request in drive.requests]


def test_an_image_is_run(drive: VendorDrive) -> None:
    """Given an image, then the endpoint is asked for with it, and no template is made."""
    state = drive(infrastructure(CREATION), build_created_answer(MADE))
    assert list_sent_requests(drive) == ["POST /v2/serverless"]
    assert drive.body() == {
        "name": "pictures",
        "type": "QUEUE",
        "scaling": {"type": "QUEUE_DELAY", "queueDelay": 4},
        "gpu": {"pools": ["ADA_24"], "count": 1},
        "workers": {"min": 0, "max": 1},
        "image": "example/worker:1",
    }
    assert state == ResourceState(vendor_id="ep9k2", name="pictures")
    assert all(r.url.host == "api.runpod.io" for r in drive.requests)
    assert all(r.headers["authorization"] == f"Bearer {SECRET}" for r in drive.requests)


def test_a_template_is_read_and_never_bound(drive: VendorDrive) -> None:
    """Given a template and volumes, then the endpoint is made of what the template says."""
    creation = EndpointCreation(
        name="pictures", gpu_pool="ADA_24", workers_max=3, template_id="tpl1", volume_ids=("v1",)
    )
    drive(infrastructure(creation), ok(TEMPLATE), build_created_answer(MADE))
    assert list_sent_requests(drive) == ["GET /v2/templates/tpl1", "POST /v2/serverless"]
    body = drive.body()
    assert "templateId" not in body
    assert {name: body[name] for name in ("image", "args", "disk", "ports", "env")} == {
        name: TEMPLATE[name] for name in ("image", "args", "disk", "ports", "env")
    }
    assert "registry" not in body
    assert body["gpu"]["allowedCudaVersions"] == ["12.8"]
    assert body["networkVolumes"] == ["v1"]
    assert body["workers"] == {"min": 0, "max": 3}


def test_neither_image_nor_template(drive: VendorDrive) -> None:
    """Given no image, the vendor's file chooses one."""
    drive(
        infrastructure(EndpointCreation(name="pictures", gpu_pool="ADA_24")),
        build_created_answer(MADE),
    )
    assert drive.body()["image"] == "runpod/worker-sdxl:latest"


@pytest.mark.parametrize("answers", [[problem(404)], [ok(TEMPLATE), problem(422)]])
def test_a_refusal_leaves_the_template_alone(
    drive: VendorDrive, answers: list[httpx.Response]
) -> None:
    """Given a refusal with the caller's own template, that template is left alone."""
    creation = EndpointCreation(name="pictures", gpu_pool="X", template_id="tpl1")
    with pytest.raises(ProviderError) as caught:
        drive(infrastructure(creation), *answers)
    assert caught.value.code is ErrorCode.PROVIDER_REJECTED
    assert not any(line.startswith("DELETE") for line in list_sent_requests(drive))


def test_a_refusal_tells_what_is_wrong(drive: VendorDrive) -> None:
    """Given a refusal with a list of what is wrong, then it is told with it."""
    body = {"title": "No", "status": 422, "detail": "It does not fit.", "errors": ["a: b", "c: d"]}
    with pytest.raises(ProviderError, match="It does not fit: a: b; c: d"):
        drive(infrastructure(CREATION), httpx.Response(422, json=body))


@pytest.mark.parametrize("operation", [CREATION, EndpointDeletion(vendor_id="ep9k2")])
def test_what_cannot_be_done_as_things_stand(drive: VendorDrive, operation: Operation[Any]) -> None:
    """Given 409, then it is a refusal for good, and no outage."""
    with pytest.raises(ProviderError, match="while it starts") as caught:
        drive(infrastructure(operation), problem(409, "Not while it starts."))
    assert (caught.value.code, caught.value.retryable) == (ErrorCode.PROVIDER_REJECTED, False)


def test_endpoints_are_listed(drive: VendorDrive) -> None:
    """Given the vendor's list, then each has its id and name, and nothing more is asked."""
    answer = ok({"endpoints": [MADE, {"id": "ep3", "name": "texts -fb"}, "odd"]})
    listed = drive(infrastructure(EndpointListing()), answer)
    assert [(one.vendor_id, one.name) for one in listed.items] == [
        ("ep9k2", "pictures"),
        ("ep3", "texts -fb"),
    ]
    assert list_sent_requests(drive) == ["GET /v2/serverless"]


@pytest.mark.parametrize("answer", [httpx.Response(204), problem(404)], ids=["deleted", "gone"])
@pytest.mark.parametrize(
    ("operation", "path"),
    [
        (EndpointDeletion(vendor_id="ep9k2"), "/v2/serverless/ep9k2"),
        (PodDeletion(vendor_id="p1"), "/v2/pods/p1"),
        (TemplateDeletion(vendor_id="t1"), "/v2/templates/t1"),
        (VolumeDeletion(vendor_id="v1"), "/v2/network-volumes/v1"),
    ],
)
def test_deletion(
    drive: VendorDrive, answer: httpx.Response, operation: Operation[Any], path: str
) -> None:
    """Given a resource, it alone is deleted; what is gone already is no failure."""
    assert isinstance(drive(infrastructure(operation), answer), Reply)
    assert list_sent_requests(drive) == [f"DELETE {path}"]


@pytest.mark.parametrize("status", [401, 409, 500])
@pytest.mark.parametrize("operation", [EndpointDeletion(vendor_id="ep9k2"), VolumeListing()])
def test_a_failure_is_told(drive: VendorDrive, operation: Operation[Any], status: int) -> None:
    """Given any other refusal of a deletion or a listing, it is told."""
    with pytest.raises(ProviderError) as caught:
        drive(infrastructure(operation), problem(status))
    assert caught.value.status == status


def test_catalogue(drive: VendorDrive) -> None:
    """Given the vendor's catalogue, each GPU has its pool, memory and dollars per hour."""
    listed = {
        "gpus": [
            {
                "id": "NVIDIA GeForce RTX 4090",
                "name": "RTX 4090",
                "pool": "ADA_24",
                "memory": 24,
                "price": {"secure": 0.69, "community": 0.34, "serverless": None},
            },
            {"id": "NVIDIA X", "pool": None},
            {"name": "nameless"},
            "odd",
        ]
    }
    catalog = drive(infrastructure(GpuListing()), ok(listed))
    assert catalog.gpus == (
        GpuOffer(
            id="NVIDIA GeForce RTX 4090",
            name="RTX 4090",
            pool="ADA_24",
            memory_gb=24,
            usd_per_hour={"secure": Decimal("0.69"), "community": Decimal("0.34")},
        ),
        GpuOffer(id="NVIDIA X", name="NVIDIA X", pool=""),
    )
    assert list_sent_requests(drive) == ["GET /v2/catalog/gpus"]


@pytest.mark.parametrize("rows", [[], None, "many"])
def test_an_empty_list(drive: VendorDrive, rows: object) -> None:
    """Given nothing that lists anything, then the list is empty."""
    assert drive(infrastructure(GpuListing()), ok({"gpus": rows})).gpus == ()
    assert drive(infrastructure(TemplateListing()), ok({"templates": rows})).items == ()


@pytest.fixture
async def cloud() -> AsyncIterator[SandboxDriver]:
    """A fresh vendor cloud."""
    made = SandboxDriver(create_app(seed=3))
    yield made
    await made.close()


async def test_the_life_of_a_pod(cloud: SandboxDriver) -> None:
    """Given a GPU, then a pod comes up, costs by the hour, and is terminated."""
    asked = PodCreation(name="studio", gpu_id=GPU, image="runpod/pytorch:latest")
    pod = await cloud.run("runpod", asked)
    assert pod.status == "creating"
    assert pod.usd_per_hour > Decimal(0)
    seen = [(await cloud.run("runpod", PodReading(vendor_id=pod.vendor_id))).status]
    seen.append((await cloud.run("runpod", PodReading(vendor_id=pod.vendor_id))).status)
    assert seen == ["creating", "running"]
    for _ in range(2):  # one that is gone already counts as terminated
        await cloud.run("runpod", PodDeletion(vendor_id=pod.vendor_id))
    with pytest.raises(ProviderError) as gone:
        await cloud.run("runpod", PodReading(vendor_id=pod.vendor_id))
    assert gone.value.status == 404


async def test_pods_are_listed(cloud: SandboxDriver) -> None:
    """Given two pods, then both are listed with their names, as long as they are there."""
    made = [
        await cloud.run("runpod", PodCreation(name=name, gpu_id=GPU, image="me/studio:1"))
        for name in ("one", "two")
    ]
    listed = await cloud.run("runpod", PodListing())
    assert [(pod.name, pod.vendor_id) for pod in listed.items] == [
        ("one", made[0].vendor_id),
        ("two", made[1].vendor_id),
    ]
    await cloud.run("runpod", PodDeletion(vendor_id=made[0].vendor_id))
    assert [pod.name for pod in (await cloud.run("runpod", PodListing())).items] == ["two"]


def test_what_a_pod_is_asked_with(drive: VendorDrive) -> None:
    """Given a template and a volume, then the volume is mounted where it is, and work is served."""
    asked = PodCreation(
        name="x", gpu_id=GPU, template_id="t1", volume_id="v1", data_center="EU-RO-1"
    )
    made = ok({"id": "p1", "status": "PROVISIONING"})
    drive(infrastructure(asked), made)
    assert drive.body() == {
        "name": "x",
        "gpu": {"id": GPU, "count": 1},
        "ports": ["8000/http"],
        "templateId": "t1",
        "mounts": {"network": [{"volumeId": "v1", "path": "/runpod-volume"}]},
        "dataCenterIds": ["EU-RO-1"],
    }


async def test_templates_and_volumes_are_used_by_pods(cloud: SandboxDriver) -> None:
    """Given a template and a volume, then a pod runs them, and neither goes while it does."""
    template = await cloud.run("runpod", TemplateCreation(name="mine", image="me/studio:1"))
    volume = await cloud.run(
        "runpod", VolumeCreation(name="data", size_gb=20, data_center="EU-RO-1")
    )
    listed = await cloud.run("runpod", TemplateListing())
    assert [one.vendor_id for one in listed.items] == [template.vendor_id]
    stored = await cloud.run("runpod", VolumeListing())
    assert [one.name for one in stored.items] == ["data"]
    asked = PodCreation(
        name="studio",
        gpu_id=GPU,
        template_id=template.vendor_id,
        volume_id=volume.vendor_id,
        data_center="EU-RO-1",
    )
    pod = await cloud.run("runpod", asked)
    deletions = [
        TemplateDeletion(vendor_id=template.vendor_id),
        VolumeDeletion(vendor_id=volume.vendor_id),
    ]
    for deletion in deletions:
        with pytest.raises(ProviderError) as used:
            await cloud.run("runpod", deletion)
        assert used.value.status == 400
    await cloud.run("runpod", PodDeletion(vendor_id=pod.vendor_id))
    for deletion in deletions:
        await cloud.run("runpod", deletion)
    assert (await cloud.run("runpod", TemplateListing())).items == ()
    assert (await cloud.run("runpod", VolumeListing())).items == ()


@pytest.mark.parametrize(
    "operation",
    [
        PodCreation(name="x", gpu_id="NVIDIA Nothing", image="x"),
        PodCreation(name="x", gpu_id=GPU, template_id="none"),
        VolumeCreation(name="x", size_gb=1, data_center="EU-RO-1"),
        PodCreation(name="x", gpu_id=GPU, image="x", volume_id="none"),
    ],
    ids=["an unknown GPU", "an unknown template", "too small", "an unknown volume"],
)
async def test_what_the_vendor_refuses(cloud: SandboxDriver, operation: Operation[Any]) -> None:
    """Given what the vendor does not have, then its refusal comes through."""
    with pytest.raises(ProviderError) as refused:
        await cloud.run("runpod", operation)
    assert refused.value.code is ErrorCode.PROVIDER_REJECTED


@pytest.mark.parametrize(
    ("operation", "answer"),
    [
        *((CREATION, body) for body in ({}, {"id": 7}, {"id": "../pods"})),
        *((EndpointListing(), {"endpoints": [row]}) for row in ({}, {"id": "../pods"})),
        (PodReading(vendor_id="p1"), {"id": "p1"}),
        (PodReading(vendor_id="p1"), {"id": "../x", "status": "RUNNING"}),
        (PodReading(vendor_id="p1"), {"id": 7, "status": "RUNNING"}),
        (PodListing(), {"pods": [{"id": "p1"}]}),
        (TemplateListing(), {"templates": [{"name": "no id"}]}),
        (VolumeListing(), {"networkVolumes": [{"id": "a/b"}]}),
    ],
)
def test_answers_that_are_none(
    drive: VendorDrive, operation: Operation[Any], answer: dict[str, object]
) -> None:
    """Given an answer without what it is for, then it is the vendor's fault, not ours."""
    with pytest.raises(ProviderError) as bad:
        drive(infrastructure(operation), ok(answer))
    assert bad.value.code is ErrorCode.PROVIDER_BAD_RESPONSE


def test_a_state_that_came_later_than_this_file(drive: VendorDrive) -> None:
    """Given a state nobody knows yet, then the pod is on its way."""
    answer = ok({"id": "p1", "status": "WARMING", "cost": "?"})
    state = drive(infrastructure(PodReading(vendor_id="p1")), answer)
    assert (state.status, state.usd_per_hour) == ("creating", None)
