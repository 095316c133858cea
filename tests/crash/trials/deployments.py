"""Deployments of several engines that share a database, and all that can fail in them.

Each fault strikes at once, and is mended a moment later by a timer, while work goes on.
"""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import ExitStack, closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import httpx

from tests._postgres import PostgresCluster
from tests.crash.callers import Ledger, record_kill
from tests.crash.processes import HTTP, CloudProcess, ForkServerClient, ServerProcess
from tests.crash.trials.strikes import Strike
from tests.crash.trials.vendor_ledger import ENGINE_PREFIX
from tests.support.network_link import NetworkLink
from tests.support.ports import free_port
from tests.support.timing import wait_until

LEASE_S = 2.0
# Longer than a lease holds that nobody renews.
FREEZE_S = LEASE_S + 1.0
DELAY_S = 0.2
MAX_CALLS = 4
REQUESTS_PER_MINUTE = 240
MAX_QUEUED = 24
# A fault strikes at once, and returns which engines it hit: none where it is what all share.
Fault = Callable[[], frozenset[str]]
ALL: frozenset[str] = frozenset()


def make_limits() -> dict[str, str]:
    """Make the settings of what all engines together may do, so low that they are reached."""
    return {
        "TOOLKIT_LEASE_S": str(LEASE_S),
        "TOOLKIT_MAX_QUEUED": str(MAX_QUEUED),
        "TOOLKIT_MAX_CONCURRENT_CALLS": str(MAX_CALLS),
        "TOOLKIT_VENDORS__OPENAI__REQUESTS_PER_MINUTE": str(REQUESTS_PER_MINUTE),
    }


class TrialDeployment(ABC):
    """Several engines that share what they know, and the vendor cloud, which never fails.

    Attributes:
        urls: where engines answer.
        strikes: the faults so far.

    Args:
        cloud: the vendor cloud.
        random: decides what fails, and for how long.
    """

    def __init__(self, cloud: CloudProcess, random: Random) -> None:
        self.cloud = cloud
        self.ledger = Ledger()
        self.urls: Sequence[str] = ()
        self.strikes: list[Strike] = []
        self._random = random
        self._mending: dict[str, threading.Timer] = {}
        self._striking = Strike("nothing", 0.0)

    @abstractmethod
    def list_faults(self) -> Iterable[Fault]:
        """List what can fail, the more often the more likely it is."""

    @abstractmethod
    def list_certain(self) -> Iterable[Container[Fault]]:
        """List of what something fails in each trial, however few faults it has."""

    def draw_faults(self, count: int) -> list[Fault]:
        """Draw what is to fail, in this order."""
        drawn: list[Fault] = []
        while len(drawn) < count:
            deck = list(self.list_faults())
            self._random.shuffle(deck)
            for some in self.list_certain():
                first = next(n for n, fault in enumerate(deck) if fault in some)
                deck.insert(0, deck.pop(first))
            drawn += deck
        drawn = drawn[:count]
        self._random.shuffle(drawn)
        return drawn

    @abstractmethod
    def supervise(self) -> None:
        """Start each engine again that has ended, as whatever looks after services does."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Tell whether all engines answer."""

    @abstractmethod
    def describe(self) -> str:
        """Describe the engines, for who looks into why they do not answer."""

    @abstractmethod
    def close(self) -> None:
        """End all of it."""

    def fail(self, fault: Fault) -> None:
        """Have something fail at once, which is mended a moment later."""
        strike = self._striking = Strike(fault.__name__.lstrip("_"), time.monotonic())
        self.strikes.append(strike)
        strike.engines = fault()
        strike.over = time.monotonic()
        if not strike.lasts:
            strike.mended = strike.over
        at = datetime.now(UTC) - timedelta(seconds=strike.over - strike.at)
        record_kill(self.cloud, self.ledger, at, max(0.0, strike.mended - strike.over))

    def begin(self, what: str) -> None:
        """Begin to strike something, once it is mended if it failed before."""
        self.wait_until_mended(what)
        self._striking.at = time.monotonic()

    def wait_until_mended(self, what: str) -> None:
        """Wait until something that failed before is mended."""
        if what in self._mending:
            self._mending.pop(what).join()

    def mend_later(self, what: str, mend: Callable[[], object], after_s: float = 0.0) -> None:
        """Have something mended after a moment, or after so many seconds."""
        strike = self._striking
        strike.lasts = True
        after_s = after_s or self._random.uniform(0.2, 1.5)
        strike.mended = time.monotonic() + after_s

        def mend_it() -> None:
            mend()
            strike.mended = time.monotonic()

        timer = threading.Timer(after_s, mend_it)
        self._mending[what] = timer
        timer.start()

    def wait_until_healed(self) -> None:
        """Wait until all that failed is mended, and all engines answer."""
        for what in list(self._mending):
            self.wait_until_mended(what)

        def is_healed() -> bool:
            self.supervise()
            return self.is_ready()

        try:
            wait_until(is_healed, "all engines answer")
        except AssertionError:
            print(self.describe())
            raise


def name_engine(number: int) -> frozenset[str]:
    """Name an engine as the vendor's ledger does."""
    return frozenset({f"{ENGINE_PREFIX}{number}"})


def is_answering(url: str) -> bool:
    """Tell whether an engine takes new work."""
    try:
        answer = HTTP.get(f"{url}/v1/health?ready=true", timeout=2.0)
    except httpx.TransportError:
        return False
    return answer.status_code == 200


class PostgresDeployment(TrialDeployment):
    """Three engines on one database of PostgreSQL, each with a network of its own to it.

    Args:
        cluster: the database's.
        cloud: the vendor cloud.
        folder: where their artifacts are.
        random: decides what fails.
        fork_server: starts them.
    """

    def __init__(
        self,
        cluster: PostgresCluster,
        cloud: CloudProcess,
        folder: Path,
        random: Random,
        fork_server: ForkServerClient,
    ) -> None:
        super().__init__(cloud, random)
        self._cluster = cluster
        self._url = cluster.create_database()
        self._folder = folder
        self._fork_server = fork_server
        self._links = [NetworkLink(cluster.port) for _ in range(3)]
        self._ports = [free_port() for _ in self._links]
        self.urls = [f"http://127.0.0.1:{port}" for port in self._ports]
        self._engines = [self._serve(number) for number in range(len(self._links))]
        wait_until(self.is_ready, "all engines answer")

    def _serve(self, number: int) -> ServerProcess:
        url = self._url.replace(f":{self._cluster.port}/", f":{self._links[number].port}/")
        shared = {"TOOLKIT_ARTIFACT_URL": str(self._folder / "artifacts")}
        data_dir = self._folder / f"data{number}"
        (name,) = name_engine(number)
        vendors = self.cloud.environment(name)
        told = {**make_limits(), **vendors, **shared}
        port = self._ports[number]
        return self._fork_server.serve(self.cloud, data_dir, url, port=port, **told)

    def list_faults(self) -> Iterable[Fault]:
        """List what can fail."""
        return (
            *[self._kill_engine] * 5,
            self._freeze_engine,
            self._restart_database,
            self._kill_database,
            self._freeze_database,
            self._cut_network,
            self._hold_network,
            self._lose_requests,
            self._lose_answers,
            self._slow_network,
        )

    def list_certain(self) -> Iterable[Container[Fault]]:
        """List of what something fails in each trial."""
        return (self._kill_engine,), (self._restart_database, self._kill_database)

    def _draw_engine(self) -> int:
        return self._random.randrange(len(self._engines))

    def _kill_engine(self) -> frozenset[str]:
        number = self._draw_engine()
        self._engines[number].kill()
        wait_until(lambda: self._engines[number].poll_exit_code() is not None)
        self.supervise()
        return name_engine(number)

    def _freeze_engine(self) -> frozenset[str]:
        number = self._draw_engine()
        self.begin(f"engine {number}")
        engine = self._engines[number]
        engine.kill(signal.SIGSTOP)
        self.mend_later(f"engine {number}", lambda: engine.kill(signal.SIGCONT), FREEZE_S)
        return name_engine(number)

    def supervise(self) -> None:
        """Start each engine again that has ended.

        One that cannot reach the database as it starts says so, and ends.
        """
        for number, engine in enumerate(self._engines):
            if engine.poll_exit_code() is not None:
                self._engines[number] = self._serve(number)

    def _restart_database(self) -> frozenset[str]:
        return self._stop_database(signal.SIGINT)

    def _kill_database(self) -> frozenset[str]:
        return self._stop_database(signal.SIGQUIT)

    def _stop_database(self, how: signal.Signals) -> frozenset[str]:
        self.begin("database")
        self._striking.is_instant = False
        self._cluster.stop(how)
        self.mend_later("database", self._cluster.start)
        return ALL

    def _freeze_database(self) -> frozenset[str]:
        self.begin("database")
        self._striking.is_instant = False
        frozen = ExitStack()
        frozen.enter_context(self._cluster.hang())
        self.mend_later("database", frozen.close, FREEZE_S)
        return ALL

    def _disturb_link(self, disturb: Callable[[NetworkLink], None]) -> frozenset[str]:
        number = self._draw_engine()
        self.begin(f"link {number}")
        self._striking.is_instant = False
        disturb(self._links[number])
        self.mend_later(f"link {number}", self._links[number].heal)
        return name_engine(number)

    def _cut_network(self) -> frozenset[str]:
        return self._disturb_link(NetworkLink.cut)

    def _hold_network(self) -> frozenset[str]:
        return self._disturb_link(NetworkLink.hold)

    def _lose_requests(self) -> frozenset[str]:
        return self._disturb_link(lambda link: link.hold("there"))

    def _lose_answers(self) -> frozenset[str]:
        return self._disturb_link(lambda link: link.hold("back"))

    def _slow_network(self) -> frozenset[str]:
        return self._disturb_link(lambda link: link.slow_down(DELAY_S))

    def is_ready(self) -> bool:
        """Tell whether all engines answer."""
        return all(is_answering(url) for url in self.urls)

    def describe(self) -> str:
        """Describe what engines last said, and what is held back on the way to their database."""
        last = self._fork_server.log.read_text().splitlines()[-20:]
        return "\n".join([*(f"{link.describe()}" for link in self._links), *last])

    def close(self) -> None:
        """End all of it."""
        for what in list(self._mending):
            self.wait_until_mended(what)
        for engine in self._engines:
            engine.kill()
        for link in self._links:
            link.close()


class WorkersDeployment(TrialDeployment):
    """Two workers of one `toolkit serve`, on one port and one data directory.

    Args:
        cloud: the vendor cloud.
        folder: where the data directory and the log are.
        random: decides what fails.

    Attributes:
        data_dir: the data directory.
    """

    def __init__(self, cloud: CloudProcess, folder: Path, random: Random) -> None:
        super().__init__(cloud, random)
        self.data_dir = folder / "data"
        self._log = (folder / "workers.log").open("ab")
        self._port = free_port()
        self.urls = [f"http://127.0.0.1:{self._port}"]
        self._process = self._serve()
        wait_until(self.is_ready, "both workers answer")

    def _serve(self) -> "subprocess.Popen[bytes]":
        command = ("serve", "--sandbox", "--workers", "2", "--port", str(self._port))
        return subprocess.Popen(
            [sys.executable, "-m", "toolkit", *command, "--data-dir", str(self.data_dir)],
            env={**os.environ, **self.cloud.environment(), **make_limits()},
            stdout=self._log,
            stderr=self._log,
        )

    def list_faults(self) -> Iterable[Fault]:
        """List what can fail."""
        return (*[self._kill_worker] * 5, self._freeze_worker, self._lock_database, self._kill_all)

    def list_certain(self) -> Iterable[Container[Fault]]:
        """List of what something fails in each trial."""
        return (self._kill_worker,), (self._kill_all,)

    def _list_workers(self) -> list[int]:
        path = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        with suppress(OSError):
            return [int(pid) for pid in path.read_text().split()]
        return []

    def _signal_worker(self, number: signal.Signals) -> int:
        """Send a signal to any worker; its id."""
        wait_until(self._list_workers, "there is a worker")
        pid = self._random.choice(self._list_workers())
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        return pid

    def _kill_worker(self) -> frozenset[str]:
        pid = self._signal_worker(signal.SIGKILL)
        wait_until(lambda: pid not in self._list_workers())
        return frozenset({str(pid)})

    def _freeze_worker(self) -> frozenset[str]:
        self.begin("worker")
        pid = self._signal_worker(signal.SIGSTOP)
        # Another process may have the id by then; and one whose parent is killed meanwhile stands
        # still with the database locked, if nobody has it go on.
        process = os.pidfd_open(pid)

        def thaw() -> None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(process, signal.SIGCONT)
            os.close(process)

        self.mend_later("worker", thaw, FREEZE_S)
        return frozenset({str(pid)})

    def _lock_database(self) -> frozenset[str]:
        """Hold the database as a shell does that is left in mid-transaction."""
        self.begin("database")
        self._striking.is_instant = False
        holder = sqlite3.connect(
            self.data_dir / "state.db", timeout=60, isolation_level=None, check_same_thread=False
        )
        holder.execute("BEGIN IMMEDIATE")
        self.mend_later("database", holder.close, FREEZE_S)
        return ALL

    def _kill_all(self) -> frozenset[str]:
        self._process.kill()
        self._process.wait()
        self.supervise()
        return ALL

    def supervise(self) -> None:
        """Start what looks after the workers again, if it has ended."""
        if self._process.poll() is not None:
            self._process = self._serve()

    def is_ready(self) -> bool:
        """Tell whether there are two workers, and one answers."""
        return len(self._list_workers()) == 2 and is_answering(self.urls[0])

    def describe(self) -> str:
        """Describe what the workers last said."""
        last = Path(self._log.name).read_text().splitlines()[-20:]
        return "\n".join([f"workers {self._list_workers()}", *last])

    def is_database_intact(self) -> bool:
        """Tell whether SQLite finds nothing wrong with the database."""
        with closing(sqlite3.connect(self.data_dir / "state.db")) as connection:
            (answer,) = connection.execute("PRAGMA integrity_check").fetchone()
        return bool(answer == "ok")

    def close(self) -> None:
        """End all of it."""
        for what in list(self._mending):
            self.wait_until_mended(what)
        self._process.kill()
        self._process.wait()
        self._log.close()
