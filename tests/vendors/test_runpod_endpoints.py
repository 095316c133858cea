"""RunPod's management API: endpoints, made of an image or of a template, and the catalogue."""

from decimal import Decimal
from typing import Any

import httpx
import pytest

from tests.vendors.conftest import SECRET, VENDORS, VendorDrive, access, ok
from toolkit.contract.errors import ErrorCode
from toolkit.plugins import Operation, ProviderError, Reply
from toolkit.plugins.infrastructure import (
    EndpointCreation,
    EndpointDeletion,
    EndpointListing,
    GpuListing,
    GpuOffer,
    ResourceState,
)

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


@pytest.mark.parametrize("body", [{}, {"id": 7}, {"id": "../pods"}])
def test_endpoint_without_an_id(drive: VendorDrive, body: dict[str, Any]) -> None:
    """Given a creation that names no endpoint, the flow ends as a bad response."""
    with pytest.raises(ProviderError, match="what is no id"):
        drive(infrastructure(CREATION), build_created_answer(body))


def test_endpoints_are_listed(drive: VendorDrive) -> None:
    """Given the vendor's list, then each has its id and name, and nothing more is asked."""
    answer = ok({"endpoints": [MADE, {"id": "ep3", "name": "texts -fb"}, "odd"]})
    listed = drive(infrastructure(EndpointListing()), answer)
    assert [(one.vendor_id, one.name) for one in listed.items] == [
        ("ep9k2", "pictures"),
        ("ep3", "texts -fb"),
    ]
    assert list_sent_requests(drive) == ["GET /v2/serverless"]


@pytest.mark.parametrize("body", [{"endpoints": [{"id": "../pods"}]}, {"endpoints": [{}]}])
def test_endpoints_that_have_no_id(drive: VendorDrive, body: dict[str, Any]) -> None:
    """Given a list with what is no endpoint, then it is the vendor's fault."""
    with pytest.raises(ProviderError, match="what is no id"):
        drive(infrastructure(EndpointListing()), ok(body))


GONE = httpx.Response(204)


@pytest.mark.parametrize("answer", [GONE, problem(404)])
def test_deletion(drive: VendorDrive, answer: httpx.Response) -> None:
    """Given an endpoint, it alone is deleted; what is gone already is no failure."""
    reply = drive(infrastructure(EndpointDeletion(vendor_id="ep9k2")), answer)
    assert isinstance(reply, Reply)
    assert list_sent_requests(drive) == ["DELETE /v2/serverless/ep9k2"]


@pytest.mark.parametrize("status", [401, 409, 500])
def test_deletion_that_is_refused(drive: VendorDrive, status: int) -> None:
    """Given any other refusal, it is told."""
    with pytest.raises(ProviderError) as caught:
        drive(infrastructure(EndpointDeletion(vendor_id="ep9k2")), problem(status))
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


@pytest.mark.parametrize("body", [{}, {"gpus": None}, {"gpus": "many"}])
def test_empty_catalogue(drive: VendorDrive, body: dict[str, Any]) -> None:
    """Given nothing that lists GPUs, the catalogue is empty."""
    assert drive(infrastructure(GpuListing()), ok(body)).gpus == ()
