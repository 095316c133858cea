"""Arbitrary JSON as an answer: a flow ends in a reply or in a fault of the vendor."""

import json
from typing import Any

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.vendors.conftest import SECRET, VENDORS, VendorDrive, access, each_operation, flow
from toolkit.plugins import Operation, ProviderError, Reply
from toolkit.plugins.infrastructure import (
    EndpointCreation,
    GpuListing,
    ResourceDeletion,
    ResourceQuery,
)

# Members of the vendors' answers.
NAMES = [
    *("id", "model", "choices", "message", "content", "refusal", "finish_reason", "text"),
    *("usage", "prompt_tokens", "completion_tokens", "error", "code", "param", "detail"),
    *("base_resp", "status_code", "status_msg", "trace_id", "data", "audio", "extra_info"),
    *("file", "file_id", "usage_characters", "audio_length", "status", "output", "images"),
    *("image", "image_url", "seed", "cost", "executionTime", "templateId", "name", "gpu"),
    *("pools", "workers", "min", "max", "gpus", "price", "memory", "pool"),
]
WORDS = ("COMPLETED", "IN_QUEUE", "FAILED", "stop", "length", "fffb", "a-1", "https://x/", SECRET)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.sampled_from(WORDS)
    | st.text(max_size=8)
)
ANSWERS = st.recursive(
    SCALARS,
    lambda inside: (
        st.lists(inside, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inside, max_size=6)
    ),
    max_leaves=25,
)
quickly = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


class Always(list[httpx.Response | Exception]):
    """The same answer for each request."""

    def pop(self, _place: Any = 0) -> httpx.Response | Exception:
        """Return the answer without removing it."""
        return self[0]


def check_end(running: Any, body: object, status: int) -> None:
    """Drive a flow on one answer, and check its reply or fault."""
    answer = httpx.Response(
        status, content=json.dumps(body).encode(), headers={"content-type": "application/json"}
    )
    try:
        end = VendorDrive(Always([answer]))(running)
    except ProviderError as fault:
        end = fault
    if isinstance(end, ProviderError):
        assert SECRET not in end.message
        assert end.message.isprintable()
    else:
        assert isinstance(end, Reply)
        assert SECRET not in end.model
        assert all(count >= 0 for count in end.cost.units.values())


@each_operation
@given(body=ANSWERS, status=st.sampled_from([200, 200, 200, 400, 429, 500]))
@quickly
def test_operation_ends_in_a_reply_or_a_fault(
    vendor: str, operation: Operation[Any], body: object, status: int
) -> None:
    """Given any JSON at every step, then an operation ends, and its end has no key."""
    check_end(flow(vendor, operation), body, status)


INFRASTRUCTURE: list[Operation[Any]] = [
    EndpointCreation(name="pictures", gpu_pool="ADA_24"),
    ResourceQuery(resource="endpoint"),
    ResourceDeletion(resource="endpoint", vendor_id="ep1"),
    GpuListing(),
    ResourceQuery(resource="pod"),
]


@given(
    operation=st.sampled_from(INFRASTRUCTURE),
    body=ANSWERS,
    status=st.sampled_from([200, 200, 404, 500]),
)
@quickly
def test_infrastructure_ends_in_a_reply_or_a_fault(
    operation: Operation[Any], body: object, status: int
) -> None:
    """Given any JSON at every step, then an operation on infrastructure ends likewise."""
    build_flow = VENDORS["runpod"].infrastructure[operation.kind]
    check_end(build_flow(operation, access("runpod", "image")), body, status)
