"""The budget of `client.map` against the vendor's own ledger, whoever interrupts or shares it."""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
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
# Billed by the character, and long enough that a call costs its bound.
TEXT = "Item {n} of a long list, of which each is told in turn. " + "It goes on and on. " * 25


@pytest.fixture(scope="module")
def cloud() -> Iterator[CloudProcess]:
    """A vendor in a process of its own, which bills by its own books."""
    with open_cloud(LEDGER_MODULE, latency_ms=10) as opened:
        # Calls that end one by one have others begin while some are still in flight.
        slow = {"vendor": "minimax", "delay_ms": 125, "spread_ms": 120, "times": None}
        httpx.post(f"{opened.url}/_sandbox/faults", json=slow, trust_env=False).raise_for_status()
        yield opened


@pytest.fixture
def bill(cloud: CloudProcess, monkeypatch: pytest.MonkeyPatch) -> "Bill":
    """The bill of this test's calls; engines that it opens call that vendor."""
    for name, value in cloud.environment().items():
        monkeypatch.setenv(name, value)
    return Bill(cloud)


class Bill:
    """The part of the vendor's ledger that one test causes."""

    def __init__(self, cloud: CloudProcess) -> None:
        self._cloud = cloud
        # So that those of other tests are not told again each time that the calls are counted.
        httpx.delete(f"{cloud.url}/_sandbox/calls", trust_env=False).raise_for_status()
        self._before = len(read_ledger(cloud.url))

    def count_calls(self) -> int:
        """Count the calls that have reached the vendor."""
        return len(self._cloud.calls())

    def sum_usd(self) -> Decimal:
        """Sum up the calls, once all of them have been answered."""
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
    given = {"text": TEXT.format(n=10)}
    bound = client.route("speech.generate", given, provider="minimax").record.reservation_usd
    assert bound is not None
    return bound


def _interrupt_map(client: Client, limit: float, bill: Bill, calls: int) -> None:
    """Interrupt a map once it has made so many calls, unless it ends before."""
    before, is_over = bill.count_calls(), threading.Event()

    def interrupt() -> None:
        wait_until(lambda: is_over.is_set() or bill.count_calls() >= before + calls)
        if not is_over.is_set():
            signal.raise_signal(signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    try:
        _map(client, limit)
    except KeyboardInterrupt:
        pass
    finally:
        is_over.set()
        interrupting.join()


@pytest.fixture(params=["embedded", "server"])
def client(
    request: pytest.FixtureRequest, tmp_path: Path, bill: Bill, settings: Settings
) -> Iterator[Client]:
    """A client of an engine that calls the vendor with the ledger."""
    del bill  # it has set the vendors' addresses
    if request.param == "embedded":
        with Client.local(tmp_path, sandbox=True) as made:
            yield made
        return
    server = Server(Settings(data_dir=settings.data_dir, sandbox=True, connection_test_s=0.0))
    with Client(server.url) as stranger:
        key = stranger.account.create("ada@example.org").api_key
    with Client(server.url, key) as made:
        made.connections.connect("minimax")
        yield made
    server.close()


@pytest.mark.parametrize("bounds", [2.5, 4.5])
def test_an_interrupted_map_stays_within_its_budget(
    client: Client, bill: Bill, bounds: float
) -> None:
    """Given three interrupts and a call to the end, then the vendor billed no more than the limit.

    What is under way when a call is interrupted goes on, and is paid.
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

    They begin at either end of the table, so that neither finds the other's rows at first. When no
    run is under way, both may begin a row at the same moment: so one row more is allowed.
    """
    server = Server(Settings(data_dir=settings.data_dir, sandbox=True, connection_test_s=0.0))
    with Client(server.url) as stranger:
        key = stranger.account.create("ada@example.org").api_key
    with Client(server.url, key) as client:
        client.connections.connect("minimax")
        bound = _find_bound(client)
        limit = bound * bounds
    start = threading.Barrier(2)
    tables: list[pd.DataFrame] = []

    def work(*, from_end: bool) -> None:
        with Client(server.url, key) as kernel:
            start.wait()
            tables.append(_map(kernel, limit, from_end=from_end))

    kernels = [threading.Thread(target=work, kwargs={"from_end": one}) for one in (False, True)]
    for kernel in kernels:
        kernel.start()
    for kernel in kernels:
        kernel.join()
    server.close()

    assert len(tables) == 2
    assert 0 < bill.sum_usd() <= Decimal(limit + bound)


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
def test_two_processes_on_one_directory_share_the_budget_of_one_map(
    tmp_path: Path, bill: Bill
) -> None:
    """Given the same call by two engines on one directory, then both stay within its limit."""
    with Client.local(tmp_path, sandbox=True) as client:
        limit = _find_bound(client) * 4.5
    given = [str(tmp_path), str(limit), str(ROWS), TEXT]
    kernels = [
        subprocess.Popen(
            [sys.executable, "-c", _KERNEL, *given],
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


def test_runs_of_a_call_without_a_limit_count_before_others_begin(
    client: Client, bill: Bill
) -> None:
    """Given runs under way that have no limit, then a call with one waits to see their cost."""
    limit = _find_bound(client) * 10
    before, is_over = bill.count_calls(), threading.Event()

    def interrupt() -> None:
        wait_until(lambda: is_over.is_set() or bill.count_calls() >= before + 8)
        signal.raise_signal(signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with pytest.raises(KeyboardInterrupt):
        _map(client, None, rows=8)
    interrupting.join()
    table = _map(client, limit)

    unlimited, others = table.head(8), table.tail(ROWS - 8)
    left = max(0.0, limit - float(unlimited["cost_usd"].sum()))
    assert set(unlimited["status"]) == {"completed"}
    assert float(others["cost_usd"].sum()) <= left + 1e-9
    assert bill.sum_usd() >= Decimal(str(float(unlimited["cost_usd"].sum()))) - Decimal("1e-9")
