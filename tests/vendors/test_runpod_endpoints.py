"""RunPod's management API: endpoints with their hidden templates, and the catalogue."""

from decimal import Decimal
from typing import Any

import httpx
import pytest

from tests.vendors.conftest import SECRET, VENDORS, Drive, access, ok
from toolkit.contract.errors import ErrorCode
from toolkit.plugins import Operation, Reply, VendorFault
from toolkit.plugins.infrastructure import (
    EndpointCreation,
    EndpointDeletion,
    EndpointListing,
    EndpointReading,
    EndpointState,
    GpuListing,
    GpuOffer,
)

MADE: dict[str, Any] = {
    "id": "ep9k2",
    "name": "pictures",
    "gpu": {"pools": ["ADA_24"], "count": 1},
    "workers": {"min": 0, "max": 1},
    "templateId": "tpl7",
    "requestUrls": {"run": "https://evil.example/run"},
}
CREATION = EndpointCreation(
    name="pictures", gpu_pool="ADA_24", image="example/worker:1", reference="ep_01"
)


def infrastructure(operation: Operation[Any]) -> Any:
    """RunPod's flow for an operation on infrastructure."""
    return VENDORS["runpod"].infrastructure[operation.kind](operation, access("runpod", "image"))


def created(body: dict[str, Any]) -> httpx.Response:
    """HTTP 201 with JSON."""
    return httpx.Response(201, json=body)


def problem(status: int, detail: str = "No.") -> httpx.Response:
    """A failure in the management API's shape."""
    body = {"title": "Problem", "status": status, "detail": detail}
    return httpx.Response(status, json=body, headers={"content-type": "application/problem+json"})


def sent(drive: Drive) -> list[str]:
    """Method and path of every request."""
    return [f"{request.method} {request.url.path}" for request in drive.requests]


def test_image_gets_a_hidden_template(drive: Drive) -> None:
    """Given an image alone, a template of a unique name is made, and the endpoint runs it."""
    state = drive(infrastructure(CREATION), created({"id": "tpl7"}), created(MADE))
    assert sent(drive) == ["POST /v2/templates", "POST /v2/serverless"]
    assert drive.body(0) == {
        "name": "toolkit-hidden-ep_01",
        "image": "example/worker:1",
        "serverless": True,
    }
    assert drive.body(1) == {
        "name": "pictures",
        "type": "QUEUE",
        "scaling": {"type": "QUEUE_DELAY", "queueDelay": 4},
        "gpu": {"pools": ["ADA_24"], "count": 1},
        "workers": {"min": 0, "max": 1},
        "templateId": "tpl7",
    }
    assert state == EndpointState(
        vendor_id="ep9k2",
        name="pictures",
        template_id="tpl7",
        hidden_template=True,
        gpu_pools=("ADA_24",),
        workers_min=0,
        workers_max=1,
    )
    assert all(r.url.host == "api.runpod.io" for r in drive.requests)
    assert all(r.headers["authorization"] == f"Bearer {SECRET}" for r in drive.requests)


def test_template_of_the_callers(drive: Drive) -> None:
    """Given a template and volumes, they are attached and nothing hidden is made."""
    creation = EndpointCreation(
        name="pictures", gpu_pool="ADA_24", workers_max=3, template_id="tpl1", volume_ids=("v1",)
    )
    state = drive(infrastructure(creation), created(MADE))
    assert sent(drive) == ["POST /v2/serverless"]
    assert drive.body()["templateId"] == "tpl1"
    assert drive.body()["networkVolumes"] == ["v1"]
    assert drive.body()["workers"] == {"min": 0, "max": 3}
    assert (state.template_id, state.hidden_template) == ("tpl1", False)


def test_neither_image_nor_template(drive: Drive) -> None:
    """Given no image, the vendor's file chooses one; no two templates share a name."""
    names = []
    for _ in range(2):
        bare = EndpointCreation(name="pictures", gpu_pool="ADA_24")
        drive(infrastructure(bare), created({"id": "tpl7"}), created(MADE))
        assert drive.body(-2)["image"] == "runpod/worker-sdxl:latest"
        names.append(drive.body(-2)["name"])
    assert len(set(names)) == 2


@pytest.mark.parametrize("cleanup", [204, 409, 500])
def test_hidden_template_goes_when_the_endpoint_fails(drive: Drive, cleanup: int) -> None:
    """Given an endpoint that is refused, its template is deleted and the refusal is told."""
    answers = created({"id": "tpl7"}), problem(422, "gpu.pools must name pools"), problem(cleanup)
    with pytest.raises(VendorFault, match="must name pools") as caught:
        drive(infrastructure(CREATION), *answers)
    assert caught.value.code is ErrorCode.PROVIDER_REJECTED
    assert sent(drive)[-1] == "DELETE /v2/templates/tpl7"


def test_callers_template_stays(drive: Drive) -> None:
    """Given a refusal with the caller's own template, that template is left alone."""
    creation = EndpointCreation(name="pictures", gpu_pool="X", template_id="tpl1")
    with pytest.raises(VendorFault):
        drive(infrastructure(creation), problem(422))
    assert sent(drive) == ["POST /v2/serverless"]


@pytest.mark.parametrize("body", [{}, {"id": 7}, {"id": "../pods"}])
def test_endpoint_without_an_id(drive: Drive, body: dict[str, Any]) -> None:
    """Given a creation that names no endpoint, the flow ends as a bad response."""
    with pytest.raises(VendorFault, match="what is no id"):
        drive(infrastructure(CREATION), created({"id": "tpl7"}), created(body), problem(409))


@pytest.mark.parametrize(
    ("template", "hidden"),
    [
        (ok({"id": "tpl7", "name": "toolkit-hidden-ep_01"}), True),
        (ok({"id": "tpl7", "name": "mine"}), False),
        (problem(404), False),
    ],
)
def test_endpoint_is_read(drive: Drive, template: httpx.Response, hidden: bool) -> None:
    """Given an endpoint, its state tells whether its template goes with it."""
    state = drive(infrastructure(EndpointReading(vendor_id="ep9k2")), ok(MADE), template)
    assert (state.vendor_id, state.hidden_template) == ("ep9k2", hidden)
    assert sent(drive) == ["GET /v2/serverless/ep9k2", "GET /v2/templates/tpl7"]


def test_endpoint_that_is_gone(drive: Drive) -> None:
    """Given an endpoint that the vendor does not know, the fault carries its 404."""
    with pytest.raises(VendorFault) as caught:
        drive(infrastructure(EndpointReading(vendor_id="ep9k2")), problem(404))
    assert caught.value.status == 404


@pytest.mark.parametrize("answers", [[problem(500)], [ok(MADE), problem(500)]])
@pytest.mark.parametrize("kind", [EndpointReading, EndpointDeletion])
def test_state_that_cannot_be_read(
    drive: Drive, kind: type[EndpointReading], answers: list[httpx.Response]
) -> None:
    """Given an outage while looking, the fault comes through and nothing is deleted."""
    with pytest.raises(VendorFault) as caught:
        drive(infrastructure(kind(vendor_id="ep9k2")), *answers)
    assert caught.value.status == 500
    assert not any(line.startswith("DELETE") for line in sent(drive))


def test_endpoints_are_listed(drive: Drive) -> None:
    """Given the vendor's list, then each has its id and name, and nothing more is asked."""
    answer = ok({"endpoints": [MADE, {"id": "ep3", "name": "texts -fb"}, "odd"]})
    listed = drive(infrastructure(EndpointListing()), answer)
    assert [(one.vendor_id, one.name, one.gpu_pools) for one in listed.items] == [
        ("ep9k2", "pictures", ("ADA_24",)),
        ("ep3", "texts -fb", ()),
    ]
    assert sent(drive) == ["GET /v2/serverless"]


@pytest.mark.parametrize("body", [{"endpoints": [{"id": "../pods"}]}, {"endpoints": [{}]}])
def test_endpoints_that_have_no_id(drive: Drive, body: dict[str, Any]) -> None:
    """Given a list with what is no endpoint, then it is the vendor's fault."""
    with pytest.raises(VendorFault, match="what is no id"):
        drive(infrastructure(EndpointListing()), ok(body))


GONE = httpx.Response(204)


@pytest.mark.parametrize(
    ("answers", "asked"),
    [
        (
            [ok(MADE), ok({"name": "toolkit-hidden-ep_01"}), GONE, GONE],
            ["DELETE /v2/serverless/ep9k2", "DELETE /v2/templates/tpl7"],
        ),
        ([ok(MADE), ok({"name": "mine"}), GONE], ["DELETE /v2/serverless/ep9k2"]),
        ([ok({"id": "ep9k2"}), GONE], ["DELETE /v2/serverless/ep9k2"]),
        ([problem(404), problem(404)], ["DELETE /v2/serverless/ep9k2"]),
    ],
    ids=["hidden", "own", "none", "gone already"],
)
def test_deletion_finds_the_hidden_template(
    drive: Drive, answers: list[httpx.Response], asked: list[str]
) -> None:
    """Given an endpoint alone, what belongs to it is deleted with it, and nothing else."""
    reply = drive(infrastructure(EndpointDeletion(vendor_id="ep9k2")), *answers)
    assert isinstance(reply, Reply)
    assert [line for line in sent(drive) if line.startswith("DELETE")] == asked


def test_deletion_with_a_known_template(drive: Drive) -> None:
    """Given the template's id, nothing is looked up; what is gone already is no failure."""
    deletion = EndpointDeletion(vendor_id="ep9k2", template_id="tpl7")
    drive(infrastructure(deletion), problem(404), problem(404))
    assert sent(drive) == ["DELETE /v2/serverless/ep9k2", "DELETE /v2/templates/tpl7"]


@pytest.mark.parametrize("status", [401, 409, 500])
def test_deletion_that_is_refused(drive: Drive, status: int) -> None:
    """Given any other refusal, it is told."""
    deletion = EndpointDeletion(vendor_id="ep9k2", template_id="tpl7")
    with pytest.raises(VendorFault) as caught:
        drive(infrastructure(deletion), problem(status))
    assert caught.value.status == status


def test_catalogue(drive: Drive) -> None:
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
    assert sent(drive) == ["GET /v2/catalog/gpus"]


@pytest.mark.parametrize("body", [{}, {"gpus": None}, {"gpus": "many"}])
def test_empty_catalogue(drive: Drive, body: dict[str, Any]) -> None:
    """Given nothing that lists GPUs, the catalogue is empty."""
    assert drive(infrastructure(GpuListing()), ok(body)).gpus == ()
