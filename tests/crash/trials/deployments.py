"""Deployments of several engines that share a database, and their faults.

Each fault strikes at once, and a timer repairs it a moment later, while work continues.
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
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from tests._postgres import PostgresCluster
from tests.crash.callers import Ledger, record_kill
from tests.crash.processes import CloudProcess, ForkServerClient, ServerProcess, is_answering
from tests.crash.trials.strikes import Strike
from tests.crash.trials.vendor_ledger import ENGINE_PREFIX
from tests.support.network_link import NetworkLink
from tests.support.ports import free_port
from tests.support.timing import wait_until

LEASE_S = 2.0
# Longer than a lease without renewals.
FREEZE_S = LEASE_S + 1.0
DELAY_S = 0.2
MAX_CALLS = 4
REQUESTS_PER_MINUTE = 240
MAX_QUEUED = 24
# A fault strikes at once, and returns the engines that it hit; ALL for a shared part.
Fault = Callable[[], frozenset[str]]
ALL: frozenset[str] = frozenset()


def make_limits() -> dict[str, str]:
    """Return low limits of all engines together, which the trial reaches."""
    return {
        "TOOLKIT_LEASE_S": str(LEASE_S),
        "TOOLKIT_MAX_QUEUED": str(MAX_QUEUED),
        "TOOLKIT_MAX_CONCURRENT_CALLS": str(MAX_CALLS),
        "TOOLKIT_VENDORS__OPENAI__REQUESTS_PER_MINUTE": str(REQUESTS_PER_MINUTE),
    }


class TrialDeployment(ABC):
    """Several engines on a shared store, and the vendor cloud, which never fails.

    Attributes:
        urls: addresses of the engines.
        strikes: faults so far.

    Args:
        cloud: the vendor cloud.
        random: draws the faults and their durations.
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
        """List the possible faults, with likely faults several times."""

    @abstractmethod
    def list_certain(self) -> Iterable[Container[Fault]]:
        """List the groups of faults that each have a fault in every trial."""

    def draw_faults(self, count: int) -> list[Fault]:
        """Draw the faults of a trial, in order."""
        drawn: list[Fault] = []
        while len(drawn) < count:
            deck = list(self.list_faults())
            self._random.shuffle(deck)
            for choices in self.list_certain():
                first = next(n for n, fault in enumerate(deck) if fault in choices)
                deck.insert(0, deck.pop(first))
            drawn += deck
        drawn = drawn[:count]
        self._random.shuffle(drawn)
        return drawn

    @abstractmethod
    def supervise(self) -> None:
        """Restart each engine that has ended, like a service manager."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Return whether all engines answer."""

    @abstractmethod
    def describe(self) -> str:
        """Describe the engines, for the message of a failure."""

    @abstractmethod
    def close(self) -> None:
        """End the deployment."""

    def fail(self, fault: Fault) -> None:
        """Cause a fault, which is repaired a moment later."""
        strike = self._striking = Strike(fault.__name__.lstrip("_"), time.monotonic())
        self.strikes.append(strike)
        strike.engines = fault()
        strike.over = time.monotonic()
        if not strike.lasts:
            strike.mended = strike.over
        at = datetime.now(UTC) - timedelta(seconds=strike.over - strike.at)
        record_kill(self.cloud, self.ledger, at, max(0.0, strike.mended - strike.over))

    def begin(self, part: str, *, is_instant: bool = True) -> None:
        """Begin a fault of a part, after an earlier fault of it is repaired."""
        if part in self._mending:
            self._mending.pop(part).join()
        self._striking.at = time.monotonic()
        self._striking.is_instant = is_instant

    def mend_later(self, part: str, mend: Callable[[], object], after_s: float = 0.0) -> None:
        """Repair a part after some seconds, or after a random moment."""
        strike = self._striking
        strike.lasts = True
        after_s = after_s or self._random.uniform(0.2, 1.5)
        strike.mended = time.monotonic() + after_s

        def mend_it() -> None:
            mend()
            strike.mended = time.monotonic()

        timer = threading.Timer(after_s, mend_it)
        self._mending[part] = timer
        timer.start()

    def wait_until_mended(self) -> None:
        """Wait until all faults are repaired."""
        while self._mending:
            self._mending.popitem()[1].join()

    def wait_until_healed(self) -> None:
        """Wait until all faults are repaired, and all engines answer."""
        self.wait_until_mended()

        def is_healed() -> bool:
            self.supervise()
            return self.is_ready()

        try:
            wait_until(is_healed, "all engines answer")
        except AssertionError:
            print(self.describe())
            raise


def name_engine(number: int) -> frozenset[str]:
    """Return the name of an engine in the vendor's ledger."""
    return frozenset({f"{ENGINE_PREFIX}{number}"})


def is_ready_at(url: str) -> bool:
    """Return whether an engine accepts new work."""
    return is_answering(f"{url}/v1/health?ready=true", timeout_s=2.0)


class PostgresDeployment(TrialDeployment):
    """Three engines on one database of PostgreSQL, each with its own network to the database.

    Args:
        cluster: server of the database.
        cloud: the vendor cloud.
        folder: folder of the artifacts.
        random: draws the faults.
        fork_server: starts the engines.
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
        (name,) = name_engine(number)
        settings = {
            **make_limits(),
            **self.cloud.environment(name),
            "TOOLKIT_ARTIFACT_URL": str(self._folder / "artifacts"),
        }
        data_dir, port = self._folder / f"data{number}", self._ports[number]
        return self._fork_server.serve(self.cloud, data_dir, url, port=port, **settings)

    def list_faults(self) -> Iterable[Fault]:
        """List the possible faults."""
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
        """List the groups of faults that each have a fault in every trial."""
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
        """Restart each engine that has ended, such as an engine that started without database."""
        for number, engine in enumerate(self._engines):
            if engine.poll_exit_code() is not None:
                self._engines[number] = self._serve(number)

    def _restart_database(self) -> frozenset[str]:
        return self._stop_database(signal.SIGINT)

    def _kill_database(self) -> frozenset[str]:
        return self._stop_database(signal.SIGQUIT)

    def _stop_database(self, how: signal.Signals) -> frozenset[str]:
        self.begin("database", is_instant=False)
        self._cluster.stop(how)
        self.mend_later("database", self._cluster.start)
        return ALL

    def _freeze_database(self) -> frozenset[str]:
        self.begin("database", is_instant=False)
        frozen = ExitStack()
        frozen.enter_context(self._cluster.hang())
        self.mend_later("database", frozen.close, FREEZE_S)
        return ALL

    def _disturb_link(self, disturb: Callable[[NetworkLink], None]) -> frozenset[str]:
        number = self._draw_engine()
        self.begin(f"link {number}", is_instant=False)
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
        """Return whether all engines answer."""
        return all(is_ready_at(url) for url in self.urls)

    def describe(self) -> str:
        """Describe the last log lines of the engines, and the state of their networks."""
        last = self._fork_server.log.read_text().splitlines()[-20:]
        return "\n".join([*(f"{link.describe()}" for link in self._links), *last])

    def close(self) -> None:
        """End the engines and their networks."""
        self.wait_until_mended()
        for engine in self._engines:
            engine.kill()
        for link in self._links:
            link.close()


class WorkersDeployment(TrialDeployment):
    """Two workers of one `toolkit serve`, on one port and one data directory.

    Args:
        cloud: the vendor cloud.
        folder: folder of the data directory and the log.
        random: draws the faults.

    Attributes:
        data_dir: data directory.
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
        """List the possible faults."""
        return (*[self._kill_worker] * 5, self._freeze_worker, self._lock_database, self._kill_all)

    def list_certain(self) -> Iterable[Container[Fault]]:
        """List the groups of faults that each have a fault in every trial."""
        return (self._kill_worker,), (self._kill_all,)

    def _list_workers(self) -> list[int]:
        path = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        with suppress(OSError):
            return [int(pid) for pid in path.read_text().split()]
        return []

    def _signal_worker(self, number: signal.Signals) -> int:
        """Send a signal to a random worker; return its process id."""
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
        # By then another process may have the id. A worker whose parent is killed meanwhile would
        # stay frozen with the database locked.
        process = os.pidfd_open(pid)

        def thaw() -> None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(process, signal.SIGCONT)
            os.close(process)

        self.mend_later("worker", thaw, FREEZE_S)
        return frozenset({str(pid)})

    def _lock_database(self) -> frozenset[str]:
        """Lock the database like a shell that is left in a transaction."""
        self.begin("database", is_instant=False)
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
        """Restart the parent of the workers if it has ended."""
        if self._process.poll() is not None:
            self._process = self._serve()

    def is_ready(self) -> bool:
        """Return whether there are two workers and the port answers."""
        return len(self._list_workers()) == 2 and is_ready_at(self.urls[0])

    def describe(self) -> str:
        """Describe the workers and their last log lines."""
        last = Path(self._log.name).read_text().splitlines()[-20:]
        return "\n".join([f"workers {self._list_workers()}", *last])

    def close(self) -> None:
        """End the workers."""
        self.wait_until_mended()
        self._process.kill()
        self._process.wait()
        self._log.close()
