"""Raw requests to the app, without the client."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
import pytest_asyncio
from starlette.types import ASGIApp

from tests.contract.conftest import read_key
from tests.support.timing import PATIENCE_S
from toolkit import Client
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
    "accounts", "api_keys", "connections", "jobs", "maps", "workflows", "tasks", "plans",
    "endpoints", "artifacts", "compute", "storage", "templates", "agents", "idempotency", "roots",
)  # fmt: skip


@dataclass
class Wire:
    """A caller with a key, and the engine behind the app."""

    http: httpx.AsyncClient
    engine: Engine
    headers: dict[str, str] = field(default_factory=dict)

    async def sign_up(self, email: str) -> dict[str, str]:
        """Create an account, and return the headers with its key."""
        answer = await self.http.post("/v1/account", json={"email": email})
        return {"Authorization": f"Bearer {answer.json()['data']['api_key']}"}

    async def rows(self) -> dict[str, int]:
        """Count the rows of each table."""
        store = self.engine.core.store
        return {table: len(await store.find_rows(table)) for table in TABLES}

    async def send(self, method: str, path: str, **options: object) -> httpx.Response:
        """Send a request with the key."""
        headers = {**self.headers, **options.pop("headers", {})}  # type: ignore[dict-item]
        return await self.http.request(method, path, headers=headers, **options)  # type: ignore[arg-type]


async def connect_caller(wire: Wire, providers: Sequence[str] = ("minimax", "runpod")) -> Wire:
    """Connect the caller to a vendor of texts and the GPU cloud, or to the named vendors."""
    for provider in providers:
        name = f"{provider.upper()}_API_KEY"
        pointer = {"provider": provider, "connection_type": "environment", "secret_ref": name}
        answer = await wire.send("POST", "/v1/providers/connections", json=pointer)
        assert answer.status_code == 201
    return wire


@asynccontextmanager
async def serve_engine(
    settings: Settings, grace_s: float = 10.0
) -> AsyncIterator[httpx.AsyncClient]:
    """Run `toolkit serve`, and yield a client of its URL."""
    engine = await open_engine(settings)
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    listener = bind_socket("127.0.0.1", 0)
    serving = asyncio.create_task(
        serve(engine, "127.0.0.1", listener, on_ready=ready.set_result, grace_s=grace_s)
    )
    try:
        async with httpx.AsyncClient(base_url=await ready, trust_env=False) as http:
            yield http
    finally:
        signal.raise_signal(signal.SIGTERM)
        await serving


def read_stream(client: Client, path: str, **headers: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the events of a stream until it ends, as names and data; a delta has no number."""
    sent = {"Authorization": f"Bearer {read_key(client)}", "Accept": "text/event-stream", **headers}
    url = client.access.base_url + path
    with httpx.stream("GET", url, headers=sent, timeout=PATIENCE_S) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        event: dict[str, str] = {}
        for line in response.iter_lines():
            name, _, value = line.partition(": ")
            if line:
                event[name] = value
                continue
            if "data" in event:
                data = json.loads(event["data"])
                if event["event"].endswith("delta"):
                    assert "id" not in event
                else:
                    assert (event["id"], event["event"]) == (str(data["n"]), data["type"])
                yield event["event"], data
            event = {}


def build_scope(request: httpx.Request) -> dict[str, Any]:
    """Return the ASGI scope of a request."""
    path = request.url.path
    return {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": request.method,
        "scheme": "http", "path": path, "raw_path": path.encode(), "query_string": b"",
        "root_path": "", "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "server": None, "client": ("127.0.0.1", 1),
    }  # fmt: skip


async def call_app(
    app: ASGIApp, path: str, headers: dict[str, str], send: Any, method: str = "GET", **body: Any
) -> None:
    """Send a request to an app as a server does; `send` receives the messages of the answer."""
    request = httpx.Request(method, f"http://service.test{path}", headers=headers, **body)
    parts = iter([{"type": "http.request", "body": request.content, "more_body": False}])

    async def receive() -> dict[str, Any]:
        for part in parts:
            return part
        await asyncio.Event().wait()
        return {}

    await app(build_scope(request), receive, send)


@asynccontextmanager
async def serve_wire(engine: Engine) -> AsyncIterator[Wire]:
    """A caller of an engine, without a key."""
    transport = httpx.ASGITransport(create_app(engine), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://service.test") as http:
        yield Wire(http, engine)


@asynccontextmanager
async def open_service(settings: Settings, **options: Any) -> AsyncIterator[Wire]:
    """A caller without a key of an engine, which closes with the block."""
    engine = await open_engine(settings, **options)
    async with serve_wire(engine) as wire:
        yield wire
    await engine.close(0)


@asynccontextmanager
async def open_wire(
    settings: Settings, registry: Registry | None = None, faults: Faults | None = None
) -> AsyncIterator[Wire]:
    """A signed-up caller of an engine, without connections."""
    async with open_service(settings, registry=registry, faults=faults) as wire:
        wire.headers = await wire.sign_up("ada@example.org")
        yield wire


ON_ITS_LOOP = pytest.mark.asyncio(loop_scope="module")  # for tests that use `shared_wire`


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_wire(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Wire]:
    """A caller like `wire`, for all tests of a module that change nothing."""
    folder = tmp_path_factory.mktemp("shared")
    async with open_wire(Settings(data_dir=folder, sandbox=True, rate_limit_burst=10**6)) as wire:
        yield wire


@pytest.fixture
async def wire(settings: Settings) -> AsyncIterator[Wire]:
    """A signed-up caller of a sandbox engine, without connections."""
    async with open_wire(settings) as wire:
        yield wire
