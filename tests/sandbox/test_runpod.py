"""The `runpod` wires: resources, and the jobs of image workers."""

import base64
import io
import json
from typing import Any

import httpx
import pytest
from PIL import Image

from toolkit.sandbox.pictures.drawing import draw_picture
from toolkit.sandbox.state import SandboxState

V2, JOBS = "/runpod/v2", "/runpod-jobs/v2"
FLUX = f"{JOBS}/black-forest-labs-flux-1-dev"
ENDPOINT: dict[str, Any] = {
    "name": "pictures",
    "type": "QUEUE",
    "scaling": {"type": "QUEUE_DELAY", "queueDelay": 4},
    "gpu": {"pools": ["ADA_24"], "count": 1},
    "workers": {"min": 0, "max": 1},
    "image": "example/worker-sdxl:1",
}
MOUNT: dict[str, Any] = {"network": [{"volumeId": "{volume}", "path": "/data"}]}
PICTURE: dict[str, Any] = {
    "prompt": "tidal power at dusk",
    "width": 256,
    "height": 256,
    "num_inference_steps": 10,
    "seed": 4,
}


async def open_picture(client: httpx.AsyncClient, link: str) -> Image.Image:
    """Open the picture that a link leads to, without a key."""
    answer = await client.get(link, headers={"Authorization": ""})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/png")
    return Image.open(io.BytesIO(answer.content))


async def test_endpoint_takes_its_template_with_it(runpod: httpx.AsyncClient) -> None:
    """Given an endpoint of a template, then the template is bound to it, and deleted with it."""
    fields = {"name": "t", "image": "x/flux:1", "serverless": True}
    template = (await runpod.post(f"{V2}/templates", json=fields)).json()["id"]
    body = {**ENDPOINT, "templateId": template}
    del body["image"]
    endpoint = (await runpod.post(f"{V2}/serverless", json=body)).json()
    assert "templateId" not in endpoint
    assert (await runpod.delete(f"{V2}/templates/{template}")).status_code == 400
    job = (await runpod.post(endpoint["requestUrls"]["run"], json={"input": PICTURE})).json()
    address = endpoint["requestUrls"]["status"].replace("{jobId}", job["id"])
    assert (await runpod.get(address)).json()["status"] == "IN_PROGRESS"
    await runpod.delete(f"{V2}/serverless/{endpoint['id']}")
    # "Deletes a serverless endpoint and its bound template."
    assert (await runpod.get(f"{V2}/templates/{template}")).status_code == 404


VOLUME: dict[str, Any] = {"name": "v", "size": 20, "dataCenter": "EU-RO-1"}
POD: dict[str, Any] = {"name": "p", "image": "x/y", "gpu": {"id": "NVIDIA A40", "count": 1}}
RESOURCES = {"serverless": ENDPOINT, "network-volumes": VOLUME, "pods": POD}


@pytest.mark.parametrize(
    ("path", "change", "status"),
    [
        ("network-volumes", {"size": 5}, 422),
        ("pods", {"gpu": None}, 400),
        ("pods", {"gpu": {"id": "NVIDIA Nothing", "count": 1}}, 422),
        ("serverless", {"colour": "red"}, 422),
        ("serverless", {"name": 3}, 422),
        ("serverless", {"name": ""}, 422),
        ("serverless", {"gpu": None}, 400),
        ("serverless", {"type": None}, 422),
        ("serverless", {"scaling": None}, 422),
        ("serverless", {"flashboot": True}, 422),
        ("serverless", {"gpu": {"pools": ["NONE"]}}, 422),
        ("serverless", {"workers": {"min": 3, "max": 1}}, 422),
        ("serverless", {"workers": {"low": 0}}, 422),
        ("serverless", {"scaling": {"type": "MAGIC"}}, 422),
        ("serverless", {"type": "STACK"}, 422),
        ("serverless", {"image": None}, 400),
        ("serverless", {"templateId": "none"}, 404),
        ("serverless", {"networkVolumes": ["none"]}, 404),
    ],
)
async def test_rejects_an_invalid_resource(
    runpod: httpx.AsyncClient, path: str, change: dict[str, Any], status: int
) -> None:
    """Given an invalid field, then the refusal has title, status and detail."""
    body = {k: v for k, v in {**RESOURCES[path], **change}.items() if v is not None}
    reply = await runpod.post(f"{V2}/{path}", json=body)
    assert reply.status_code == status
    assert reply.json()["status"] == status
    assert {"title", "status", "detail"} <= set(reply.json())


async def test_refusal_names_every_fault(runpod: httpx.AsyncClient) -> None:
    """Given several faults, then each is named by its path, an unknown field first."""
    body = {**ENDPOINT, "colour": "red", "scaling": {"type": "QUEUE_DELAY"}, "name": 3}
    errors = (await runpod.post(f"{V2}/serverless", json=body)).json()["errors"]
    assert [error.partition(":")[0] for error in errors] == [
        "body.colour",
        "body.scaling.queueDelay",
        "body.name",
    ]


# The specification of the action's operation, word by word.
ALLOWED = {
    "PROVISIONING": {"stop", "terminate"},
    "STARTING": {"stop", "terminate"},
    "RUNNING": {"stop", "restart", "terminate"},
}


async def test_pod_lists_the_actions_of_its_state(runpod: httpx.AsyncClient) -> None:
    """Given a new pod, then it starts as it is read, and lists the actions of each state."""
    pod = (await runpod.post(f"{V2}/pods", json=POD)).json()
    for status, actions in ALLOWED.items():
        assert (pod["status"], set(pod["actions"])) == (status, actions)
        pod = (await runpod.get(f"{V2}/pods/{pod['id']}")).json()


async def test_picture_expires_after_a_week(runpod: httpx.AsyncClient, state: SandboxState) -> None:
    """Given a link to a picture, then it needs no key, and is invalid after 7 days."""
    job = (await runpod.post(f"{FLUX}/runsync", json={"input": PICTURE})).json()
    link = job["output"]["image_url"]
    first = await open_picture(runpod, link)
    assert (await open_picture(runpod, link)).tobytes() == first.tobytes()
    later = state.clock() + 7 * 24 * 3600 + 1
    state.clock = lambda: later
    assert (await runpod.get(link)).status_code == 404


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"networkVolumes": ["{volume}"]}, 422),
        ({"mounts": {"disk": []}}, 422),
        ({"mounts": {"network": [{"volumeId": "none", "path": "/data"}]}}, 404),
        ({"mounts": {"network": [{"volumeId": "{volume}"}]}}, 422),
        ({"mounts": {"network": [{"volumeId": "{volume}", "path": "/d", "size": 1}]}}, 422),
        ({"mounts": MOUNT, "dataCenterIds": ["US-KS-2"]}, 400),
        ({"mounts": MOUNT, "dataCenterIds": ["US-KS-2", "EU-RO-1"]}, 201),
        ({"mounts": MOUNT}, 201),
    ],
)
async def test_pod_mounts_a_volume_of_its_data_centre(
    runpod: httpx.AsyncClient, change: dict[str, Any], status: int
) -> None:
    """Given a mount, then its volume must be in the pod's data centre; a used volume stays."""
    volume = (await runpod.post(f"{V2}/network-volumes", json=VOLUME)).json()["id"]
    fields = json.loads(json.dumps(change).replace("{volume}", volume))
    reply = await runpod.post(f"{V2}/pods", json={**POD, **fields})
    assert reply.status_code == status, reply.text
    deletion = await runpod.delete(f"{V2}/network-volumes/{volume}")
    assert deletion.status_code == (400 if status == 201 else 204)


@pytest.mark.parametrize("serverless", [True, False])
async def test_template_is_of_one_kind(runpod: httpx.AsyncClient, serverless: bool) -> None:
    """Given a template for endpoints or for pods, then it is refused for the other kind."""
    fields = {"name": "t", "image": "x/y", "serverless": serverless}
    template = (await runpod.post(f"{V2}/templates", json=fields)).json()["id"]
    statuses = []
    for path in ("pods", "serverless"):
        body = {k: v for k, v in RESOURCES[path].items() if k != "image"} | {"templateId": template}
        statuses.append((await runpod.post(f"{V2}/{path}", json=body)).status_code)
    assert statuses == ([422, 201] if serverless else [201, 422])


async def test_requires_a_key(anonymous: httpx.AsyncClient) -> None:
    """Given no key, then both wires answer 401; the job API accepts a key without Bearer."""
    assert (await anonymous.get(f"{V2}/serverless")).json()["status"] == 401
    assert (await anonymous.post(f"{FLUX}/run", json={"input": PICTURE})).status_code == 401
    bare = {"Authorization": "sandbox-runpod"}
    assert (await anonymous.get(f"{FLUX}/health", headers=bare)).status_code == 200


async def test_job_advances_with_each_poll(runpod: httpx.AsyncClient) -> None:
    """Given polls, then a job is queued, in progress and completed, with a varied picture."""
    queued = (await runpod.post(f"{FLUX}/run", json={"input": PICTURE})).json()
    assert queued["status"] == "IN_QUEUE"
    address = f"{FLUX}/status/{queued['id']}"
    assert (await runpod.get(address)).json()["status"] == "IN_PROGRESS"
    job = (await runpod.get(address)).json()
    assert job["status"] == "COMPLETED"
    assert job["executionTime"] > 0
    assert job["output"]["cost"] == pytest.approx(0.02 * 256 * 256 / 1e6, abs=1e-6)
    picture = await open_picture(runpod, job["output"]["image_url"])
    assert picture.size == (256, 256)
    colors = picture.convert("RGB").getcolors(maxcolors=256 * 256)
    assert colors is not None
    assert len(colors) > 500
    assert (await runpod.get(address)).json() == job


async def test_sdxl_worker_returns_links_and_seed(runpod: httpx.AsyncClient) -> None:
    """Given the sdxl worker, then its output has images, image_url and seed."""
    endpoint = (await runpod.post(f"{V2}/serverless", json=ENDPOINT)).json()
    body = {"input": {**PICTURE, "num_images": 2}}
    job = (await runpod.post(f"{JOBS}/{endpoint['id']}/runsync", json=body)).json()
    output = job["output"]
    assert job["status"] == "COMPLETED"
    assert output["seed"] == 4
    assert output["image_url"] == output["images"][0] != output["images"][1]


async def test_comfyui_worker_returns_files(runpod: httpx.AsyncClient) -> None:
    """Given the comfyui worker, then it runs a workflow and returns files in base64."""
    fields = {**ENDPOINT, "image": "example/worker-comfyui:5"}
    endpoint = (await runpod.post(f"{V2}/serverless", json=fields)).json()
    flow = {"6": {"inputs": {"text": "a mountain lake"}}}
    job = await runpod.post(f"{JOBS}/{endpoint['id']}/runsync", json={"input": {"workflow": flow}})
    image = job.json()["output"]["images"][0]
    assert image["type"] == "base64"
    assert Image.open(io.BytesIO(base64.b64decode(image["data"]))).format == "PNG"


async def test_short_wait_returns_an_unfinished_job(runpod: httpx.AsyncClient) -> None:
    """Given a short wait, then runsync returns an unfinished job, which polls finish."""
    first = (await runpod.post(f"{FLUX}/runsync?wait=1000", json={"input": PICTURE})).json()
    assert first["status"] == "IN_QUEUE"
    assert "output" not in first
    states = [(await runpod.get(f"{FLUX}/status/{first['id']}")).json()["status"] for _ in "12"]
    assert states == ["IN_PROGRESS", "COMPLETED"]
    assert (await runpod.post(f"{FLUX}/runsync?wait=5", json={"input": PICTURE})).status_code == 400


async def test_cancels_a_job_for_good(runpod: httpx.AsyncClient) -> None:
    """Given a queued job, then it can be cancelled; unknown jobs and endpoints are 404."""
    queued = (await runpod.post(f"{FLUX}/run", json={"input": PICTURE})).json()
    cancelled = (await runpod.post(f"{FLUX}/cancel/{queued['id']}")).json()
    assert cancelled["status"] == "CANCELLED"
    again = (await runpod.get(f"{FLUX}/status/{queued['id']}")).json()
    assert again["status"] == "CANCELLED"
    assert "output" not in again
    assert (await runpod.get(f"{FLUX}/status/none")).status_code == 404
    assert (await runpod.post(f"{JOBS}/none/run", json={"input": {}})).status_code == 404


@pytest.mark.parametrize(
    "change",
    [{"prompt": ""}, {"width": 100}, {"width": 300}, {"num_inference_steps": 99}, {"seed": "x"}],
)
async def test_job_with_invalid_input_fails(
    runpod: httpx.AsyncClient, change: dict[str, Any]
) -> None:
    """Given input that the worker cannot use, then the job fails, and a retry queues it again."""
    job = await runpod.post(f"{FLUX}/runsync", json={"input": {**PICTURE, **change}})
    assert job.status_code == 200
    assert job.json()["status"] == "FAILED"
    assert job.json()["error"]
    retried = await runpod.post(f"{FLUX}/retry/{job.json()['id']}")
    assert retried.json()["status"] == "IN_QUEUE"


async def test_job_expires_after_a_minute(runpod: httpx.AsyncClient, state: SandboxState) -> None:
    """Given a finished runsync job, then it is gone after a minute."""
    job = (await runpod.post(f"{FLUX}/runsync", json={"input": PICTURE})).json()
    address = f"{FLUX}/status/{job['id']}"
    assert (await runpod.get(address)).status_code == 200
    later = state.clock() + 61
    state.clock = lambda: later
    assert (await runpod.get(address)).status_code == 404


async def test_health_counts_jobs(runpod: httpx.AsyncClient) -> None:
    """Given jobs, then health counts the queued and the completed ones."""
    await runpod.post(f"{FLUX}/runsync", json={"input": PICTURE})
    await runpod.post(f"{FLUX}/run", json={"input": PICTURE})
    health = (await runpod.get(f"{FLUX}/health")).json()
    assert health["jobs"]["completed"] == 1
    assert health["jobs"]["inQueue"] == 1
    assert health["workers"]["ready"] == 1


@pytest.mark.parametrize(
    "prompt",
    ["a coral reef", "snowy mountain aurora", "city at night", "a forest", "a volcano",
     "solar farm", "wind turbines", "desert dunes", "jazz in blue", "a bridge", "a lighthouse"],
)  # fmt: skip
def test_draws_every_scene(prompt: str) -> None:
    """Given a scene, then its picture is varied, and depends on the seed alone."""
    first = draw_picture(prompt, width=256, height=192, steps=20, seed=1)
    assert first == draw_picture(prompt, width=256, height=192, steps=20, seed=1)
    assert first != draw_picture(prompt, width=256, height=192, steps=20, seed=2)
    picture = Image.open(io.BytesIO(first)).convert("RGB")
    extremes = picture.convert("L").getextrema()
    assert isinstance(extremes[0], int)
    assert isinstance(extremes[1], int)
    assert extremes[1] - extremes[0] > 80
