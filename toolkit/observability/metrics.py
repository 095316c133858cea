"""Prometheus metrics, in a registry of their own; docs/observability.md lists them.

Labels have few values: what is registered, and what the contract names. No ids, no caller's text.
"""

import time
from collections import Counter as Tally
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from toolkit.contract.jobs import FINAL_STATUSES, Attempt
from toolkit.engine.telemetry import LaneState, Span, Unobserved
from toolkit.engine.work import Work
from toolkit.plugins import Vendor
from toolkit.server.telemetry import Exchange

NOBODY = "none"

_QUICK = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_LONG = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0)
_COMMIT = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0)


class Metrics(Unobserved):
    """An observer that keeps a server's counters, histograms and gauges.

    Attributes:
        registry: the registry to serve.
        gate_states: returns the state of the engine's connections; empty without an engine.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.lanes: Callable[[], list[LaneState]] = list
        self._present = _Present(lambda: self.lanes())
        self.registry.register(self._present)
        self._requests = self._counter(
            "http_requests", "Requests answered.", "method", "route", "status"
        )
        self._request_s = self._histogram(
            "http_request_duration_seconds", "From a request to the last byte of its answer.",
            _QUICK, "method", "route",
        )  # fmt: skip
        self._jobs = self._counter("jobs", "Jobs ended.", "capability", "provider", "status")
        self._job_s = self._histogram(
            "job_duration_seconds", "From a job's start to its end.", _LONG, "capability", "status"
        )
        self._queue_s = self._histogram(
            "job_queue_seconds", "From a job's acceptance to its start.", _LONG, "capability"
        )
        self._calls = self._counter("vendor_calls", "Calls to vendors.", "provider", "outcome")
        self._call_s = self._histogram(
            "vendor_call_duration_seconds", "A call to a vendor.", _LONG, "provider"
        )
        self._cost = self._counter("cost_dollars", "What calls to vendors cost.", "provider")
        self._commit_s = self._histogram(
            "store_commit_seconds", "How long the store took to commit.", _COMMIT
        )

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"toolkit_{name}", text, labels, registry=self.registry)

    def _histogram(
        self, name: str, text: str, buckets: tuple[float, ...], *labels: str
    ) -> Histogram:
        return Histogram(f"toolkit_{name}", text, labels, registry=self.registry, buckets=buckets)

    @contextmanager
    def request(self, exchange: Exchange) -> Iterator[None]:
        """Count and time one exchange."""
        began = time.perf_counter()
        self._present.exchanges.add(exchange)
        try:
            yield
        finally:
            self._present.exchanges.discard(exchange)
            method, route = exchange.method, exchange.route
            self._requests.labels(method, route, str(exchange.status)).inc()
            self._request_s.labels(method, route).observe(time.perf_counter() - began)

    def job(self, work: Work) -> Span:
        """Count and time a job."""
        return self._job(work)

    @contextmanager
    def _job(self, work: Work) -> Iterator[None]:
        self._present.jobs[work.job.id] = work
        try:
            yield
        finally:
            self._present.jobs.pop(work.job.id, None)
            if work.job.status in FINAL_STATUSES:
                self._ended(work)

    def _ended(self, work: Work) -> None:
        job = work.job
        self._jobs.labels(job.capability, job.provider or NOBODY, job.status).inc()
        if job.latency_ms is not None:
            self._job_s.labels(job.capability, job.status).observe(job.latency_ms / 1000)
        if job.queue_ms is not None:
            self._queue_s.labels(job.capability).observe(job.queue_ms / 1000)

    def call(self, work: Work, attempt: Attempt, vendor: Vendor) -> Span:  # noqa: ARG002
        """Count and time one call to a vendor."""
        return self._call(attempt, vendor)

    @contextmanager
    def _call(self, attempt: Attempt, vendor: Vendor) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            outcome = attempt.error.code if attempt.error is not None else attempt.status
            self._calls.labels(vendor.id, outcome).inc()
            self._call_s.labels(vendor.id).observe(time.perf_counter() - began)
            self._cost.labels(vendor.id).inc(attempt.cost_usd or 0.0)

    def committed(self, seconds: float) -> None:
        """Record how long a commit took."""
        self._commit_s.observe(seconds)


@dataclass(eq=False)
class _Present(Collector):
    """Gauges that are read when they are scraped: requests, jobs and connections in progress."""

    lanes: Callable[[], list[LaneState]]
    exchanges: set[Exchange] = field(default_factory=set)
    jobs: dict[str, Work] = field(default_factory=dict)

    def collect(self) -> Iterator[Metric]:
        """Yield the current gauges."""
        exchanges = list(self.exchanges)
        streams = sum(exchange.streaming for exchange in exchanges)
        states = Tally(work.job.status for work in self.jobs.values())
        yield _gauge("http_requests_in_progress", "Requests being answered.", len(exchanges))
        yield _gauge("event_streams_open", "Streams of events being sent.", streams)
        yield _gauge("jobs_running", "Jobs being carried out.", states["running"])
        yield _gauge("jobs_waiting", "Jobs waiting for their turn.", states["queued"])
        waiting: Tally[str] = Tally()
        breakers: Tally[tuple[str, str]] = Tally()
        for lane in self.lanes():
            waiting[lane.provider] += lane.waiting
            breakers[lane.provider, lane.breaker] += 1
        calls = GaugeMetricFamily(
            "toolkit_vendor_calls_waiting", "Calls waiting for a place.", labels=["provider"]
        )
        for provider, count in waiting.items():
            calls.add_metric([provider], count)
        yield calls
        connections = GaugeMetricFamily(
            "toolkit_connections",
            "Connections by the state of their circuit breaker.",
            labels=["provider", "breaker"],
        )
        for (provider, state), count in breakers.items():
            connections.add_metric([provider, state], count)
        yield connections


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"toolkit_{name}", text, value=value)
