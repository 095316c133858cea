"""OpenTelemetry spans of requests, workflows, jobs and vendor calls; never of their content.

The extra `capability-toolkit[otel]` installs the imports. Names follow OpenTelemetry's semantic
conventions for HTTP servers and generative AI (`gen_ai.…`).
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span as OtelSpan
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from toolkit.contract.money import to_wire_usd
from toolkit.engine.job_record import AttemptRecord
from toolkit.engine.observer import ObservedJob, Observer, WatchedWorkflow
from toolkit.plugins import Vendor
from toolkit.server.middleware.telemetry import HttpExchange

SERVICE_NAME = "capability-toolkit"

# The name of each kind of operation, and its type of output, which distinguishes images and speech.
_OPERATIONS: Mapping[str, tuple[str, str | None]] = {
    "text": ("chat", "text"),
    "image": ("generate_content", "image"),
    "speech": ("generate_content", "speech"),
}
_TOKEN_FIELDS = ("input_tokens", "output_tokens")


class TraceObserver(Observer):
    """An observer that makes OpenTelemetry spans.

    Ids decide the parent of a job or a call, because the nodes of a workflow share one context, in
    which none of their spans can be current.
    """

    def __init__(self, processor: SpanProcessor) -> None:
        self._provider = TracerProvider(resource=_build_resource())
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("toolkit")
        self._open_spans: dict[str, OtelSpan] = {}

    def close(self) -> None:
        """Send all spans that have not been sent."""
        self._provider.shutdown()

    @contextmanager
    def request(self, exchange: HttpExchange) -> Iterator[None]:
        """Trace one exchange, as part of the caller's trace if the request names a trace."""
        headers = {"traceparent": exchange.traceparent, "tracestate": exchange.tracestate}
        carrier = {name: value for name, value in headers.items() if value is not None}
        with self._tracer.start_as_current_span(
            f"{exchange.method} {exchange.route}",
            context=TraceContextTextMapPropagator().extract(carrier, Context()),
            kind=SpanKind.SERVER,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield
            finally:
                _set_attributes(
                    span,
                    {
                        "http.request.method": exchange.method,
                        "http.route": exchange.route,
                        "http.response.status_code": exchange.status,
                        "http.response.body.size": exchange.bytes_out,
                        "toolkit.request_id": exchange.request_id,
                        "toolkit.account_id": exchange.account_id,
                    },
                )
                if exchange.status >= 500:
                    _mark_failed(span, str(exchange.status))

    @contextmanager
    def watch_workflow(self, watched: WatchedWorkflow) -> Iterator[None]:
        """Record a span for a workflow until the block ends."""
        workflow_id = watched.workflow.id
        with self._open_span("invoke_workflow", workflow_id) as span:
            try:
                yield
            finally:
                workflow = watched.workflow
                _set_attributes(
                    span,
                    {
                        "gen_ai.operation.name": "invoke_workflow",
                        "toolkit.workflow_id": workflow_id,
                        "toolkit.account_id": watched.account_id,
                        "toolkit.nodes": len(workflow.nodes),
                        "toolkit.status": workflow.status,
                    },
                )
                if workflow.error is not None:
                    _mark_failed(span, workflow.error.code)

    @contextmanager
    def watch_job(self, observed: ObservedJob) -> Iterator[None]:
        """Record a span for a job until the block ends."""
        parent = self._open_spans.get(observed.job.workflow_id or "")
        with self._open_span(f"job {observed.job.capability}", observed.job.id, parent) as span:
            try:
                yield
            finally:
                _set_attributes(span, _build_job_attributes(observed))
                if observed.job.error is not None:
                    _mark_failed(span, observed.job.error.code)

    @contextmanager
    def watch_call(
        self, observed: ObservedJob, attempt: AttemptRecord, vendor: Vendor
    ) -> Iterator[None]:
        """Trace one call to a vendor."""
        kind = observed.capability.operation.kind if observed.capability.operation else ""
        operation, yields = _OPERATIONS.get(kind, (kind, None))
        model = attempt.model
        name = f"{operation} {model}" if model else operation
        parent = self._open_spans.get(observed.job.id)
        with self._open_span(name, None, parent, SpanKind.CLIENT) as span:
            try:
                yield
            finally:
                is_completed = attempt.status == "completed"
                _set_attributes(
                    span,
                    {
                        "gen_ai.operation.name": operation,
                        "gen_ai.provider.name": vendor.telemetry_name or vendor.id,
                        "gen_ai.output.type": yields,
                        "gen_ai.request.model": model,
                        "gen_ai.response.model": attempt.model if is_completed else None,
                        "http.response.status_code": attempt.http_status,
                        "toolkit.attempt": attempt.n,
                        "toolkit.cost_usd": to_wire_usd(attempt.cost_usd),
                        **(_get_token_counts(observed) if is_completed else {}),
                    },
                )
                if attempt.error is not None:
                    _mark_failed(span, attempt.error.code)

    @contextmanager
    def _open_span(
        self,
        name: str,
        key: str | None,
        parent: OtelSpan | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> Iterator[OtelSpan]:
        """Open a span that is found by its key; its parent is the current span by default."""
        context = trace.set_span_in_context(parent) if parent is not None else None
        span = self._tracer.start_span(name, context=context, kind=kind)
        if key is not None:
            self._open_spans[key] = span
        try:
            yield span
        finally:
            if key is not None:
                self._open_spans.pop(key, None)
            span.end()


def create_trace_observer(endpoint: str | None) -> TraceObserver:
    """Create an observer whose traces are sent to a collector, by OTLP over HTTP.

    Args:
        endpoint: base URL of the collector. If None, the standard `OTEL_EXPORTER_OTLP_…` variables
            apply, or OpenTelemetry's default.
    """
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    url = None if endpoint is None else f"{endpoint.rstrip('/')}/v1/traces"
    return TraceObserver(BatchSpanProcessor(OTLPSpanExporter(endpoint=url)))


def _build_resource() -> Resource:
    """Build the resource that sends the spans, named by `OTEL_SERVICE_NAME` or as the toolkit."""
    resource = Resource.create()
    if str(resource.attributes["service.name"]).startswith("unknown_service"):
        return resource.merge(Resource({"service.name": SERVICE_NAME}))
    return resource


def _set_attributes(
    span: OtelSpan, attributes: Mapping[str, str | int | float | bool | None]
) -> None:
    """Set the attributes that are known."""
    span.set_attributes({name: value for name, value in attributes.items() if value is not None})


def _mark_failed(span: OtelSpan, kind: str) -> None:
    """Mark a span as failed, by a code only: a message may quote a caller's text."""
    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR)


def _build_job_attributes(observed: ObservedJob) -> dict[str, str | int | float | bool | None]:
    job = observed.job
    return {
        "toolkit.job_id": job.id,
        "toolkit.run_id": job.run_id,
        "toolkit.workflow_id": job.workflow_id,
        "toolkit.node_id": job.node_id,
        "toolkit.account_id": observed.account_id,
        "toolkit.capability": job.capability,
        "toolkit.status": job.status,
        "toolkit.cost_usd": to_wire_usd(job.cost_incurred_usd),
        "toolkit.cached": job.cached,
    }


def _get_token_counts(observed: ObservedJob) -> dict[str, int]:
    counts = ((name, observed.job.usage.get(name)) for name in _TOKEN_FIELDS)
    return {
        f"gen_ai.usage.{name}": int(count)
        for name, count in counts
        if isinstance(count, int | float)
    }
