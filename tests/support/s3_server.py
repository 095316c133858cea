"""An S3 server in a separate process, and a link to it that can be cut."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.request import Request, urlopen

from typing_extensions import override

from tests.support.network_link import Direction, LinkConnection, NetworkLink

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


class S3Link(NetworkLink):
    """A link to the server, or to another server of HTTP, that keeps the heads of requests.

    Attributes:
        heads: requests with their headers, as they were sent.
    """

    def __init__(self, target: str) -> None:
        self.heads: list[str] = []
        super().__init__(int(target.rpartition(":")[2]))

    @property
    def url(self) -> str:
        """Return its address."""
        return f"http://127.0.0.1:{self.port}"

    @override
    async def note(self, data: bytes, direction: Direction, connection: LinkConnection) -> bool:
        if direction == "there" and data.partition(b"\r\n")[0].endswith(b"HTTP/1.1"):
            self.heads.append(data.partition(b"\r\n\r\n")[0].decode("latin-1"))
        return True
