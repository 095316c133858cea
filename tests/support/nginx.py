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
    """Run nginx until the block ends; the block begins when the service behind it answers.

    Args:
        config: content of its `http` block; the log is `folder/asked`, with a line for each request
            that names the address of the upstream server.
        folder: folder for its files.
        http: client that sends requests through nginx.
    """
    folders = "".join(
        f"{name}_temp_path {folder}/{name};\n"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    # Workers without root privileges could not write to a folder of this test.
    user = "user root;" if os.geteuid() == 0 else ""
    config_file = folder / "nginx.conf"
    config_file.write_text(
        f"{user} daemon off; pid {folder}/pid; error_log stderr; worker_processes 1;\n"
        f"events {{}}\nhttp {{ log_format asked $upstream_addr;\n"
        f"access_log {folder}/asked asked;\n{folders}{config}}}\n"
    )
    command = [str(NGINX), "-p", str(folder), "-c", str(config_file)]
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
