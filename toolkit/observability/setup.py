"""Setup of a server's observers, by its operator's options."""

import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.engine import Engine
from toolkit.engine.observer import CompositeObserver, combine_spans
from toolkit.observability.logs import LogFormat, LogLevel, LogObserver, configure_logging
from toolkit.observability.metrics import MetricsObserver, serve_metrics
from toolkit.server.middleware.telemetry import HttpExchange

if TYPE_CHECKING:
    from toolkit.observability.traces import TraceObserver

# If one is set, traces are sent as with the option (OpenTelemetry's own names).
ENDPOINT_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


@dataclass(frozen=True)
class ObservabilityOptions:
    """An operator's options for logs, metrics and traces.

    Attributes:
        metrics_port: port of Prometheus' `/metrics`; None for no metrics, 0 for any free port.
        otel_endpoint: the base URL of a collector of traces.
    """

    log_format: LogFormat = "auto"
    log_level: LogLevel = "info"
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = None
    otel_endpoint: str | None = None


class ServerObserver(CompositeObserver):
    """All observers of one server as one."""

    def __init__(
        self,
        logs: LogObserver,
        metrics: MetricsObserver | None,
        trace_observers: "Sequence[TraceObserver]",
    ) -> None:
        observers: list[LogObserver | MetricsObserver | TraceObserver] = [
            logs,
            *([metrics] if metrics is not None else []),
            *trace_observers,
        ]
        super().__init__(observers)
        self._observers_of_both = observers
        self._logs = logs
        self._metrics = metrics
        self._engine_facts: dict[str, object] = {}

    def request(self, exchange: HttpExchange) -> AbstractContextManager[object]:
        """Observe one HTTP exchange (a request and its answer) by each of the observers."""
        return combine_spans(observer.request(exchange) for observer in self._observers_of_both)

    async def attach_engine(self, engine: Engine) -> None:
        """Observe an engine: its version, and the state of its connections."""
        health = await engine.get_health()
        self._engine_facts = {"version": health.version, "sandbox": health.sandbox}
        if self._metrics is not None:
            self._metrics.gate_states = engine.list_connection_states

    def log_started(self, url: str) -> None:
        """Log that the server answers requests."""
        self._logs.log_event("started", url=url, **self._engine_facts)


@asynccontextmanager
async def observe_server(options: ObservabilityOptions) -> AsyncIterator[ServerObserver]:
    """Set up logs, and metrics and traces if asked for, until the block ends; yield the observer.

    Raises:
        RequestError: `INVALID_REQUEST` if traces are wanted and the extra is not installed.
        ServiceError: `UNAVAILABLE` if the port for metrics is in use.
    """
    async with AsyncExitStack() as stack:
        stack.enter_context(configure_logging(sys.stderr, options.log_format, options.log_level))
        logs, trace_observers = LogObserver(), list["TraceObserver"]()
        if options.otel_endpoint or any(os.environ.get(name) for name in ENDPOINT_VARIABLES):
            trace_observers.append(_open_trace_observer(options.otel_endpoint, stack))
        metrics = None
        if options.metrics_port is not None:
            metrics = MetricsObserver()
            place = serve_metrics(metrics.registry, options.metrics_host, options.metrics_port)
            logs.log_event("metrics", url=await stack.enter_async_context(place))
        try:
            yield ServerObserver(logs, metrics, trace_observers)
        finally:
            logs.log_event("stopped")


def _open_trace_observer(endpoint: str | None, stack: AsyncExitStack) -> "TraceObserver":
    try:
        from toolkit.observability.traces import create_trace_observer
    except ImportError:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            "Traces need an extra: pip install 'capability-toolkit[otel]'.",
        ) from None
    traces = create_trace_observer(endpoint)
    stack.callback(traces.close)
    return traces
