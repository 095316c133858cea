"""HTTP/1.1 to vendors, byte by byte: what is sent, what is understood, what is kept."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import httpx
import pytest

from tests.support.socket_server import Reader, Writer, serve_sockets
from tests.support.timing import PATIENCE_S
from toolkit.engine.transport import http_connection_pool
from toolkit.engine.transport.http_connection import (
    MAX_HEAD_BYTES,
    MAX_UNREAD_BYTES,
    HttpConnection,
)
from toolkit.engine.transport.network import NetworkTransport
from toolkit.engine.transport.send_check import SEND_CHECK

PLAIN = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Scene:
    """A transport, and a server that it is to call."""

    def __init__(self, address: str) -> None:
        self.url = f"http://{address}"
        self.transport = NetworkTransport()

    async def send(self, method: str = "GET", **given: object) -> tuple[int, bytes]:
        """Send a request; the status and the body of its answer."""
        request = httpx.Request(method, f"{self.url}/v1", **given)  # type: ignore[arg-type]
        response = await self.transport.handle_async_request(request)
        try:
            return response.status_code, await response.aread()
        finally:
            await response.aclose()


@asynccontextmanager
async def play(
    conduct: Callable[[Reader, Writer], Awaitable[None]],
) -> AsyncIterator[tuple[Scene, list[Writer]]]:
    """A scene with a server that conducts itself so; and the connections it was opened."""
    opened: list[Writer] = []

    async def serve(reader: Reader, writer: Writer) -> None:
        opened.append(writer)
        await conduct(reader, writer)

    async with asyncio.timeout(PATIENCE_S), serve_sockets(serve) as address:
        scene = Scene(address)
        try:
            yield scene, opened
        finally:
            await scene.transport.aclose()


def answer_with(*parts: bytes) -> Callable[[Reader, Writer], Awaitable[None]]:
    """Answer every request on a connection with these parts, each sent by itself."""

    async def conduct(reader: Reader, writer: Writer) -> None:
        while True:
            await read_request(reader)
            for part in parts:
                writer.write(part)
                await pass_turns(2)  # so that it is received by itself

    return conduct


async def pass_turns(count: int) -> None:
    """Let the event loop turn this often."""
    for _ in range(count):
        turned = asyncio.Event()
        asyncio.get_running_loop().call_soon(turned.set)
        await turned.wait()


async def read_request(reader: Reader) -> tuple[bytes, bytes]:
    """Read a request: its head, in lower case, and its body."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if b"transfer-encoding: chunked" in head:
        return head, await reader.readuntil(b"0\r\n\r\n")
    _, _, length = head.partition(b"content-length: ")
    return head, await reader.readexactly(int(length.split(b"\r\n")[0] or 0))


@pytest.mark.parametrize(
    ("parts", "expected", "connections"),
    [
        ([PLAIN], b"ok", 1),
        ([bytes([byte]) for byte in PLAIN], b"ok", 1),
        ([b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN], b"ok", 1),
        ([b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n", PLAIN], b"ok", 1),
        ([b"HTTP/1.1 204 No Content\r\n\r\n"], b"", 1),
        ([b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"], b"", 1),
        (
            [
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\no\r\n",
                b"1;x=y\r\nk\r\n0\r\ntrailer: z\r\n\r\n",
            ],
            b"ok",
            1,
        ),
        ([b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok"], b"ok", 2),
        ([b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok"], b"ok", 2),
        ([PLAIN + b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil"], b"ok", 2),
    ],
)
async def test_answers_that_are_understood(
    parts: list[bytes], expected: bytes, connections: int
) -> None:
    """Given each form of an answer, then it is read, and its connection kept where it may be."""
    async with play(answer_with(*parts)) as (scene, opened):
        for _ in range(2):
            assert (await scene.send())[1] == expected
        assert len(opened) == connections


async def test_an_answer_that_ends_with_its_connection() -> None:
    """Given neither a length nor chunks, then the body lasts until the connection's end."""

    async def conduct(reader: Reader, writer: Writer) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nok")

    async with play(conduct) as (scene, opened):
        assert [await scene.send() for _ in range(2)] == [(200, b"ok")] * 2
        assert len(opened) == 2


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: a\x00b\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"a" * (2 * MAX_HEAD_BYTES),
    ],
)
async def test_answers_that_are_no_http(answer: bytes) -> None:
    """Given an answer that could be read in two ways, or not at all, then it fails."""
    async with play(answer_with(answer)) as (scene, _):
        with pytest.raises(httpx.RemoteProtocolError):
            await scene.send()


async def test_the_answer_to_a_head_has_no_body() -> None:
    """Given a length without a body, as a HEAD is answered, then nothing is waited for."""
    async with play(answer_with(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n")) as (scene, _):
        assert await scene.send("HEAD") == (200, b"")


async def test_what_is_sent() -> None:
    """Given a body that is there and one that is made meanwhile, then each is framed as it must."""
    seen: list[tuple[bytes, bytes]] = []

    async def conduct(reader: Reader, writer: Writer) -> None:
        for _ in range(2):
            seen.append(await read_request(reader))
            writer.write(PLAIN)

    async def make() -> AsyncIterator[bytes]:
        yield b"one "
        yield b""
        yield b"two"

    async with play(conduct) as (scene, opened):
        await scene.send("POST", content=b"{}", headers={"authorization": "Bearer k"})
        await scene.send("POST", content=make())
        assert len(opened) == 1
    assert b"post /v1 http/1.1\r\nhost: 127.0.0.1:" in seen[0][0]
    assert b"\r\nauthorization: bearer k\r\n" in seen[0][0]
    assert b"\r\naccept-encoding: gzip, deflate\r\n" in seen[0][0]
    assert [body for _, body in seen] == [b"{}", b"4\r\none \r\n3\r\ntwo\r\n0\r\n\r\n"]


@pytest.mark.parametrize(
    "headers",
    [{"x": "a\r\nevil: 1"}, {"x": "a\nevil: 1"}, {"x\r\nevil": "1"}, {"x": "\0"}, {"x": "a\rb"}],
)
async def test_a_header_cannot_make_another(headers: dict[str, str]) -> None:
    """Given a line break in a header, then nothing is sent."""
    async with play(answer_with(PLAIN)) as (scene, _):
        with pytest.raises(httpx.LocalProtocolError):
            await scene.send(headers=headers)


@pytest.mark.parametrize(("method", "sent"), [("GET", 3), ("POST", 2)])
async def test_a_kept_connection_that_is_lost(method: str, sent: int) -> None:
    """Given a kept connection that ends with a request on it, then only what may is repeated."""
    seen: list[bytes] = []

    async def conduct(reader: Reader, writer: Writer) -> None:
        while len(seen) != 1:
            seen.append((await read_request(reader))[0])
            writer.write(PLAIN)
        seen.append((await read_request(reader))[0])

    async with play(conduct) as (scene, _):
        await scene.send(method)
        if method == "GET":
            assert await scene.send(method) == (200, b"ok")
        else:
            with pytest.raises(httpx.ReadError):
                await scene.send(method)
        assert len(seen) == sent


async def test_a_connection_that_ends_before_its_request_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Given a host that closes a kept connection meanwhile, then another one is used, once."""
    made: list[HttpConnection] = []

    class NotedConnection(HttpConnection):
        def __init__(self) -> None:
            super().__init__()
            made.append(self)

    monkeypatch.setattr(http_connection_pool, "HttpConnection", NotedConnection)

    async def conduct(reader: Reader, writer: Writer) -> None:
        await read_request(reader)
        writer.write(PLAIN)
        await reader.read(1)

    async with play(conduct) as (scene, opened):
        await scene.send("POST")

        async def close_first() -> None:
            opened[0].close()
            await made[0].closed

        request = {"extensions": {SEND_CHECK: close_first}}
        assert await scene.send("POST", **request) == (200, b"ok")
        assert len(opened) == 2


async def test_an_upload_that_is_refused_before_its_end() -> None:
    """Given an answer before all is sent, then it is read, and the rest is not sent."""
    refused = asyncio.Event()

    async def conduct(reader: Reader, writer: Writer) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        refused.set()
        await reader.read()

    async def make() -> AsyncIterator[bytes]:
        yield b"a"
        await refused.wait()
        while True:
            yield bytes(1_000_000)

    async with play(conduct) as (scene, _):
        assert await scene.send("POST", content=make()) == (413, b"")


async def test_what_nobody_reads_is_not_taken() -> None:
    """Given an answer that is large and not read, then little of it is held here."""
    size = 256 * MAX_UNREAD_BYTES  # more than the kernel keeps of it

    async def conduct(reader: Reader, writer: Writer) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size)
        writer.write(bytes(size))

    async with play(conduct) as (scene, opened):
        request = httpx.Request("GET", scene.url)
        response = await scene.transport.handle_async_request(request)
        await pass_turns(1000)
        assert opened[0].transport.get_write_buffer_size() > size / 2
        assert len(await response.aread()) == size
        await response.aclose()


async def test_a_call_that_is_given_up_closes_its_connection() -> None:
    """Given a caller that no longer waits, then its connection is not used for another's call."""
    received, ended = asyncio.Event(), asyncio.Event()

    async def conduct(reader: Reader, _: Writer) -> None:
        await read_request(reader)
        received.set()
        with suppress(ConnectionError):
            await reader.read()
        ended.set()

    async with play(conduct) as (scene, _):
        call = asyncio.create_task(scene.send("POST"))
        await received.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await ended.wait()


async def test_a_connection_is_opened_ahead() -> None:
    """Given that a call is announced, then its connection is there before its request, and used."""
    async with play(answer_with(PLAIN)) as (scene, opened):
        url = httpx.URL(scene.url)
        scene.transport.open_ahead(url, None)
        assert await scene.send() == (200, b"ok")  # it waits for that one
        scene.transport.open_ahead(url, None)  # one is there
        assert await scene.send() == (200, b"ok")
        assert len(opened) == 1
        scene.transport.open_ahead(httpx.URL("http://127.0.0.1:1"), None)  # nobody waits for it
        assert await scene.send() == (200, b"ok")


async def test_an_idle_connection_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a connection that is idle for long, then it is closed, and the next is a new one."""
    monkeypatch.setattr(http_connection_pool, "KEEPALIVE_S", 0.0)
    ended = asyncio.Event()

    async def conduct(reader: Reader, writer: Writer) -> None:
        await read_request(reader)
        writer.write(PLAIN)
        assert await reader.read() == b""
        ended.set()

    async with play(conduct) as (scene, opened):
        await scene.send()
        await ended.wait()
        await scene.send()
        assert len(opened) == 2


async def test_who_waits_for_a_place_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given more calls than may be under way at once, then all are made, few connections opened."""
    monkeypatch.setattr(http_connection_pool, "MAX_IN_USE", 2)
    async with play(answer_with(PLAIN)) as (scene, opened):
        answers = await asyncio.gather(*[scene.send() for _ in range(9)])
        assert answers == [(200, b"ok")] * 9
        assert len(opened) == 2
