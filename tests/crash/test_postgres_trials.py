"""Three engines on one database of PostgreSQL, while engines, the database and the network fail.

`TOOLKIT_CRASH_FAULTS` is how often something fails, `TOOLKIT_CRASH_SEED` repeats what a failure has
printed (the work and the faults; what the engines are doing at that instant is the machine's).
"""

import itertools
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import httpx
import pytest

from tests._postgres import PostgresCluster, start_cluster
from tests.crash.callers import Caller, Ledger, record_kill
from tests.crash.options import get_option
from tests.crash.processes import (
    CloudProcess,
    ForkServerClient,
    ServerProcess,
    open_cloud,
)
from tests.crash.promise_checks import PromiseIssues, check_promises
from tests.support.network_link import NetworkLink
from tests.support.timing import wait_until

ENGINES = 3
FAULTS = int(get_option("TOOLKIT_CRASH_FAULTS") or 6)
BETWEEN_S = 1.5
MOST_OPEN = 12
LEASE_S = "2"


class Refused(Exception):  # noqa: N818 - names what happened
    """An engine that could not reach its database, and said so."""


class PatientCaller(Caller):
    """A caller to whom an engine may say that it cannot work just now."""

    def _receive(self, answer: httpx.Response) -> httpx.Response:
        """Take an answer, unless it is that the database is away."""
        if answer.status_code == 503:
            assert answer.json()["error"]["code"] == "UNAVAILABLE", answer.text
            raise Refused(answer.text)
        return answer


class Deployment:
    """Engines on one database, each with a network of its own to it, and one caller for each."""

    def __init__(
        self, cluster: PostgresCluster, cloud: CloudProcess, folder: Path, random: Random
    ) -> None:
        self.cluster = cluster
        self.cloud = cloud
        self.ledger = Ledger()
        self._random = random
        self._url = cluster.create_database()
        self._folder = folder
        self._links = [NetworkLink(cluster.port) for _ in range(ENGINES)]
        self._forks = [ForkServerClient(cloud, folder / f"{n}.log") for n in range(ENGINES)]
        self._healing: list[threading.Thread] = []
        numbers = itertools.count(1)
        self.servers = [self._serve(n) for n in range(ENGINES)]
        for server in self.servers:
            assert server.wait_until_ready()
        self.callers = [
            PatientCaller(server.url, self.ledger, random, numbers) for server in self.servers
        ]

    def _serve(self, number: int) -> ServerProcess:
        url = self._url.replace(f":{self.cluster.port}/", f":{self._links[number].port}/")
        env = {
            "TOOLKIT_DATABASE": url,
            "TOOLKIT_LEASE_S": LEASE_S,
            "TOOLKIT_ARTIFACT_URL": str(self._folder / "artifacts"),
        }
        return self._forks[number].serve(self._folder / f"data{number}", **env)

    def fail(self) -> str:
        """Have something fail at once, and mend it a moment later; return what it was."""
        number = self._random.randrange(ENGINES)
        fault = self._random.choice(
            [self._kill_engine] * 5
            + [self._restart_database, self._kill_database, self._cut_network, self._hold_network]
        )
        at = datetime.now(UTC)
        fault(number)
        record_kill(self.cloud, self.ledger, at)
        return fault.__name__.lstrip("_")

    def _kill_engine(self, number: int) -> None:
        self.servers[number].kill()
        wait_until(lambda: self.servers[number].poll_exit_code() is not None)
        self.supervise()

    def supervise(self) -> None:
        """Start each engine again that has ended, as whatever looks after services does.

        One that cannot reach the database as it starts says so, and ends.
        """
        for number, server in enumerate(self.servers):
            if server.poll_exit_code() is not None:
                self.servers[number] = self._serve(number)

    def _restart_database(self, _number: int) -> None:
        self.cluster.stop(signal.SIGINT)
        self._mend(self.cluster.start)

    def _kill_database(self, _number: int) -> None:
        self.cluster.stop(signal.SIGQUIT)
        self._mend(self.cluster.start)

    def _cut_network(self, number: int) -> None:
        self._links[number].cut()
        self._mend(self._links[number].heal)

    def _hold_network(self, number: int) -> None:
        self._links[number].hold()
        self._mend(self._links[number].heal)

    def _mend(self, mend: Callable[[], None]) -> None:
        mending = threading.Timer(self._random.uniform(0.2, 1.5), mend)
        mending.start()
        self._healing.append(mending)

    def wait_until_healed(self) -> None:
        """Wait until all that failed is mended."""
        for healing in self._healing:
            healing.join()

        def are_ready() -> bool:
            self.supervise()
            return all(server.wait_until_ready() for server in self.servers)

        wait_until(are_ready, "all engines answer")

    def close(self) -> None:
        """End all of it."""
        for caller in self.callers:
            caller.close()
        for server in self.servers:
            server.kill()
        for fork in self._forks:
            fork.close()
        for proxy in self._links:
            proxy.close()


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    """Three engines."""
    seed = int(get_option("TOOLKIT_CRASH_SEED") or time.time_ns() % 1_000_000)
    print(f"TOOLKIT_CRASH_SEED={seed}")
    with ExitStack() as stack:
        cluster = start_cluster()
        stack.callback(cluster.remove)
        cloud = stack.enter_context(open_cloud())
        made = Deployment(cluster, cloud, tmp_path, Random(seed))
        stack.callback(made.close)
        yield made


def keep_busy(deployment: Deployment, random: Random, until: float) -> None:
    """Ask for work and look at it, at any engine that answers."""
    while time.monotonic() < until:
        caller = random.choice(deployment.callers)
        try:
            if len(deployment.ledger.open) < MOST_OPEN:
                caller.work(random.choice(deployment.ledger.people))
            caller.look_around()
        except (httpx.TransportError, Refused):
            deployment.supervise()
            time.sleep(0.02)


def test_faults_lose_nothing_and_repeat_only_what_was_in_flight(
    deployment: Deployment, tell: Callable[[str], None]
) -> None:
    """Given busy engines, when anything fails at any time, then all that was promised holds.

    What was acknowledged is there, what was shown as completed stays and is not called again, a
    provider is called again only for what was in flight, money is equal to the last digit, and
    everything comes to its end.
    """
    random, ledger = Random(0), deployment.ledger
    deployment.callers[0].sign_up("minimax")
    deployment.callers[1].sign_up("minimax", "openai")
    faults = []
    for _ in range(FAULTS):
        keep_busy(deployment, random, time.monotonic() + BETWEEN_S)
        faults.append(deployment.fail())
    keep_busy(deployment, random, time.monotonic() + BETWEEN_S)
    deployment.wait_until_healed()
    caller = deployment.callers[0]
    caller.wait_for_all()
    found = check_promises(caller, deployment.cloud, ledger)
    _check_money(caller, ledger, found)
    tell(f"{', '.join(sorted(faults))}: {dict(found.counts)}, wrong: {len(found.wrong)}")
    assert not found.wrong, "\n".join(found.wrong)
    assert found.counts["billed"] > FAULTS, "too little was going on to tell anything"


def _check_money(caller: Caller, ledger: Ledger, found: PromiseIssues) -> None:
    """Each account's usage is the sum of what its jobs say that they spent."""
    for person in ledger.people:
        jobs = caller.list_all("/v1/jobs", person)
        spent = round(sum(job["cost_incurred_usd"] for job in jobs), 9)
        lines = caller.get("/v1/usage", person).json()["data"]["items"]
        told = round(sum(line["cost_usd"] for line in lines), 9)
        if spent != told:
            found.wrong.append(f"jobs spent ${spent:.9f}, usage says ${told:.9f}")
