"""A server in a separate process, as `toolkit serve` starts it, and accounts on it."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.support.timing import PATIENCE_S


@contextmanager
def serve_process(data_dir: Path) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Serve the sandbox in another process; yield the process and its URL."""
    options = ("--sandbox", "--port", "0", "--data-dir", str(data_dir))
    with subprocess.Popen(
        [sys.executable, "-m", "toolkit", "serve", *options], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            yield process, next(word for word in line.split() if word.startswith("http"))
        finally:
            process.kill()


def open_account(url: str, name: str) -> str:
    """Create an account, and return its key."""
    body = {"email": f"{name}@example.org"}
    response = httpx.post(f"{url}/v1/account", json=body, trust_env=False, timeout=PATIENCE_S)
    key: str = response.json()["data"]["api_key"]
    return key
