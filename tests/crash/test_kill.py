"""`kill -9` of a real server in mid-workflow, then a restart on the same data directory."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.ports import free_port
from tests.support.timing import PATIENCE_S, wait_until

NODES = 12


def answers(url: str) -> bool:
    """Tell whether something is served there."""
    try:
        return httpx.get(url).status_code < 500
    except httpx.TransportError:
        return False


@contextmanager
def process(*command: str, env: dict[str, str], ready: str) -> Iterator[subprocess.Popen[bytes]]:
    """A child process that answers at `ready`; killed at the end if it still runs."""
    child = subprocess.Popen(
        [sys.executable, "-m", *command], env={**os.environ, **env}, stdout=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: answers(ready) or child.poll() is not None)
        assert child.poll() is None, f"{command[0]} stopped with {child.returncode}"
        yield child
    finally:
        if child.poll() is None:
            child.kill()
        child.wait()


@pytest.fixture
def cloud() -> Iterator[str]:
    """A simulated vendor cloud in a process of its own, which survives the server."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = ("toolkit.sandbox", "--port", str(port), "--latency-ms", "60")
    with process(*command, env={}, ready=f"{url}/_sandbox/calls"):
        yield url


def serve(cloud: str, data_dir: Path, database: str | None, port: int) -> "object":
    """A server on that cloud."""
    shared = {} if database is None else {"TOOLKIT_DATABASE": database}
    env = {
        **shared,
        "TOOLKIT_VENDORS__MINIMAX__BASE_URLS__API": f"{cloud}/minimax",
        "TOOLKIT_LEASE_S": "2",
        "TOOLKIT_CONNECTION_TEST_S": "0",  # the cloud's log is of the work alone
    }
    command = ("toolkit", "serve", "--port", str(port), "--data-dir", str(data_dir), "--sandbox")
    return process(*command, env=env, ready=f"http://127.0.0.1:{port}/v1/health")


def sign_up(url: str) -> dict[str, str]:
    """The headers of a new account that has connected minimax."""
    answer = httpx.post(f"{url}/v1/account", json={"email": "ada@example.org"})
    headers = {"Authorization": f"Bearer {answer.json()['data']['api_key']}"}
    pointer = {
        "provider": "minimax",
        "connection_type": "environment",
        "secret_ref": "MINIMAX_API_KEY",
    }
    made = httpx.post(f"{url}/v1/providers/connections", json=pointer, headers=headers)
    assert made.status_code == 201
    return headers


def chain() -> dict[str, object]:
    """Texts in a row, each asking for something of its own so that calls can be told apart."""
    return {
        "name": "chain",
        "nodes": [
            {
                "id": f"n{i}",
                "capability": "llm.generate",
                "input": {"objective": f"Line {i} on tea"},
                "depends_on": [f"n{i - 1}"] if i else [],
            }
            for i in range(NODES)
        ],
    }


def states(url: str, headers: dict[str, str], workflow_id: str) -> dict[str, str]:
    """The status of each node."""
    data = httpx.get(f"{url}/v1/workflows/{workflow_id}", headers=headers).json()["data"]
    return {node["id"]: node["status"] for node in data["nodes"]}


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGTERM], ids=["kill -9", "SIGTERM"])
def test_a_stopped_server_loses_nothing_and_repeats_nothing(
    cloud: str, tmp_path: Path, stop: signal.Signals, find_url: Callable[[Path], str | None]
) -> None:
    """Given a workflow under way, when the server is stopped and started, then it completes.

    No node that was shown as completed is called again, and the node in flight at most once more.
    """
    data_dir = tmp_path / "data"
    database = find_url(data_dir)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with serve(cloud, data_dir, database, port) as server:
        headers = sign_up(url)
        posted = httpx.post(f"{url}/v1/workflows", json=chain(), headers=headers)
        assert posted.status_code == 202
        workflow_id = posted.json()["id"]
        wait_until(lambda: "completed" in states(url, headers, workflow_id).values())
        before = states(url, headers, workflow_id)
        server.send_signal(stop)
        assert server.wait(timeout=PATIENCE_S) == (0 if stop is signal.SIGTERM else -signal.SIGKILL)
    assert "pending" in before.values()

    with serve(cloud, data_dir, database, port):
        wait_until(lambda: set(states(url, headers, workflow_id).values()) == {"completed"})
        shown = httpx.get(f"{url}/v1/workflows/{workflow_id}", headers=headers).json()
    assert shown["status"] == "completed"

    calls = httpx.get(f"{cloud}/_sandbox/calls").json()["calls"]
    made = [call for call in calls if call["vendor"] == "minimax" and call["status"] == 200]
    digests = [call["digest"] for call in made]
    assert len(set(digests)) == NODES, json.dumps(calls)[:2000]
    again = len(digests) - len(set(digests))
    assert again <= (1 if stop is signal.SIGKILL else 0)
    first = [digests.index(d) for d in dict.fromkeys(digests)]
    done = sum(status == "completed" for status in before.values())
    assert all(digests.count(digests[i]) == 1 for i in first[:done])
