"""Callers who take their time, on a real socket: cut, while others are served."""

import asyncio

import httpx

from tests.server.conftest import serve_engine
from tests.support.timing import PATIENCE_S, Watch
from toolkit.settings import Settings

HEAD = (
    b"POST /v1/account HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    b"Content-Length: 1000000\r\n\r\n"
)


async def dribble_request(http: httpx.AsyncClient, head: bytes, more: bytes) -> tuple[bytes, float]:
    """Send a request bit by bit until it is cut off; return the answer, and after how long."""
    address = http.base_url
    reader, writer = await asyncio.open_connection(address.host, address.port)
    watch = Watch()
    writer.write(head)

    async def dribble() -> None:
        while True:
            writer.write(more)
            await writer.drain()
            await asyncio.sleep(0.02)

    dribbling = asyncio.create_task(dribble())
    got = b""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while part := await reader.read(65536):
                got += part
    except ConnectionError:
        pass  # cut while it was still sending
    finally:
        dribbling.cancel()
        await asyncio.gather(dribbling, return_exceptions=True)
        writer.close()
    return got, watch.measure_elapsed_s()


async def test_a_body_that_dribbles_is_cut(settings: Settings) -> None:
    """Given a byte now and then, then it is 400 when the time is up, and the connection ends."""
    quick = settings.model_copy(update={"body_timeout_s": 0.3})
    async with serve_engine(quick) as http:
        (got, took), other = await asyncio.gather(
            dribble_request(http, HEAD, b" "), http.get("/v1/health")
        )
    assert got.startswith(b"HTTP/1.1 400")
    assert b"did not arrive in time" in got
    assert took < 4
    assert other.status_code == 200


async def test_a_head_that_dribbles_is_cut(settings: Settings) -> None:
    """Given a head that does not end, then the connection does, also where a request came before.

    A request that takes longer than that to be answered is none of it.
    """
    quick = settings.model_copy(update={"head_timeout_s": 0.3})
    whole = b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n"
    async with serve_engine(quick) as http:
        for before in (b"", whole):
            got, took = await dribble_request(
                http, before + b"GET /v1/health HTTP/1.1\r\n", b"x: 1\r\n"
            )
            assert got.count(b"HTTP/1.1 200") == bool(before)
            assert took < 4
        made = await http.post("/v1/account", json={"email": "ada@example.org"})
        headers = {"Authorization": f"Bearer {made.json()['data']['api_key']}"}
        card = {"name": "composition.layout", "target": "capability", "input": {"title": "Tea"}}
        run = (await http.post("/v1/runs", json=card, headers=headers)).json()["id"]
        events = await http.get(f"/v1/runs/{run}/events?after=99&wait=1", headers=headers)
    assert events.status_code == 200


async def test_a_head_without_end_is_cut(settings: Settings) -> None:
    """Given headers that come quickly and never end, then it is cut; many whole ones are not."""
    async with serve_engine(settings.model_copy(update={"head_timeout_s": 60.0})) as http:
        began = b"GET /v1/health HTTP/1.1\r\n"
        got, took = await dribble_request(http, began, b"x-long: " + b"1" * 60_000 + b"\r\n")
        assert b" 200 " not in got
        assert took < 4
        long = {"x-long": "1" * 20_000}
        async with httpx.AsyncClient(base_url=http.base_url, trust_env=False) as kept:
            for _ in range(30):  # more bytes in all than one head may have
                assert (await kept.get("/v1/health", headers=long)).status_code == 200
