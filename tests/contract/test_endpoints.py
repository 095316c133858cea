"""Serverless endpoints: their templates and volumes, and invalid fields."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.contract.conftest import expect_refusal
from tests.contract.raw_http import SMALL_IMAGE
from tests.support.database_pool import open_rows
from toolkit import Client

pytestmark = pytest.mark.embedded


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
