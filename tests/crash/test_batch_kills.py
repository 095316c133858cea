"""`kill -9` of a server at any step of a map's batches: submit, poll, collect and settle."""

import os
import signal
from collections import Counter
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.crash.conftest import LEASE_S
from tests.crash.processes import HTTP, FindUrl, ForkServerClient, open_cloud, serve
from tests.support.timing import PATIENCE_S, check_stays, wait_until

# Set this to try more often, such as 150 for each provider.
KILLS = int(os.environ.get("TOOLKIT_BATCH_KILLS", "8"))
ROWS, KILLS_OF_A_MAP = 12, 4
SECRETS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}


def connect(url: str, provider: str) -> dict[str, str]:
    """Create an account that has connected a provider; return the headers of its key."""
    answer = HTTP.post(f"{url}/v1/account", json={"email": "ada@example.org"})
    headers = {"Authorization": f"Bearer {answer.json()['data']['api_key']}"}
    pointer = {
        "provider": provider,
        "connection_type": "environment",
        "secret_ref": SECRETS[provider],
    }
    HTTP.post(f"{url}/v1/providers/connections", json=pointer, headers=headers).raise_for_status()
    return headers


def read_map(url: str, headers: dict[str, str], map_id: str) -> Any:
    """Return the record of a map."""
    return HTTP.get(f"{url}/v1/maps/{map_id}", headers=headers).json()["data"]


@pytest.mark.parametrize("provider", SECRETS)
def test_killed_batches_are_never_submitted_twice(
    fork_server: ForkServerClient, tmp_path: Path, find_url: FindUrl, provider: str
) -> None:
    """Given kills at random times, then each row is in one batch, and all of them complete.

    The vendor bills each row once.
    """
    random, data_dir = Random(provider), tmp_path / "data"
    kills, headers, records = 0, dict[str, str](), list[Any]()
    with open_cloud(latency_ms=15, start=fork_server.start) as cloud:
        times = {"vendor": provider, "path_contains": "/batches", "batch_s": 0.4}
        HTTP.post(f"{cloud.url}/_sandbox/faults", json=times).raise_for_status()
        start = partial(
            serve,
            cloud,
            data_dir,
            find_url(data_dir),
            fork_server.start,
            TOOLKIT_LEASE_S=LEASE_S,
            TOOLKIT_BATCH_GRACE_S="0.5",
        )
        while kills < KILLS:
            map_id = ""
            for _ in range(KILLS_OF_A_MAP):
                with start() as (url, server):
                    headers = headers or connect(url, provider)
                    if not map_id:
                        map_id = create_map(url, headers, provider, len(records))
                    check_stays(lambda: server.poll() is None, random.uniform(0.0, 1.0))
                    server.send_signal(signal.SIGKILL)
                    server.wait(timeout=PATIENCE_S)
                    kills += 1
            with start() as (url, _):
                wait_until(lambda: read_map(url, headers, map_id)["status"] == "completed")  # noqa: B023
                records.append(read_map(url, headers, map_id))
        cloud.wait_until_quiet()
        calls = cloud.calls()
    billed = Counter(call["custom_id"] for call in calls if call["custom_id"] and call["billed"])

    assert [record["row_counts"]["completed"] for record in records] == [ROWS] * len(records)
    assert set(billed.values()) == {1}
    assert len(billed) == ROWS * len(records)
    created = [call["batch_id"] for call in calls if call["batch_id"] and not call["custom_id"]]
    keys = {call["custom_id"].rpartition("-")[0] for call in calls if call["custom_id"]}
    assert len(created) == len(keys)


def create_map(url: str, headers: dict[str, str], provider: str, number: int) -> str:
    """Create a map whose rows no other map has; return its id."""
    body = {
        "capability": "llm.generate",
        "input": {"objective": "A sentence about {topic}", "max_tokens": 60},
        "options": {"provider": provider, "when": "batch"},
        "rows": [{"topic": f"topic {number}.{n}"} for n in range(ROWS)],
        "max_cost_usd": 1.0,
    }
    answer = HTTP.post(f"{url}/v1/maps", json=body, headers=headers)
    return str(answer.json()["id"])
