"""What an artifact of 100 MB costs a server whose artifacts are in object storage, on Linux.

Run `python -m benchmarks.object_storage`. The server is a process of its own, and so is the S3
server, moto's; bytes are counted on the way to each by relays.

- `presigned.bytes`: what the server sends while its client reads the artifact by a signed URL.
- `proxied.bytes`: the same where the server sends the bytes itself; the artifact is the floor.
- `upload.memory`, `read.memory`: what the server grows by meanwhile, proxied, in MB.
"""

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from benchmarks._cloud import serve_cloud
from benchmarks._process import MB
from benchmarks._report import report
from benchmarks._server import find_cloud_urls, open_accounts, serve_toolkit
from benchmarks.transfers import growth_mb
from tests.support.s3_server import BUCKET, VARIABLES, TcpRelay, make_bucket, run_s3_server
from toolkit import AsyncClient

SIZE = 100_000_000
MOST_MB = 50.0
# Answers without bytes of the artifact: the link itself, and its head.
MOST_LINK_MB = 0.01
READS = ("proxied", "presigned")


async def measure(folder: Path, reads: str, size: int) -> dict[str, float]:
    """Upload and read an artifact, and count; in MB."""
    with (
        run_s3_server() as storage,
        TcpRelay(storage) as to_storage,
        serve_cloud() as cloud,
    ):
        make_bucket(storage, BUCKET)
        given = {
            "artifact_url": f"s3://{BUCKET}/{reads}",
            "artifact_endpoint_url": to_storage.url,
            "artifact_reads": reads,
            "upload_limit_bytes": str(size),
        }
        served = serve_toolkit(folder / reads, find_cloud_urls(cloud), **given)
        with served as (url, pid), TcpRelay(url) as relay:
            (key,) = open_accounts(url, 1, ("minimax", "openai"))
            file = folder / "large.bin"
            file.write_bytes(os.urandom(1_000_000) * (size // 1_000_000))
            async with AsyncClient(relay.url, key) as client:
                # What is done first is imported first.
                small = await client.artifacts.upload(b"\xff" * 100_000)
                await client.artifacts.content(small.id)
                found: dict[str, float] = {}

                async def send() -> str:
                    return (await client.artifacts.upload(file)).id

                sending = asyncio.ensure_future(send())
                found["upload.memory"] = await growth_mb(pid, sending)
                before, stored = relay.received, to_storage.received
                reading = asyncio.ensure_future(client.artifacts.content(sending.result()))
                found["read.memory"] = await growth_mb(pid, reading)
                assert reading.result() == file.read_bytes()
                found["bytes"] = (relay.received - before) / MB
                assert to_storage.received - stored >= size
    return found


async def main(size: int = SIZE) -> int:
    """Measure; exit code 1 if a limit is not kept."""
    os.environ.update(VARIABLES)
    with tempfile.TemporaryDirectory() as name:
        found = {reads: await measure(Path(name), reads, size) for reads in READS}
    whole = size / MB
    lines = (
        ("presigned.bytes", found["presigned"]["bytes"], 0.0, MOST_LINK_MB),
        ("proxied.bytes", found["proxied"]["bytes"], whole, whole * 1.01 + MOST_LINK_MB),
        ("upload.memory", found["proxied"]["upload.memory"], 0.0, MOST_MB),
        ("read.memory", found["proxied"]["read.memory"], 0.0, MOST_MB),
    )
    kept = True
    for figure, value, floor, limit in lines:
        kept &= report(
            f"object_storage.{figure}", value, "MB", floor=floor, limit=limit, size_mb=whole
        )
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
