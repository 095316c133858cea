"""Serverless endpoints: the specification's fields and defaults, and what they are made of."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.database_pool import open_rows
from toolkit import Client, RequestError

pytestmark = pytest.mark.embedded

ASKED = {"prompt": "a lighthouse at dusk", "steps": 2, "width": 256, "height": 256}


def test_a_template_counts_before_an_image(client: Client) -> None:
    """Given both, then the template is used, as the image is for when there is none."""
    template = client.templates.create("worker", "example/sdxl:1")
    endpoint = client.endpoints.create(template_id=template.id, image="example/comfyui:1")
    assert endpoint.record.template_id == template.id
    assert client.runs.create("image.generate", ASKED, endpoint_id=endpoint.id).wait().output


@pytest.mark.parametrize(
    ("fields", "code", "path"),
    [
        ({"workers_min": 3, "workers_max": 2}, "INVALID_REQUEST", "workers_min"),
        ({"gpu_ids": "NONE_9"}, "INVALID_REQUEST", "gpu_ids"),
        ({"storage_id": "sto_nope"}, "NOT_FOUND", None),
        ({"template_id": "tpl_nope"}, "NOT_FOUND", None),
    ],
)
def test_what_is_refused(
    client: Client, fields: dict[str, object], code: str, path: str | None
) -> None:
    """Given what cannot be, then it says where, and nothing is written down."""
    with pytest.raises(RequestError) as refused:
        client.endpoints.create(**fields)  # type: ignore[arg-type]
    assert refused.value.code.name == code
    assert [detail.path for detail in refused.value.details] == ([path] if path else [])
    assert list(client.endpoints.list()) == []


def test_what_was_deleted_cannot_be_used(client: Client) -> None:
    """Given a volume that is deleted, or never came to be, then no endpoint is made with it."""
    gone = client.storage.create("weights", 20).id
    client.storage.delete(gone)
    failed = client.storage.create("weights", 20, data_center="XX-XX-9").id
    for volume, code in ((gone, "NOT_FOUND"), (failed, "CONFLICT")):
        with pytest.raises(RequestError) as refused:
            client.endpoints.create(storage_id=volume)
        assert refused.value.code.name == code


def test_the_vendors_ids_are_never_told(
    client: Client, data_dir: Path, find_url: Callable[[Path], str | None]
) -> None:
    """Given things of each kind and work on them, then no record and no event has a vendor's id."""
    volume = client.storage.create("weights", 20)
    template = client.templates.create("worker", "example/sdxl:1", serverless=False)
    pod = client.compute.create(
        "easel", "NVIDIA A40", storage_id=volume.id, template_id=template.id
    )
    endpoint = client.endpoints.create("studio", storage_id=volume.id)
    runs = [
        client.runs.create("image.generate", ASKED, endpoint_id=endpoint.id).wait(),
        client.runs.create("image.generate", ASKED, compute_id=pod.id).wait(),
    ]
    areas = (client.storage, client.templates, client.compute, client.endpoints)
    shown = [one.to_dict() for area in areas for one in area.list()]
    shown += [client.jobs.get(run.record.job_id).to_dict() for run in runs]
    shown += [event.model_dump() for run in runs for event in client.runs.events(run.id)]
    with open_rows(data_dir, find_url(data_dir)) as database:
        tables = ("storage", "templates", "compute", "endpoints")
        rows = [database.execute(f"SELECT vendor_id FROM {table}").fetchall() for table in tables]
    vendors = {vendor_id for found in rows for (vendor_id,) in found}
    assert len(vendors) == 4
    assert None not in vendors
    text = json.dumps(shown, default=str)
    assert [vendor_id for vendor_id in vendors if vendor_id in text] == []
