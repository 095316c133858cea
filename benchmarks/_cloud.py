"""The simulated vendors as a separate process, so that their memory and CPU are not measured."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from toolkit.contract.connections import ConnectionCreate
from toolkit.engine import Engine, Registry
from toolkit.engine.request_context import RequestContext
from toolkit.sandbox import VENDOR_PATHS
from toolkit.settings import VendorSettings

START_S = 30.0


@contextmanager
def serve_cloud(latency_ms: float = 0.0) -> Iterator[str]:
    """Serve the simulated vendors on loopback until the block ends, and yield their address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "toolkit.sandbox", "--port", str(port)]
    command += ["--latency-ms", str(latency_ms)]
    cloud = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + START_S
        while True:
            try:
                httpx.get(f"{url}/_sandbox/faults", trust_env=False)
                break
            except httpx.TransportError:
                if time.monotonic() > until or cloud.poll() is not None:
                    raise
                time.sleep(0.05)
        yield url
    finally:
        cloud.terminate()
        cloud.wait(10)


def hosts(url: str) -> dict[str, VendorSettings]:
    """Return settings that send the calls of each vendor to the simulated vendors at an address."""
    settings = {}
    for vendor in Registry.load().vendors.values():
        urls = {}
        for host, base_url in vendor.base_urls.items():
            wire = vendor.id if host == "api" else f"{vendor.id}-{host}"
            if wire in VENDOR_PATHS:
                urls[host] = url + VENDOR_PATHS[wire] + httpx.URL(base_url).path.rstrip("/")
        settings[vendor.id] = VendorSettings(base_urls=urls)
    return settings


async def connect_account(engine: Engine, *vendors: str) -> RequestContext:
    """Return the context of the engine's local account, with connections to some vendors."""
    account, _ = await engine.accounts.open_local_account()
    context = RequestContext(account.id)
    for vendor in await engine.connections.list_providers(context):
        if vendor.id in vendors:
            pointer = ConnectionCreate(
                provider=vendor.id,
                connection_type="environment",
                secret_ref=vendor.conventional_variable,
            )
            await engine.connections.create(context, pointer)
    return context
