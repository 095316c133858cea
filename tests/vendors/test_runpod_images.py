"""RunPod's image workers: queueing, waiting, taking up again, and every shape of output."""

import base64
from dataclasses import replace
from decimal import Decimal
from typing import Any

import httpx
import pytest

from tests.vendors.conftest import IMAGE, PNG, SECRET, VENDORS, VendorDrive, flow, ok
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


def build_completed_job(output: object, **more: object) -> httpx.Response:
    """A finished job, transcribed from the vendor's page of the public endpoint."""
    done = {"id": "job-1", "status": "COMPLETED", "delayTime": 17, "executionTime": 3986}
    return ok({**done, "output": output, **more})


def read_drawn_image(
    drive: VendorDrive, output: object, *links: httpx.Response, **changes: Any
) -> ImageReply:
    """The reply that an output leads to."""
    reply = drive(flow("runpod", IMAGE, **changes), ok(QUEUED), build_completed_job(output), *links)
    assert isinstance(reply, ImageReply)
    return reply


def test_job_is_queued_polled_and_billed(drive: VendorDrive) -> None:
    """Given a cold worker, the flow stores the id first, waits with a reason and reads the cost."""
    output = {"image_url": DATA_URI, "cost": 0.005243}
    reply = drive(
        flow("runpod", IMAGE),
        ok(QUEUED),
        ok(QUEUED),
        ok(QUEUED),
        ok(RUNNING),
        build_completed_job(output),
    )
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
    """Given a queued job, the step that stores its id tells how to cancel it."""
    read_drawn_image(drive, DATA_URI)
    (step,) = drive.submitted
    assert step.vendor_job_id == "job-1"
    assert step.cancel is not None
    assert (step.cancel.method, str(step.cancel.url)) == ("POST", f"{JOBS}/{FLUX}/cancel/job-1")
    assert step.cancel.headers["authorization"] == f"Bearer {SECRET}"


def test_resumed_work_is_never_sent_again(drive: VendorDrive) -> None:
    """Given the id of work from before a crash, the flow only asks about it."""
    reply = drive(flow("runpod", IMAGE, resume="job-0"), ok(RUNNING), build_completed_job(DATA_URI))
    assert {r.method for r in drive.requests} == {"GET"}
    assert drive.requests[0].url.path.endswith("/status/job-0")
    assert drive.submitted[0].vendor_job_id == "job-0"
    assert reply.image == PNG


def test_long_queue_waits_for_capacity(drive: VendorDrive) -> None:
    """Given a queue that outlasts a worker's start, the reason shown changes."""
    waiting = [ok(QUEUED) for _ in range(40)]
    drive(flow("runpod", IMAGE), ok(QUEUED), *waiting, build_completed_job(DATA_URI))
    details = [p.detail for p in drive.pauses]
    assert details[0] == "cold_start"
    assert details[-1] == "waiting_capacity"
    assert details == sorted(details, key=str)


def test_patience_ends_and_the_job_is_cancelled(drive: VendorDrive) -> None:
    """Given a job that never ends, the flow cancels it at the vendor and gives up for good."""

    class Endless(list[httpx.Response | Exception]):
        def pop(self, _place: Any = 0) -> httpx.Response:
            return ok(QUEUED)

    drive.answers = Endless([ok(QUEUED)])
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
def test_lost_poll_is_asked_again(drive: VendorDrive, trouble: httpx.Response | Exception) -> None:
    """Given a poll that fails, the job goes on: asking again costs nothing."""
    reply = drive(flow("runpod", IMAGE), ok(QUEUED), trouble, build_completed_job(DATA_URI))
    assert reply.image == PNG


def test_poll_waits_as_long_as_it_is_told(drive: VendorDrive) -> None:
    """Given a 429 with a wait, the next poll comes no sooner."""
    busy = httpx.Response(429, json={}, headers={"retry-after": "9"})
    drive(flow("runpod", IMAGE), ok(QUEUED), busy, build_completed_job(DATA_URI))
    assert drive.pauses[0].seconds == 9


def test_job_out_of_reach_can_be_taken_up_again(drive: VendorDrive) -> None:
    """Given nothing but lost polls, the fault is worth a retry and names the job."""
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
def test_job_that_ends_badly(drive: VendorDrive, answer: httpx.Response, code: ErrorCode) -> None:
    """Given a job that has failed for good, the flow says how and is not tried again."""
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
    ],
    ids=["sdxl", "flux", "comfyui", "docs example", "base64", "data URI", "link and data"],
)
def test_every_worker_shape(drive: VendorDrive, output: object) -> None:
    """Given an output in any documented shape, the reply has the image's bytes."""
    reply = read_drawn_image(drive, output)
    assert (reply.image, reply.media_type) == (PNG, "image/png")
    assert len(drive.requests) == 2
    assert reply.seed in (None, 42)


@pytest.mark.parametrize(
    ("head", "media_type"),
    [
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
        (PNG, "image/png"),
    ],
)
def test_bytes_tell_the_media_type(drive: VendorDrive, head: bytes, media_type: str) -> None:
    """Given bytes under a wrong label, the reply's media type is what they are."""
    labelled = "data:image/gif;base64," + base64.b64encode(head).decode()
    assert read_drawn_image(drive, {"images": [labelled]}).media_type == media_type


def test_result_link_is_fetched_without_the_key(drive: VendorDrive) -> None:
    """Given a link to the vendor's own host of results, it is fetched bare."""
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
    """Given a link to anywhere else, nothing is fetched."""
    with pytest.raises(ProviderError, match="not trusted for results") as caught:
        read_drawn_image(drive, {"images": [link]})
    assert caught.value.code is ErrorCode.PROVIDER_BAD_RESPONSE
    assert caught.value.retryable is False
    assert len(drive.requests) == 2


def test_results_are_kept_where_the_operator_says() -> None:
    """Given another address of results, then links below it are followed, and no others."""
    urls = {**VENDORS["runpod"].base_urls, "images": "http://127.0.0.1:8001/pictures"}
    for link, followed in (
        ("http://127.0.0.1:8001/pictures/a.png", True),
        ("http://127.0.0.1:8001/pictures-of-others/a.png", False),
        ("http://127.0.0.1:8001/pictures/../secret", False),
        ("http://127.0.0.1:8002/pictures/a.png", False),
        ("http://127.0.0.1/pictures/a.png", False),
        (LINK, False),
    ):
        asked = VendorDrive()
        answers = [ok(QUEUED), build_completed_job({"image_url": link})]
        answers += [httpx.Response(200, content=PNG)] if followed else []
        running = flow("runpod", IMAGE, base_urls=urls)
        if followed:
            assert asked(running, *answers).image == PNG
        else:
            with pytest.raises(ProviderError, match="not trusted for results"):
                asked(running, *answers)


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
def test_result_link_that_fails(
    drive: VendorDrive, answer: httpx.Response | Exception, retryable: bool
) -> None:
    """Given a link that brings no image, the fault names the job and tells if it may yet."""
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
def test_output_without_an_image(drive: VendorDrive, output: object, code: ErrorCode) -> None:
    """Given a completed job without an image, a worker's refusal is told from a bad output."""
    with pytest.raises(ProviderError) as caught:
        read_drawn_image(drive, output)
    assert caught.value.code is code
    assert SECRET not in caught.value.message


def test_endpoint_of_ones_own(drive: VendorDrive) -> None:
    """Given an endpoint, the work goes there as asked and is billed by the second."""
    asked = replace(IMAGE, width=1000, height=632, negative_prompt="fog", seed=None)
    running = flow("runpod", asked, endpoint="ep1x2y3z")
    reply = drive(running, ok(QUEUED), build_completed_job({"images": [DATA_URI], "cost": 9.0}))
    assert drive.requests[0].url.path == "/v2/ep1x2y3z/run"
    assert drive.body(0)["input"] == {
        "prompt": "a tidal mill",
        "negative_prompt": "fog",
        "num_inference_steps": 8,
        "width": 1000,
        "height": 632,
    }
    # Its work, and a delay that may have been its start.
    assert (reply.cost.units, reply.cost.reported_usd) == ({"gpu_seconds": 3.986 + 0.017}, None)


def test_flux_gets_sizes_that_it_takes(drive: VendorDrive) -> None:
    """Given a size between its steps, the next smaller one is asked for: the estimate holds."""
    running = flow("runpod", replace(IMAGE, width=1200, height=632))
    drive(running, ok(QUEUED), build_completed_job(DATA_URI))
    asked = drive.body(0)["input"]
    assert (asked["width"], asked["height"]) == (1152, 576)


@pytest.mark.parametrize("named", ["../../v2/other/run", "a/b", "", "job 1", None, 7, "x" * 200])
def test_odd_job_id_goes_into_no_path(drive: VendorDrive, named: object) -> None:
    """Given an id that is none, the flow asks for nothing by it."""
    with pytest.raises(ProviderError, match="is not valid"):
        drive(flow("runpod", IMAGE), ok({"id": named, "status": "IN_QUEUE"}))
    assert len(drive.requests) == 1


@pytest.mark.parametrize("cost", [-1, "0.02", True, 10**400, None])
def test_senseless_cost_is_not_reported(drive: VendorDrive, cost: object) -> None:
    """Given a cost that is no amount, only the megapixels count."""
    reply = read_drawn_image(drive, {"image_url": DATA_URI, "cost": cost})
    assert reply.cost.reported_usd is None
    assert reply.cost.units["megapixels"] > 0


POD = "pod1"
IN_POD = "https://pod1-8000.proxy.runpod.net/runsync"


def test_a_pod_is_asked_until_it_is_up(drive: VendorDrive) -> None:
    """Given a pod whose worker is not up yet, the flow waits with a reason, then has the image."""
    down = [httpx.Response(status, text="<html>") for status in (404, 502, 503)]
    done = ok({"id": "test-1", "status": "COMPLETED", "output": {"images": [DATA_URI], "seed": 9}})
    reply = drive(flow("runpod", IMAGE, pod=POD), *down, done)
    assert {str(r.url) for r in drive.requests} == {IN_POD}
    assert [p.detail for p in drive.pauses] == ["cold_start"] * 3
    assert "width" in drive.body()["input"]
    assert all("authorization" not in r.headers for r in drive.requests)
    assert (reply.image, reply.seed, reply.cost.reported_usd) == (PNG, 9, Decimal(0))


def test_a_pod_without_a_worker(drive: VendorDrive) -> None:
    """Given a pod in which nothing ever listens, the flow gives up, and says after how long."""
    with pytest.raises(ProviderError, match="No image worker") as failed:
        drive(flow("runpod", IMAGE, pod=POD), *[httpx.Response(502)] * 400)
    assert failed.value.code is ErrorCode.PROVIDER_TIMEOUT
    assert sum(p.seconds for p in drive.pauses) == pytest.approx(600, abs=3)


@pytest.mark.parametrize("pod", ["a/b", "evil.example/", "", "x@y"])
def test_a_pod_is_no_address(drive: VendorDrive, pod: str) -> None:
    """Given what is no id, nothing is sent anywhere."""
    with pytest.raises(ProviderError, match="is not valid"):
        drive(flow("runpod", IMAGE, pod=pod))
    assert drive.requests == []
