"""The `runpod` wires: management resources, and the jobs of image workers."""

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
    """The picture that a link leads to."""
    answer = await client.get(link, headers={"Authorization": ""})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/png")
    return Image.open(io.BytesIO(answer.content))


async def test_endpoint_from_template(runpod: httpx.AsyncClient) -> None:
    """A template and an endpoint on it are made, listed, changed, used and deleted."""
    template = await runpod.post(
        f"{V2}/templates", json={"name": "t", "image": "x/flux:1", "serverless": True}
    )
    assert template.status_code == 201
    tid = template.json()["id"]
    wanted = {**ENDPOINT, "templateId": tid}
    wanted.pop("image")
    made = await runpod.post(f"{V2}/serverless", json=wanted)
    assert made.status_code == 201
    endpoint = made.json()
    assert (await runpod.get(f"{V2}/serverless")).json()["endpoints"] == [endpoint]
    assert "templateId" not in endpoint
    in_use = await runpod.delete(f"{V2}/templates/{tid}")
    assert (in_use.status_code, in_use.headers["content-type"]) == (400, "application/problem+json")
    patched = await runpod.patch(
        f"{V2}/serverless/{endpoint['id']}", json={"workers": {"min": 0, "max": 2}}
    )
    assert patched.json()["workers"]["max"] == 2
    queued = await runpod.post(endpoint["requestUrls"]["run"], json={"input": PICTURE})
    assert queued.json()["status"] == "IN_QUEUE"
    address = endpoint["requestUrls"]["status"].replace("{jobId}", queued.json()["id"])
    assert (await runpod.get(address)).json()["status"] == "IN_PROGRESS"
    done = (await runpod.get(address)).json()
    assert set(done["output"]) == {"image_url", "cost"}
    gone = await runpod.delete(f"{V2}/serverless/{endpoint['id']}")
    assert (gone.status_code, gone.content) == (204, b"")
    assert (await runpod.get(f"{V2}/serverless/{endpoint['id']}")).status_code == 404
    # "Deletes a serverless endpoint and its bound template."
    assert (await runpod.get(f"{V2}/templates/{tid}")).status_code == 404


@pytest.mark.parametrize(
    ("path", "change", "status"),
    [
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
async def test_endpoints_are_checked(
    runpod: httpx.AsyncClient, path: str, change: dict[str, Any], status: int
) -> None:
    """A faulty endpoint is refused with title, status and detail."""
    body = {k: v for k, v in {**ENDPOINT, **change}.items() if v is not None}
    reply = await runpod.post(f"{V2}/{path}", json=body)
    assert reply.status_code == status
    assert reply.json()["status"] == status
    assert {"title", "status", "detail"} <= set(reply.json())


async def test_a_refusal_names_every_fault(runpod: httpx.AsyncClient) -> None:
    """Given several faults, then each is named by its path, an unknown field first."""
    body = {**ENDPOINT, "colour": "red", "scaling": {"type": "QUEUE_DELAY"}, "name": 3}
    errors = (await runpod.post(f"{V2}/serverless", json=body)).json()["errors"]
    assert [error.partition(":")[0] for error in errors] == [
        "body.colour",
        "body.scaling.queueDelay",
        "body.name",
    ]


async def test_volumes_and_pods(runpod: httpx.AsyncClient) -> None:
    """A volume has bounds; a pod comes up while it is watched and can be stopped."""
    small = {"name": "v", "size": 5, "dataCenter": "EU-RO-1"}
    assert (await runpod.post(f"{V2}/network-volumes", json=small)).status_code == 422
    volume = await runpod.post(f"{V2}/network-volumes", json={**small, "size": 20})
    assert volume.status_code == 201
    listed = (await runpod.get(f"{V2}/network-volumes")).json()
    assert listed["networkVolumes"] == [volume.json()]
    body = {"name": "p", "image": "x/y", "gpu": {"id": "NVIDIA GeForce RTX 4090", "count": 1}}
    assert (await runpod.post(f"{V2}/pods", json={"name": "p", "image": "x"})).status_code == 400
    pod = (await runpod.post(f"{V2}/pods", json=body)).json()
    assert pod["status"] == "PROVISIONING"
    assert pod["cost"] > 0
    address = f"{V2}/pods/{pod['id']}"
    states = [(await runpod.get(address)).json()["status"] for _ in range(3)]
    assert states == ["STARTING", "RUNNING", "RUNNING"]
    assert (await runpod.post(f"{address}/action", json={"action": "fly"})).status_code == 422
    assert (await runpod.delete(address)).status_code == 204


# The specification of the action's operation, word by word.
ALLOWED = {
    "PROVISIONING": {"stop", "terminate"},
    "STARTING": {"stop", "terminate"},
    "RUNNING": {"stop", "restart", "terminate"},
    "EXITED": {"start", "terminate"},
}
BECOMES = {"stop": "EXITED", "restart": "STARTING", "start": "STARTING"}


@pytest.mark.parametrize("status", ALLOWED)
@pytest.mark.parametrize("action", ["start", "stop", "restart", "terminate"])
async def test_what_a_pod_takes_as_it_stands(
    runpod: httpx.AsyncClient, status: str, action: str
) -> None:
    """Given a pod as it stands, then it takes the actions that it lists, and refuses others."""
    body = {"name": "p", "image": "x/y", "gpu": {"id": "NVIDIA A40"}}
    pod = (await runpod.post(f"{V2}/pods", json=body)).json()
    address = f"{V2}/pods/{pod['id']}"
    if status == "EXITED":
        pod = (await runpod.post(f"{address}/action", json={"action": "stop"})).json()
    while pod["status"] != status:
        pod = (await runpod.get(address)).json()
    assert set(pod["actions"]) == ALLOWED[status]
    answer = await runpod.post(f"{address}/action", json={"action": action})
    if action not in ALLOWED[status]:
        assert (answer.status_code, answer.json()["status"]) == (409, 409)
        assert answer.headers["content-type"] == "application/problem+json"
    elif action == "terminate":
        assert (answer.status_code, answer.content) == (204, b"")
        assert (await runpod.get(f"{V2}/pods")).json() == {"pods": []}
    else:
        assert (answer.status_code, answer.json()["status"]) == (200, BECOMES[action])


async def test_a_picture_is_kept_for_a_week(runpod: httpx.AsyncClient, state: SandboxState) -> None:
    """Given a public endpoint's link, then it needs no key, and leads nowhere after 7 days."""
    done = (await runpod.post(f"{FLUX}/runsync", json={"input": PICTURE})).json()
    link = done["output"]["image_url"]
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
async def test_what_a_pod_mounts(
    runpod: httpx.AsyncClient, change: dict[str, Any], status: int
) -> None:
    """A pod mounts a volume of its own data centre at a path; one in use cannot be deleted."""
    asked = {"name": "v", "size": 20, "dataCenter": "EU-RO-1"}
    volume = (await runpod.post(f"{V2}/network-volumes", json=asked)).json()["id"]
    named = json.loads(json.dumps(change).replace("{volume}", volume))
    body = {"name": "p", "image": "x/y", "gpu": {"id": "NVIDIA A40", "count": 1}, **named}
    reply = await runpod.post(f"{V2}/pods", json=body)
    assert reply.status_code == status, reply.text
    gone = await runpod.delete(f"{V2}/network-volumes/{volume}")
    assert gone.status_code == (400 if status == 201 else 204)


@pytest.mark.parametrize("serverless", [True, False])
async def test_a_template_is_of_one_kind(runpod: httpx.AsyncClient, serverless: bool) -> None:
    """A template for endpoints is refused for a pod, and one for pods for an endpoint."""
    asked = {"name": "t", "image": "x/y", "serverless": serverless}
    template = (await runpod.post(f"{V2}/templates", json=asked)).json()["id"]
    pod = {"name": "p", "gpu": {"id": "NVIDIA A40", "count": 1}, "templateId": template}
    endpoint = {k: v for k, v in ENDPOINT.items() if k != "image"} | {"templateId": template}
    made = await runpod.post(f"{V2}/pods", json=pod)
    served = await runpod.post(f"{V2}/serverless", json=endpoint)
    assert (made.status_code, served.status_code) == ((422, 201) if serverless else (201, 422))


async def test_keys(anonymous: httpx.AsyncClient) -> None:
    """Both wires refuse a missing key with 401, and jobs take a key without Bearer."""
    assert (await anonymous.get(f"{V2}/serverless")).json()["status"] == 401
    assert (await anonymous.post(f"{FLUX}/run", json={"input": PICTURE})).status_code == 401
    bare = {"Authorization": "sandbox-runpod"}
    assert (await anonymous.get(f"{FLUX}/health", headers=bare)).status_code == 200


async def test_job_moves_on_as_it_is_polled(runpod: httpx.AsyncClient) -> None:
    """A job goes from queue to progress to completion, and its picture is no blank."""
    queued = (await runpod.post(f"{FLUX}/run", json={"input": PICTURE})).json()
    assert queued["status"] == "IN_QUEUE"
    address = f"{FLUX}/status/{queued['id']}"
    assert (await runpod.get(address)).json()["status"] == "IN_PROGRESS"
    done = (await runpod.get(address)).json()
    assert done["status"] == "COMPLETED"
    assert done["executionTime"] > 0
    assert done["output"]["cost"] == pytest.approx(0.02 * 256 * 256 / 1e6, abs=1e-6)
    picture = await open_picture(runpod, done["output"]["image_url"])
    assert picture.size == (256, 256)
    colors = picture.convert("RGB").getcolors(maxcolors=256 * 256)
    assert colors is not None
    assert len(colors) > 500
    assert (await runpod.get(address)).json() == done


async def test_sdxl_worker_shape(runpod: httpx.AsyncClient) -> None:
    """The sdxl worker answers with images, image_url and the seed used."""
    made = (await runpod.post(f"{V2}/serverless", json=ENDPOINT)).json()
    body = {"input": {**PICTURE, "num_images": 2}}
    done = (await runpod.post(f"{JOBS}/{made['id']}/runsync", json=body)).json()
    output = done["output"]
    assert done["status"] == "COMPLETED"
    assert output["seed"] == 4
    assert output["image_url"] == output["images"][0] != output["images"][1]


async def test_comfyui_worker_shape(runpod: httpx.AsyncClient) -> None:
    """The comfyui worker takes a workflow and answers with base64 files."""
    wanted = {**ENDPOINT, "image": "example/worker-comfyui:5"}
    made = (await runpod.post(f"{V2}/serverless", json=wanted)).json()
    flow = {"6": {"inputs": {"text": "a mountain lake"}}}
    done = await runpod.post(f"{JOBS}/{made['id']}/runsync", json={"input": {"workflow": flow}})
    image = done.json()["output"]["images"][0]
    assert image["type"] == "base64"
    assert Image.open(io.BytesIO(base64.b64decode(image["data"]))).format == "PNG"


async def test_short_wait_returns_an_unfinished_job(runpod: httpx.AsyncClient) -> None:
    """A runsync that waits too little answers unfinished, and polling finishes it."""
    first = (await runpod.post(f"{FLUX}/runsync?wait=1000", json={"input": PICTURE})).json()
    assert first["status"] == "IN_QUEUE"
    assert "output" not in first
    states = [(await runpod.get(f"{FLUX}/status/{first['id']}")).json()["status"] for _ in "12"]
    assert states == ["IN_PROGRESS", "COMPLETED"]
    assert (await runpod.post(f"{FLUX}/runsync?wait=5", json={"input": PICTURE})).status_code == 400


async def test_cancel_and_unknown_jobs(runpod: httpx.AsyncClient) -> None:
    """Cancel ends a job for good; unknown jobs and endpoints are 404."""
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
async def test_worker_refuses_bad_input(runpod: httpx.AsyncClient, change: dict[str, Any]) -> None:
    """Input that the worker cannot use makes the job fail with an error, and retry requeues it."""
    done = await runpod.post(f"{FLUX}/runsync", json={"input": {**PICTURE, **change}})
    assert done.status_code == 200
    assert done.json()["status"] == "FAILED"
    assert done.json()["error"]
    retried = await runpod.post(f"{FLUX}/retry/{done.json()['id']}")
    assert retried.json()["status"] == "IN_QUEUE"


@pytest.mark.parametrize("body", [{}, {"input": 3}, {"input": {}, "policy": 3}])
async def test_malformed_submissions(runpod: httpx.AsyncClient, body: dict[str, Any]) -> None:
    """A submission without an input object is a 400."""
    assert (await runpod.post(f"{FLUX}/run", json=body)).status_code == 400


async def test_results_expire(runpod: httpx.AsyncClient, state: SandboxState) -> None:
    """A runsync result is gone after a minute."""
    done = (await runpod.post(f"{FLUX}/runsync", json={"input": PICTURE})).json()
    address = f"{FLUX}/status/{done['id']}"
    assert (await runpod.get(address)).status_code == 200
    later = state.clock() + 61
    state.clock = lambda: later
    assert (await runpod.get(address)).status_code == 404


async def test_health_counts_jobs(runpod: httpx.AsyncClient) -> None:
    """Health counts what is queued and what is done."""
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
def test_every_scene_draws(prompt: str) -> None:
    """Each kind of scene gives a varied picture, the same each time, another per seed."""
    first = draw_picture(prompt, width=256, height=192, steps=20, seed=1)
    assert first == draw_picture(prompt, width=256, height=192, steps=20, seed=1)
    assert first != draw_picture(prompt, width=256, height=192, steps=20, seed=2)
    picture = Image.open(io.BytesIO(first)).convert("RGB")
    extremes = picture.convert("L").getextrema()
    assert isinstance(extremes[0], int)
    assert isinstance(extremes[1], int)
    assert extremes[1] - extremes[0] > 80
