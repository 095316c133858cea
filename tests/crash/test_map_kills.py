"""`kill -9` of a server or worker again and again, while it runs a map at a busy vendor."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import httpx
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
    start_python,
)
from tests.crash.trials.trial import LEDGER_MODULE
from tests.crash.trials.vendor_checks import CHARACTER_PRICES, MILLION
from tests.crash.trials.vendor_ledger import LEDGER_PATH
from tests.support.timing import wait_until

ROWS, KILLS, CONCURRENCY = 120, 10, 4


class KilledServer:
    """A server that is killed and started again, or one of whose two workers is killed.

    Args:
        start: starts the server; its result is that of `serve`.
        workers: number of the server's processes.

    Attributes:
        url: address of the server.
    """

    def __init__(self, start: Callable[[], Any], workers: int) -> None:
        self._start = start
        self._workers = workers
        self._stack = ExitStack()
        self._begin()

    def _begin(self) -> None:
        self.url, self._process = self._stack.enter_context(self._start())

    def kill(self) -> None:
        """Kill the server, or its oldest worker: each worker in turn, as they are replaced."""
        if self._workers == 1:
            self._stack.close()  # which kills it
            self._begin()
            return
        wait_until(lambda: len(self._list_workers()) == self._workers, "all workers run")
        oldest = min(self._list_workers())
        os.kill(oldest, signal.SIGKILL)
        wait_until(lambda: oldest not in self._list_workers(), "the worker has ended")

    def _list_workers(self) -> list[int]:
        parent = self._process.pid
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text()
        return [int(pid) for pid in children.split()]

    def get(self, path: str, headers: dict[str, str]) -> Any:
        """Read a record; another worker answers if one is killed amid the answer."""
        answers: list[Any] = []

        def is_answered() -> bool:
            with suppress(httpx.TransportError):
                answers.append(HTTP.get(f"{self.url}/v1/maps/{path}", headers=headers).json())
            return bool(answers)

        wait_until(is_answered, "the server answers")
        return answers[0]["data"]

    def read_rows(self, map_id: str, headers: dict[str, str]) -> dict[int, Any]:
        """Return the rows that have ended, by number."""
        return {row["row"]: row for row in self.get(f"{map_id}/rows", headers)["rows"]}

    def close(self) -> None:
        """End all processes."""
        self._stack.close()


@pytest.fixture
def cloud(fork_server: ForkServerClient) -> Iterator[CloudProcess]:
    """A cloud with a ledger, one of whose vendors answers 429 now and then."""
    with open_cloud(LEDGER_MODULE, latency_ms=20, start=fork_server.start) as cloud:
        busy = {"vendor": "minimax", "status": 429, "share": 0.05, "headers": {"Retry-After": "0"}}
        HTTP.post(f"{cloud.url}/_sandbox/faults", json=busy).raise_for_status()
        yield cloud


@pytest.mark.parametrize("workers", [1, 2])
def test_killed_map_loses_no_row_and_pays_none_twice(
    fork_server: ForkServerClient,
    tmp_path: Path,
    find_url: FindUrl,
    cloud: CloudProcess,
    workers: int,
) -> None:
    """Given ten kills and a vendor that answers 429 now and then, then the map completes.

    An ended row keeps its result. The vendor bills a row twice only if its call was in flight at a
    kill, and never more than the map counts as paid.
    """
    data_dir = tmp_path / "data"
    # Workers are children of a server that is not forked.
    begin = fork_server.start if workers == 1 else start_python
    url = find_url(data_dir)
    start = partial(serve, cloud, data_dir, url, begin, workers=workers, TOOLKIT_LEASE_S=LEASE_S)
    body = {
        "capability": "speech.generate",
        "input": {"text": "Item {n} of a long list, which is read in turn."},
        "options": {"provider": "minimax"},
        "rows": [{"n": n} for n in range(ROWS)],
        "concurrency": CONCURRENCY,
        "max_cost_usd": 1.0,
    }
    ended = dict[int, Any]()
    with closing(KilledServer(start, workers)) as server:
        headers = sign_up(server.url)
        map_id = HTTP.post(f"{server.url}/v1/maps", json=body, headers=headers).json()["id"]
        for kill in range(KILLS):
            enough = (kill + 1) * ROWS // (KILLS + 2)
            wait_until(lambda: len(server.read_rows(map_id, headers)) >= enough)  # noqa: B023
            seen = server.read_rows(map_id, headers)
            assert {n: seen[n] for n in ended} == ended
            ended = seen
            server.kill()
        wait_until(lambda: server.get(map_id, headers)["status"] == "completed")
        record = server.get(map_id, headers)
        rows = server.read_rows(map_id, headers)
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
