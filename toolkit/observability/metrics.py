"""Prometheus metrics, in a registry of their own; docs/observability.md lists them.

Labels have few values: registered names, and the contract's names. No ids, no caller's text.
"""

import asyncio
import time
from collections import Counter as Tally
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import uvicorn
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from toolkit.contract.jobs import FINAL_STATUSES
from toolkit.contract.money import ZERO_USD, to_wire_usd
from toolkit.engine.job_record import AttemptRecord
from toolkit.engine.observer import GateState, ObservedJob, Observer
from toolkit.plugins import Vendor
from toolkit.server.listening import bind_socket
from toolkit.server.middleware.telemetry import HttpExchange

NO_PROVIDER = "none"

_REQUEST_BUCKETS = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
)  # fmt: skip
_JOB_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0)
_COMMIT_BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0)


class MetricsObserver(Observer):
    """An observer that keeps a server's counters, histograms and gauges.

    Attributes:
        gate_states: returns the state of the engine's connections; empty without an engine.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.gate_states: Callable[[], list[GateState]] = list
        self._live_gauges = _LiveGauges(lambda: self.gate_states())
        self.registry.register(self._live_gauges)
        self._requests = self._add_counter(
            "http_requests", "Requests answered.", "method", "route", "status"
        )
        self._request_s = self._add_histogram(
            "http_request_duration_seconds", "Time from a request to the end of its response.",
            _REQUEST_BUCKETS, "method", "route",
        )  # fmt: skip
        self._jobs = self._add_counter("jobs", "Jobs ended.", "capability", "provider", "status")
        self._job_s = self._add_histogram(
            "job_duration_seconds",
            "Time from a job's start to its end.",
            _JOB_BUCKETS,
            "capability",
            "status",
        )
        self._queue_s = self._add_histogram(
            "job_queue_seconds",
            "Time from a job's acceptance to its start.",
            _JOB_BUCKETS,
            "capability",
        )
        self._calls = self._add_counter("vendor_calls", "Calls to vendors.", "provider", "outcome")
        self._call_s = self._add_histogram(
            "vendor_call_duration_seconds",
            "Duration of a call to a vendor.",
            _JOB_BUCKETS,
            "provider",
        )
        self._cost = self._add_counter("cost_dollars", "Cost of calls to vendors.", "provider")
        self._commit_s = self._add_histogram(
            "store_commit_seconds", "Duration of a commit to the store.", _COMMIT_BUCKETS
        )

    def _add_counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"toolkit_{name}", text, labels, registry=self.registry)

    def _add_histogram(
        self, name: str, text: str, buckets: tuple[float, ...], *labels: str
    ) -> Histogram:
        return Histogram(f"toolkit_{name}", text, labels, registry=self.registry, buckets=buckets)

    @contextmanager
    def request(self, exchange: HttpExchange) -> Iterator[None]:
        """Count and time one HTTP exchange (a request and its answer)."""
        began = time.perf_counter()
        self._live_gauges.exchanges.add(exchange)
        try:
            yield
        finally:
            self._live_gauges.exchanges.discard(exchange)
            method, route = exchange.method, exchange.route
            self._requests.labels(method, route, str(exchange.status)).inc()
            self._request_s.labels(method, route).observe(time.perf_counter() - began)

    @contextmanager
    def watch_job(self, observed: ObservedJob) -> Iterator[None]:
        """Count and time a job."""
        self._live_gauges.jobs[observed.job.id] = observed
        try:
            yield
        finally:
            self._live_gauges.jobs.pop(observed.job.id, None)
            if observed.job.status in FINAL_STATUSES:
                self._count_ended_job(observed)

    def _count_ended_job(self, observed: ObservedJob) -> None:
        job = observed.job
        self._jobs.labels(job.capability, job.provider or NO_PROVIDER, job.status).inc()
        if job.latency_ms is not None:
            self._job_s.labels(job.capability, job.status).observe(job.latency_ms / 1000)
        if job.queue_ms is not None:
            self._queue_s.labels(job.capability).observe(job.queue_ms / 1000)

    @contextmanager
    def watch_call(
        self,
        observed: ObservedJob,  # noqa: ARG002
        attempt: AttemptRecord,
        vendor: Vendor,
    ) -> Iterator[None]:
        """Count and time one call to a vendor."""
        began = time.perf_counter()
        try:
            yield
        finally:
            outcome = attempt.error.code if attempt.error is not None else attempt.status
            self._calls.labels(vendor.id, outcome).inc()
            self._call_s.labels(vendor.id).observe(time.perf_counter() - began)
            self._cost.labels(vendor.id).inc(to_wire_usd(attempt.cost_usd or ZERO_USD))

    def record_commit(self, seconds: float) -> None:
        """Record how long a commit took."""
        self._commit_s.observe(seconds)


@dataclass(eq=False)
class _LiveGauges(Collector):
    """Gauges that are read when they are scraped: requests, jobs and connections in progress."""

    gate_states: Callable[[], list[GateState]]
    exchanges: set[HttpExchange] = field(default_factory=set)
    jobs: dict[str, ObservedJob] = field(default_factory=dict)

    def collect(self) -> Iterator[Metric]:
        """Yield the gauges with their current values, for a scrape by Prometheus."""
        exchanges = list(self.exchanges)
        streams = sum(exchange.streaming for exchange in exchanges)
        states = Tally(observed.job.status for observed in self.jobs.values())
        waiting, breakers = Tally[tuple[str, ...]](), Tally[tuple[str, ...]]()
        for lane in self.gate_states():
            waiting[lane.provider,] += lane.waiting
            breakers[lane.provider, lane.breaker] += 1
        gauges: list[tuple[str, str, Mapping[tuple[str, ...], int], tuple[str, ...]]] = [
            ("http_requests_in_progress", "Requests in progress.", {(): len(exchanges)}, ()),
            ("event_streams_open", "Open event streams.", {(): streams}, ()),
            ("jobs_running", "Running jobs.", {(): states["running"]}, ()),
            ("jobs_waiting", "Queued jobs.", {(): states["queued"]}, ()),
            ("vendor_calls_waiting", "Calls waiting for a concurrency slot.", waiting,
             ("provider",)),
            ("connections", "Connections by the state of their circuit breaker.", breakers,
             ("provider", "breaker")),
        ]  # fmt: skip
        for name, text, values, labels in gauges:
            gauge = GaugeMetricFamily(f"toolkit_{name}", text, labels=labels)
            for key, value in values.items():
                gauge.add_metric(key, value)
            yield gauge


@asynccontextmanager
async def serve_metrics(registry: CollectorRegistry, host: str, port: int) -> AsyncIterator[str]:
    """Serve the metrics of a registry over HTTP, until the block ends.

    Args:
        port: port number; 0 picks any free port.

    Yields:
        the URL to scrape.

    Raises:
        ServiceError: `UNAVAILABLE` if the address is in use.
    """

    async def show_metrics(_request: Request) -> Response:
        return Response(generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    listener = bind_socket(host, port, purpose="metrics")
    config = uvicorn.Config(
        Starlette(routes=[Route("/metrics", show_metrics)]),
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    # Not `serve`, which would install signal handlers.
    serving = asyncio.create_task(server._serve(sockets=[listener]), name="metrics")
    try:
        yield f"http://{host}:{listener.getsockname()[1]}/metrics"
    finally:
        server.should_exit = True
        await serving
