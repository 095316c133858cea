"""The metrics for Prometheus."""

import asyncio
import re
from pathlib import Path

import httpx
import pytest
from prometheus_client import CollectorRegistry

from tests.observability.conftest import CHAIN, WatchedService
from tests.support.timing import wait_until_async
from toolkit.contract.errors import ServiceError
from toolkit.observability.metrics_server import serve_metrics

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
