"""`toolkit serve --workers N`: several processes on one port, looked after by one."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.timing import PATIENCE_S, wait_until

pytestmark = pytest.mark.skipif(
    not hasattr(socket, "SO_REUSEPORT") or not Path("/proc/self/task").exists(),
    reason="needs a system that shares ports, and tells of processes",
)


@contextmanager
def serve_by_workers(data_dir: Path) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Two workers; yields the process that looks after them, and the URL."""
    command = ("serve", "--sandbox", "--workers", "2", "--port", "0", "--data-dir", str(data_dir))
    with subprocess.Popen(
        [sys.executable, "-m", "toolkit", *command], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            yield process, next(word for word in line.split() if word.startswith("http"))
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def list_workers(process: "subprocess.Popen[str]") -> set[int]:
    """List the processes that a process has started."""
    path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return {int(pid) for pid in path.read_text().split()}


def is_served(url: str) -> bool:
    """Tell whether a new connection is answered."""
    try:
        return httpx.get(f"{url}/v1/health", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def test_a_worker_that_dies_is_started_again(tmp_path: Path) -> None:
    """Given two workers, when one is killed, then another takes its place; SIGTERM ends all."""
    with serve_by_workers(tmp_path / "data") as (process, url):
        workers = list_workers(process)
        assert len(workers) == 2
        made = httpx.post(f"{url}/v1/account", json={"email": "a@example.org"}, trust_env=False)
        headers = {"Authorization": f"Bearer {made.json()['data']['api_key']}"}
        killed = workers.pop()
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: len(list_workers(process) - {killed}) == 2, "another worker")
        wait_until(lambda: is_served(url), "the port is served")
        body = {"target": "capability", "name": "composition.layout", "input": {"title": "Tea"}}
        with httpx.Client(base_url=url, headers=headers, trust_env=False) as http:
            run = http.post("/v1/runs", json=body, headers={"Prefer": "wait=60"}, timeout=90)
        assert run.json()["data"]["status"] == "completed", run.text
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
        assert not is_served(url)


def test_workers_end_with_whoever_started_them(tmp_path: Path) -> None:
    """Given two workers, when the process that looks after them is killed, then both end."""
    with serve_by_workers(tmp_path / "data") as (process, url):
        assert is_served(url)
        process.kill()
        wait_until(lambda: not is_served(url), "both have ended")


def test_a_port_that_is_taken_is_refused(tmp_path: Path) -> None:
    """Given workers on a port, then others cannot be started on it."""
    with serve_by_workers(tmp_path / "data") as (_, url):
        port = url.rpartition(":")[2]
        command = ("serve", "--sandbox", "--workers", "2", "--port", port)
        refused = subprocess.run(
            [sys.executable, "-m", "toolkit", *command, "--data-dir", str(tmp_path / "other")],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert refused.returncode == 4
        assert "cannot be listened on" in refused.stderr
        assert not (tmp_path / "other").exists()
