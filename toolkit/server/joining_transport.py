"""A transport that sends the head of a response and what follows it as one."""

import asyncio
from typing import Any


class JoiningTransport:
    """A transport that holds a response's head until its body is written, or the loop turns.

    uvicorn writes them one after the other. As two packets they are two calls of the system, and
    the caller is woken twice.

    Args:
        transport: what everything is written to.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._head = b""

    def write(self, data: "bytes | bytearray | memoryview[Any]") -> None:
        """Write bytes after those that are held, but for a head alone: that is held itself."""
        if self._head:
            held, self._head = self._head, b""
            self._transport.writelines((held, data))
        elif isinstance(data, bytes) and data[:7] == b"HTTP/1." and data[-4:] == b"\r\n\r\n":
            self._head = data
            self._loop.call_soon(self._flush)  # what follows may be long in coming
        else:
            self._transport.write(data)

    def _flush(self) -> None:
        if self._head:
            held, self._head = self._head, b""
            self._transport.write(held)

    def close(self) -> None:
        """Close the connection once all is written."""
        self._flush()
        self._transport.close()

    # Of all else that a transport has, uvicorn uses nothing that writes.
    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
