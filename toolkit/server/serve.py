"""The server: runs an engine with uvicorn until a signal to stop, and stops cleanly."""

import asyncio
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable

import uvicorn

from toolkit.engine import Engine
from toolkit.server.app import create_app
from toolkit.server.http_protocol import make_idle_timeout_protocol
from toolkit.server.middleware.telemetry import RequestObserver

GRACE_S = 10.0
BESIDE_GRACE_S = 1.0  # of a server whose engine goes on
BACKLOG = 2048
# New objects between two collections; Python's default means a collection every ten requests.
YOUNG_OBJECTS = 10_000


class _NotifyingServer(uvicorn.Server):
    """A uvicorn server that reports when it answers requests; signals are left to `serve`."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start listening, and report that the server is ready."""
        await super().startup(sockets)
        if self.started:
            self._on_ready()


def _stop_at_end(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> None:
    """Stop once standard input has ended, because the parent process is then gone."""
    if not os.read(sys.stdin.fileno(), 1):
        loop.remove_reader(sys.stdin.fileno())
        stop()


def make_config(engine: Engine, grace_s: float, observer: RequestObserver | None) -> uvicorn.Config:
    """Make uvicorn's configuration for an engine.

    Args:
        engine: engine, opened on the loop that will serve it.
        grace_s: maximum time for requests under way at shutdown, in seconds.
        observer: the observer of requests.
    """
    return uvicorn.Config(
        create_app(engine, observer, is_last_word=True),
        backlog=BACKLOG,
        # Its lines go to the toolkit's log, which already has a line for each request.
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        http=make_idle_timeout_protocol(engine.settings),
        # uvicorn trusts every process of this machine by default.
        proxy_headers=bool(engine.settings.trust_proxy),
        forwarded_allow_ips=sorted(engine.settings.trust_proxy),
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=int(grace_s),
    )


async def serve_beside(engine: Engine, listener: socket.socket, stopped: asyncio.Event) -> None:
    """Serve an engine that is used in this process, too, until an event is set.

    Args:
        engine: engine, opened on this loop; it is left open.
        listener: the bound socket; it is closed here.
        stopped: event that ends this.
    """
    server = uvicorn.Server(make_config(engine, BESIDE_GRACE_S, None))

    async def stop() -> None:
        await stopped.wait()
        server.should_exit = True

    waiting = asyncio.create_task(stop(), name="stop server")
    try:
        # Not `serve`, which would install signal handlers.
        await server._serve(sockets=[listener])
    finally:
        waiting.cancel()
        listener.close()


async def serve(
    engine: Engine,
    host: str,
    listener: socket.socket,
    *,
    on_ready: Callable[[str], None] | None = None,
    grace_s: float = GRACE_S,
    observer: RequestObserver | None = None,
    is_worker: bool = False,
) -> None:
    """Serve until SIGTERM or SIGINT: then no new work, a grace period, and a resumable end.

    Args:
        engine: engine, opened on this loop; it is closed here.
        host: the host name in the URL that is shown.
        listener: the bound socket; it is closed here.
        on_ready: function that is called with the URL once requests are answered.
        grace_s: maximum time for vendor calls under way at shutdown, in seconds.
        observer: observer of requests; None by default.
        is_worker: whether another process started it, at whose end its standard input ends.
    """
    config = make_config(engine, grace_s, observer)
    url = f"http://{host}:{listener.getsockname()[1]}"
    server = _NotifyingServer(config, lambda: on_ready(url) if on_ready is not None else None)
    loop = asyncio.get_running_loop()

    def stop() -> None:
        engine.drain()
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    if is_worker:
        loop.add_reader(sys.stdin.fileno(), _stop_at_end, loop, stop)
    engine.prepare_worker(plans=True)
    # Objects that exist by now will stay: otherwise each full collection would visit all of them,
    # and block the loop for a tenth of a second and more.
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)
    try:
        # Not `serve`, which would install its own signal handlers.
        await server._serve(sockets=[listener])
    finally:
        listener.close()
        await engine.close(grace_s)
