"""ASGI middleware: the steps around every request, and telemetry."""
