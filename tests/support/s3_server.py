"""An S3 server in a separate process, and a relay to it that counts bytes and can be cut."""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.request import Request, urlopen

BUCKET = "artifacts"
# Not secrets: the server accepts any key.
ACCESS_KEY, SECRET_KEY = (
    "AKIDEXAMPLEFORTESTS",
    "example-only-never-shown",
)  # pragma: allowlist secret
VARIABLES = {
    "AWS_ACCESS_KEY_ID": ACCESS_KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
# A header that the server accepts as a signature.
HEADERS = {"Authorization": f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/0/us-east-1/s3/x"}
_PROGRAM = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""


@contextmanager
def run_s3_server() -> Iterator[str]:
    """Run the server until the block ends; yields its URL."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **VARIABLES},
        cwd=Path(__file__).parent,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        port = process.stdout.readline().strip()
        assert port, "the S3 server did not start"
        yield f"http://127.0.0.1:{port}"
    finally:
        process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
        process.kill()
        process.wait()
        process.stdout.close()


def make_bucket(server: str, name: str) -> None:
    """Make a bucket."""
    urlopen(Request(f"{server}/{name}", method="PUT", headers=HEADERS)).close()


@dataclass
class TcpRelay:
    """A relay of connections to a server: counts bytes each way, and can be cut.

    Attributes:
        sent: bytes to the server.
        received: bytes from the server.
        requests: the first lines of requests.
        refused: times at which connections were refused.
        heads: requests with their headers, as they were sent.
    """

    target: str
    sent: int = 0
    received: int = 0
    requests: list[str] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    is_cut: bool = False

    def __enter__(self) -> Self:
        """Start listening."""
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Close everything."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.break_connections()
        self._thread.join(5)

    @property
    def url(self) -> str:
        """Return its address."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def cut(self) -> None:
        """Break all connections, and refuse new connections."""
        self.is_cut = True
        self.break_connections()

    def mend(self) -> None:
        """Let connections through again."""
        self.is_cut = False

    def break_connections(self) -> None:
        """Break all connections."""
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        host, _, port = self.target.removeprefix("http://").partition(":")
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if self.is_cut:
                self.refused.append(time.monotonic())
                near.close()
                continue
            far = socket.create_connection((host, int(port)))
            self._open |= {near, far}
            for pair, up in (((near, far), True), ((far, near), False)):
                threading.Thread(target=self._pump, args=(*pair, up), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, up: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if up:
                    self.sent += len(data)
                    line = data.partition(b"\r\n")[0]
                    if line.endswith(b"HTTP/1.1"):
                        self.heads.append(data.partition(b"\r\n\r\n")[0].decode("latin-1"))
                        self.requests.append(line.decode("latin-1"))
                else:
                    self.received += len(data)
                sink.sendall(data)
        for connection in (source, sink):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        with suppress(OSError):
            source.close()
        self._open.discard(source)
