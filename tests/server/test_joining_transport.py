"""The head and the body of a response leave in one piece, in order and without delay."""

import asyncio
from unittest.mock import Mock, call

import pytest

from tests.support.timing import wait_until_async
from toolkit.server.http_protocol import JoiningTransport

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"


@pytest.fixture
def socket() -> Mock:
    """The transport below."""
    return Mock(spec=asyncio.Transport)


async def test_sends_a_head_with_its_body(socket: Mock) -> None:
    """Given a head and a body, then they leave as one piece, apart from the next response."""
    transport = JoiningTransport(socket)
    for body in (b"{}", b"[]"):
        transport.write(HEAD)
        transport.write(body)
    assert socket.mock_calls == [call.writelines((HEAD, b"{}")), call.writelines((HEAD, b"[]"))]


async def test_sends_a_head_without_waiting_for_its_body(socket: Mock) -> None:
    """Given a stream, then its head leaves in the next turn, and each part at once."""
    transport = JoiningTransport(socket)
    transport.write(HEAD)
    await wait_until_async(lambda: socket.mock_calls)
    transport.write(b"id: 1\r\n\r\n")
    assert socket.mock_calls == [call.write(HEAD), call.write(b"id: 1\r\n\r\n")]


async def test_sends_a_held_head_before_closing(socket: Mock) -> None:
    """Given a head alone, when the connection is closed, then the head has left."""
    transport = JoiningTransport(socket)
    transport.write(HEAD)
    transport.close()
    assert socket.mock_calls == [call.write(HEAD), call.close()]
