"""CPU time of the notebook's process for saving and reading an artifact, threads included.

Run `python -m benchmarks.artifacts`. One caller saves and reads artifacts by the sync client: small
artifacts of 1 kB and large artifacts of 8 MB, each with different bytes. The floor is the work that
cannot be avoided: the digest of the bytes and a file written with them, and that file read and
checked by its digest, each in a thread. Figures are medians of rounds, in turns with the floor.
"""

import hashlib
import itertools
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks._report import report_rounds
from toolkit import Client

ROUNDS = 5
SIZES = {"small": (1_000, 100), "large": (8_000_000, 5)}
_NUMBERS = itertools.count(1)


def make_content(size: int) -> bytes:
    """Make bytes that differ from all made before."""
    head = f"{next(_NUMBERS):020d}".encode()
    return head + bytes(size - len(head))


def measure_cpu_ms(work: Callable[[], None], count: int) -> float:
    """Measure the CPU time of this process per item, in ms."""
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1000 / count


def measure_client(client: Client, contents: list[bytes]) -> tuple[float, float]:
    """Measure the CPU time of saving and of reading an artifact, in ms."""
    artifact_ids: list[str] = []

    def upload() -> None:
        artifact_ids.extend(client.artifacts.upload(content).id for content in contents)

    def download() -> None:
        for artifact_id, content in zip(artifact_ids, contents, strict=True):
            assert len(client.artifacts.get(artifact_id).content()) == len(content)

    return measure_cpu_ms(upload, len(contents)), measure_cpu_ms(download, len(contents))


def measure_files(folder: Path, contents: list[bytes]) -> tuple[float, float]:
    """Measure the CPU time of writing and of reading and checking a file, in ms."""

    def write(content: bytes) -> Path:
        path = folder / hashlib.sha256(content).hexdigest()
        path.write_bytes(content)
        return path

    def read(path: Path) -> None:
        assert hashlib.sha256(path.read_bytes()).hexdigest() == path.name

    with ThreadPoolExecutor(1) as thread:
        paths: list[Path] = []

        def write_all() -> None:
            paths.extend(thread.submit(write, content).result() for content in contents)

        def read_all() -> None:
            for path in paths:
                thread.submit(read, path).result()

        return measure_cpu_ms(write_all, len(contents)), measure_cpu_ms(read_all, len(contents))


def main(rounds: int = ROUNDS, sizes: dict[str, tuple[int, int]] = SIZES) -> int:
    """Measure both sizes; no figure has a limit."""
    with (
        tempfile.TemporaryDirectory() as name,
        Client.local(Path(name, "data"), sandbox=True) as client,
    ):
        files = Path(name, "files")
        files.mkdir()
        measure_client(client, [make_content(1_000)])  # so that imports are not measured
        for kind, (size, count) in sizes.items():
            ours: list[tuple[float, float]] = []
            bare: list[tuple[float, float]] = []
            for _ in range(rounds):
                contents = [make_content(size) for _ in range(count)]
                ours.append(measure_client(client, contents))
                bare.append(measure_files(files, contents))
            for which, verb in enumerate(("upload", "download")):
                report_rounds(
                    f"artifacts.{verb}.{kind}", [pair[which] for pair in ours], "ms",
                    floors=[pair[which] for pair in bare], limit=None, bytes=size,
                )  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
