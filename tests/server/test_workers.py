"""`toolkit serve --workers N`: several processes on a port, and their parent."""

import asyncio
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

from tests.support.timing import PATIENCE_S, wait_until, wait_until_async
from toolkit.server.worker_group import FIRST_PAUSE_S, WorkerGroup

pytestmark = [
    pytest.mark.skipif(
        not hasattr(socket, "SO_REUSEPORT") or not Path("/proc/self/task").exists(),
        reason="needs a system that shares ports and lists processes",
    ),
    pytest.mark.usefixtures("fork_programs"),
]
PYTHON = sys.executable
# A server whose workers are forked.
START = "import sys; sys.executable = sys.argv.pop(1); from toolkit.cli import main; main()"


def build_command(data_dir: Path, workers: int, port: int = 0) -> list[str]:
    """Build the command line of a server."""
    options = f"serve --sandbox --port {port} --workers {workers} --data-dir".split()
    return [sys.executable, "-c", START, sys.executable, *options, str(data_dir)]


@contextmanager
def start_workers(data_dir: Path) -> Iterator["subprocess.Popen[str]"]:
    """Start two workers, and yield the parent process before any of them is ready.

    The parent is not forked, so that the workers are children of the yielded process.
    """
    command = [PYTHON, *build_command(data_dir, 2)[1:]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def read_url(process: "subprocess.Popen[str]") -> str:
    """Read the URL that the parent prints once all workers are ready."""
    assert process.stdout is not None
    line = process.stdout.readline()
    return next(word for word in line.split() if word.startswith("http"))


@contextmanager
def serve_by_workers(data_dir: Path) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Serve by two workers; yield the parent process and the URL."""
    with start_workers(data_dir) as process:
        yield process, read_url(process)


def list_workers(process: "subprocess.Popen[str]") -> set[int]:
    """Return the ids of the child processes."""
    path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return {int(pid) for pid in path.read_text().split()}


def is_served(url: str) -> bool:
    """Return whether a new connection is answered."""
    try:
        return httpx.get(f"{url}/v1/health", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def test_restarts_a_worker_that_dies(tmp_path: Path) -> None:
    """Given two workers, when a worker is killed, then it is replaced; SIGTERM ends all."""
    with serve_by_workers(tmp_path / "data") as (process, url):
        workers = list_workers(process)
        assert len(workers) == 2
        account = httpx.post(f"{url}/v1/account", json={"email": "a@example.org"}, trust_env=False)
        headers = {"Authorization": f"Bearer {account.json()['data']['api_key']}"}
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


def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    """Given two workers, when their parent is killed, then both end."""
    with serve_by_workers(tmp_path / "data") as (process, url):
        assert is_served(url)
        process.kill()
        wait_until(lambda: not is_served(url), "both have ended")


def test_rejects_a_port_in_use(tmp_path: Path) -> None:
    """Given workers on a port, then other workers cannot start on it."""
    with serve_by_workers(tmp_path / "data") as (_, url):
        second = subprocess.run(
            build_command(tmp_path / "other", 2, int(url.rpartition(":")[2])),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert second.returncode == 4
        assert "cannot listen on" in second.stderr
        assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("is_first", [True, False], ids=["first", "another"])
def test_restarts_a_worker_killed_while_it_starts(tmp_path: Path, is_first: bool) -> None:
    """Given two workers, when one is killed while it starts, then both serve."""
    with start_workers(tmp_path / "data") as process:
        first_workers: set[int] = set()
        if not is_first:  # the other starts once the first is ready
            wait_until(lambda: list_workers(process), "the first worker has started")
            first_workers = list_workers(process)
        wait_until(lambda: list_workers(process) - first_workers, "a worker has started")
        killed = (list_workers(process) - first_workers).pop()
        os.kill(killed, signal.SIGKILL)
        url = read_url(process)
        assert is_served(url)
        assert len(list_workers(process) - {killed}) == 2
        process.terminate()
        assert process.wait(PATIENCE_S) == 0


def test_ends_with_the_exit_code_of_a_worker_that_refuses_to_start(tmp_path: Path) -> None:
    """Given a data directory that is a file, then the group ends with its workers' refusal."""
    data_dir = tmp_path / "data"
    data_dir.write_text("")
    alone, group = (
        subprocess.run(
            build_command(data_dir, workers), capture_output=True, timeout=PATIENCE_S, check=False
        )
        for workers in (1, 2)
    )
    assert alone.returncode > 0
    assert group.returncode == alone.returncode


async def test_waits_longer_before_each_start_of_a_worker_that_dies_at_once(tmp_path: Path) -> None:
    """Given a worker that a signal ends at each start, then the pauses grow, and others serve."""
    starts = tmp_path / "starts"
    dying = (
        "import os, time\n"
        f"open({str(starts)!r}, 'a').write(f'{{time.monotonic()}}\\n')\n"
        "os.kill(os.getpid(), 9)"
    )
    lasting = "import sys\nprint(1, flush=True)\nsys.stdin.read()"
    commands = [[PYTHON, "-c", code] for code in (lasting, dying)]
    running = asyncio.create_task(WorkerGroup(commands, lambda: None).run())
    await wait_until_async(lambda: starts.exists() and len(starts.read_text().split()) > 2)
    assert not running.done()
    times = [float(word) for word in starts.read_text().split()]
    assert times[1] - times[0] >= FIRST_PAUSE_S
    assert times[2] - times[1] >= 2 * FIRST_PAUSE_S
    os.kill(os.getpid(), signal.SIGTERM)  # as the group's own process, which handles it
    assert await running == 0
