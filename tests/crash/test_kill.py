"""`kill -9` of a real server during a workflow, then a restart on the same data directory."""

import json
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.crash.conftest import LEASE_S
from tests.crash.processes import (
    HTTP,
    CloudProcess,
    FindUrl,
    ForkServerClient,
    open_cloud,
    serve,
    sign_up,
)
from tests.support.timing import PATIENCE_S, wait_until

NODES = 12


@pytest.fixture
def cloud(fork_server: ForkServerClient) -> Iterator[CloudProcess]:
    """Vendors that are so slow that a server can be stopped during a workflow."""
    with open_cloud(latency_ms=60, start=fork_server.start) as opened:
        yield opened


def chain() -> dict[str, Any]:
    """Build a chain of texts with different inputs, so that their calls differ."""
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
    """Return the status of each node."""
    data = HTTP.get(f"{url}/v1/workflows/{workflow_id}", headers=headers).json()["data"]
    return {node["id"]: node["status"] for node in data["nodes"]}


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGTERM], ids=["kill -9", "SIGTERM"])
def test_stopped_server_loses_and_repeats_nothing(
    cloud: CloudProcess,
    fork_server: ForkServerClient,
    tmp_path: Path,
    stop: signal.Signals,
    find_url: FindUrl,
) -> None:
    """Given a workflow under way, when the server stops and starts, then it completes.

    No completed node is called again, and the node in flight at most once more.
    """
    data_dir = tmp_path / "data"
    start = partial(
        serve, cloud, data_dir, find_url(data_dir), fork_server.start, TOOLKIT_LEASE_S=LEASE_S
    )
    with start() as (url, server):
        headers = sign_up(url)
        posted = HTTP.post(f"{url}/v1/workflows", json=chain(), headers=headers)
        assert posted.status_code == 202
        workflow_id = posted.json()["id"]
        wait_until(lambda: "completed" in states(url, headers, workflow_id).values())
        before = states(url, headers, workflow_id)
        server.send_signal(stop)
        assert server.wait(timeout=PATIENCE_S) == (0 if stop is signal.SIGTERM else -signal.SIGKILL)
    assert "pending" in before.values()

    with start() as (url, _):
        wait_until(lambda: set(states(url, headers, workflow_id).values()) == {"completed"})
        workflow = HTTP.get(f"{url}/v1/workflows/{workflow_id}", headers=headers).json()
    assert workflow["status"] == "completed"

    calls = cloud.calls()
    successes = [call for call in calls if call["vendor"] == "minimax" and call["status"] == 200]
    digests = [call["digest"] for call in successes]
    assert len(set(digests)) == NODES, json.dumps(calls)[:2000]
    again = len(digests) - len(set(digests))
    assert again <= (1 if stop is signal.SIGKILL else 0)
    first = [digests.index(d) for d in dict.fromkeys(digests)]
    completed = sum(status == "completed" for status in before.values())
    assert all(digests.count(digests[i]) == 1 for i in first[:completed])
