"""A minimal HTTP client: persistent connections, and requests that are prepared as bytes.

It shares two cores with the system that it measures, so it must cost next to nothing.
"""

import asyncio
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_STATUS = slice(9, 12)


def make_post(path: str, body: bytes, **headers: str) -> bytes:
    """Make a POST request of JSON; underscores in the names of headers become hyphens."""
    fields = {"host": "localhost", "content-type": "application/json", **headers}
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    head = "\r\n".join([f"POST {path} HTTP/1.1", *lines, f"content-length: {len(body)}"])
    return head.encode() + b"\r\n\r\n" + body


class RawConnection:
    """A persistent connection to a port of this machine."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, port: int) -> "RawConnection":
        """Connect."""
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def send(self, request: bytes) -> tuple[int, bytes]:
        """Send a request; return the status and the body of its response."""
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        assert length is not None, head
        return int(head[_STATUS]), await self._reader.readexactly(int(length[1]))

    def close(self) -> None:
        """Disconnect."""
        self._writer.close()


async def send_load(
    port: int,
    make_request: Callable[[], bytes],
    callers: int,
    seconds: float,
    *,
    expected: bytes = b"",
    per_s: float | None = None,
) -> tuple[list[float], float]:
    """Send requests from several concurrent callers for a while.

    Args:
        port: port of this machine.
        make_request: function that returns the next request.
        callers: number of concurrent callers, each of which sends one request after the other.
        seconds: duration of the load.
        expected: bytes that every response must contain.
        per_s: maximum number of requests per second, evenly spaced; without limit by default.

    Returns:
        the milliseconds of each request, and the number of requests per second. With `per_s` a
        request's time begins when it was due, so that the time a request waits for its turn is
        counted.
    """
    connections = [await RawConnection.open(port) for _ in range(callers)]
    took_ms: list[float] = []
    began = time.perf_counter()
    due = began

    async def call(connection: RawConnection) -> None:
        nonlocal due
        while (started := time.perf_counter()) < began + seconds:
            if per_s is not None:
                started, due = due, due + 1 / per_s
                await asyncio.sleep(max(0.0, started - time.perf_counter()))
            status, body = await connection.send(make_request())
            took_ms.append((time.perf_counter() - started) * 1000)
            assert status < 300, (status, body[:400])
            assert expected in body, body[:400]

    await asyncio.gather(*map(call, connections))
    took_s = time.perf_counter() - began
    for connection in connections:
        connection.close()
    return took_ms, len(took_ms) / took_s


@contextmanager
def start_module(name: str, *arguments: str) -> Iterator[tuple[int, int]]:
    """Run a module that prints its port, until the block ends; yields the port and process id."""
    command = [sys.executable, "-m", name, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline()), process.pid
        finally:
            process.kill()
