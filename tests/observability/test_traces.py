"""Spans: their parents and their attributes."""

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode

from tests.observability.conftest import SECRET_WORDS, WatchedService

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"


def _parent(span: ReadableSpan) -> int:
    assert span.parent is not None
    return span.parent.span_id


def _id(span: ReadableSpan) -> int:
    assert span.context is not None
    return span.context.span_id


async def test_continues_the_trace_of_the_caller(watched: WatchedService) -> None:
    """Given a caller's trace, then request, workflow, jobs and calls continue it, in order."""
    watched.exporter.clear()
    workflow = await watched.chain(traceparent=f"00-{TRACE}-{PARENT}-01")
    spans = watched.spans()
    calls = [span for span in spans.values() if span.kind is SpanKind.CLIENT]
    assert len(spans) == 6
    assert {format(span.context.trace_id, "032x") for span in spans.values() if span.context} == {
        TRACE
    }
    request, run = spans["POST /v1/workflows"], spans["invoke_workflow"]
    assert _parent(request) == int(PARENT, 16)
    assert _parent(run) == _id(request)
    jobs = [span for name, span in spans.items() if name.startswith("job ")]
    assert {_parent(job) for job in jobs} == {_id(run)}
    assert {_parent(call) for call in calls} == {_id(job) for job in jobs}
    assert run.attributes is not None
    assert run.attributes["gen_ai.operation.name"] == "invoke_workflow"
    assert run.attributes["toolkit.workflow_id"] == workflow["id"]
    assert run.attributes["toolkit.status"] == "completed"


async def test_a_call_has_the_attributes_of_opentelemetry(watched: WatchedService) -> None:
    """Given a call for text, then its span has OpenTelemetry's attributes of such calls."""
    workflow = await watched.chain()
    (call,) = [span for name, span in watched.spans().items() if name.startswith("chat ")]
    assert call.attributes is not None
    job = next(node for node in workflow["nodes"] if node["id"] == "text")
    record = (await watched.send("GET", f"/v1/jobs/{job['job_id']}")).json()["data"]
    assert call.name == f"chat {call.attributes['gen_ai.request.model']}"
    names = [name for name in call.attributes if name.startswith("gen_ai.")]
    assert {name: call.attributes[name] for name in names} == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "minimax",
        "gen_ai.output.type": "text",
        "gen_ai.request.model": call.attributes["gen_ai.request.model"],
        "gen_ai.response.model": record["model"],
        "gen_ai.usage.input_tokens": record["usage"]["input_tokens"],
        "gen_ai.usage.output_tokens": record["usage"]["output_tokens"],
    }


async def test_failed_spans_have_the_error_code(watched: WatchedService) -> None:
    """Given a vendor that rejects a call, then call, job and workflow have only its code."""
    watched.exporter.clear()
    watched.faults.fail("minimax", status=400)
    await watched.chain()
    failed = [span for span in watched.spans().values() if span.kind is not SpanKind.SERVER]
    assert len(failed) == 3
    for span in failed:
        assert span.status.status_code is StatusCode.ERROR
        assert span.attributes is not None
        assert span.attributes["error.type"] == "PROVIDER_REJECTED"
        assert not span.events
        assert span.status.description is None


@pytest.mark.parametrize("status", [None, 400])
async def test_traces_no_content_and_no_key(watched: WatchedService, status: int | None) -> None:
    """Given work that completes or fails, then no span has a prompt, answer, key or address."""
    if status is not None:
        watched.faults.fail("minimax", status=status)
    await watched.chain()
    text = " ".join(span.to_json() for span in watched.exporter.get_finished_spans())
    key = watched.headers["Authorization"].removeprefix("Bearer ")
    for forbidden in (SECRET_WORDS, "ada@", key, "sandbox-minimax", "a letter"):
        assert forbidden not in text


async def test_starts_a_new_trace_for_an_invalid_header(watched: WatchedService) -> None:
    """Given an invalid trace header, then the request has a trace of its own."""
    watched.exporter.clear()
    await watched.send("GET", "/v1/runs", headers={"traceparent": "nonsense"})
    (span,) = watched.exporter.get_finished_spans()
    assert span.parent is None
