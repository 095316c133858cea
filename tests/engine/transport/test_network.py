"""Network failures of a call, on real sockets and over the real transport."""

import asyncio
import json
import selectors
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from tests.support.engine_accounts import connect_account, run_to_end
from tests.support.ports import free_port
from tests.support.socket_server import Reader, Writer, make_certificate, serve_sockets
from tests.support.timing import PATIENCE_S, wait_until_async
from toolkit.contract.runs import Run
from toolkit.engine import Engine
from toolkit.engine.transport.driver import SEND_CHECK
from toolkit.engine.transport.network import NetworkTransport
from toolkit.plugins import PUBLIC_ONLY, ProviderError
from toolkit.secrets import MappingResolver
from toolkit.settings import Settings, Timeouts, VendorSettings
from toolkit.store import LeaseLost

Conduct = Callable[[Reader, Writer], Awaitable[None]]
GOOD = json.dumps(
    {
        "id": "chatcmpl-1",
        "model": "m",
        "choices": [{"message": {"content": "Tides turn."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 3},
    }
).encode()


def head(status: str, length: int, *lines: str) -> bytes:
    """Build the head of an answer."""
    fields = ["content-type: application/json", f"content-length: {length}", *lines]
    return "\r\n".join([f"HTTP/1.1 {status}", *fields, "", ""]).encode()


def send(data: bytes) -> Conduct:
    """Build a server that sends data and closes the connection."""

    async def conduct(_: Reader, writer: Writer) -> None:
        writer.write(data)

    return conduct


async def never_answer(_: Reader, __: Writer) -> None:
    """Never answer."""
    await asyncio.Event().wait()


async def drip_answer(_: Reader, writer: Writer) -> None:
    """Send a byte every 50 ms, so that no single read times out."""
    writer.write(head("200 OK", len(GOOD)))
    for byte in GOOD:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0.05)


WHOLE = head("200 OK", len(GOOD)) + GOOD
ELSEWHERE = "location: http://evil.invalid/v1"
FAILURES: dict[str, tuple[Conduct, str]] = {
    "no answer": (never_answer, "PROVIDER_TIMEOUT"),
    "a byte at a time": (drip_answer, "PROVIDER_TIMEOUT"),
    "cut off": (send(WHOLE[:-20]), "PROVIDER_UNAVAILABLE"),
    "closed": (send(b""), "PROVIDER_UNAVAILABLE"),
    "no HTTP": (send(b"SSH-2.0-OpenSSH_9.9\r\n"), "PROVIDER_UNAVAILABLE"),
    "a redirect": (send(head("307 Temporary Redirect", 0, ELSEWHERE)), "PROVIDER_BAD_RESPONSE"),
}


@asynccontextmanager
async def serve_conduct(conduct: Conduct) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Serve a conduct after each request; yield the URL and the heads of the requests."""
    seen: list[bytes] = []

    async def serve(reader: Reader, writer: Writer) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        await conduct(reader, writer)

    async with serve_sockets(serve) as address:
        yield f"http://{address}", seen


async def run_at(
    url: str, folder: Path, total_s: float = 10, wait_s: float = 10, **settings: object
) -> Run:
    """Do a run whose only vendor is at an address."""
    timeouts = Timeouts(total_s=total_s)
    vendors = {"openai": VendorSettings(base_urls={"api": url}, timeouts=timeouts)}
    engine = await Engine.open(
        Settings(data_dir=folder, vendors=vendors, retries=0, max_cooldown_wait_s=0, **settings),
        resolver=MappingResolver({"OPENAI_API_KEY": "sk-network-test"}),
    )
    try:
        context = await connect_account(engine, "openai")
        return await run_to_end(engine, context, "llm.generate", {"objective": "Tea"}, wait_s)
    finally:
        await engine.close(0)


@pytest.mark.parametrize("failure", FAILURES)
async def test_maps_failures_to_error_codes(tmp_path: Path, failure: str) -> None:
    """Given a server that misbehaves, then the run fails in time, with the code of the failure."""
    conduct, code = FAILURES[failure]
    async with serve_conduct(conduct) as (url, seen):
        # On a busy machine, other failures must not look like a slow vendor.
        total_s = 1.5 if code == "PROVIDER_TIMEOUT" else 10
        async with asyncio.timeout(PATIENCE_S):
            run = await run_at(url, tmp_path, total_s)
    assert (run.status, run.error and run.error.code) == ("failed", code)
    assert len(seen) == 1
    assert run.error is not None
    assert "sk-network-test" not in run.error.message


@pytest.mark.parametrize("body", ["empty", "whole", "streamed"])
async def test_sends_nothing_if_the_lease_is_lost_while_connecting(body: str) -> None:
    """Given a lease that is lost between the intent and the request, then nothing is sent."""
    connected = asyncio.Event()
    seen: list[bytes] = []

    async def serve(reader: Reader, _: Writer) -> None:
        connected.set()
        seen.append(await reader.read())

    async def make_body() -> AsyncIterator[bytes]:
        yield b"{}"

    async def check() -> None:
        await connected.wait()  # the check comes after the connection
        raise LeaseLost("run_1")

    async with (
        asyncio.timeout(PATIENCE_S),
        serve_sockets(serve) as address,
        httpx.AsyncClient(transport=NetworkTransport()) as client,
    ):
        contents: dict[str, Any] = {"empty": None, "whole": b"{}", "streamed": make_body()}
        method, options = "GET" if body == "empty" else "POST", {SEND_CHECK: check}
        with pytest.raises(LeaseLost):
            await client.request(
                method, f"http://{address}", content=contents[body], extensions=options
            )
        await wait_until_async(lambda: seen)
    assert seen == [b""]


async def test_a_refused_connection_costs_nothing(tmp_path: Path) -> None:
    """Given an address without a server, then the run fails, and its cost is 0."""
    run = await run_at(f"http://127.0.0.1:{free_port()}", tmp_path)
    assert (run.error and run.error.code) == "PROVIDER_UNAVAILABLE"
    assert run.cost_incurred_usd == 0


async def test_sends_no_key_without_tls(tmp_path: Path) -> None:
    """Given a server without TLS at an https address, then the key is not sent."""
    seen: list[bytes] = []

    async def plain(reader: Reader, writer: Writer) -> None:
        seen.append(await reader.read(4096))
        writer.write(head("400 Bad Request", 0))

    async with serve_sockets(plain) as address:
        run = await run_at(f"https://{address}", tmp_path)
    assert (run.error and run.error.code) == "PROVIDER_UNAVAILABLE"
    assert seen
    assert all(b"sk-network-test" not in start for start in seen)
    assert run.cost_incurred_usd == 0


async def test_trusts_the_certificates_of_ssl_cert_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given SSL_CERT_FILE, then only a server with its certificate is called."""
    (tmp_path / "other").mkdir()
    trusted, impostor = make_certificate(tmp_path), make_certificate(tmp_path / "other")
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted[0]))
    seen: list[bytes] = []

    async def answer(reader: Reader, writer: Writer) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(WHOLE)

    for pair, status in ((trusted, "completed"), (impostor, "failed")):
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*pair)
        async with serve_sockets(answer, context) as address:
            run = await run_at(f"https://{address}", tmp_path / status)
        assert run.status == status, run.error
    assert len(seen) == 1


HURRY = 100


class HurriedSelector(selectors.DefaultSelector):
    """A selector whose waits are a hundred times shorter."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for a socket for a hundredth of the time."""
        return super().select(None if timeout is None else timeout / HURRY)


class HurriedLoop(asyncio.SelectorEventLoop):
    """A loop whose clock runs a hundred times faster."""

    def __init__(self) -> None:
        super().__init__(HurriedSelector())

    def time(self) -> float:
        """Return the seconds of the faster clock."""
        return super().time() * HURRY


def test_waits_as_long_as_the_operators_timeout(tmp_path: Path) -> None:
    """Given a timeout of 300 s, when the server answers after 200 s, then the run completes."""

    async def answer_late(reader: Reader, writer: Writer) -> None:
        due = asyncio.Event()
        asyncio.get_running_loop().call_later(200, due.set)
        await due.wait()
        await send(WHOLE)(reader, writer)

    async def run() -> Run:
        async with serve_conduct(answer_late) as (url, _):
            return await run_at(url, tmp_path, 300, 300, connect_timeout_s=PATIENCE_S * HURRY)

    with asyncio.Runner(loop_factory=HurriedLoop) as runner:
        finished = runner.run(run())
    assert finished.status == "completed", finished.error


# Parts of a path or a query that libraries tend to normalize, and that signatures cover.
TARGET_PARTS = [
    *("%3A", "%3a", "%2F", "%7E", "%41", "%25", "%253A", "%C3%A9", "%20", "+", "%2B", "%26"),
    *(":", "@", "!", "$", "'", "(", ")", "*", ",", ";", "=", "~", "-", "_", "a", "Z", "0"),
]


async def test_sends_the_target_of_a_request_byte_for_byte() -> None:
    """Given paths and queries in any spelling, then the server receives the same spelling."""
    chance = Random(11)
    targets = [
        f"/{''.join(chance.choices([*TARGET_PARTS, '/'], k=chance.randrange(9)))}x"
        f"?q={''.join(chance.choices([*TARGET_PARTS, '&', '/', '?'], k=chance.randrange(9)))}"
        for _ in range(200)
    ]
    received: list[bytes] = []

    async def serve(reader: Reader, writer: Writer) -> None:
        while line := await reader.readline():
            received.append(line.split(b" ")[1])
            await reader.readuntil(b"\r\n\r\n")
            writer.write(head("200 OK", 2) + b"{}")

    transport = NetworkTransport()
    async with asyncio.timeout(PATIENCE_S), serve_sockets(serve) as address:
        for target in targets:
            url = f"http://{address}{target}"
            response = await transport.handle_async_request(httpx.Request("GET", url))
            await response.aread()
            await response.aclose()
    await transport.aclose()
    assert received == [target.encode() for target in targets]


@pytest.mark.parametrize("url", ["https://localhost/a.png", "https://169.254.169.254/a.png"])
async def test_does_not_connect_to_private_addresses_for_public_links(url: str) -> None:
    """Given a request for public addresses only, then a private address is rejected."""
    network = NetworkTransport()
    request = httpx.Request("GET", url, extensions={PUBLIC_ONLY: True})
    with pytest.raises(ProviderError, match="only from public addresses") as caught:
        await network.handle_async_request(request)
    await network.aclose()
    assert (caught.value.code.name, caught.value.retryable) == ("PROVIDER_BAD_RESPONSE", False)
