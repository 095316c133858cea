"""Failures of every vendor: each has one of our codes, and never quotes the key."""

import re
import time
from collections.abc import Callable
from dataclasses import replace
from email.utils import formatdate
from typing import Any

import httpx
import pytest

from tests.vendors.conftest import (
    CLONE,
    IMAGE,
    OPERATIONS,
    SECRET,
    SPEECH,
    TEXT,
    VendorDrive,
    each_operation,
    flow,
)
from toolkit.contract.errors import ErrorCode
from toolkit.plugins import ImageRequest, Operation, ProviderError

AUTH = ErrorCode.PROVIDER_AUTH_FAILED
RATE = ErrorCode.PROVIDER_RATE_LIMITED
DOWN = ErrorCode.PROVIDER_UNAVAILABLE
REFUSED = ErrorCode.PROVIDER_REJECTED
BAD = ErrorCode.PROVIDER_BAD_RESPONSE
SLOW = ErrorCode.PROVIDER_TIMEOUT
JSON_TYPE = {"content-type": "application/json"}


def fault_of(
    drive: VendorDrive, running: Any, *answers: httpx.Response | Exception
) -> ProviderError:
    """Return the fault that a flow ends with."""
    with pytest.raises(ProviderError) as caught:
        drive(running, *answers)
    return caught.value


def in_seconds(seconds: float, *, usegmt: bool = True) -> str:
    """Return the HTTP date of a time from now."""
    return formatdate(time.time() + seconds, usegmt=usegmt)


# By name: the answer, the code of the failure, and whether to retry.
HTTP_FAILURES: dict[str, tuple[int, dict[str, Any], ErrorCode, bool]] = {
    "bad key": (401, {"json": {"error": {"message": f"Incorrect key: {SECRET}"}}}, AUTH, False),
    "key without rights": (403, {"json": {"detail": "no"}}, AUTH, False),
    "out of credit": (402, {"json": {"error": "balance"}}, RATE, False),
    "timeout": (408, {"json": {}}, SLOW, True),
    "conflict": (409, {"json": {}}, DOWN, True),
    "rate": (429, {"json": {"error": {"message": "slow down"}}}, RATE, True),
    "server": (500, {"json": {"error": {"message": "oops"}}}, DOWN, True),
    "gateway's page": (502, {"html": "<h1>Bad Gateway</h1>"}, DOWN, True),
    "overloaded": (529, {"json": {}}, DOWN, True),
    "no such model": (404, {"json": {"error": {"code": 1}}}, REFUSED, False),
    "bad request": (400, {"json": {"error": "prompt?"}}, REFUSED, False),
    "unprocessable": (422, {"json": {"detail": [1]}}, REFUSED, False),
    "too large": (413, {"text": "too large"}, REFUSED, False),
    "redirect": (302, {"headers": {"location": "http://x/"}}, BAD, False),
    "truncated JSON": (200, {"content": b'{"id": "1", "cho', "headers": JSON_TYPE}, BAD, True),
    "HTML page": (200, {"html": "<html>Sign in</html>"}, BAD, True),
    "empty body": (200, {"content": b""}, BAD, True),
    "wrong type": (200, {"content": b"{}", "headers": {"content-type": "image/png"}}, BAD, True),
    "a list": (200, {"json": [1, 2]}, BAD, True),
    "a number": (200, {"json": 7}, BAD, True),
    "NaN": (200, {"content": b'{"id": NaN}', "headers": JSON_TYPE}, BAD, True),
    "deep nesting": (200, {"content": b"[" * 200_000, "headers": JSON_TYPE}, BAD, True),
    "not UTF-8": (200, {"content": b'{"\xff": 1}', "headers": JSON_TYPE}, BAD, True),
}


@each_operation
@pytest.mark.parametrize("failure", HTTP_FAILURES)
def test_maps_an_http_failure(
    drive: VendorDrive, vendor: str, operation: Operation[Any], failure: str
) -> None:
    """Given a failing answer, then the fault has code, status and request id, but no key."""
    status, body, code, retryable = HTTP_FAILURES[failure]
    if (vendor, failure) == ("runpod", "conflict"):  # "not valid for the current status"
        code, retryable = REFUSED, False
    answer = httpx.Response(status, **body)
    answer.headers["x-request-id"] = "req_abc"
    fault = fault_of(drive, flow(vendor, operation), answer)
    assert (fault.code, fault.retryable) == (code, retryable)
    assert fault.status == answer.status_code
    assert fault.vendor_request_id == "req_abc"
    assert vendor in fault.message
    assert SECRET not in fault.message
    assert SECRET[:8] not in fault.message
    assert len(fault.message) < 300
    assert drive.answers == []


@each_operation
@pytest.mark.parametrize(
    ("headers", "low", "high"),
    [
        pytest.param({"retry-after": "7"}, 7, 7, id="seconds"),
        pytest.param({"retry-after": "1.5"}, 1.5, 1.5, id="fraction"),
        pytest.param({"retry-after-ms": "250", "retry-after": "9"}, 0.25, 0.25, id="milliseconds"),
        pytest.param({"retry-after": lambda: in_seconds(36_000)}, 3600, 3600, id="date"),
        pytest.param(
            {"retry-after": lambda: in_seconds(1_000, usegmt=False)}, 1, 1_000, id="no zone"
        ),
        pytest.param({"retry-after": "99999999999"}, 3600, 3600, id="years"),
        pytest.param({"retry-after-ms": "9" * 20}, 3600, 3600, id="years of ms"),
        pytest.param({"retry-after": lambda: in_seconds(-30)}, 0, 0, id="past date"),
    ],
)
def test_retry_after_is_read(
    drive: VendorDrive,
    vendor: str,
    operation: Operation[Any],
    headers: dict[str, str | Callable[[], str]],
    low: float,
    high: float,
) -> None:
    """Given a 429 with a wait in any of its forms, then the fault has the seconds."""
    # The date is computed now because the tests may have started long ago.
    sent = {name: value if isinstance(value, str) else value() for name, value in headers.items()}
    fault = fault_of(drive, flow(vendor, operation), httpx.Response(429, json={}, headers=sent))
    assert fault.code is RATE
    assert fault.retry_after is not None
    assert low <= fault.retry_after <= high


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        *((value, 3600) for value in ("soon", "-5", "nan", "1e9", "9" * 400, "Fri, 99 Nov 2026")),
        ("", None),
    ],
)
def test_invalid_retry_after_is_an_hour(
    drive: VendorDrive, value: str, seconds: float | None
) -> None:
    """Given an invalid wait, then the fault has the longest wait, or None for an empty header."""
    answer = httpx.Response(429, json={}, headers={"retry-after": value})
    assert fault_of(drive, flow("openai", TEXT), answer).retry_after == seconds


UNRESOLVED = ErrorCode.SECRET_UNRESOLVED


@pytest.mark.parametrize(
    ("vendor", "operation", "changes", "words", "code"),
    [
        ("aws", TEXT, {"secret": "{"}, "", UNRESOLVED),
        ("aws", TEXT, {"secret": "{}"}, "", UNRESOLVED),
        ("aws", TEXT, {"secret": '{"access_key_id": "A"}'}, "", UNRESOLVED),
        ("aws", TEXT, {"secret": '{"access_key_id": 1, "secret_access_key": 2}'}, "", UNRESOLVED),
        ("elevenlabs", replace(SPEECH, voice="."), {}, "cannot be", REFUSED),
        ("elevenlabs", replace(SPEECH, voice=".."), {}, "cannot be", REFUSED),
        ("elevenlabs", replace(SPEECH, speed=0.5), {}, r"0\.7 to 1\.2", REFUSED),
        ("elevenlabs", replace(SPEECH, speed=2.0), {}, r"0\.7 to 1\.2", REFUSED),
        ("minimax", replace(CLONE, media_type="audio/ogg"), {}, "MP3, M4A and WAV", REFUSED),
        ("runpod", IMAGE, {"pod": "a/b"}, "is not valid", BAD),
        ("runpod", IMAGE, {"pod": "evil.example/"}, "is not valid", BAD),
        ("runpod", IMAGE, {"pod": ""}, "is not valid", BAD),
        ("runpod", IMAGE, {"pod": "x@y"}, "is not valid", BAD),
    ],
)
def test_sends_no_invalid_request(
    drive: VendorDrive,
    vendor: str,
    operation: Operation[Any],
    changes: dict[str, Any],
    words: str,
    code: ErrorCode,
) -> None:
    """Given a malformed secret, voice, speed, audio or pod, then nothing is sent."""
    fault = fault_of(drive, flow(vendor, operation, **changes))
    assert (fault.code, drive.requests) == (code, [])
    assert re.search(words, fault.message)


@pytest.mark.parametrize(("value", "retryable"), [("true", True), ("false", False), ("?", True)])
def test_should_retry_header_is_obeyed(drive: VendorDrive, value: str, retryable: bool) -> None:
    """Given `x-should-retry`, then it overrides the status."""
    answer = httpx.Response(500, json={}, headers={"x-should-retry": value})
    assert fault_of(drive, flow("openai", TEXT), answer).retryable is retryable


@each_operation
def test_key_goes_into_the_header_alone(
    drive: VendorDrive, vendor: str, operation: Operation[Any]
) -> None:
    """Given any operation, then the key is in the vendor's header, not in the URL or body."""
    fault_of(drive, flow(vendor, operation), httpx.Response(500, json={}))
    request = drive.requests[0]
    headers = {"anthropic": "x-api-key", "google": "x-goog-api-key", "elevenlabs": "xi-api-key"}
    header = headers.get(vendor)
    carried = request.headers[header or "authorization"]
    assert carried == (SECRET if header else f"Bearer {SECRET}")
    assert SECRET not in str(request.url)
    assert SECRET.encode() not in request.content
    assert request.url.scheme == "https"


@each_operation
@pytest.mark.parametrize("secret", ["two\nlines", "clé", "tab\there"])
def test_rejects_a_secret_that_fits_no_header(
    drive: VendorDrive, vendor: str, operation: Operation[Any], secret: str
) -> None:
    """Given a secret with a line break or a foreign letter, then it is not sent or quoted."""
    fault = fault_of(drive, flow(vendor, operation, secret=secret))
    assert fault.code is ErrorCode.SECRET_UNRESOLVED
    assert secret not in fault.message
    assert drive.requests == []


@each_operation
def test_lost_connection_passes_through(
    drive: VendorDrive, vendor: str, operation: Operation[Any]
) -> None:
    """Given the driver's own fault at the first request, then the flow raises it unchanged."""
    lost = ProviderError(SLOW, "host did not answer in time.")
    assert fault_of(drive, flow(vendor, operation), lost) is lost


@pytest.mark.parametrize(
    "echo",
    [
        f"the header Authorization: Bearer {SECRET} is odd",
        f"key {SECRET[:10]}************ is odd",
        f"{SECRET}\n\x1b[31m" + "x" * 500,
    ],
)
def test_removes_an_echoed_key(drive: VendorDrive, echo: str) -> None:
    """Given a refusal that echoes the key or a part, then the quoted text is clean and short."""
    answer = httpx.Response(400, json={"error": {"message": echo}})
    message = fault_of(drive, flow("openai", TEXT), answer).message
    assert SECRET[:8] not in message
    assert "[key]" in message
    assert message.isprintable()
    assert len(message) < 260


@pytest.mark.parametrize(
    ("place", "words"),
    [({"endpoint": "ep9k2"}, "the endpoint is paused"), ({"pod": "ep9k2"}, "the pod is paused")],
)
def test_removes_the_vendors_ids(drive: VendorDrive, place: dict[str, str], words: str) -> None:
    """Given a refusal that names the endpoint or pod, then its id is removed."""
    answer = httpx.Response(400, json={"error": "ep9k2 is paused"})
    fault = fault_of(drive, flow("runpod", ImageRequest(prompt="a mill"), **place), answer)
    assert words in fault.message
    assert "ep9k2" not in fault.message


MINIMAX_CODES: dict[int | str, tuple[ErrorCode, bool]] = {
    **dict.fromkeys((1004, 2049), (AUTH, False)),
    **dict.fromkeys((1008, 2056, 2061), (RATE, False)),
    **dict.fromkeys((1002, 1039, 1041, 2045), (RATE, True)),
    **dict.fromkeys((1000, 1013, 1024, 1033), (DOWN, True)),
    1001: (SLOW, True),
    **dict.fromkeys(
        (1026, 1027, 1042, 2013, 2037, 2038, 2039, 20132, 987654, "1004"), (REFUSED, False)
    ),
}


@pytest.mark.parametrize("place", range(3), ids=["text", "speech", "clone"])
@pytest.mark.parametrize("status", MINIMAX_CODES)
def test_minimax_fails_with_status_200(drive: VendorDrive, place: int, status: int | str) -> None:
    """Given HTTP 200 with a code in base_resp, then every flow fails by the vendor's table."""
    code, retryable = MINIMAX_CODES[status]
    body = {
        "trace_id": "06542dec",
        "base_resp": {"status_code": status, "status_msg": f"said with {SECRET}"},
    }
    running = flow("minimax", OPERATIONS[place][1])
    fault = fault_of(drive, running, httpx.Response(200, json=body))
    assert (fault.code, fault.retryable) == (code, retryable)
    assert fault.vendor_request_id == "06542dec"
    assert SECRET not in fault.message
    assert len(drive.requests) == 1


def test_openai_quota_is_no_rate_limit(drive: VendorDrive) -> None:
    """Given 429 insufficient_quota, then the fault is not retryable."""
    error = {"message": "You exceeded your quota.", "type": "insufficient_quota", "param": None}
    answer = httpx.Response(429, json={"error": {**error, "code": "insufficient_quota"}})
    fault = fault_of(drive, flow("openai", TEXT), answer)
    assert (fault.code, fault.retryable) == (RATE, False)
    assert "out of credit or quota" in fault.message


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(500, json={"error": {"message": "oops"}}),
        httpx.Response(401, json={"error": {"message": "no"}}),
        httpx.Response(200, json={"choices": []}),
        httpx.Response(200, html="<html>"),
    ],
    ids=["outage", "key", "no message", "page"],
)
def test_fault_names_a_compatible_vendor(drive: VendorDrive, answer: httpx.Response) -> None:
    """Given a vendor that uses openai's flow, then its faults name it and not openai."""
    fault = fault_of(drive, flow("openai", TEXT, vendor="ollama"), answer)
    assert "ollama" in fault.message
    assert "openai" not in fault.message
