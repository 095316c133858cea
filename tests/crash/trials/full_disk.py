"""A trial in which a disk fills repeatedly while engines work, without a kill.

Several threads create work, each input once: they retry a rejected request with the same
idempotency key. The bill is the vendor's ledger, in a process that uses another disk.
"""

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import httpx

from tests.crash.callers import FINAL
from tests.crash.processes import HTTP, open_http
from tests.crash.trials.vendor_checks import BilledCall, read_ledger, to_decimal
from tests.support.timing import PATIENCE_S, wait_until

AREAS = ("/v1/runs", "/v1/workflows")
CALLERS = 6
BRANCHES = 4  # parallel nodes of a workflow
# Every fourth request creates a workflow, the others a run.
WORKFLOW_EVERY = 4
REFUSED_PAUSE_S = 0.1
BETWEEN = 8  # pieces of work that are accepted before the disk fills again
# A long answer is a file outside the database; most answers are short.
LONG_EVERY, LONG_WORDS = 3, 1_500


@dataclass
class TrialResult:
    """The result of a trial.

    Attributes:
        inputs: number of acknowledged inputs.
        calls: calls that the vendor bills.
        wrong: a sentence for each broken promise.
        refused: number of requests that were rejected temporarily.
    """

    inputs: int
    calls: Sequence[BilledCall]
    wrong: list[str] = field(default_factory=list)
    refused: int = 0

    def describe(self) -> str:
        """Describe the figures in one line."""
        paid = Counter(call.body for call in self.calls)
        again = sum(count > 1 for count in paid.values())
        return (
            f"{self.inputs} inputs, {len(self.calls)} calls billed, {again} inputs paid more than"
            f" once, {self.refused} requests refused, wrong: {len(self.wrong)}"
        )


class SteadyCaller:
    """Several threads that create work until they are stopped.

    Args:
        urls: addresses of the engines.
        headers: headers of an account's key.
    """

    def __init__(self, urls: Sequence[str], headers: dict[str, str]) -> None:
        self._urls = urls
        self._headers = headers
        self._numbers = itertools.count(1)
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(CALLERS)]
        self._lock = threading.Lock()
        self.acknowledged: dict[str, int] = {}
        self.refused = 0
        self.wrong: list[str] = []

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop after every request is acknowledged."""
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        with open_http() as http:
            http.headers.update(self._headers)
            while not self._stopped.is_set():
                number = next(self._numbers)
                is_workflow = number % WORKFLOW_EVERY == 0
                body = _make_workflow(number) if is_workflow else _make_run(number)
                area = AREAS[is_workflow]
                made_id = self._ask(http, area, body, number)
                if made_id is not None:
                    with self._lock:
                        path = f"{area}/{made_id}"
                        self.acknowledged[path] = BRANCHES if is_workflow else 1

    def _ask(self, http: httpx.Client, area: str, body: dict[str, Any], number: int) -> str | None:
        """Send a request until it is acknowledged; return the id, or None if it never is."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            url = self._urls[number % len(self._urls)]
            key = {"Idempotency-Key": f"input-{number}"}
            try:
                answer = http.post(url + area, json=body, headers=key)
            except httpx.TransportError:
                pass
            else:
                if answer.status_code == 202:
                    return str(answer.json()["data"]["id"])
                if answer.status_code not in (429, 503):
                    self.wrong.append(f"{area} answered {answer.status_code}: {answer.text[:200]}")
                    return None
            self.refused += 1
            # Retries continue after the stop, because the engine may have accepted the request.
            again_at = time.monotonic() + REFUSED_PAUSE_S
            wait_until(lambda at=again_at: time.monotonic() > at)
        self.wrong.append(f"input {number} was never accepted")
        return None

    def read(self, path: str) -> dict[str, Any] | None:
        """Read a record; return None if the engine is unavailable."""
        answer = HTTP.get(self._urls[0] + path, headers=self._headers)
        if answer.status_code == 503:
            return None
        assert answer.status_code == 200, f"{path}: {answer.text}"
        data: dict[str, Any] = answer.json()["data"]
        return data

    def read_bytes(self, path: str) -> bytes:
        """Read the bytes of an artifact."""
        answer = HTTP.get(self._urls[0] + path, headers=self._headers)
        assert answer.status_code == 200, f"{path}: {answer.text}"
        return answer.content


def run_full_disk_trial(
    urls: Sequence[str],
    ledger_url: str,
    headers: dict[str, str],
    *,
    times: int,
    full_s: float,
    fill: Callable[[], None],
    free: Callable[[], None],
) -> TrialResult:
    """Fill and free a disk several times under load, then compare every input with the bill.

    Args:
        urls: addresses of the engines.
        ledger_url: address of the vendor with the ledger.
        headers: headers of an account's key.
        times: number of times that the disk fills.
        full_s: seconds for which the disk stays full each time.
        fill: takes all space.
        free: frees the space.
    """
    caller = SteadyCaller(urls, headers)
    caller.start()
    try:
        for _ in range(times):
            _wait_for_progress(caller)
            until = time.monotonic() + full_s
            # Another writer, such as a log, takes all space that becomes free.
            wait_until(lambda until=until: fill() or time.monotonic() > until)
            free()
    finally:
        free()
        caller.stop()
    result = TrialResult(sum(caller.acknowledged.values()), ())
    result.wrong, result.refused = caller.wrong, caller.refused
    records = _wait_for_all(caller)
    result.calls = read_ledger(ledger_url)
    _check_bill(result)
    _check_records(caller, records, result)
    return result


def _wait_for_progress(caller: SteadyCaller) -> None:
    before = len(caller.acknowledged)
    wait_until(lambda: len(caller.acknowledged) > before + BETWEEN, "work is accepted")


def _wait_for_all(caller: SteadyCaller) -> dict[str, dict[str, Any]]:
    records: dict[str, dict[str, Any]] = {}

    def is_over() -> bool:
        for path in caller.acknowledged:
            record = None if path in records else caller.read(path)
            if record is not None and record["status"] in FINAL:
                records[path] = record
        return len(records) == len(caller.acknowledged)

    wait_until(is_over, "all acknowledged work ends")
    return records


def _check_bill(result: TrialResult) -> None:
    """Check that every input is billed exactly once."""
    paid = Counter(call.body for call in result.calls)
    result.wrong += [
        f"paid {count} times: …{body[-120:]}" for body, count in paid.items() if count > 1
    ]
    if len(paid) != result.inputs:
        result.wrong.append(f"{len(paid)} inputs are billed, and {result.inputs} were acknowledged")


def _check_records(
    caller: SteadyCaller, records: dict[str, dict[str, Any]], result: TrialResult
) -> None:
    """Check that all work completed with its artifacts, at the cost that the vendor bills."""
    recorded = Decimal(0)
    for path, record in records.items():
        if record["status"] != "completed":
            result.wrong.append(f"{path} is {record['status']}: {record.get('error')}")
            continue
        recorded += to_decimal(record["cost_usd"])
        parts = record.get("nodes") or [record]
        for part in parts:
            artifact = caller.read(f"/v1/artifacts/{part['artifact_id']}")
            content = caller.read_bytes(f"/v1/artifacts/{part['artifact_id']}/content")
            if artifact is None or len(content) != artifact["size_bytes"]:
                result.wrong.append(f"{path} lost bytes of {part['artifact_id']}")
    billed = sum((call.usd for call in result.calls), Decimal(0))
    if recorded != billed and not result.wrong:
        result.wrong.append(f"work costs ${recorded} by its records, and ${billed} by the bill")


def _make_objective(number: int, name: str = "") -> dict[str, str]:
    words = " tide" * (LONG_WORDS if number % LONG_EVERY == 0 else 1)
    return {"objective": f"Line {number}{name} on{words}"}


def _make_run(number: int) -> dict[str, Any]:
    return {"target": "capability", "name": "llm.generate", "input": _make_objective(number)}


def _make_workflow(number: int) -> dict[str, Any]:
    nodes = [
        {
            "id": f"n{branch}",
            "capability": "llm.generate",
            "input": _make_objective(number, f" branch {branch}"),
        }
        for branch in range(BRANCHES)
    ]
    return {"name": "branches", "nodes": nodes}
