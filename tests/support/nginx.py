"""A real nginx in front of servers of a test."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.support.timing import PATIENCE_S, wait_until

NGINX = shutil.which("nginx")


@contextmanager
def run_nginx(config: str, folder: Path, http: httpx.Client) -> Iterator[None]:
    """Run nginx until the block ends; it begins once the service behind it answers.

    Args:
        config: what stands in its `http` block; the log is `folder/asked`, a line for each request
            with the address that it was passed on to.
        folder: for its files.
        http: asks through it.
    """
    folders = "".join(
        f"{name}_temp_path {folder}/{name};\n"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    # Workers that give up root could not write to a folder of this test.
    user = "user root;" if os.geteuid() == 0 else ""
    whole = folder / "nginx.conf"
    whole.write_text(
        f"{user} daemon off; pid {folder}/pid; error_log stderr; worker_processes 1;\n"
        f"events {{}}\nhttp {{ log_format asked $upstream_addr;\n"
        f"access_log {folder}/asked asked;\n{folders}{config}}}\n"
    )
    command = [str(NGINX), "-p", str(folder), "-c", str(whole)]
    nginx = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def answers() -> bool:
        try:
            return http.get("/v1/health").is_success
        except httpx.ConnectError:
            return False

    try:
        wait_until(answers)
        yield
    finally:
        nginx.terminate()
        nginx.wait(PATIENCE_S)
