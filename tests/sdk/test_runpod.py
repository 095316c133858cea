"""The runpod SDK on the job API; its management part speaks GraphQL, which we do not use."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from toolkit.sandbox import SANDBOX_KEYS

ENDPOINT = "black-forest-labs-flux-1-dev"
WORK = {"input": {"prompt": "a tidal mill", "width": 256, "height": 256}}


@pytest.fixture
def runpod(cloud_url: str) -> Iterator[Any]:
    """The vendor's own module, pointed at the sandbox."""
    module = pytest.importorskip("runpod", reason="needs the extra `sdk`")
    before = module.endpoint_url_base, module.api_key
    module.endpoint_url_base = f"{cloud_url}/runpod-jobs/v2"
    module.api_key = SANDBOX_KEYS["RUNPOD_API_KEY"]
    yield module
    module.endpoint_url_base, module.api_key = before


def test_a_job(runpod: Any) -> None:
    """Given a job, then the SDK submits it, follows it and has its output."""
    endpoint = runpod.Endpoint(ENDPOINT)
    job = endpoint.run(WORK)
    assert job.status() in ("IN_QUEUE", "IN_PROGRESS")
    output = job.output(timeout=20)
    assert httpx.get(output["image_url"]).content.startswith(b"\x89PNG")
    assert job.status() == "COMPLETED"


def test_a_job_that_is_waited_for(runpod: Any) -> None:
    """Given a job by run_sync, then the SDK has its output at once."""
    assert runpod.Endpoint(ENDPOINT).run_sync(WORK, timeout=20)["image_url"]


def test_cancel_and_health(runpod: Any) -> None:
    """Given a queued job, then the SDK cancels it, and sees the endpoint's health."""
    endpoint = runpod.Endpoint(ENDPOINT)
    job = endpoint.run(WORK)
    job.cancel()
    assert job.status() == "CANCELLED"
    assert endpoint.health()["workers"]["ready"] >= 0


def test_a_wrong_key(runpod: Any) -> None:
    """Given a wrong key, then the SDK says so."""
    runpod.api_key = "wrong"
    with pytest.raises(RuntimeError, match="401"):
        runpod.Endpoint(ENDPOINT).run(WORK)
