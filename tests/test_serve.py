"""The socket that `toolkit serve` listens on."""

import asyncio
import signal
import time
from pathlib import Path
from statistics import median

import httpx

from toolkit.local import open_engine
from toolkit.server.serve import serve
from toolkit.settings import Settings


async def test_answers_are_sent_at_once(tmp_path: Path) -> None:
    """Given a connection that is kept, then no answer waits for the caller to acknowledge its head.

    Linux would hold the body back for some 40 ms.
    """
    engine = await open_engine(Settings(data_dir=tmp_path / "data", sandbox=True))
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve(engine, "127.0.0.1", 0, on_ready=ready.set_result))
    took = []
    async with httpx.AsyncClient(base_url=await ready, trust_env=False) as client:
        for _ in range(15):
            began = time.perf_counter()
            await client.get("/v1/health")
            took.append(time.perf_counter() - began)
    signal.raise_signal(signal.SIGTERM)
    await serving
    assert median(took) < 0.03
