"""RunPod's management API: endpoints, pods, templates, network volumes and the catalogue."""

from decimal import Decimal
from typing import Any

import httpx
import pytest

from tests.vendors.conftest import SECRET, VENDORS, VendorDrive, access, ok
from toolkit.contract.errors import ErrorCode
from toolkit.plugins import Operation, ProviderError, Reply
from toolkit.plugins.infrastructure import (
    EndpointCreation,
    GpuListing,
    GpuOffer,
    PodCreation,
    PodReading,
    ResourceDeletion,
    ResourceQuery,
    ResourceState,
    TemplateCreation,
    VolumeCreation,
)

GPU = "NVIDIA GeForce RTX 4090"
ENDPOINT: dict[str, Any] = {
    "id": "ep9k2",
    "name": "pictures",
    "gpu": {"pools": ["ADA_24"], "count": 1},
    "workers": {"min": 0, "max": 1},
    "requestUrls": {"run": "https://evil.example/run"},
}
CREATED = httpx.Response(201, json=ENDPOINT)
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


def problem(status: int, detail: str = "No.") -> httpx.Response:
    """Return a failure in the management API's shape."""
    body = {"title": "Problem", "status": status, "detail": detail}
    return httpx.Response(status, json=body, headers={"content-type": "application/problem+json"})


def list_sent_requests(drive: VendorDrive) -> list[str]:
    """Return method and path of each request."""
    return [f"{request.method} {request.url.path}" for request in drive.requests]


def test_creates_an_endpoint_of_an_image(drive: VendorDrive) -> None:
    """Given an image, then the endpoint runs it, and no template is made."""
    state = drive(infrastructure(CREATION), CREATED)
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


def test_creates_an_endpoint_of_a_copied_template(drive: VendorDrive) -> None:
    """Given a template and volumes, then the endpoint copies the template's fields."""
    creation = EndpointCreation(
        name="pictures", gpu_pool="ADA_24", workers_max=3, template_id="tpl1", volume_ids=("v1",)
    )
    drive(infrastructure(creation), ok(TEMPLATE), CREATED)
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


def test_uses_the_default_image(drive: VendorDrive) -> None:
    """Given neither image nor template, then the endpoint runs the default image."""
    drive(
        infrastructure(EndpointCreation(name="pictures", gpu_pool="ADA_24")),
        CREATED,
    )
    assert drive.body()["image"] == "runpod/worker-sdxl:latest"


@pytest.mark.parametrize("answers", [[problem(404)], [ok(TEMPLATE), problem(422)]])
def test_refusal_keeps_the_template(drive: VendorDrive, answers: list[httpx.Response]) -> None:
    """Given a refusal with the caller's own template, then the template is not deleted."""
    creation = EndpointCreation(name="pictures", gpu_pool="X", template_id="tpl1")
    with pytest.raises(ProviderError) as caught:
        drive(infrastructure(creation), *answers)
    assert caught.value.code is ErrorCode.PROVIDER_REJECTED
    assert not any(line.startswith("DELETE") for line in list_sent_requests(drive))


def test_refusal_lists_its_errors(drive: VendorDrive) -> None:
    """Given a refusal with a list of errors, then the message has them."""
    body = {"title": "No", "status": 422, "detail": "It does not fit.", "errors": ["a: b", "c: d"]}
    with pytest.raises(ProviderError, match="It does not fit: a: b; c: d"):
        drive(infrastructure(CREATION), httpx.Response(422, json=body))


@pytest.mark.parametrize(
    "operation", [CREATION, ResourceDeletion(resource="endpoint", vendor_id="ep9k2")]
)
def test_conflict_is_a_permanent_refusal(drive: VendorDrive, operation: Operation[Any]) -> None:
    """Given 409, then the operation is rejected and not retried."""
    with pytest.raises(ProviderError, match="while it starts") as caught:
        drive(infrastructure(operation), problem(409, "Not while it starts."))
    assert (caught.value.code, caught.value.retryable) == (ErrorCode.PROVIDER_REJECTED, False)


@pytest.mark.parametrize(
    ("operation", "member", "path"),
    [
        (ResourceQuery(resource="endpoint"), "endpoints", "/v2/serverless"),
        (ResourceQuery(resource="pod"), "pods", "/v2/pods"),
        (ResourceQuery(resource="template"), "templates", "/v2/templates"),
        (ResourceQuery(resource="volume"), "networkVolumes", "/v2/network-volumes"),
    ],
)
def test_lists_resources(
    drive: VendorDrive, operation: Operation[Any], member: str, path: str
) -> None:
    """Given the vendor's list, then each resource has its id and name."""
    rows = [{"id": f"r{n}", "name": f"name {n}", "status": "RUNNING"} for n in (1, 2)]
    listing = drive(infrastructure(operation), ok({member: [*rows, "odd"]}))
    assert [(item.vendor_id, item.name) for item in listing.items] == [
        ("r1", "name 1"),
        ("r2", "name 2"),
    ]
    assert list_sent_requests(drive) == [f"GET {path}"]


@pytest.mark.parametrize("answer", [httpx.Response(204), problem(404)], ids=["deleted", "gone"])
@pytest.mark.parametrize(
    ("operation", "path"),
    [
        (ResourceDeletion(resource="endpoint", vendor_id="ep9k2"), "/v2/serverless/ep9k2"),
        (ResourceDeletion(resource="pod", vendor_id="p1"), "/v2/pods/p1"),
        (ResourceDeletion(resource="template", vendor_id="t1"), "/v2/templates/t1"),
        (ResourceDeletion(resource="volume", vendor_id="v1"), "/v2/network-volumes/v1"),
    ],
)
def test_deletes_a_resource(
    drive: VendorDrive, answer: httpx.Response, operation: Operation[Any], path: str
) -> None:
    """Given a resource, then it alone is deleted; a resource that is gone is no failure."""
    assert isinstance(drive(infrastructure(operation), answer), Reply)
    assert list_sent_requests(drive) == [f"DELETE {path}"]


@pytest.mark.parametrize("status", [401, 409, 500])
@pytest.mark.parametrize(
    "operation",
    [ResourceDeletion(resource="endpoint", vendor_id="ep9k2"), ResourceQuery(resource="volume")],
)
def test_raises_other_failures(drive: VendorDrive, operation: Operation[Any], status: int) -> None:
    """Given any other refusal of a deletion or a listing, then the flow raises it."""
    with pytest.raises(ProviderError) as caught:
        drive(infrastructure(operation), problem(status))
    assert caught.value.status == status


def test_lists_gpus_with_prices(drive: VendorDrive) -> None:
    """Given the vendor's catalogue, then each GPU has its pool, memory and dollars per hour."""
    answer = {
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
    catalog = drive(infrastructure(GpuListing()), ok(answer))
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
def test_reads_an_absent_list_as_empty(drive: VendorDrive, rows: object) -> None:
    """Given an answer without a list, then the list is empty."""
    assert drive(infrastructure(GpuListing()), ok({"gpus": rows})).gpus == ()
    assert (
        drive(infrastructure(ResourceQuery(resource="template")), ok({"templates": rows})).items
        == ()
    )


def test_creates_a_pod_with_a_volume(drive: VendorDrive) -> None:
    """Given a template and a volume, then the pod mounts it and exposes a port."""
    creation = PodCreation(
        name="x", gpu_id=GPU, template_id="t1", volume_id="v1", data_center="EU-RO-1"
    )
    drive(infrastructure(creation), ok({"id": "p1", "status": "PROVISIONING"}))
    assert drive.body() == {
        "name": "x",
        "gpu": {"id": GPU, "count": 1},
        "ports": ["8000/http"],
        "templateId": "t1",
        "mounts": {"network": [{"volumeId": "v1", "path": "/runpod-volume"}]},
        "dataCenterIds": ["EU-RO-1"],
    }


@pytest.mark.parametrize(
    ("operation", "answer"),
    [
        *((CREATION, body) for body in ({}, {"id": 7}, {"id": "../pods"})),
        *(
            (ResourceQuery(resource="endpoint"), {"endpoints": [row]})
            for row in ({}, {"id": "../pods"})
        ),
        (PodReading(vendor_id="p1"), {"id": "p1"}),
        (PodReading(vendor_id="p1"), {"id": "../x", "status": "RUNNING"}),
        (PodReading(vendor_id="p1"), {"id": 7, "status": "RUNNING"}),
        (ResourceQuery(resource="pod"), {"pods": [{"id": "p1"}]}),
        (ResourceQuery(resource="template"), {"templates": [{"name": "no id"}]}),
        (ResourceQuery(resource="volume"), {"networkVolumes": [{"id": "a/b"}]}),
    ],
)
def test_rejects_an_answer_without_an_id_or_state(
    drive: VendorDrive, operation: Operation[Any], answer: dict[str, object]
) -> None:
    """Given an answer without a usable id or state, then it is a bad response."""
    with pytest.raises(ProviderError) as bad:
        drive(infrastructure(operation), ok(answer))
    assert bad.value.code is ErrorCode.PROVIDER_BAD_RESPONSE


@pytest.mark.parametrize(
    ("status", "cost", "state", "usd"),
    [
        ("PROVISIONING", "?", "creating", None),
        ("RUNNING", 0.69, "running", Decimal("0.69")),
        ("UNHEARD_OF", None, "creating", None),
    ],
)
def test_reads_state_and_price_of_a_pod(
    drive: VendorDrive, status: str, cost: object, state: str, usd: Decimal | None
) -> None:
    """Given a state of the vendor, then it has our name; an unknown state is `creating`."""
    answer = ok({"id": "p1", "status": status, "cost": cost})
    pod = drive(infrastructure(PodReading(vendor_id="p1")), answer)
    assert (pod.status, pod.usd_per_hour) == (state, usd)


TEMPLATE_CREATION = TemplateCreation(name="mine", image="me/studio:1")
VOLUME_CREATION = VolumeCreation(name="data", size_gb=20, data_center="EU-RO-1")


@pytest.mark.parametrize(
    ("operation", "fields"),
    [
        (TEMPLATE_CREATION, {"name": "mine", "image": "me/studio:1"}),
        (VOLUME_CREATION, {"name": "data", "size": 20, "dataCenter": "EU-RO-1"}),
    ],
)
def test_creates_a_template_or_a_volume(
    drive: VendorDrive, operation: Operation[Any], fields: dict[str, Any]
) -> None:
    """Given a template or a volume, then the vendor gets its fields."""
    drive(infrastructure(operation), ok({"id": "r1", "name": "mine"}))
    assert fields.items() <= drive.body().items()
