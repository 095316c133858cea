"""The cost of an artifact of 100 MB to a server whose artifacts are in object storage, on Linux.

Run `python -m benchmarks.object_storage`. The server and the S3 server (moto) are separate
processes; relays count the bytes that are sent to each.

- `presigned.bytes`: bytes that the server sends while its client reads the artifact by a signed
  URL.
- `proxied.bytes`: the same if the server sends the content itself; the artifact's size is the
  floor.
- `upload.memory`, `read.memory`: growth of the server's memory meanwhile, proxied, in MB. The
  floors are one part of an upload and one part of a read, as they are exchanged with the storage.
- `write`, `read`: seconds from a file through the server to the storage, and back into a file,
  without relays. The floors are s3fs, directly between the file and the storage. `cpu_ms` of the
  server and `floor_cpu_ms` of s3fs are the lowest of the rounds.
"""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import s3fs

from benchmarks._cloud import serve_cloud
from benchmarks._process import MB, read_cpu_s
from benchmarks._report import report, report_rounds
from benchmarks._server import find_cloud_urls, open_accounts, serve_toolkit
from benchmarks.transfers import growth_mb
from tests.support.s3_server import BUCKET, VARIABLES, S3Link, make_bucket, run_s3_server
from toolkit import AsyncClient
from toolkit.store.blob_places.object_storage import PART_BYTES, READ_BYTES

SIZE, ROUNDS = 100_000_000, 3
MOST_MB = 50.0
# Responses without bytes of the artifact: the link itself, and its headers.
MOST_LINK_MB = 0.01
READS = ("proxied", "presigned")


@dataclass
class Transfers:
    """The measured times of transfers of one kind, one value per round."""

    seconds: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)

    async def measure(self, read_cpu: Callable[[], float], transfer: Awaitable[object]) -> None:
        """Await a transfer, and add its wall and CPU time.

        Args:
            read_cpu: function that returns the CPU seconds so far of the measured process.
            transfer: transfer to measure.
        """
        cpu_s, began = read_cpu(), time.perf_counter()
        await transfer
        self.seconds.append(time.perf_counter() - began)
        self.cpu_ms.append(1000 * (read_cpu() - cpu_s))


@contextmanager
def serve_artifacts(
    folder: Path, cloud: str, storage: str, size: int, reads: str
) -> Iterator[tuple[str, int, str]]:
    """Serve a toolkit whose artifacts are in object storage, until the block ends.

    Args:
        folder: data directory.
        cloud: URL of the vendors.
        storage: URL of the object storage.
        size: maximum size of an upload, in bytes.
        reads: `proxied` or `presigned`.

    Yields:
        URL and process id of the server, and the key of an account.
    """
    settings = {
        "artifact_url": f"s3://{BUCKET}/{folder.name}",
        "artifact_endpoint_url": storage,
        "artifact_reads": reads,
        "upload_limit_bytes": str(size),
    }
    with serve_toolkit(folder, find_cloud_urls(cloud), **settings) as (url, pid):
        (key,) = open_accounts(url, 1, ("minimax", "openai"))
        yield url, pid, key


async def warm_up(client: AsyncClient) -> None:
    """Store and read an artifact, so that imports are not measured."""
    small = await client.artifacts.upload(os.urandom(100_000))
    await client.artifacts.content(small.id)


def write_random_file(path: Path, size: int) -> None:
    """Write a file with new content."""
    path.write_bytes(os.urandom(1_000_000) * (size // 1_000_000))


async def count_bytes(
    folder: Path, cloud: str, storage: str, reads: str, size: int
) -> dict[str, float]:
    """Upload and read an artifact; return the transferred bytes and the growth of memory, in MB."""
    file = folder / "large.bin"
    write_random_file(file, size)
    figures: dict[str, float] = {}
    with (
        S3Link(storage) as to_storage,
        serve_artifacts(folder / reads, cloud, to_storage.url, size, reads) as (url, pid, key),
        S3Link(url) as relay,
    ):
        async with AsyncClient(relay.url, key) as client:
            await warm_up(client)

            async def send() -> str:
                return (await client.artifacts.upload(file)).id

            sending = asyncio.ensure_future(send())
            figures["upload.memory"] = await growth_mb(pid, sending)
            before, read_before = relay.counts["back"], to_storage.counts["back"]
            reading = asyncio.ensure_future(client.artifacts.content(sending.result()))
            figures["read.memory"] = await growth_mb(pid, reading)
            assert reading.result() == file.read_bytes()
            figures["bytes"] = (relay.counts["back"] - before) / MB
            assert to_storage.counts["back"] - read_before >= size
    return figures


async def time_transfers(
    folder: Path, cloud: str, storage: str, size: int, rounds: int
) -> dict[str, Transfers]:
    """Write and read an artifact, through a server and directly, in turns."""
    transfers = {name: Transfers() for name in ("write", "read", "straight.write", "straight.read")}
    file, copy = folder / "large.bin", folder / "copy.bin"
    straight = s3fs.S3FileSystem(endpoint_url=storage)
    with serve_artifacts(folder / "timed", cloud, storage, size, "proxied") as (url, pid, key):
        async with AsyncClient(url, key) as client:
            await warm_up(client)
            for number in range(rounds):
                write_random_file(file, size)

                place = f"{BUCKET}/straight{number}"
                put = asyncio.to_thread(straight.put_file, file, place, chunksize=PART_BYTES)
                await transfers["straight.write"].measure(time.process_time, put)
                get = asyncio.to_thread(straight.get_file, place, copy)
                await transfers["straight.read"].measure(time.process_time, get)

                sending = asyncio.ensure_future(client.artifacts.upload(file))
                await transfers["write"].measure(lambda: read_cpu_s(pid), sending)
                saving = sending.result().save(copy)
                await transfers["read"].measure(lambda: read_cpu_s(pid), saving)
                assert copy.read_bytes() == file.read_bytes()
    return transfers


async def main(size: int = SIZE, rounds: int = ROUNDS) -> int:
    """Run the benchmark; the exit code is 1 if a figure misses its limit."""
    os.environ.update(VARIABLES)
    with (
        tempfile.TemporaryDirectory() as name,
        serve_cloud() as cloud,
        run_s3_server() as storage,
    ):
        make_bucket(storage, BUCKET)
        places = (Path(name), cloud, storage)
        counted = {reads: await count_bytes(*places, reads, size) for reads in READS}
        timed = await time_transfers(*places, size, rounds)
    size_mb = size / MB
    proxied = counted["proxied"]
    lines = (
        ("presigned.bytes", counted["presigned"]["bytes"], 0.0, MOST_LINK_MB),
        ("proxied.bytes", proxied["bytes"], size_mb, size_mb * 1.01 + MOST_LINK_MB),
        ("upload.memory", proxied["upload.memory"], PART_BYTES / MB, MOST_MB),
        ("read.memory", proxied["read.memory"], READ_BYTES / MB, MOST_MB),
    )
    are_kept = True
    for figure, value, floor, limit in lines:
        are_kept &= report(
            f"object_storage.{figure}", value, "MB", floor=floor, limit=limit, size_mb=size_mb
        )
    for figure in ("write", "read"):
        ours, floors = timed[figure], timed[f"straight.{figure}"]
        report_rounds(
            f"object_storage.{figure}", ours.seconds, "s", floors=floors.seconds, limit=None,
            cpu_ms=round(min(ours.cpu_ms), 1), floor_cpu_ms=round(min(floors.cpu_ms), 1),
            size_mb=size_mb,
        )  # fmt: skip
    return 0 if are_kept else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
