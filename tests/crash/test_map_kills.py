"""`kill -9` of a server again and again while it runs a map whose vendor limits its rate."""

import json
import signal
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from tests.crash.conftest import LEASE_S
from tests.crash.processes import HTTP, FindUrl, ForkServerClient, open_cloud, serve, sign_up
from tests.crash.trials.trial import LEDGER_MODULE
from tests.crash.trials.vendor_checks import CHARACTER_PRICES, MILLION
from tests.crash.trials.vendor_ledger import LEDGER_PATH
from tests.support.timing import PATIENCE_S, wait_until

ROWS, KILLS, CONCURRENCY = 120, 10, 4


def read_rows(url: str, headers: dict[str, str], map_id: str) -> dict[int, Any]:
    """Return the rows that have ended, by number."""
    answer = HTTP.get(f"{url}/v1/maps/{map_id}/rows", headers=headers)
    return {row["row"]: row for row in answer.json()["data"]["rows"]}


def test_killed_map_loses_no_row_and_pays_none_twice(
    fork_server: ForkServerClient, tmp_path: Path, find_url: FindUrl
) -> None:
    """Given ten kills and a vendor that answers 429 now and then, then the map completes.

    An ended row keeps its result. The vendor bills a row twice only if its call was in flight at a
    kill, and never more than the map counts as paid.
    """
    data_dir = tmp_path / "data"
    with open_cloud(LEDGER_MODULE, latency_ms=20, start=fork_server.start) as cloud:
        busy = {"vendor": "minimax", "status": 429, "share": 0.05, "headers": {"Retry-After": "0"}}
        HTTP.post(f"{cloud.url}/_sandbox/faults", json=busy).raise_for_status()
        start = partial(
            serve, cloud, data_dir, find_url(data_dir), fork_server.start, TOOLKIT_LEASE_S=LEASE_S
        )
        body = {
            "capability": "speech.generate",
            "input": {"text": "Item {n} of a long list, which is read in turn."},
            "options": {"provider": "minimax"},
            "rows": [{"n": n} for n in range(ROWS)],
            "concurrency": CONCURRENCY,
            "max_cost_usd": 1.0,
        }
        headers: dict[str, str] = {}
        map_id, ended = "", dict[int, Any]()
        for kill in range(KILLS):
            with start() as (url, server):
                headers = headers or sign_up(url)
                if not map_id:
                    map_id = HTTP.post(f"{url}/v1/maps", json=body, headers=headers).json()["id"]
                enough = (kill + 1) * ROWS // (KILLS + 2)
                wait_until(lambda: len(read_rows(url, headers, map_id)) >= enough)  # noqa: B023
                seen = read_rows(url, headers, map_id)
                assert {n: seen[n] for n in ended} == ended
                ended = seen
                server.send_signal(signal.SIGKILL)
                server.wait(timeout=PATIENCE_S)
        with start() as (url, _):
            wait_until(
                lambda: (
                    HTTP.get(f"{url}/v1/maps/{map_id}", headers=headers).json()["status"]
                    == "completed"
                )
            )
            record = HTTP.get(f"{url}/v1/maps/{map_id}", headers=headers).json()["data"]
            rows = read_rows(url, headers, map_id)
        cloud.wait_until_quiet()
        billed = [call for call in cloud.calls() if call["billed"]]
        entries = HTTP.get(cloud.url + LEDGER_PATH).json()
        texts = [json.loads(entry["body"])["text"] for entry in entries if entry["status"] == 200]
    price = CHARACTER_PRICES["speech-2.8-turbo"] / MILLION
    paid_usd = sum((price * len(text) for text in texts), Decimal(0))

    assert record["row_counts"]["completed"] == ROWS
    assert {n: rows[n] for n in ended} == ended
    digests = [call["digest"] for call in billed]
    assert len(set(digests)) == ROWS
    assert len(digests) - ROWS <= KILLS * CONCURRENCY
    assert paid_usd <= Decimal(str(record["cost_incurred_usd"])) + Decimal("1e-9")
    assert record["cost_incurred_usd"] <= 1.0
