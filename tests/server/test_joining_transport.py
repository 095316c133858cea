"""The head of a response and its body leave together, in order, and nothing is held for long."""

import asyncio
from collections.abc import Iterable
from typing import Any

from tests.support.timing import wait_until_async
from toolkit.server.http_protocol import JoiningTransport

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"


class Wire(asyncio.Transport):
    """A transport that keeps what leaves at once."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self.closed = False

    def write(self, data: Any) -> None:
        """Keep one piece."""
        self.sent.append(bytes(data))

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        """Keep several pieces as one."""
        self.sent.append(b"".join(list_of_data))

    def close(self) -> None:
        """Note it."""
        self.closed = True


async def test_a_head_leaves_with_its_body() -> None:
    """Given a head and a body, then they are one, and the next response is one of its own."""
    wire = Wire()
    transport = JoiningTransport(wire)
    for body in (b"{}", b"[]"):
        transport.write(HEAD)
        assert wire.sent == ([] if body == b"{}" else [HEAD + b"{}"])
        transport.write(body)
    assert wire.sent == [HEAD + b"{}", HEAD + b"[]"]


async def test_a_head_does_not_wait_for_a_body_that_is_long_in_coming() -> None:
    """Given a stream, then its head leaves as the loop turns, and each part as it is written."""
    wire = Wire()
    transport = JoiningTransport(wire)
    transport.write(HEAD)
    await wait_until_async(lambda: wire.sent)
    assert wire.sent == [HEAD]
    transport.write(b"id: 1\r\n\r\n")
    assert wire.sent == [HEAD, b"id: 1\r\n\r\n"]


async def test_what_is_held_leaves_before_the_end() -> None:
    """Given a head alone, when the connection is closed, then it has left."""
    wire = Wire()
    transport = JoiningTransport(wire)
    transport.write(HEAD)
    transport.close()
    assert (wire.sent, wire.closed) == ([HEAD], True)
