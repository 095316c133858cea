"""One tenant at its worst: bodies made to be slow, layouts that cost nothing, readers that wait.

It is a process of its own, as it would be a machine of its own: what it has to do for its requests
must not hold up those who are measured.
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
    """The worst posts, each with its path."""
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
    """The process: at its worst from `begin` to `end`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def begin(self) -> None:
        """Have it ask for as much as can be."""
        await self._say("begin")

    async def end(self) -> None:
        """Have it ask for nothing more."""
        await self._say("end")

    async def _say(self, word: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{word}\n".encode())
        assert await self._process.stdout.readline() == f"{word}\n".encode()


@asynccontextmanager
async def start_tenant(url: str, key: str) -> AsyncIterator[Tenant]:
    """Start the process, which waits to be told; it ends with the block."""
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
    """Do as each line of stdin says, and answer with the same line."""
    doing: asyncio.Task[None] | None = None
    while line := await asyncio.to_thread(sys.stdin.readline):
        if doing is not None:
            doing.cancel()
            await asyncio.wait([doing])
            doing = None
        if line == "begin\n":
            doing = asyncio.create_task(do_its_worst(url, key))
        print(line, end="", flush=True)


async def do_its_worst(url: str, key: str) -> None:
    """Ask for as much as can be, until cancelled; whatever the answers are."""
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx.AsyncClient(
            base_url=f"{url}/v1", headers=headers, timeout=120, trust_env=False
        ) as http,
        asyncio.TaskGroup() as doing,
    ):
        made = await http.post("/artifacts", files={"file": ("large.txt", b"tea " * 5_000_000)})
        for _ in range(AT_ONCE):
            doing.create_task(_post(http))
            doing.create_task(_lay_out(http))
        for _ in range(SLOW_READERS):
            doing.create_task(_read_slowly(url, key, str(made.json().get("id"))))


async def _post(http: httpx.AsyncClient) -> None:
    for path, body in itertools.cycle(bodies()):
        kind = {"Content-Type": "application/json"}
        answer = await http.post(path, content=body, headers=kind)
        if answer.status_code == 202:
            await http.post(f"{path}/{answer.json()['id']}/cancel")


async def _lay_out(http: httpx.AsyncClient) -> None:
    given = {"title": "Tea", "body": "tea " * 500, "width": 4096, "height": 4096}
    body = {"target": "capability", "name": "composition.layout", "input": given}
    while True:
        await http.post("/runs", json=body, headers={"Prefer": "wait=30"})


async def _read_slowly(url: str, key: str, artifact_id: str) -> None:
    """Ask for something large, and take a little of it now and then."""
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
