"""Objectives that take long to read, on a served process: deadlines, turns, lost callers."""

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.served_process import open_account, serve_process
from tests.support.timing import wait_until
from toolkit import Client

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/task").exists(), reason="needs a system that tells of processes"
)

# Each clause refers to the one before, so that the keyword planner's work grows quickly.
SLOW = "和一张图片" * 600
QUICK = "A short poem about tides"
CALLERS = 6
QUIET_S = 1.0
MAX_EXIT_S = 30


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A served process, and its URL."""
    with serve_process(tmp_path / "data") as found:
        yield found


def send_plan(url: str, key: str, objective: str) -> socket.socket:
    """Send a request for a plan, and return the connection without reading the answer."""
    place = urlsplit(url)
    body = json.dumps({"objective": objective}).encode()
    head = (
        f"POST /v1/plans HTTP/1.1\r\nHost: {place.netloc}\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    connection = socket.create_connection((str(place.hostname), int(place.port or 0)))
    connection.sendall(head.encode() + body)
    return connection


def read_cpu_s(pid: int) -> float:
    """Read the CPU seconds that a process and its children have used so far."""
    threads = Path(f"/proc/{pid}/task").glob("*/children")  # each child is listed at its thread
    children = [child for thread in threads for child in thread.read_text().split()]
    ticks = 0
    for one in [str(pid), *children]:
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def wait_until_idle(pid: int) -> None:
    """Wait until a process and its children use almost no CPU for a while."""
    used, since = read_cpu_s(pid), time.monotonic()

    def is_idle() -> bool:
        nonlocal used, since
        if read_cpu_s(pid) - used > QUIET_S / 5:
            used, since = read_cpu_s(pid), time.monotonic()
        return time.monotonic() - since > QUIET_S

    wait_until(is_idle, "the process is idle")


def test_answers_other_tenants_while_a_tenant_s_long_objectives_are_read(
    served: tuple["subprocess.Popen[str]", str],
) -> None:
    """Given many slow plans of one tenant, another tenant's plan is made before theirs end."""
    process, url = served
    key = open_account(url, "slow")
    with Client(base_url=url, api_key=open_account(url, "quick")) as quick, ExitStack() as stack:
        assert quick.plans.create(QUICK).record.nodes
        wait_until_idle(process.pid)
        began = read_cpu_s(process.pid)
        slow = [stack.enter_context(send_plan(url, key, SLOW)) for _ in range(CALLERS)]
        wait_until(lambda: read_cpu_s(process.pid) - began > 0.5, "they are read")
        assert quick.plans.create(QUICK).record.nodes
        for connection in slow[-2:]:  # those of the end of the queue
            connection.setblocking(False)
            with pytest.raises(BlockingIOError):
                connection.recv(1)


def test_asks_back_about_an_objective_that_takes_too_long_to_read(
    served: tuple["subprocess.Popen[str]", str],
) -> None:
    """Given an objective of minutes of work, its plan has a question and cannot be executed."""
    _, url = served
    with Client(base_url=url, api_key=open_account(url, "slow")) as client:
        plan = client.plans.create(SLOW).record
        assert not plan.executable
        assert "within 5 s" in str(plan.question)
        assert client.plans.create(QUICK).record.nodes


def test_ends_the_planning_of_callers_who_leave(
    served: tuple["subprocess.Popen[str]", str],
) -> None:
    """Given slow plans whose callers hang up, then the process soon does nothing."""
    process, url = served
    key = open_account(url, "slow")
    wait_until_idle(process.pid)
    began = read_cpu_s(process.pid)
    slow = [send_plan(url, key, SLOW) for _ in range(CALLERS)]
    wait_until(lambda: read_cpu_s(process.pid) - began > 0.5, "they are read")
    for connection in slow:
        connection.close()
    left = read_cpu_s(process.pid)
    wait_until_idle(process.pid)
    # Read to their deadlines, they would take 5 s each.
    assert read_cpu_s(process.pid) - left < 5


def test_ends_at_sigterm_while_objectives_are_read(
    served: tuple["subprocess.Popen[str]", str],
) -> None:
    """Given slow plans under way, then SIGTERM ends the process within its deadline."""
    process, url = served
    key = open_account(url, "slow")
    with ExitStack() as stack:
        began = read_cpu_s(process.pid)
        for _ in range(CALLERS):
            stack.enter_context(send_plan(url, key, SLOW))
        wait_until(lambda: read_cpu_s(process.pid) - began > 0.5, "they are read")
        process.terminate()
        assert process.wait(MAX_EXIT_S) == 0
