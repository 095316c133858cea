"""CORS: browsers may ask from no other origins than those that the operator names."""

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from toolkit.engine import Engine

ALLOWED_HEADERS = ("Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID", "Prefer")
EXPOSED_HEADERS = ("Idempotency-Replayed", "Preference-Applied", "Retry-After", "X-Request-Id")


class ExactOriginMiddleware(CORSMiddleware):
    """Starlette's CORS for exact origins, without cookies; to others the app answers as ever."""

    def __init__(self, app: ASGIApp, engine: Engine) -> None:
        super().__init__(
            app,
            allow_origins=sorted(engine.settings.cors_origins),
            allow_methods=("GET", "POST", "DELETE"),
            allow_headers=ALLOWED_HEADERS,
            expose_headers=EXPOSED_HEADERS,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        origin = Headers(scope=scope).get("origin") if scope["type"] == "http" else None
        if origin is None or not self.is_allowed_origin(origin):
            await self.app(scope, receive, send)
            return
        await super().__call__(scope, receive, send)
