"""CORS: browsers may ask from no other origins than those that the operator names."""

from collections.abc import Iterable

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

ALLOWED_HEADERS = ("Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID", "Prefer")
EXPOSED_HEADERS = (
    "Idempotency-Replayed", "Preference-Applied", "RateLimit-Policy", "Retry-After", "X-Request-Id",
)  # fmt: skip


def make_cors_app(app: ASGIApp, origins: Iterable[str]) -> CORSMiddleware:
    """Make an app that answers web pages of exact origins as they need it, without cookies."""
    return CORSMiddleware(
        app,
        allow_origins=sorted(origins),
        allow_methods=("GET", "POST", "DELETE"),
        allow_headers=ALLOWED_HEADERS,
        expose_headers=EXPOSED_HEADERS,
    )
