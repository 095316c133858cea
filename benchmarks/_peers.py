"""Other programs with the same purpose, measured for comparison if they are installed.

We do not install them. `PEERS` names Python interpreters that have them, for example of virtual
environments, separated as in `PATH`.
"""

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import httpx

START_S = 90.0
LITELLM_MODEL = "peer"
LITELLM_CONFIG = """
model_list:
  - model_name: {model}
    litellm_params: {{model: openai/gpt-5-mini, api_base: "{url}", api_key: none}}
litellm_settings: {{telemetry: false}}
"""


@cache
def find_peer(module: str) -> str | None:
    """Find a Python that has a module; if none does, print so once and return None."""
    for python in os.environ.get("PEERS", "").split(os.pathsep):
        probe = f"import importlib.util, sys; sys.exit(not importlib.util.find_spec({module!r}))"
        if python and subprocess.run([python, "-c", probe], check=False).returncode == 0:
            return python
    print(f"{module} is skipped; add a Python that has it to PEERS.", file=sys.stderr)
    return None


@contextmanager
def serve_litellm(python: str, folder: Path, vendor_url: str) -> Iterator[tuple[int, int, str]]:
    """Run LiteLLM's proxy without a database until the block ends.

    Args:
        python: interpreter that has `litellm[proxy]`.
        folder: directory for its configuration and log.
        vendor_url: URL that the proxy forwards calls to.

    Yields:
        port, process id and key of the proxy.
    """
    config = folder / "litellm.yaml"
    config.write_text(LITELLM_CONFIG.format(model=LITELLM_MODEL, url=vendor_url), "utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    key = f"sk-{secrets.token_hex(32)}"
    command = [str(Path(python).with_name("litellm")), "--config", str(config)]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    # Otherwise it fetches a list of prices from the network at start.
    variables = {"LITELLM_MASTER_KEY": key, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    with (
        (folder / "litellm.log").open("w") as log,
        subprocess.Popen(
            command, env={**os.environ, **variables}, stdout=log, stderr=log, cwd=folder
        ) as process,
    ):
        try:
            _await_answer(f"http://127.0.0.1:{port}/health/liveliness", process)
            yield port, process.pid, key
        finally:
            process.kill()


def _await_answer(url: str, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + START_S
    while True:
        try:
            httpx.get(url, trust_env=False).raise_for_status()
            return
        except httpx.TransportError:
            if time.monotonic() > until or process.poll() is not None:
                raise
            time.sleep(0.1)
