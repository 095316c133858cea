"""The runpod SDK serving work in a container, as in a pod: our flow against the vendor's code."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest

from tests.support.ports import free_port
from tests.support.timing import wait_until
from tests.vendors.conftest import IMAGE, PNG, VendorDrive, access
from toolkit.contract.errors import ErrorCode
from toolkit.plugins import ProviderError
from toolkit.vendors.runpod import generate_image

pytest.importorskip("runpod", reason="needs the extra `sdk`")
WORKER = f"""
import base64, runpod
def handler(job):
    given = job["input"]
    if given["num_inference_steps"] > 50:
        return {{"error": "too many steps"}}
    picture = base64.b64encode(bytes.fromhex("{PNG.hex()}")).decode()
    return {{"images": ["data:image/png;base64," + picture], "seed": given["seed"]}}
runpod.serverless.start({{"handler": handler}})
"""


@pytest.fixture(scope="module")
def pods_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A worker of the SDK, started as a container in a pod starts it."""
    folder = tmp_path_factory.mktemp("worker")
    (folder / "rp_handler.py").write_text(WORKER)
    port = free_port()
    served = ["--rp_serve_api", "--rp_api_host", "127.0.0.1", "--rp_api_port", str(port)]
    worker = subprocess.Popen(
        [sys.executable, "-u", "rp_handler.py", *served],
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
    """Answers what the SDK's worker answers."""

    def _perform(self, step: object) -> object:
        if not isinstance(step, httpx.Request):
            return super()._perform(step)
        self.requests.append(step)
        with httpx.Client() as http:
            return http.send(step)


def test_the_vendors_own_worker_draws(pods_url: str) -> None:
    """Given the SDK's worker behind the proxy's path, then our flow has its image and seed."""
    # The proxy gives each pod a host; here the worker is the only one, whatever the host.
    drive, hosts = PodDrive(), {"pods": pods_url + "/{pod}/.."}
    reply = drive(generate_image(IMAGE, access("runpod", "image", base_urls=hosts, pod="pod1")))
    assert (reply.image, reply.seed, reply.model) == (PNG, IMAGE.seed, "pod")
    assert reply.vendor_request_id.startswith("test-")
    assert "authorization" not in drive.requests[0].headers  # the container is not the vendor's


def test_the_vendors_own_worker_refuses(pods_url: str) -> None:
    """Given an input that the handler refuses, then its words come through."""
    with pytest.raises(ProviderError, match="too many steps") as refused:
        PodDrive()(
            generate_image(
                replace(IMAGE, steps=51),
                access("runpod", "image", base_urls={"pods": pods_url + "/{pod}/.."}, pod="pod1"),
            )
        )
    assert refused.value.code is ErrorCode.PROVIDER_REJECTED
