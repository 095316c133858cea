"""A server that a test controls byte by byte, and certificates for it."""

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import cast

import pytest

from tests.support.timing import yield_turns

# After this number of turns of the loop, an accepted connection belongs to the server.
ACCEPTING_TURNS = 5
Reader, Writer = asyncio.StreamReader, asyncio.StreamWriter


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """Make a self-signed certificate of 127.0.0.1, and its key."""
    certificate, key = folder / "server.pem", folder / "server.key"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext"]
    command += ["subjectAltName=IP:127.0.0.1", "-out", str(certificate), "-keyout", str(key)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except OSError:
        pytest.skip("openssl is not installed")
    return certificate, key


async def stop_listening(server: asyncio.Server) -> None:
    """Close a server after each connection that it has accepted has its handler.

    A server that is closed earlier drops the connection without closing it.
    """
    for listener in server.sockets:
        asyncio.get_running_loop().remove_reader(listener.fileno())
    await yield_turns(ACCEPTING_TURNS)
    server.close()


@asynccontextmanager
async def serve_sockets(
    serve: Callable[[Reader, Writer], Awaitable[None]], tls: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    """Run a server on this machine, as ``host:port``; its handlers end with the block."""
    handlers: set[asyncio.Task[None]] = set()

    async def handle(reader: Reader, writer: Writer) -> None:
        handlers.add(cast("asyncio.Task[None]", asyncio.current_task()))
        try:
            await serve(reader, writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the caller gave up, or the server ends
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        await stop_listening(server)
        for handler in handlers:
            handler.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)
