"""Pods, templates and network volumes: on the sandbox, and what a strange answer becomes."""

from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import httpx
import pytest

from tests.vendors.conftest import VENDORS, VendorDrive, access, ok
from tests.vendors.test_on_sandbox import SandboxDriver
from toolkit.contract.errors import ErrorCode
from toolkit.plugins import Operation, ProviderError
from toolkit.plugins.infrastructure import (
    PodCreation,
    PodDeletion,
    PodListing,
    PodReading,
    TemplateCreation,
    TemplateDeletion,
    TemplateListing,
    VolumeCreation,
    VolumeDeletion,
    VolumeListing,
)
from toolkit.sandbox import create_app

GPU = "NVIDIA GeForce RTX 4090"


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
    drive(VENDORS["runpod"].infrastructure[asked.kind](asked, access("runpod", "image")), made)
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
    flow = VENDORS["runpod"].infrastructure[operation.kind]
    with pytest.raises(ProviderError) as bad:
        drive(flow(operation, access("runpod", "image")), ok(answer))
    assert bad.value.code is ErrorCode.PROVIDER_BAD_RESPONSE


def test_a_state_that_came_later_than_this_file(drive: VendorDrive) -> None:
    """Given a state nobody knows yet, then the pod is on its way; without lists there is none."""
    flows = VENDORS["runpod"].infrastructure
    given = access("runpod", "image")
    answer = ok({"id": "p1", "status": "WARMING", "cost": "?"})
    state = drive(flows["pod.read"](PodReading(vendor_id="p1"), given), answer)
    assert (state.status, state.usd_per_hour) == ("creating", None)
    listed = drive(flows["templates.list"](TemplateListing(), given), ok({"templates": None}))
    assert listed.items == ()
    with pytest.raises(ProviderError):
        drive(flows["volumes.list"](VolumeListing(), given), httpx.Response(500, json={}))
