"""Compressed answers: one content coding, with bounds on memory and time.

The bounds are measured from outside: a server process calls a vendor on a real socket, the kernel
counts the memory of that process, and another caller polls its health.
"""

import gzip
import json
import math
import os
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import brotli
import httpx
import pytest

from tests.contract.conftest import sign_up_client
from tests.engine.transport.test_network import GOOD, run_at, serve_conduct
from tests.support.loopback_server import JsonHandler, LoopbackServer
from tests.support.socket_server import Reader, Writer
from tests.support.timing import PATIENCE_S, wait_until
from toolkit import Client

LIMIT_BYTES = 4 * 1024 * 1024
# An answer is in memory both as received and as decoded.
MAX_GROWTH_BYTES = 8 * LIMIT_BYTES
MAX_HEALTH_S = 1.0
TRIES = 3
GZIP_HEAD = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
LONG = json.dumps({**json.loads(GOOD), "padding": Random(1).randbytes(200_000).hex()}).encode()


def build_bomb(megabytes: int) -> bytes:
    """Build a gzip file of zeros, by repeating a compressed megabyte."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    part = compressor.compress(bytes(1024 * 1024)) + compressor.flush(zlib.Z_FULL_FLUSH)
    return GZIP_HEAD + part * megabytes + b"\x03\0" + bytes(8)


Answer = tuple[list[str], bytes]
# The answers are far above the limit, unpacked or as received. Each is built by its test, because
# that takes long.
HOSTILE: dict[str, Callable[[], Answer]] = {
    "gzip": lambda: (["gzip"], build_bomb(1024)),
    "members without content": lambda: (["gzip"], gzip.compress(b"") * 1_500_000),
    "blocks without content": lambda: (["gzip"], GZIP_HEAD + b"\0\0\0\xff\xff" * 6_000_000),
    "not compressed": lambda: ([], b" " * 30_000_000),
}


class HostileVendor(LoopbackServer):
    """A vendor with an answer that a test chooses.

    Attributes:
        answer: content codings and body of the answer.
        accepted: the `accept-encoding` header of the last request.
    """

    def __init__(self) -> None:
        self.answer: Answer = ([], GOOD)
        self.accepted = ""
        vendor = self

        class Handler(JsonHandler):
            def answer_post(self) -> None:
                self.read_json()
                vendor.accepted = self.headers["accept-encoding"]
                codings, body = vendor.answer
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                for coding in codings:
                    self.send_header("content-encoding", coding)
                self.end_headers()
                try:
                    self.wfile.write(body)
                except ConnectionError:
                    self.close_connection = True  # the caller closed the connection

        super().__init__(Handler)


class ServerProcess:
    """A server in a process of its own, which calls the hostile vendor."""

    def __init__(self, process: "subprocess.Popen[str]", url: str, client: Client) -> None:
        self._folder = Path(f"/proc/{process.pid}")
        self.url = url
        self.client = client

    def run(self) -> tuple[str, str | None]:
        """Do a run, and return its status and error code."""
        run = self.client.runs.create(
            "llm.generate", {"objective": "Tea"}, provider="openai", cache=False
        ).wait(progress=False, check=False)
        return run.status, run.record.error and run.record.error.code

    def read_memory(self, name: str) -> int:
        """Read a memory size of the process from the kernel, in bytes."""
        lines = (self._folder / "status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith(name)).split()[1]) * 1024

    def reset_peak(self) -> None:
        """Have the kernel measure the peak of memory from now on."""
        (self._folder / "clear_refs").write_text("5")

    @contextmanager
    def measure_health(self) -> Iterator[list[float]]:
        """Poll the health of the server, and collect the seconds that each answer took."""
        seconds: list[float] = []
        is_over = threading.Event()

        def poll() -> None:
            with httpx.Client(trust_env=False, timeout=PATIENCE_S) as http:
                while not is_over.is_set():
                    began = time.monotonic()
                    is_healthy = http.get(f"{self.url}/v1/health").is_success
                    seconds.append(time.monotonic() - began if is_healthy else math.inf)

        thread = threading.Thread(target=poll)
        thread.start()
        wait_until(lambda: seconds)
        try:
            yield seconds
        finally:
            is_over.set()
            thread.join()


@pytest.fixture(scope="module")
def vendor() -> Iterator[HostileVendor]:
    """The vendor."""
    vendor = HostileVendor()
    yield vendor
    vendor.close()


@pytest.fixture(scope="module")
def server(
    vendor: HostileVendor, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """The server, after a good answer."""
    if not os.access("/proc/self/clear_refs", os.W_OK):
        pytest.skip("the kernel does not measure the peak of memory")
    settings = {
        "TOOLKIT_VENDORS__OPENAI__BASE_URLS__API": vendor.url,
        "TOOLKIT_REPLY_LIMIT_BYTES": str(LIMIT_BYTES),
        "TOOLKIT_CONNECTION_TEST_S": "0",
        "TOOLKIT_RETRIES": "0",
        "TOOLKIT_MAX_COOLDOWN_WAIT_S": "0",
        "OPENAI_API_KEY": "sk-compressed-answers",
    }
    command = [sys.executable, "-m", "toolkit", "serve", "--port", "0"]
    command += ["--data-dir", str(tmp_path_factory.mktemp("served"))]
    command += ["--allow-env", "OPENAI_API_KEY"]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **settings},
    ) as process:  # fmt: skip
        try:
            assert process.stderr is not None
            url = json.loads(process.stderr.readline())["url"]
            threading.Thread(target=process.stderr.read, daemon=True).start()
            with sign_up_client(url) as client:
                client.connections.create("openai", "environment", "OPENAI_API_KEY")
                server = ServerProcess(process, url, client)
                assert server.run() == ("completed", None)
                yield server
        finally:
            process.kill()


@pytest.mark.parametrize("build", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_answer_is_bounded_in_memory_and_time(
    vendor: HostileVendor, server: ServerProcess, build: Callable[[], Answer]
) -> None:
    """Given an answer far above the limit, then memory and the time of health are bounded."""
    answer = build()
    slowest: list[float] = []
    for _ in range(TRIES):  # because other processes use this machine, too
        vendor.answer = answer
        server.reset_peak()
        before = server.read_memory("VmRSS")
        with server.measure_health() as seconds:
            outcome = server.run()
        vendor.answer = ([], GOOD)
        assert outcome == ("failed", "PROVIDER_BAD_RESPONSE")
        assert server.read_memory("VmHWM") - before < MAX_GROWTH_BYTES
        slowest.append(max(seconds))
        if slowest[-1] < MAX_HEALTH_S:
            break
    assert min(slowest) < MAX_HEALTH_S
    assert vendor.accepted == "gzip"


BAD = "PROVIDER_BAD_RESPONSE"


@pytest.mark.parametrize("is_chunked", [False, True], ids=["whole", "in chunks"])
@pytest.mark.parametrize(
    ("codings", "body", "code"),
    [
        (["gzip"], gzip.compress(GOOD), None),
        (["X-GZIP"], gzip.compress(LONG), None),
        (["identity, gzip"], gzip.compress(LONG), None),
        (["identity"], GOOD, None),
        (["gzip"], gzip.compress(GOOD[:50]) + gzip.compress(GOOD[50:]), None),
        (["gzip"], gzip.compress(GOOD) + bytes(100), None),
        (["gzip"], gzip.compress(GOOD)[:-9], BAD),
        (["gzip"], gzip.compress(LONG)[:-100_000], BAD),
        (["gzip"], gzip.compress(LONG)[:-8] + bytes(8), BAD),
        (["gzip"], GOOD, BAD),
        (["gzip"], b"", BAD),
        (["gzip, gzip"], gzip.compress(gzip.compress(GOOD)), BAD),
        (["gzip", "gzip"], gzip.compress(gzip.compress(GOOD)), BAD),
        (["br"], brotli.compress(GOOD), BAD),
        (["sk-network-test"], GOOD, BAD),
    ],
)
async def test_reads_gzip_and_no_other_coding(
    tmp_path: Path, codings: list[str], body: bytes, code: str | None, is_chunked: bool
) -> None:
    """Given an answer in chunks of any size, then only a whole gzip body is decoded."""

    async def conduct(_: Reader, writer: Writer) -> None:
        encodings = "".join(f"content-encoding: {coding}\r\n" for coding in codings)
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{encodings}"
        if not is_chunked:
            writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
            return
        writer.write(f"{head}transfer-encoding: chunked\r\n\r\n".encode())
        chance, start = Random(5), 0
        while start < len(body):
            piece = body[start : start + chance.choice([1, 7, 100, 9_000])]
            start += len(piece)
            writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    async with serve_conduct(conduct) as (url, _):
        run = await run_at(url, tmp_path)
    assert (run.error and run.error.code) == code
    assert run.error is None or "sk-network-test" not in run.error.message
    assert (run.status == "completed") == (code is None)
