"""The growth of a server's memory while keys send the worst transfers, on Linux.

Run `python -m benchmarks.transfers`. The server is a separate process; each figure is its maximum
resident memory meanwhile, in MB, less its memory before.

- `slow_readers`: 20 downloads of 48 MB each by one key, of which the reader takes almost nothing.
- `half_uploads`: 20 uploads of 48 MB by as many keys, which stop one byte before their end.
- `large_inputs`: 60 workflows of 0.9 MB each. They are stored, so their own size is the floor.
- `uploads`: the same 20 uploads, sent completely, and downloaded again by the client.
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from benchmarks._cloud import serve_cloud
from benchmarks._process import MB, read_resident_mb
from benchmarks._report import report
from benchmarks._server import find_cloud_urls, open_accounts, serve_toolkit
from toolkit import AsyncClient

READERS, UPLOADS, WORKFLOWS = 20, 20, 60
SIZE, INPUT_BYTES, CHUNK = 48_000_000, 900_000, 256 * 1024
MOST_MB = 50.0
WATCH_S = 0.05
FORM = (
    b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n',
    b"\r\n--b--\r\n",
)


async def growth_mb(pid: int, work: Awaitable[object]) -> float:
    """Return the maximum growth of a process, in MB, while some work is done."""
    before = peak = read_resident_mb(pid)
    task = asyncio.ensure_future(work)
    while not task.done():
        peak = max(peak, read_resident_mb(pid))
        await asyncio.wait([task], timeout=WATCH_S)
    await task
    return max(peak, read_resident_mb(pid)) - before


async def open_connection_with_head(
    url: str, key: str, head: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a connection with a small read buffer, and send the head of a request."""
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port, limit=4096)
    writer.write(f"{head}\r\nHost: {place.netloc}\r\nAuthorization: Bearer {key}\r\n".encode())
    return reader, writer


async def read_slowly(url: str, key: str, artifact_id: str, count: int, hold_s: float) -> None:
    """Request an artifact `count` times at once, and read only the beginning of each response."""
    head = f"GET /v1/artifacts/{artifact_id}/content HTTP/1.1"
    opening = []
    for _ in range(count):
        reader, writer = await open_connection_with_head(url, key, head)
        writer.write(b"\r\n")
        opening.append((reader, writer))
    answers = [await reader.read(12) for reader, _ in opening]
    await asyncio.sleep(hold_s)
    for _, writer in opening:
        writer.transport.abort()
    assert all(answer.startswith(b"HTTP/1.1 ") for answer in answers), answers


async def upload_half(url: str, keys: list[str], size: int, hold_s: float) -> None:
    """Send all but the last byte of an upload by each key."""
    length = len(FORM[0]) + size + len(FORM[1])
    kind = f"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {length}\r\n\r\n"

    async def upload(key: str) -> asyncio.StreamWriter:
        _, writer = await open_connection_with_head(url, key, "POST /v1/artifacts HTTP/1.1")
        writer.write(kind.encode() + FORM[0])
        for at in range(0, size, CHUNK):
            writer.write(b"\xff" * min(CHUNK, size - at))
            await writer.drain()
        writer.write(FORM[1][:-1])
        await writer.drain()
        return writer

    writers = await asyncio.gather(*map(upload, keys))
    await asyncio.sleep(hold_s)
    for writer in writers:
        writer.transport.abort()


async def create_large_workflows(url: str, key: str, count: int, size: int) -> None:
    """Create workflows with large inputs and cancel each; all must be accepted."""
    node = {"capability": "llm.generate", "depends_on": []}
    node_bytes = 18_000
    async with httpx.AsyncClient(
        base_url=f"{url}/v1", headers={"Authorization": f"Bearer {key}"}, timeout=120,
        trust_env=False,
    ) as http:  # fmt: skip
        for n in range(count):
            nodes = [
                {
                    **node,
                    "id": f"n{i}",
                    "input": {"objective": f"{n} " + "tea " * (node_bytes // 4)},
                }
                for i in range(size // node_bytes)
            ]
            body = json.dumps({"name": "large", "nodes": nodes})
            kind = {"Content-Type": "application/json"}
            response = await http.post("/workflows", content=body, headers=kind)
            assert response.status_code == 202, response.text
            await http.post(f"/workflows/{response.json()['id']}/cancel")


async def send_and_save(url: str, keys: list[str], file: Path, folder: Path) -> None:
    """Upload a file by each key, four at once, and download each."""
    places = asyncio.Semaphore(4)

    async def send(number: int, key: str) -> None:
        async with places, AsyncClient(url, key) as client:
            artifact = await client.artifacts.upload(file)
            saved = await artifact.save(folder / str(number))
            saved.unlink()

    await asyncio.gather(*(send(number, key) for number, key in enumerate(keys)))


async def main(size: int = SIZE, hold_s: float = 2.0, workflows: int = WORKFLOWS) -> int:
    """Run the benchmark; the exit code is 1 if a figure misses its limit."""
    with (
        tempfile.TemporaryDirectory() as name,
        serve_cloud() as cloud,
        serve_toolkit(Path(name) / "data", find_cloud_urls(cloud)) as (url, pid),
    ):
        folder = Path(name)
        first, *keys = open_accounts(url, UPLOADS + 1, ("minimax", "openai"))
        file = folder / "large.bin"
        file.write_bytes(b"\xff" * size)
        async with AsyncClient(url, first) as client:
            await client.artifacts.upload(b"\xff" * 100_000)  # so that imports are not measured
            artifact = await client.artifacts.upload(file)
        began = time.monotonic()
        sizes = {"size_mb": size / MB}
        reading = read_slowly(url, first, artifact.id, READERS, hold_s)
        grown = {"slow_readers": await growth_mb(pid, reading)}
        grown["half_uploads"] = await growth_mb(pid, upload_half(url, keys, size, hold_s))
        grown["uploads"] = await growth_mb(pid, send_and_save(url, keys, file, folder))
        asking = create_large_workflows(url, first, workflows, INPUT_BYTES)
        grown["large_inputs"] = await growth_mb(pid, asking)
        took_s = time.monotonic() - began
    are_kept = True
    for figure, value in grown.items():
        floor = workflows * INPUT_BYTES / MB if figure == "large_inputs" else 0.0
        are_kept &= report(
            f"transfers.{figure}", value, "MB", floor=floor, limit=MOST_MB + floor,
            took_s=round(took_s, 1), **sizes,
        )  # fmt: skip
    return 0 if are_kept else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
