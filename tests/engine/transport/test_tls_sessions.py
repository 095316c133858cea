"""TLS to vendors: sessions are resumed, by real handshakes with a server that counts them."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.socket_server import Reader, Writer, make_certificate, serve_sockets
from tests.support.timing import PATIENCE_S
from toolkit.engine.transport.network import NetworkTransport

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"


@asynccontextmanager
async def count_handshakes(
    certificate: Path, key: Path, version: ssl.TLSVersion
) -> AsyncIterator[tuple[str, list[bool]]]:
    """A TLS server that ends each connection with its answer; which handshakes were resumed."""
    resumed: list[bool] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = context.maximum_version = version
    context.load_cert_chain(certificate, key)

    async def answer(reader: Reader, writer: Writer) -> None:
        await reader.readuntil(b"\r\n\r\n")
        resumed.append(bool(writer.get_extra_info("ssl_object").session_reused))
        writer.write(ANSWER)

    async with serve_sockets(answer, context) as address:
        yield f"https://{address}", resumed


async def get(transport: NetworkTransport, url: str) -> bytes:
    """The body of the answer to a GET."""
    response = await transport.handle_async_request(httpx.Request("GET", url))
    body = await response.aread()
    await response.aclose()
    return body


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_session_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: ssl.TLSVersion
) -> None:
    """Given a host that was called before, then later connections resume its session."""
    certificate, key = make_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    transport = NetworkTransport()
    async with asyncio.timeout(PATIENCE_S), count_handshakes(certificate, key, version) as served:
        url, resumed = served
        for _ in range(4):
            assert await get(transport, url) == b"{}"
        assert resumed == [False, True, True, True]
    await transport.aclose()


async def test_another_host_is_offered_no_session_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a certificate that is replaced by one nobody trusts, then nothing is sent."""
    (tmp_path / "other").mkdir()
    certificate, key = make_certificate(tmp_path)
    impostor = make_certificate(tmp_path / "other")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    transport = NetworkTransport()
    version = ssl.TLSVersion.TLSv1_3
    async with asyncio.timeout(PATIENCE_S):
        async with count_handshakes(certificate, key, version) as (url, _):
            assert await get(transport, url) == b"{}"
        async with count_handshakes(*impostor, version) as (url, resumed):
            with pytest.raises(httpx.TransportError):
                await get(transport, url)
        assert resumed == []
    await transport.aclose()
