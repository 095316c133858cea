"""Metrics and traces."""

import asyncio
import re
from pathlib import Path

import httpx
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode
from prometheus_client import CollectorRegistry

from tests.observability.conftest import CHAIN, SECRET_WORDS, WatchedService
from tests.support.timing import wait_until_async
from toolkit.contract.errors import ServiceError
from toolkit.observability.metrics import serve_metrics

PAGE = (Path(__file__).parents[2] / "docs" / "observability.md").read_text(encoding="utf-8")

ROW = re.compile(r"^\| `(toolkit_\w+)` \|([^|]*)\|", re.M)


async def test_the_page_lists_each_metric(watched: WatchedService) -> None:
    """Given a workflow that ended, then the page lists each metric with its labels."""
    await watched.chain()
    metrics = {
        family.name + ("_total" if family.type == "counter" else ""): {
            label for sample in family.samples for label in sample.labels if label != "le"
        }
        for family in watched.metrics.registry.collect()
    }
    listed = {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in ROW.findall(PAGE)}
    assert listed == metrics


async def test_counts_requests_by_route(watched: WatchedService) -> None:
    """Given unknown paths and methods, then all of them share a label."""
    for number in range(20):
        await watched.send("GET", f"/v1/secret-{number}")
        await watched.send(f"BREW{number}", "/v1/runs")
    assert watched.value("http_requests_total", method="GET", route="unknown", status="404") == 20
    assert (
        watched.value("http_requests_total", method="OTHER", route="/v1/runs", status="405") == 20
    )
    assert watched.value("http_request_duration_seconds_count", method="GET", route="unknown") == 20
    assert watched.value("http_requests_in_progress") == 0


async def test_counts_jobs_calls_and_costs(watched: WatchedService) -> None:
    """Given a workflow that ended, then its jobs, calls, cost and commits are counted."""
    workflow = await watched.chain()
    for capability in ("llm.generate@1", "speech.generate@1"):
        labels = {"capability": capability, "provider": "minimax", "status": "completed"}
        assert watched.value("jobs_total", **labels) == 1
        assert watched.value("job_queue_seconds_count", capability=capability) == 1
    assert watched.value("vendor_calls_total", provider="minimax", outcome="completed") == 2
    assert watched.value("cost_dollars_total", provider="minimax") == pytest.approx(
        workflow["cost_incurred_usd"]
    )
    assert watched.value("store_commit_seconds_count") > 3
    assert watched.value("jobs_running") == watched.value("jobs_waiting") == 0


async def test_shows_the_outcomes_and_the_breaker_of_a_vendor(watched: WatchedService) -> None:
    """Given a vendor that fails until its breaker opens, then outcomes and breaker show it."""
    assert watched.value("connections", provider="minimax", breaker="open") == 0
    watched.faults.fail("minimax", status=503)
    run = {"target": "capability", "name": "llm.generate", "input": {"objective": "Tea"}}
    for _ in range(2):
        await watched.send("POST", "/v1/runs", json=run, headers={"Prefer": "wait=1"})
    labels = {"provider": "minimax", "outcome": "PROVIDER_UNAVAILABLE"}
    assert watched.value("vendor_calls_total", **labels) == 5
    assert watched.value("connections", provider="minimax", breaker="open") == 1


async def test_shows_running_jobs_and_open_streams(watched: WatchedService) -> None:
    """Given a slow vendor, then the running job and the stream that follows it are counted."""
    watched.faults.latency("minimax", mean_ms=100)
    accepted = (await watched.send("POST", "/v1/workflows", json=CHAIN)).json()["data"]
    path, headers = f"/v1/workflows/{accepted['id']}/events", {"Accept": "text/event-stream"}
    stream = asyncio.create_task(watched.send("GET", path, headers=headers))
    for name in ("event_streams_open", "jobs_running"):
        await wait_until_async(lambda name=name: watched.value(name) == 1)
    await stream
    assert watched.value("event_streams_open") == watched.value("jobs_running") == 0


async def test_the_metrics_port_serves_only_metrics() -> None:
    """Given the port, then only `/metrics` is served; a taken port is rejected."""
    async with (
        serve_metrics(CollectorRegistry(), "127.0.0.1", 0) as url,
        httpx.AsyncClient(trust_env=False) as http,
    ):
        assert (await http.get(url)).status_code == 200
        assert (await http.post(url)).status_code == 405
        for path in ("/", "/v1/health", "/metrics/"):
            assert (await http.get(httpx.URL(url).copy_with(path=path))).status_code in (307, 404)
        port = httpx.URL(url).port or 0
        with pytest.raises(ServiceError, match="UNAVAILABLE"):
            async with serve_metrics(CollectorRegistry(), "127.0.0.1", port):
                pass


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
