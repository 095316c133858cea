"""ASGI middleware: limits, lifecycle, idempotency, telemetry, transfers and CORS."""
