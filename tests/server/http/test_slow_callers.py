"""Slow callers on a real socket: they are disconnected, while others are served."""

import asyncio

import httpx

from tests.server.conftest import serve_engine
from tests.support.timing import PATIENCE_S, Watch
from toolkit.settings import Settings

HEAD = (
    b"POST /v1/account HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    b"Content-Length: 1000000\r\n\r\n"
)


async def dribble_request(http: httpx.AsyncClient, head: bytes, part: bytes) -> tuple[bytes, float]:
    """Send a request part by part until the server closes; return the answer and the seconds."""
    address = http.base_url
    reader, writer = await asyncio.open_connection(address.host, address.port)
    watch = Watch()
    writer.write(head)

    async def dribble() -> None:
        while True:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.02)

    dribbling = asyncio.create_task(dribble())
    answer = b""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while data := await reader.read(65536):
                answer += data
    except ConnectionError:
        pass  # cut while it was still sending
    finally:
        dribbling.cancel()
        await asyncio.gather(dribbling, return_exceptions=True)
        writer.close()
    return answer, watch.measure_elapsed_s()


async def test_disconnects_a_slow_body(settings: Settings) -> None:
    """Given a body that arrives byte by byte, then 400 after the timeout."""
    quick = settings.model_copy(update={"body_timeout_s": 0.3})
    async with serve_engine(quick) as http:
        (answer, seconds), health = await asyncio.gather(
            dribble_request(http, HEAD, b" "), http.get("/v1/health")
        )
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"did not arrive in time" in answer
    assert seconds < 4
    assert health.status_code == 200


async def test_disconnects_a_slow_head(settings: Settings) -> None:
    """Given a head that does not end, then the connection ends, also after an earlier request.

    A request that takes longer than that timeout to be answered is not affected.
    """
    quick = settings.model_copy(update={"head_timeout_s": 0.3})
    request = b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n"
    async with serve_engine(quick) as http:
        for earlier in (b"", request):
            answer, seconds = await dribble_request(
                http, earlier + b"GET /v1/health HTTP/1.1\r\n", b"x: 1\r\n"
            )
            assert answer.count(b"HTTP/1.1 200") == bool(earlier)
            assert seconds < 4
        account = await http.post("/v1/account", json={"email": "ada@example.org"})
        headers = {"Authorization": f"Bearer {account.json()['data']['api_key']}"}
        card = {"name": "composition.layout", "target": "capability", "input": {"title": "Tea"}}
        run = (await http.post("/v1/runs", json=card, headers=headers)).json()["id"]
        events = await http.get(f"/v1/runs/{run}/events?after=99&wait=1", headers=headers)
    assert events.status_code == 200


async def test_disconnects_an_endless_head(settings: Settings) -> None:
    """Given headers that never end, then the connection ends; many requests are served."""
    async with serve_engine(settings.model_copy(update={"head_timeout_s": 60.0})) as http:
        request_line = b"GET /v1/health HTTP/1.1\r\n"
        answer, seconds = await dribble_request(
            http, request_line, b"x-long: " + b"1" * 60_000 + b"\r\n"
        )
        assert b" 200 " not in answer
        assert seconds < 4
        long = {"x-long": "1" * 20_000}
        async with httpx.AsyncClient(base_url=http.base_url, trust_env=False) as client:
            for _ in range(30):  # more bytes in total than one head may have
                assert (await client.get("/v1/health", headers=long)).status_code == 200
