"""`toolkit serve` as a separate process with simulated vendors, and accounts that use it."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from benchmarks._cloud import hosts
from toolkit.sandbox import SANDBOX_KEYS

# Limits would hide the work that is measured.
UNLIMITED = {
    "rate_limit_per_s": "100000",
    "rate_limit_burst": "100000",
    "signups_per_hour": "1000",
}
STOP_S = 30.0


def find_cloud_urls(cloud: str) -> dict[tuple[str, str], str]:
    """Return the URL of each vendor in the simulated cloud, by vendor and host."""
    return {
        (vendor, host): url
        for vendor, settings in hosts(cloud).items()
        for host, url in settings.base_urls.items()
    }


@contextmanager
def serve_toolkit(
    folder: Path,
    urls: Mapping[tuple[str, str], str],
    *,
    options: Sequence[str] = (),
    **settings: str,
) -> Iterator[tuple[str, int]]:
    """Run `toolkit serve` on loopback until the block ends; yields its URL and process id.

    Args:
        folder: data directory; the log is next to it.
        urls: URL of each vendor, by vendor and host.
        options: options of the command.
        **settings: further settings of the server.
    """
    vendor_urls = {
        f"VENDORS__{vendor}__BASE_URLS__{host}": url for (vendor, host), url in urls.items()
    }
    variables = {
        f"TOOLKIT_{n.upper()}": v for n, v in {**UNLIMITED, **vendor_urls, **settings}.items()
    }
    command = [sys.executable, "-m", "toolkit", "serve", "--port", "0", "--data-dir", str(folder)]
    command += options
    for name in SANDBOX_KEYS:
        command += ["--allow-env", name]
    with (
        (folder.parent / "server.log").open("w") as log,
        subprocess.Popen(
            command,
            env={**os.environ, **variables, **SANDBOX_KEYS},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            yield next(word for word in line.split() if word.startswith("http")), process.pid
        finally:
            process.terminate()
            process.wait(STOP_S)


def open_accounts(url: str, count: int, vendors: Sequence[str]) -> list[str]:
    """Open accounts at a server, each connected to some vendors; return their keys."""
    keys = []
    with httpx.Client(base_url=f"{url}/v1", trust_env=False) as http:
        for i in range(count):
            response = http.post("/account", json={"email": f"client{i}@example.org"})
            keys.append(response.json()["data"]["api_key"])
            http.headers["Authorization"] = f"Bearer {keys[-1]}"
            for vendor in vendors:
                pointer = {"provider": vendor, "connection_type": "environment"}
                secret = {"secret_ref": f"{vendor.upper()}_API_KEY"}
                http.post("/providers/connections", json=pointer | secret).raise_for_status()
            del http.headers["Authorization"]
    return keys
