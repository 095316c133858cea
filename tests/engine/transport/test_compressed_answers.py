"""Compressed answers: one coding, and bounded in memory and time whatever they unpack to.

The bounds are measured from outside: a server in a process of its own calls a vendor on a real
socket, the kernel counts the memory of that process, and another caller asks for its health.
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
# Beyond the limit itself: an answer is in memory as it came and as it is read.
MAX_GROWTH_BYTES = 8 * LIMIT_BYTES
MAX_HEALTH_S = 1.0
TRIES = 3
GZIP_HEAD = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
LONG = json.dumps({**json.loads(GOOD), "padding": Random(1).randbytes(200_000).hex()}).encode()


def build_bomb(megabytes: int) -> bytes:
    """A gzip file of that many megabytes of zeros, made of one part again and again."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    part = compressor.compress(bytes(1024 * 1024)) + compressor.flush(zlib.Z_FULL_FLUSH)
    return GZIP_HEAD + part * megabytes + b"\x03\0" + bytes(8)


Answer = tuple[list[str], bytes]
# What a bomb unpacks to, and what is received of the others, is far beyond the limit. Other codings
# are not unpacked at all. Each is made where it is sent, as that takes long.
HOSTILE: dict[str, Callable[[], Answer]] = {
    "gzip": lambda: (["gzip"], build_bomb(1024)),
    "members without content": lambda: (["gzip"], gzip.compress(b"") * 1_500_000),
    "blocks without content": lambda: (["gzip"], GZIP_HEAD + b"\0\0\0\xff\xff" * 6_000_000),
    "not compressed": lambda: ([], b" " * 30_000_000),
}


class HostileVendor(LoopbackServer):
    """A vendor whose next answer is chosen by the test.

    Attributes:
        answer: the codings that its headers name, and its body.
        accepted: the codings that were accepted by whoever asked last.
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
                    self.close_connection = True  # the caller had enough

        super().__init__(Handler)


class ServerProcess:
    """A server in a process of its own, which calls the hostile vendor."""

    def __init__(self, process: "subprocess.Popen[str]", url: str, client: Client) -> None:
        self._status = Path(f"/proc/{process.pid}/status")
        self._reset = Path(f"/proc/{process.pid}/clear_refs")
        self.url = url
        self.client = client

    def ask(self) -> tuple[str, str | None]:
        """Run something, and return the status and the code of its error."""
        run = self.client.runs.create(
            "llm.generate", {"objective": "Tea"}, provider="openai", cache=False
        ).wait(progress=False, check=False)
        return run.status, run.record.error and run.record.error.code

    def read_memory(self, name: str) -> int:
        """Read a count of the kernel of the bytes that the process has in memory."""
        line = next(one for one in self._status.read_text().splitlines() if one.startswith(name))
        return int(line.split()[1]) * 1024

    def forget_peak(self) -> None:
        """Have the kernel count the peak of memory from now on."""
        self._reset.write_text("5")

    @contextmanager
    def measure_health(self) -> Iterator[list[float]]:
        """Ask for health all the time, and collect the seconds that each answer took."""
        took: list[float] = []
        done = threading.Event()

        def ask() -> None:
            with httpx.Client(trust_env=False, timeout=PATIENCE_S) as http:
                while not done.is_set():
                    began = time.monotonic()
                    is_healthy = http.get(f"{self.url}/v1/health").is_success
                    took.append(time.monotonic() - began if is_healthy else math.inf)

        asking = threading.Thread(target=ask)
        asking.start()
        wait_until(lambda: took)
        try:
            yield took
        finally:
            done.set()
            asking.join()


@pytest.fixture(scope="module")
def vendor() -> Iterator[HostileVendor]:
    """The vendor."""
    served = HostileVendor()
    yield served
    served.close()


@pytest.fixture(scope="module")
def served(
    vendor: HostileVendor, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """The server, once it has got a good answer."""
    if not os.access("/proc/self/clear_refs", os.W_OK):
        pytest.skip("the kernel does not count the peak of memory here")
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
                assert server.ask() == ("completed", None)
                yield server
        finally:
            process.kill()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_answer_is_bounded_in_memory_and_time(
    vendor: HostileVendor, served: ServerProcess, name: str
) -> None:
    """Given an answer far beyond the limit, then memory stays, and health is answered meanwhile."""
    answer = HOSTILE[name]()
    slowest: list[float] = []
    for _ in range(TRIES):  # others use this machine, too
        vendor.answer = answer
        served.forget_peak()
        before = served.read_memory("VmRSS")
        with served.measure_health() as took:
            outcome = served.ask()
        vendor.answer = ([], GOOD)
        assert outcome == ("failed", "PROVIDER_BAD_RESPONSE")
        assert served.read_memory("VmHWM") - before < MAX_GROWTH_BYTES
        slowest.append(max(took))
        if slowest[-1] < MAX_HEALTH_S:
            break
    assert min(slowest) < MAX_HEALTH_S
    assert vendor.accepted == "gzip"


@pytest.mark.parametrize("is_chunked", [False, True], ids=["whole", "in chunks"])
@pytest.mark.parametrize(
    ("codings", "body", "code"),
    [
        (["gzip"], gzip.compress(GOOD), None),
        (["x-gzip"], gzip.compress(GOOD), None),
        (["GZIP"], gzip.compress(LONG), None),
        (["identity, gzip"], gzip.compress(LONG), None),
        (["identity"], GOOD, None),
        (["gzip"], gzip.compress(GOOD[:50]) + gzip.compress(GOOD[50:]), None),
        (["gzip"], gzip.compress(GOOD) + bytes(100), None),
        (["gzip"], gzip.compress(GOOD)[:-9], "PROVIDER_BAD_RESPONSE"),
        (["gzip"], gzip.compress(LONG)[:-100_000], "PROVIDER_BAD_RESPONSE"),
        (["gzip"], gzip.compress(LONG)[:-8] + bytes(8), "PROVIDER_BAD_RESPONSE"),
        (["gzip"], GOOD, "PROVIDER_BAD_RESPONSE"),
        (["gzip"], b"", "PROVIDER_BAD_RESPONSE"),
        (["gzip, gzip"], gzip.compress(gzip.compress(GOOD)), "PROVIDER_BAD_RESPONSE"),
        (["gzip", "gzip"], gzip.compress(gzip.compress(GOOD)), "PROVIDER_BAD_RESPONSE"),
        (["deflate"], zlib.compress(GOOD), "PROVIDER_BAD_RESPONSE"),
        (["br"], brotli.compress(GOOD), "PROVIDER_BAD_RESPONSE"),
        (["sk-network-test"], GOOD, "PROVIDER_BAD_RESPONSE"),
    ],
)
async def test_one_coding_is_read(
    tmp_path: Path, codings: list[str], body: bytes, code: str | None, is_chunked: bool
) -> None:
    """Given an answer, then gzip alone is read, whole or not at all, in pieces of any size."""

    async def conduct(_: Reader, writer: Writer) -> None:
        named = "".join(f"content-encoding: {coding}\r\n" for coding in codings)
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{named}"
        if not is_chunked:
            writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
            return
        writer.write(f"{head}transfer-encoding: chunked\r\n\r\n".encode())
        chance = Random(5)
        rest = body
        while rest:
            size = chance.choice([1, 7, 100, 9_000])
            piece, rest = rest[:size], rest[size:]
            writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    async with serve_conduct(conduct) as (url, _):
        run = await run_at(url, tmp_path)
    assert (run.error and run.error.code) == code
    assert run.error is None or "sk-network-test" not in run.error.message
    assert (run.status == "completed") == (code is None)
