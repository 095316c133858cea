"""Serves an engine with uvicorn until it is told to stop, and stops cleanly."""

import asyncio
import signal
import socket
from collections.abc import Callable

import uvicorn

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.engine import Engine
from toolkit.server.app import create_app

GRACE_S = 10.0
BACKLOG = 2048


class _Server(uvicorn.Server):
    """Leaves the signals to `serve`, which has more to do about them."""

    def install_signal_handlers(self) -> None:
        """Nothing: see `serve`."""


async def serve(
    engine: Engine,
    host: str,
    port: int,
    *,
    on_ready: Callable[[str], None] | None = None,
    grace_s: float = GRACE_S,
) -> None:
    """Serve until SIGTERM or SIGINT: then no new work, a grace period, and a resumable end.

    Args:
        engine: opened on this loop; it is closed here.
        host: the address to listen on.
        port: the port; 0 picks a free one.
        on_ready: called with the URL once requests are answered.
        grace_s: how long vendor calls under way may still take, in seconds.

    Raises:
        ServiceError: `UNAVAILABLE` when the address is taken.
    """
    try:
        listener = socket.create_server((host, port), backlog=BACKLOG, reuse_port=False)
    except OSError as error:
        await engine.close(0)
        raise ServiceError(
            ErrorCode.UNAVAILABLE, f"{host}:{port} cannot be listened on: {error.strerror}."
        ) from error
    config = uvicorn.Config(
        create_app(engine),
        log_level="warning",
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=int(grace_s),
    )
    server = _Server(config)
    loop = asyncio.get_running_loop()

    def stop() -> None:
        engine.drain()
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    serving = asyncio.create_task(server._serve(sockets=[listener]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    if on_ready is not None and server.started:
        on_ready(f"http://{host}:{listener.getsockname()[1]}")
    try:
        await serving
    finally:
        await engine.close(grace_s)
