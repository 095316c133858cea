"""RunPod's image workers: queueing, polling, resuming, and every shape of output."""

import base64
from contextlib import nullcontext
from dataclasses import replace
from decimal import Decimal
from typing import Any

import httpx
import pytest

from tests.vendors.conftest import IMAGE, PNG, SECRET, VENDORS, VendorDrive, flow, ok
from tests.vendors.test_arbitrary_answers import Always
from toolkit.contract.errors import ErrorCode
from toolkit.plugins import ImageReply, ProviderError
from toolkit.vendors.runpod import MAX_LOST_POLLS, POLL_DELAYS_S

BASE64 = base64.b64encode(PNG).decode()
DATA_URI = f"data:image/png;base64,{BASE64}"
LINK = "https://image.runpod.ai/6/6/mCwUZlep6S/453ad7b7.png"
JOBS = "https://api.runpod.ai/v2"
FLUX = "black-forest-labs-flux-1-dev"
QUEUED = {"id": "job-1", "status": "IN_QUEUE"}
RUNNING = {"id": "job-1", "status": "IN_PROGRESS", "delayTime": 2188}


def build_completed_job(output: object, **members: object) -> httpx.Response:
    """Return a finished job, as on the vendor's page of the public endpoint."""
    job = {"id": "job-1", "status": "COMPLETED", "delayTime": 17, "executionTime": 3986}
    return ok({**job, "output": output, **members})


def read_drawn_image(
    drive: VendorDrive, output: object, *links: httpx.Response, **changes: Any
) -> ImageReply:
    """Return the reply to a job with this output."""
    reply = drive(flow("runpod", IMAGE, **changes), ok(QUEUED), build_completed_job(output), *links)
    assert isinstance(reply, ImageReply)
    return reply


def test_job_is_queued_polled_and_billed(drive: VendorDrive) -> None:
    """Given a cold worker, then the flow polls with a reason, and reads image and cost."""
    completed = build_completed_job({"image_url": DATA_URI, "cost": 0.005243})
    reply = drive(flow("runpod", IMAGE), ok(QUEUED), ok(QUEUED), ok(QUEUED), ok(RUNNING), completed)
    assert [str(r.url) for r in drive.requests] == [
        f"{JOBS}/{FLUX}/run",
        *[f"{JOBS}/{FLUX}/status/job-1"] * 4,
    ]
    assert drive.body(0) == {
        "input": {
            "prompt": "a tidal mill",
            "num_inference_steps": 8,
            "image_format": "png",
            "width": 512,
            "height": 512,
            "seed": 7,
        },
        "policy": {"executionTimeout": 600_000},
    }
    assert [p.detail for p in drive.pauses] == ["cold_start", "cold_start", None]
    assert [p.seconds for p in drive.pauses] == list(POLL_DELAYS_S[:3])
    assert (reply.image, reply.media_type) == (PNG, "image/png")
    assert (reply.model, reply.vendor_request_id) == (FLUX, "job-1")
    assert reply.cost.units == {"images": 1.0, "megapixels": 0.262144}
    assert reply.cost.reported_usd == Decimal("0.005243")


def test_cancel_is_known_before_the_first_wait(drive: VendorDrive) -> None:
    """Given a queued job, then the step that stores its id has the request that cancels it."""
    read_drawn_image(drive, DATA_URI)
    (step,) = drive.submitted
    assert step.vendor_job_id == "job-1"
    assert step.cancel is not None
    assert (step.cancel.method, str(step.cancel.url)) == ("POST", f"{JOBS}/{FLUX}/cancel/job-1")
    assert step.cancel.headers["authorization"] == f"Bearer {SECRET}"


def test_resumed_work_is_never_sent_again(drive: VendorDrive) -> None:
    """Given the id of work from before a crash, then the flow only polls it."""
    reply = drive(flow("runpod", IMAGE, resume="job-0"), ok(RUNNING), build_completed_job(DATA_URI))
    assert {r.method for r in drive.requests} == {"GET"}
    assert drive.requests[0].url.path.endswith("/status/job-0")
    assert drive.submitted[0].vendor_job_id == "job-0"
    assert reply.image == PNG


def test_long_queue_waits_for_capacity(drive: VendorDrive) -> None:
    """Given a queue that outlasts a worker's start, then the displayed reason changes."""
    waiting = [ok(QUEUED) for _ in range(40)]
    drive(flow("runpod", IMAGE), ok(QUEUED), *waiting, build_completed_job(DATA_URI))
    details = [p.detail for p in drive.pauses]
    assert details[0] == "cold_start"
    assert details[-1] == "waiting_capacity"
    assert details == sorted(details, key=str)


def test_cancels_an_endless_job(drive: VendorDrive) -> None:
    """Given a job that never ends, then the flow cancels it and fails for good."""
    drive.answers = Always([ok(QUEUED)])
    with pytest.raises(ProviderError, match="did not finish") as caught:
        drive(flow("runpod", IMAGE))
    assert (caught.value.code, caught.value.retryable) == (ErrorCode.PROVIDER_TIMEOUT, False)
    assert drive.requests[-1].url.path.endswith("/cancel/job-1")
    assert 1150 < sum(p.seconds for p in drive.pauses) < 1300


@pytest.mark.parametrize(
    "trouble",
    [
        httpx.Response(500, json={"error": "oops"}),
        httpx.Response(502, html="<h1>Bad Gateway</h1>"),
        httpx.Response(200, content=b'{"stat', headers={"content-type": "application/json"}),
        ok({"id": "job-1"}),
        ok({"id": "job-1", "status": ["IN_QUEUE"]}),
        ProviderError(ErrorCode.PROVIDER_TIMEOUT, "host did not answer in time."),
    ],
    ids=["500", "page", "cut off", "no status", "odd status", "timeout"],
)
def test_repeats_a_lost_poll(drive: VendorDrive, trouble: httpx.Response | Exception) -> None:
    """Given a poll that fails, then the flow polls again."""
    reply = drive(flow("runpod", IMAGE), ok(QUEUED), trouble, build_completed_job(DATA_URI))
    assert reply.image == PNG


def test_poll_respects_retry_after(drive: VendorDrive) -> None:
    """Given a 429 with a wait, then the next poll comes after it."""
    busy = httpx.Response(429, json={}, headers={"retry-after": "9"})
    drive(flow("runpod", IMAGE), ok(QUEUED), busy, build_completed_job(DATA_URI))
    assert drive.pauses[0].seconds == 9


def test_unreachable_job_can_be_resumed(drive: VendorDrive) -> None:
    """Given only lost polls, then the fault is retryable and names the job."""
    lost = [httpx.Response(503, json={}) for _ in range(MAX_LOST_POLLS)]
    with pytest.raises(ProviderError) as caught:
        drive(flow("runpod", IMAGE), ok(QUEUED), *lost)
    assert type(caught.value) is ProviderError
    assert (caught.value.retryable, caught.value.vendor_request_id) == (True, "job-1")


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (ok({"status": "FAILED", "error": "prompt is required"}), ErrorCode.PROVIDER_REJECTED),
        (ok({"status": "FAILED", "output": {"error": "no"}}), ErrorCode.PROVIDER_REJECTED),
        (ok({"status": "CANCELLED"}), ErrorCode.PROVIDER_UNAVAILABLE),
        (ok({"status": "TIMED_OUT"}), ErrorCode.PROVIDER_TIMEOUT),
        (httpx.Response(404, json={"error": "job not found"}), ErrorCode.PROVIDER_BAD_RESPONSE),
        (httpx.Response(401, json={}), ErrorCode.PROVIDER_AUTH_FAILED),
    ],
    ids=["failed", "failed in output", "cancelled", "timed out", "gone", "key revoked"],
)
def test_reports_a_failed_job(drive: VendorDrive, answer: httpx.Response, code: ErrorCode) -> None:
    """Given a job that has failed for good, then the fault has its code and is not retryable."""
    with pytest.raises(ProviderError) as caught:
        drive(flow("runpod", IMAGE), ok(QUEUED), answer)
    assert (caught.value.code, caught.value.retryable) == (code, False)
    assert caught.value.vendor_request_id == "job-1"


@pytest.mark.parametrize(
    "output",
    [
        {"images": [DATA_URI], "image_url": DATA_URI, "seed": 42},
        {"image_url": DATA_URI, "cost": 0.02},
        {"images": [{"filename": "a.png", "type": "base64", "data": BASE64}]},
        [{"image": BASE64, "seed": 42}],
        BASE64,
        DATA_URI,
        {"images": ["https://bucket.example/a.png", DATA_URI]},
        f"data:image/gif;base64,{BASE64}",
    ],
    ids=[
        "sdxl",
        "flux",
        "comfyui",
        "docs example",
        "base64",
        "data URI",
        "link first",
        "GIF label",
    ],
)
def test_reads_every_shape_of_output(drive: VendorDrive, output: object) -> None:
    """Given an output in any documented shape, then the reply has the image's bytes."""
    reply = read_drawn_image(drive, output)
    assert (reply.image, reply.media_type) == (PNG, "image/png")
    assert len(drive.requests) == 2
    assert reply.seed in (None, 42)


def test_result_link_is_fetched_without_the_key(drive: VendorDrive) -> None:
    """Given a link to the vendor's own host of results, then it is fetched without the key."""
    reply = read_drawn_image(
        drive, {"image_url": LINK, "cost": 0.02}, httpx.Response(200, content=PNG)
    )
    assert (reply.image, reply.media_type) == (PNG, "image/png")
    fetch = drive.requests[-1]
    assert (fetch.method, str(fetch.url)) == ("GET", LINK)
    assert "authorization" not in fetch.headers


@pytest.mark.parametrize(
    "link",
    [
        "http://image.runpod.ai/a.png",
        "https://image.runpod.ai.evil.example/a.png",
        "https://evil.example/image.runpod.ai/a.png",
        "https://user:pass@image.runpod.ai/a.png",
        "https://image.runpod.ai:8443/a.png",
        "https://169.254.169.254/latest/meta-data",
        "https://localhost/a.png",
        "file:///etc/passwd",
        "ftp://image.runpod.ai/a.png",
        "https://[::1/a.png",
        "https://image.runpod.ai\\@evil.example/",
    ],
)
def test_no_other_link_is_followed(drive: VendorDrive, link: str) -> None:
    """Given a link to any other place, then nothing is fetched."""
    with pytest.raises(ProviderError, match="not trusted for results") as caught:
        read_drawn_image(drive, {"images": [link]})
    assert caught.value.code is ErrorCode.PROVIDER_BAD_RESPONSE
    assert caught.value.retryable is False
    assert len(drive.requests) == 2


@pytest.mark.parametrize(
    ("link", "is_followed"),
    [
        ("http://127.0.0.1:8001/pictures/a.png", True),
        ("http://127.0.0.1:8001/pictures-of-others/a.png", False),
        ("http://127.0.0.1:8001/pictures/../secret", False),
        ("http://127.0.0.1:8002/pictures/a.png", False),
        ("http://127.0.0.1/pictures/a.png", False),
        (LINK, False),
    ],
)
def test_follows_only_links_below_the_configured_address(
    drive: VendorDrive, link: str, is_followed: bool
) -> None:
    """Given an address of results, then links below it are followed, and no others."""
    urls = {**VENDORS["runpod"].base_urls, "images": "http://127.0.0.1:8001/pictures"}
    image = httpx.Response(200, content=PNG)
    with nullcontext() if is_followed else pytest.raises(ProviderError, match="not trusted"):
        assert read_drawn_image(drive, {"image_url": link}, image, base_urls=urls).image == PNG
    assert len(drive.requests) == (3 if is_followed else 2)


@pytest.mark.parametrize(
    ("answer", "retryable"),
    [
        (httpx.Response(503, text="later"), True),
        (ProviderError(ErrorCode.PROVIDER_TIMEOUT, "host did not answer in time."), True),
        (httpx.Response(404, text="gone"), False),
        (httpx.Response(403, text="expired"), False),
        (httpx.Response(302, headers={"location": "https://evil.example/"}), False),
        (httpx.Response(200, html="<html>"), False),
    ],
    ids=["503", "timeout", "404", "403", "redirect", "page"],
)
def test_reports_a_failing_result_link(
    drive: VendorDrive, answer: httpx.Response | Exception, retryable: bool
) -> None:
    """Given a link without an image, then the fault names the job and whether to retry."""
    with pytest.raises(ProviderError) as caught:
        drive(flow("runpod", IMAGE), ok(QUEUED), build_completed_job({"image_url": LINK}), answer)
    assert caught.value.retryable is retryable
    assert caught.value.vendor_request_id == "job-1"
    assert caught.value.code is not ErrorCode.PROVIDER_AUTH_FAILED


@pytest.mark.parametrize(
    ("output", "code"),
    [
        ({"error": f"NSFW, {SECRET}"}, ErrorCode.PROVIDER_REJECTED),
        ({"images": [], "errors": ["node 3: out of memory"]}, ErrorCode.PROVIDER_REJECTED),
        (None, ErrorCode.PROVIDER_BAD_RESPONSE),
        ({}, ErrorCode.PROVIDER_BAD_RESPONSE),
        ({"images": [{"data": "bm90IGFuIGltYWdl"}]}, ErrorCode.PROVIDER_BAD_RESPONSE),
        ({"images": ["data:image/png;base64,!!"]}, ErrorCode.PROVIDER_BAD_RESPONSE),
        (7, ErrorCode.PROVIDER_BAD_RESPONSE),
    ],
)
def test_rejects_an_output_without_an_image(
    drive: VendorDrive, output: object, code: ErrorCode
) -> None:
    """Given no image, then a worker's refusal and a bad output have different codes."""
    with pytest.raises(ProviderError) as caught:
        read_drawn_image(drive, output)
    assert caught.value.code is code
    assert SECRET not in caught.value.message


def test_own_endpoint_is_billed_by_the_second(drive: VendorDrive) -> None:
    """Given an endpoint, then the size is unchanged and the work is billed by the second."""
    request = replace(IMAGE, width=1000, height=632, negative_prompt="fog", seed=None)
    running = flow("runpod", request, endpoint="ep1x2y3z")
    reply = drive(running, ok(QUEUED), build_completed_job({"images": [DATA_URI], "cost": 9.0}))
    assert drive.requests[0].url.path == "/v2/ep1x2y3z/run"
    assert drive.body(0)["input"] == {
        "prompt": "a tidal mill",
        "negative_prompt": "fog",
        "num_inference_steps": 8,
        "width": 1000,
        "height": 632,
    }
    # The work, and a delay that may have been the worker's start.
    assert (reply.cost.units, reply.cost.reported_usd) == ({"gpu_seconds": 3.986 + 0.017}, None)


def test_rounds_down_to_a_size_of_flux(drive: VendorDrive) -> None:
    """Given a size between its steps, then the next smaller size is requested."""
    running = flow("runpod", replace(IMAGE, width=1200, height=632))
    drive(running, ok(QUEUED), build_completed_job(DATA_URI))
    fields = drive.body(0)["input"]
    assert (fields["width"], fields["height"]) == (1152, 576)


@pytest.mark.parametrize("job_id", ["../../v2/other/run", "a/b", "", "job 1", None, 7, "x" * 200])
def test_rejects_an_invalid_job_id(drive: VendorDrive, job_id: object) -> None:
    """Given an invalid job id, then the flow sends no request with it."""
    with pytest.raises(ProviderError, match="is not valid"):
        drive(flow("runpod", IMAGE), ok({"id": job_id, "status": "IN_QUEUE"}))
    assert len(drive.requests) == 1


@pytest.mark.parametrize("cost", [-1, "0.02", True, 10**400, None])
def test_ignores_an_invalid_cost(drive: VendorDrive, cost: object) -> None:
    """Given a cost that is no amount, then only the megapixels count."""
    reply = read_drawn_image(drive, {"image_url": DATA_URI, "cost": cost})
    assert reply.cost.reported_usd is None
    assert reply.cost.units["megapixels"] > 0


POD = "pod1"
IN_POD = "https://pod1-8000.proxy.runpod.net/runsync"


def test_waits_until_a_pod_is_up(drive: VendorDrive) -> None:
    """Given a pod whose worker is still starting, then the flow waits with a reason."""
    down = [httpx.Response(status, text="<html>") for status in (404, 502, 503)]
    completed = build_completed_job({"images": [DATA_URI], "seed": 9})
    reply = drive(flow("runpod", IMAGE, pod=POD), *down, completed)
    assert {str(r.url) for r in drive.requests} == {IN_POD}
    assert [p.detail for p in drive.pauses] == ["cold_start"] * 3
    assert "width" in drive.body()["input"]
    assert all("authorization" not in r.headers for r in drive.requests)
    assert (reply.image, reply.seed, reply.cost.reported_usd) == (PNG, 9, Decimal(0))


def test_gives_up_on_a_pod_without_a_worker(drive: VendorDrive) -> None:
    """Given a pod in which nothing listens, then the flow gives up after ten minutes."""
    with pytest.raises(ProviderError, match="No image worker") as failed:
        drive(flow("runpod", IMAGE, pod=POD), *[httpx.Response(502)] * 400)
    assert failed.value.code is ErrorCode.PROVIDER_TIMEOUT
    assert sum(p.seconds for p in drive.pauses) == pytest.approx(600, abs=3)
