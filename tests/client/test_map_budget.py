"""The budget of `client.map` against the vendor's ledger, with interrupts and shared maps."""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path

import httpx
import pandas as pd
import pytest

from tests.conftest import Server
from tests.crash.processes import CloudProcess, open_cloud
from tests.crash.trials.trial import LEDGER_MODULE
from tests.crash.trials.vendor_checks import read_ledger
from tests.support.timing import wait_until
from toolkit import Client
from toolkit.settings import Settings

pytestmark = pytest.mark.usefixtures("heed_interrupts")

ROWS = 14
# Speech is billed by the character. The text is so long that a call costs its bound.
TEXT = "Item {n} of a long list, which is read in turn. " + "It goes on and on. " * 25


@pytest.fixture(scope="module")
def cloud() -> Iterator[CloudProcess]:
    """A vendor in a process of its own, with its own ledger."""
    with open_cloud(LEDGER_MODULE, latency_ms=10) as opened:
        # Calls end at different times, so that others begin while some are still in flight.
        slow = {"vendor": "minimax", "delay_ms": 125, "spread_ms": 120, "times": None}
        httpx.post(f"{opened.url}/_sandbox/faults", json=slow, trust_env=False).raise_for_status()
        yield opened


@pytest.fixture
def bill(cloud: CloudProcess, monkeypatch: pytest.MonkeyPatch) -> "Bill":
    """The bill of the test's calls. Engines that the test opens call the vendor."""
    for name, value in cloud.environment().items():
        monkeypatch.setenv(name, value)
    return Bill(cloud)


class Bill:
    """The part of the vendor's ledger that a test causes."""

    def __init__(self, cloud: CloudProcess) -> None:
        self._cloud = cloud
        # A count reads all calls, so calls of other tests would slow each count.
        httpx.delete(f"{cloud.url}/_sandbox/calls", trust_env=False).raise_for_status()
        self._before = len(read_ledger(cloud.url))

    def count_calls(self) -> int:
        """Count the calls that have reached the vendor."""
        return len(self._cloud.calls())

    def sum_usd(self) -> Decimal:
        """Sum the cost of the calls after all of them are answered."""
        self._cloud.wait_until_quiet()
        calls = read_ledger(self._cloud.url)[self._before :]
        return sum((call.usd for call in calls), Decimal(0))


def _map(
    client: Client, limit: float | None, rows: int = ROWS, *, from_end: bool = False
) -> pd.DataFrame:
    numbers = range(10, 10 + rows)
    return client.map(
        "speech.generate",
        [{"n": n} for n in (reversed(numbers) if from_end else numbers)],
        text=TEXT,
        max_cost_usd=limit,
        options={"provider": "minimax"},
        progress=False,
    )


def _find_bound(client: Client) -> float:
    fields = {"text": TEXT.format(n=10)}
    bound = client.route("speech.generate", fields, provider="minimax").record.reservation_usd
    assert bound is not None
    return bound


def _interrupt_map(
    client: Client, limit: float | None, bill: Bill, calls: int, rows: int = ROWS
) -> bool:
    """Interrupt a map after it has made a number of calls; return False if it ends before."""
    before, is_over = bill.count_calls(), threading.Event()

    def interrupt() -> bool:
        wait_until(lambda: is_over.is_set() or bill.count_calls() >= before + calls)
        if is_over.is_set():
            return False
        signal.raise_signal(signal.SIGINT)
        return True

    with ThreadPoolExecutor(1) as executor:
        interrupted = executor.submit(interrupt)
        with suppress(KeyboardInterrupt):
            _map(client, limit, rows)
        is_over.set()
    return interrupted.result()


@contextmanager
def _serve(settings: Settings) -> Iterator[tuple[str, str]]:
    """Serve an engine; yield its URL and the key of an account that has connected minimax."""
    server = Server(Settings(data_dir=settings.data_dir, sandbox=True))
    yield server.url, server.sign_up("minimax")
    server.close()


@pytest.fixture(params=["embedded", "server"])
def client(
    request: pytest.FixtureRequest, tmp_path: Path, bill: Bill, settings: Settings
) -> Iterator[Client]:
    """A client of an engine that calls the vendor with the ledger."""
    if request.param == "embedded":
        with Client.local(tmp_path, sandbox=True) as client:
            yield client
    else:
        with _serve(settings) as (url, key), Client(url, key) as client:
            yield client


@pytest.mark.parametrize("bounds", [2.5, 4.5])
def test_interrupted_map_stays_within_its_budget(client: Client, bill: Bill, bounds: float) -> None:
    """Given three interrupts and a full call, then the vendor billed no more than the limit.

    Runs that are under way when a call is interrupted continue, and are paid.
    """
    limit = _find_bound(client) * bounds
    for calls in (2, 2, 2):
        _interrupt_map(client, limit, bill, calls)
    table = _map(client, limit)

    billed = bill.sum_usd()
    assert 0 < billed <= Decimal(limit)
    assert Decimal(str(float(table["cost_usd"].sum()))) <= billed + Decimal("1e-9")


@pytest.mark.parametrize("bounds", [4.5, 6.5])
def test_two_kernels_share_the_budget_of_one_map(
    settings: Settings, bill: Bill, bounds: float
) -> None:
    """Given one map by two clients at once, then both together stay within its limit.

    They send the rows in opposite orders, and have the same map.
    """
    start = threading.Barrier(2)
    with _serve(settings) as (url, key):
        with Client(url, key) as client:
            bound = _find_bound(client)
        limit = bound * bounds

        def work(from_end: bool) -> None:
            with Client(url, key) as kernel:
                start.wait()
                _map(kernel, limit, from_end=from_end)

        with ThreadPoolExecutor(2) as kernels:
            list(kernels.map(work, (False, True)))
    assert 0 < bill.sum_usd() <= Decimal(limit)


_KERNEL = """
import sys
from toolkit import Client

data_dir, limit, rows = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
with Client.local(data_dir, sandbox=True) as client:
    print("ready", flush=True)
    sys.stdin.readline()
    client.map(
        "speech.generate", [{"n": n} for n in range(10, 10 + rows)], text=sys.argv[4],
        max_cost_usd=limit, options={"provider": "minimax"}, progress=False,
    )
"""


@pytest.mark.usefixtures("fork_programs")
def test_two_processes_share_the_budget_of_one_map(tmp_path: Path, bill: Bill) -> None:
    """Given the same call by two engines on one directory, then both stay within its limit."""
    with Client.local(tmp_path, sandbox=True) as client:
        limit = _find_bound(client) * 4.5
    arguments = [str(tmp_path), str(limit), str(ROWS), TEXT]
    kernels = [
        subprocess.Popen(
            [sys.executable, "-c", _KERNEL, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for kernel in kernels:
        assert kernel.stdout is not None
        assert kernel.stdout.readline() == "ready\n"
    for kernel in kernels:
        kernel.communicate("\n")
    assert [kernel.returncode for kernel in kernels] == [0, 0]
    assert 0 < bill.sum_usd() <= Decimal(limit)


def test_budget_counts_runs_of_a_call_without_a_limit(client: Client, bill: Bill) -> None:
    """Given runs under way that have no limit, then a call with a limit waits for their cost."""
    limit = _find_bound(client) * 10
    assert _interrupt_map(client, None, bill, calls=8, rows=8)
    table = _map(client, limit)

    unlimited, limited = table.head(8), table.tail(ROWS - 8)
    remainder = max(0.0, limit - float(unlimited["cost_usd"].sum()))
    assert set(unlimited["status"]) == {"completed"}
    assert float(limited["cost_usd"].sum()) <= remainder + 1e-9
    assert bill.sum_usd() >= Decimal(str(float(unlimited["cost_usd"].sum()))) - Decimal("1e-9")
