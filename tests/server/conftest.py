"""The wire itself: raw requests against the app, without the client's help."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from toolkit.engine import Engine, Registry
from toolkit.local import open_engine
from toolkit.sandbox import Faults
from toolkit.server import create_app
from toolkit.server.listening import bind_socket
from toolkit.server.serve import serve
from toolkit.settings import Settings

POINTER = {
    "provider": "minimax", "connection_type": "environment", "secret_ref": "MINIMAX_API_KEY",
}  # fmt: skip
TABLES = (
    "accounts", "api_keys", "connections", "jobs", "workflows", "tasks", "plans", "endpoints",
    "artifacts", "compute", "storage", "templates", "agents", "idempotency", "roots",
)  # fmt: skip


@dataclass
class Wire:
    """A caller with a key, and the engine behind the app to look into."""

    http: httpx.AsyncClient
    engine: Engine
    headers: dict[str, str] = field(default_factory=dict)

    async def sign_up(self, email: str) -> dict[str, str]:
        """The headers of a new account."""
        made = await self.http.post("/v1/account", json={"email": email})
        return {"Authorization": f"Bearer {made.json()['data']['api_key']}"}

    async def rows(self) -> dict[str, int]:
        """Count the rows of each table."""
        store = self.engine.core.store
        return {table: len(await store.find_rows(table)) for table in TABLES}

    async def send(self, method: str, path: str, **options: object) -> httpx.Response:
        """Send a request with the key."""
        headers = {**self.headers, **options.pop("headers", {})}  # type: ignore[dict-item]
        return await self.http.request(method, path, headers=headers, **options)  # type: ignore[arg-type]


async def connect_caller(wire: Wire) -> Wire:
    """The caller, who has connected a vendor of texts and the GPU cloud."""
    for provider, name in (("minimax", "MINIMAX_API_KEY"), ("runpod", "RUNPOD_API_KEY")):
        pointer = {"provider": provider, "connection_type": "environment", "secret_ref": name}
        answer = await wire.send("POST", "/v1/providers/connections", json=pointer)
        assert answer.status_code == 201
    return wire


@asynccontextmanager
async def serve_engine(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """A caller of `toolkit serve`."""
    engine = await open_engine(settings)
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(
        serve(engine, "127.0.0.1", bind_socket("127.0.0.1", 0), on_ready=ready.set_result)
    )
    try:
        async with httpx.AsyncClient(base_url=await ready, trust_env=False) as http:
            yield http
    finally:
        signal.raise_signal(signal.SIGTERM)
        await serving


async def send_get(app: ASGIApp, path: str, headers: dict[str, str], send: Any) -> None:
    """Ask an app for something as a server does, which sends as fast as it is taken."""

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    request = httpx.Request("GET", f"http://service.test{path}", headers=headers)
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET",
        "scheme": "http", "path": path, "raw_path": path.encode(), "query_string": b"",
        "root_path": "", "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "server": None, "client": None,
    }  # fmt: skip
    await app(scope, receive, send)


@asynccontextmanager
async def serve_wire(engine: Engine) -> AsyncIterator[Wire]:
    """A caller of an engine, without a key."""
    transport = httpx.ASGITransport(create_app(engine), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://service.test") as http:
        yield Wire(http, engine)


@asynccontextmanager
async def open_wire(
    settings: Settings, registry: Registry | None = None, faults: Faults | None = None
) -> AsyncIterator[Wire]:
    """A signed-up caller of an engine that has connected nothing, until the block ends."""
    engine = await open_engine(settings, registry=registry, faults=faults)
    async with serve_wire(engine) as wire:
        wire.headers = await wire.sign_up("ada@example.org")
        yield wire
    await engine.close(0)


@pytest.fixture
async def wire(settings: Settings) -> AsyncIterator[Wire]:
    """A signed-up caller of a sandbox engine that has connected nothing."""
    async with open_wire(settings) as wire:
        yield wire
