"""A served engine with logs, metrics and traces, and their output."""

import io
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.types import ASGIApp

from toolkit.engine import Engine
from toolkit.local import open_engine
from toolkit.observability import ServerObserver
from toolkit.observability.logs import LogObserver, configure_logging
from toolkit.observability.metrics import MetricsObserver
from toolkit.observability.traces import TraceObserver
from toolkit.sandbox import Faults
from toolkit.server import create_app
from toolkit.settings import Settings

SECRET_WORDS = "the lighthouse keeper's unsent letter"
CHAIN = {
    "name": "a letter",
    "nodes": [
        {"id": "text", "capability": "llm.generate", "input": {"objective": SECRET_WORDS}},
        {"id": "voice", "capability": "speech.generate", "depends_on": ["text"], "input": {}},
    ],
}


@dataclass
class WatchedService:
    """A caller with a key and a vendor, and everything that an operator sees of it."""

    app: ASGIApp
    http: httpx.AsyncClient
    engine: Engine
    metrics: MetricsObserver
    faults: Faults
    stream: io.StringIO
    exporter: InMemorySpanExporter
    headers: dict[str, str] = field(default_factory=dict)

    async def send(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request with the key."""
        headers = {**self.headers, **options.pop("headers", {})}
        return await self.http.request(method, path, headers=headers, **options)

    async def chain(self, **headers: str) -> dict[str, Any]:
        """Run a workflow of two nodes to its end."""
        waiting = {"Prefer": "wait=20", **headers}
        answer = await self.send("POST", "/v1/workflows", json=CHAIN, headers=waiting)
        return dict(answer.json()["data"])

    def lines(self, event: str) -> list[dict[str, Any]]:
        """The log lines of an event."""
        lines = [json.loads(line) for line in self.stream.getvalue().splitlines()]
        return [line for line in lines if line["event"] == event]

    def value(self, name: str, **labels: str) -> float:
        """The current value of a metric."""
        return self.metrics.registry.get_sample_value(f"toolkit_{name}", labels) or 0.0

    def spans(self) -> dict[str, ReadableSpan]:
        """The spans that have ended, by name."""
        return {span.name: span for span in self.exporter.get_finished_spans()}


@pytest.fixture
async def watched(settings: Settings) -> AsyncIterator[WatchedService]:
    """A signed-up caller with a vendor, of a sandbox engine with all observers."""
    stream, exporter, faults = io.StringIO(), InMemorySpanExporter(), Faults()
    with configure_logging(stream, "json", "info"):
        metrics = MetricsObserver()
        watch = ServerObserver(
            LogObserver(), metrics, [TraceObserver(SimpleSpanProcessor(exporter))]
        )
        engine = await open_engine(settings, faults=faults, observer=watch)
        await watch.attach_engine(engine)
        app = create_app(engine, watch)
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://service.test") as http:
            service = WatchedService(app, http, engine, metrics, faults, stream, exporter)
            account = await http.post("/v1/account", json={"email": "ada@example.org"})
            service.headers = {"Authorization": f"Bearer {account.json()['data']['api_key']}"}
            pointer = {
                "provider": "minimax",
                "connection_type": "environment",
                "secret_ref": "MINIMAX_API_KEY",
            }
            await service.send("POST", "/v1/providers/connections", json=pointer)
            yield service
        await engine.close(0)
