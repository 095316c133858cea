"""A bare proxy on Starlette and aiohttp: the floor of every gateway.

It stores and checks nothing. Run as `python -m benchmarks._bare_proxy URL`; it prints its
port, and forwards every `POST /v1/runs` to the URL.
"""

import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


def create_proxy(url: str) -> Starlette:
    """Create the app that forwards to a URL."""

    @asynccontextmanager
    async def open_session(app: Starlette) -> AsyncIterator[None]:
        async with aiohttp.ClientSession() as session:
            app.state.session = session
            yield

    async def forward(request: Request) -> Response:
        headers = {"Authorization": "Bearer none", "Content-Type": "application/json"}
        body = await request.body()
        async with request.app.state.session.post(url, data=body, headers=headers) as answer:
            content = await answer.read()
            return Response(content, answer.status, media_type="application/json")

    return Starlette(routes=[Route("/v1/runs", forward, methods=["POST"])], lifespan=open_session)


def main(url: str) -> None:
    """Forward until this process ends, with uvicorn's default event loop and parser."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        print(listener.getsockname()[1], flush=True)
        config = uvicorn.Config(create_proxy(url), log_config=None, access_log=False)
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv[1])
