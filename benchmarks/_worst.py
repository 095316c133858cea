"""A tenant with the worst load: slow bodies, layouts that cost nothing, slow readers.

It runs in a separate process, as it would run on another machine, so that making its requests does
not slow down the measured tenants.
"""

import asyncio
import itertools
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import httpx

AT_ONCE, SLOW_READERS = 4, 10
KEY = "TENANT_KEY"
DEEP = "[" * 50 + "]" * 50


def bodies() -> list[tuple[str, bytes]]:
    """Return the slowest POST requests, each with its path."""
    schema = {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(25)}}
    asks = {"objective": "tea", "output_schema": schema}
    node = {"capability": "llm.generate", "depends_on": []}
    wide = [{**node, "id": f"n{i}", "input": {"objective": "tea " * 100}} for i in range(1_000)]
    schemas = [{**node, "id": f"n{i}", "input": asks} for i in range(50)]
    deep = f'{{"nodes":[{",".join([DEEP] * 580)}]}}'.encode()
    wrong = f'{{"nodes":[{",".join(["1"] * 29_000)}]}}'.encode()
    graphs = [json.dumps({"name": "worst", "nodes": nodes}).encode() for nodes in (wide, schemas)]
    return [("/workflows", body) for body in (*graphs, deep, wrong)]


class Tenant:
    """The process of the tenant; it sends its load from `begin` to `end`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def begin(self) -> None:
        """Start the load."""
        await self._say("begin")

    async def end(self) -> None:
        """Stop the load."""
        await self._say("end")

    async def _say(self, word: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{word}\n".encode())
        assert await self._process.stdout.readline() == f"{word}\n".encode()


@asynccontextmanager
async def start_tenant(url: str, key: str) -> AsyncIterator[Tenant]:
    """Start the process, which waits for commands until the block ends."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks._worst", url),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, KEY: key},
    )
    try:
        yield Tenant(process)
    finally:
        process.kill()
        await process.wait()


async def main(url: str, key: str) -> None:
    """Start or stop the load as each line of stdin says, and answer with the same line."""
    load: asyncio.Task[None] | None = None
    while line := await asyncio.to_thread(sys.stdin.readline):
        if load is not None:
            load.cancel()
            await asyncio.wait([load])
            load = None
        if line == "begin\n":
            load = asyncio.create_task(do_its_worst(url, key))
        print(line, end="", flush=True)


async def do_its_worst(url: str, key: str) -> None:
    """Send the largest load possible until cancelled; responses are ignored."""
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx.AsyncClient(
            base_url=f"{url}/v1", headers=headers, timeout=120, trust_env=False
        ) as http,
        asyncio.TaskGroup() as group,
    ):
        artifact = await http.post("/artifacts", files={"file": ("large.txt", b"tea " * 5_000_000)})
        for _ in range(AT_ONCE):
            group.create_task(_post(http))
            group.create_task(_lay_out(http))
        for _ in range(SLOW_READERS):
            group.create_task(_read_slowly(url, key, str(artifact.json().get("id"))))


async def _post(http: httpx.AsyncClient) -> None:
    for path, body in itertools.cycle(bodies()):
        kind = {"Content-Type": "application/json"}
        answer = await http.post(path, content=body, headers=kind)
        if answer.status_code == 202:
            await http.post(f"{path}/{answer.json()['id']}/cancel")


async def _lay_out(http: httpx.AsyncClient) -> None:
    layout = {"title": "Tea", "body": "tea " * 500, "width": 4096, "height": 4096}
    body = {"target": "capability", "name": "composition.layout", "input": layout}
    while True:
        await http.post("/runs", json=body, headers={"Prefer": "wait=30"})


async def _read_slowly(url: str, key: str, artifact_id: str) -> None:
    """Request a large artifact, and read a little of it from time to time."""
    place = urlsplit(url)
    while True:
        reader, writer = await asyncio.open_connection(place.hostname, place.port, limit=4096)
        try:
            writer.write(
                f"GET /v1/artifacts/{artifact_id}/content HTTP/1.1\r\nHost: {place.netloc}\r\n"
                f"Authorization: Bearer {key}\r\n\r\n".encode()
            )
            for _ in range(20):
                await reader.read(4096)
                await asyncio.sleep(0.5)
        finally:
            writer.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], os.environ[KEY]))
