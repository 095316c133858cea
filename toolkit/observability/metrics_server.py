"""The server of metrics for Prometheus, on a port of its own: `/metrics`, and nothing else."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from toolkit.server.listening import bind_socket


@asynccontextmanager
async def serve_metrics(registry: CollectorRegistry, host: str, port: int) -> AsyncIterator[str]:
    """Serve a registry until this is left.

    Args:
        port: port number; 0 picks any free port.

    Yields:
        the URL to scrape.

    Raises:
        ServiceError: `UNAVAILABLE` when the address is taken.
    """

    async def show_metrics(_request: Request) -> Response:
        return Response(generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    listener = bind_socket(host, port, purpose="metrics")
    config = uvicorn.Config(
        Starlette(routes=[Route("/metrics", show_metrics)]),
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    # Not `serve`, which would install signal handlers.
    serving = asyncio.create_task(server._serve(sockets=[listener]), name="metrics")
    try:
        yield f"http://{host}:{listener.getsockname()[1]}/metrics"
    finally:
        server.should_exit = True
        await serving
