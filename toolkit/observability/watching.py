"""Setup of a server's observers, by its operator's options."""

import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.engine import Engine
from toolkit.engine.telemetry import Observer, Observers, together
from toolkit.observability.logs import LogFormat, LogLevel, Logs, piped
from toolkit.observability.metrics import Metrics
from toolkit.observability.scraping import scraped
from toolkit.server.telemetry import Exchange, RequestObserver

# If one is set, traces are sent as with the option (OpenTelemetry's own names).
ENDPOINT_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


@dataclass(frozen=True)
class Watching:
    """An operator's options for logs, metrics and traces.

    Attributes:
        metrics_port: where Prometheus finds `/metrics`; none for no metrics, 0 for a free one.
        otel_endpoint: the base URL of a collector of traces.
    """

    log_format: LogFormat = "auto"
    log_level: LogLevel = "info"
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = None
    otel_endpoint: str | None = None


class _Both(Observer, RequestObserver, Protocol):
    """An observer of an engine and of the server over it."""


class Watch(Observers):
    """All observers of one server as one."""

    def __init__(self, logs: Logs, metrics: Metrics | None, others: Sequence[_Both]) -> None:
        both: list[_Both] = [logs, *([metrics] if metrics is not None else []), *others]
        super().__init__(both)
        self._both = both
        self._logs = logs
        self._metrics = metrics
        self._about: dict[str, object] = {}

    def request(self, exchange: Exchange) -> AbstractContextManager[object]:
        """Observe one exchange."""
        return together(each.request(exchange) for each in self._both)

    async def attach(self, engine: Engine) -> None:
        """Observe an engine: its version, and the state of its connections."""
        health = await engine.health()
        self._about = {"version": health.version, "sandbox": health.sandbox}
        if self._metrics is not None:
            self._metrics.lanes = engine.lanes

    def started(self, url: str) -> None:
        """Log that the server answers requests."""
        self._logs.tell("started", url=url, **self._about)


@asynccontextmanager
async def watching(asked: Watching) -> AsyncIterator[Watch]:
    """Observe a server until this is left.

    Raises:
        RequestError: `INVALID_REQUEST` when traces are wanted and the extra is not installed.
        ServiceError: `UNAVAILABLE` when the port for metrics is taken.
    """
    async with AsyncExitStack() as stack:
        stack.enter_context(piped(sys.stderr, asked.log_format, asked.log_level))
        logs, others = Logs(), list[_Both]()
        if asked.otel_endpoint or any(os.environ.get(name) for name in ENDPOINT_VARIABLES):
            others.append(_traces(asked.otel_endpoint, stack))
        metrics = None
        if asked.metrics_port is not None:
            metrics = Metrics()
            place = scraped(metrics.registry, asked.metrics_host, asked.metrics_port)
            logs.tell("metrics", url=await stack.enter_async_context(place))
        try:
            yield Watch(logs, metrics, others)
        finally:
            logs.tell("stopped")


def _traces(endpoint: str | None, stack: AsyncExitStack) -> _Both:
    try:
        from toolkit.observability.traces import exported
    except ImportError:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            "Traces need an extra: pip install 'capability-toolkit[otel]'.",
        ) from None
    traces = exported(endpoint)
    stack.callback(traces.close)
    return traces
