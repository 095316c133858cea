"""The runpod SDK serves work as in a pod, and our flow requests it."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec

import httpx
import pytest

from tests.support.ports import free_port
from tests.support.timing import wait_until
from tests.vendors.conftest import IMAGE, PNG, VendorDrive, access
from toolkit.contract.errors import ErrorCode
from toolkit.plugins import ImageReply, ImageRequest, ProviderError
from toolkit.vendors.runpod import generate_image

# The SDK runs in a process of its own, and takes seconds to import.
pytestmark = pytest.mark.skipif(find_spec("runpod") is None, reason="needs the extra `sdk`")
WORKER = f"""
import base64, runpod
def handler(job):
    fields = job["input"]
    if fields["num_inference_steps"] > 50:
        return {{"error": "too many steps"}}
    picture = base64.b64encode(bytes.fromhex("{PNG.hex()}")).decode()
    return {{"images": ["data:image/png;base64," + picture], "seed": fields["seed"]}}
runpod.serverless.start({{"handler": handler}})
"""


@pytest.fixture(scope="module")
def pods_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an SDK worker, started as a container in a pod starts it."""
    folder = tmp_path_factory.mktemp("worker")
    (folder / "rp_handler.py").write_text(WORKER)
    port = free_port()
    options = ["--rp_serve_api", "--rp_api_host", "127.0.0.1", "--rp_api_port", str(port)]
    worker = subprocess.Popen(
        [sys.executable, "-u", "rp_handler.py", *options],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        try:
            httpx.get(f"{url}/docs")
        except httpx.TransportError:
            return False
        return True

    wait_until(answers)
    yield url
    worker.kill()
    worker.wait()


class PodDrive(VendorDrive):
    """Sends each request to the SDK's worker."""

    def _perform(self, step: object) -> object:
        if not isinstance(step, httpx.Request):
            return super()._perform(step)
        self.requests.append(step)
        with httpx.Client() as http:
            return http.send(step)


def draw_image(drive: PodDrive, pods_url: str, request: ImageRequest) -> ImageReply:
    """Have the worker draw an image by our flow."""
    place = access("runpod", "image", base_urls={"pods": pods_url + "/{pod}/.."}, pod="pod1")
    reply = drive(generate_image(request, place))
    assert isinstance(reply, ImageReply)
    return reply


def test_reads_the_image_of_the_vendors_worker(pods_url: str) -> None:
    """Given the SDK's worker, then our flow returns its image and seed, and sends it no key."""
    drive = PodDrive()
    reply = draw_image(drive, pods_url, IMAGE)
    assert (reply.image, reply.seed, reply.model) == (PNG, IMAGE.seed, "pod")
    assert reply.vendor_request_id.startswith("test-")
    assert "authorization" not in drive.requests[0].headers  # the container is not the vendor's


def test_reports_a_refusal_of_the_vendors_worker(pods_url: str) -> None:
    """Given an input that the handler refuses, then the error has its message."""
    with pytest.raises(ProviderError, match="too many steps") as refusal:
        draw_image(PodDrive(), pods_url, replace(IMAGE, steps=51))
    assert refusal.value.code is ErrorCode.PROVIDER_REJECTED
