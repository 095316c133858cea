"""Two versions at once on one database of PostgreSQL, as in every rolling upgrade.

The earlier version is this code. The later version has an additional migration (`later_version`).
"""

import asyncio
import itertools
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import httpx
import psycopg
import pytest

from tests.crash.callers import Caller, Ledger, pin, record_kill
from tests.crash.processes import (
    HTTP,
    CloudProcess,
    ForkServerClient,
    Process,
    Record,
    build_command,
    is_answering,
    open_cloud,
)
from tests.crash.promise_checks import check_promises
from tests.support.later_version import LATER, make_later_version
from tests.support.ports import free_port
from tests.support.timing import PATIENCE_S, wait_until
from toolkit.store import Store
from toolkit.store.schema import HEAD_REVISION

DRAIN_S = 10.0  # docs/deploy.md: minimum time for calls under way after SIGTERM
MOST_OPEN, PAUSE_S = 8, 0.02
ENDED_PER_STEP = 4
CHAIN = 20


class RollingEngine:
    """An engine of a deployment, in a process of its own, of either version.

    Args:
        cloud: the vendors.
        folder: folder of its data directory and log.
        database: address of the database.
    """

    def __init__(self, cloud: CloudProcess, folder: Path, database: str) -> None:
        self._env = {
            **cloud.environment(),
            "TOOLKIT_DATABASE": database,
            "TOOLKIT_ARTIFACT_URL": str(folder.parent / "artifacts"),
            "TOOLKIT_LEASE_S": "60",  # engines resume only work that another engine releases
        }
        self._cloud = cloud
        self._folder = folder
        self._log = folder.with_suffix(".log")
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.process: Process | None = None

    def run(self, version: ForkServerClient, *command: str) -> Process:
        """Run a command of a version."""
        return version.start(["toolkit", *command], self._env, self._log)

    def start(self, version: ForkServerClient) -> None:
        """Start the engine."""
        _, *command = build_command(self._folder, self._port)
        self.process = self.run(version, *command)

    def is_ready(self) -> bool:
        """Return whether the engine accepts new work."""
        assert self.process is not None
        assert self.process.poll() is None, self.read_log()
        return is_answering(f"{self.url}/v1/health?ready=true")

    def drain(self, ledger: Ledger) -> None:
        """Stop the engine with SIGTERM, and record a drain that passed its deadline as a kill.

        Work that outlasts the deadline is cut off and resumed elsewhere, as after a kill. On a busy
        machine even a step of a second may outlast it.
        """
        assert self.process is not None
        began_at, began = datetime.now(UTC), time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(PATIENCE_S) == 0, self.read_log()
        if time.monotonic() - began >= DRAIN_S:
            record_kill(self._cloud, ledger, began_at)

    def read_log(self) -> str:
        """Read the output of the engine."""
        return self._log.read_text()

    def kill(self) -> None:
        """End the engine if it was started."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()


class UnreadyError(Exception):
    """The response of an engine that accepts no new work."""


class BalancedCaller(Caller):
    """A caller behind a load balancer, which sends no work to an engine that stops."""

    def _receive(self, answer: httpx.Response) -> httpx.Response:
        """Return a response, unless the engine stops."""
        if answer.status_code == 503:
            raise UnreadyError(answer.text)
        return answer


class Roll:
    """Two engines on one database, a caller for each, and a busy thread that uses both."""

    def __init__(self, engines: list[RollingEngine], random: Random) -> None:
        self.ledger = Ledger()
        self._random = random
        self._stopped = threading.Event()
        numbers = itertools.count(1)
        # The busy thread and the test have separate connections.
        self.callers, self._busy = (
            [BalancedCaller(engine.url, self.ledger, random, numbers) for engine in engines]
            for _ in range(2)
        )

    def keep_busy(self) -> None:
        """Create work and read it, at a random engine, until `stop`."""
        people = list(self.ledger.people)
        while not self._stopped.wait(PAUSE_S):
            caller = self._random.choice(self._busy)
            with suppress(httpx.TransportError, UnreadyError):
                if len(self.ledger.open) < MOST_OPEN:
                    caller.work(self._random.choice(people))
                caller.look_around()

    def wait_for_more(self) -> None:
        """Wait until further work has ended."""
        enough = self._count_ended() + ENDED_PER_STEP
        wait_until(lambda: self._count_ended() >= enough, "work goes on")

    def replace(self, engine: RollingEngine, version: ForkServerClient) -> None:
        """Replace an engine, and check that both engines return the same record of ended work."""
        engine.drain(self.ledger)
        engine.start(version)
        wait_until(engine.is_ready, "the next version is ready")
        self.wait_for_more()
        paths = self.ledger.acknowledged.keys() - self.ledger.open.keys()
        last = max(path for path in paths if path.startswith(("/v1/runs", "/v1/workflows")))
        records = [caller.look(last) for caller in self.callers]
        assert records[0] == records[1]

    def _count_ended(self) -> int:
        return len(self.ledger.acknowledged) - len(self.ledger.open)

    def stop(self) -> None:
        """End the busy thread."""
        self._stopped.set()

    def close(self) -> None:
        """Close all connections."""
        for caller in (*self.callers, *self._busy):
            caller.close()


@pytest.fixture
def cloud(fork_server: ForkServerClient) -> Iterator[CloudProcess]:
    """The vendors."""
    with open_cloud(start=fork_server.start) as opened:
        yield opened


def make_chain() -> list[Record]:
    """Build a chain of nodes of the slow vendor."""
    return [
        {
            "id": f"n{n}",
            "capability": "llm.generate",
            "input": {"objective": f"Link {n} of a chain"},
            "options": pin("google"),
            "depends_on": [f"n{n - 1}"] if n else [],
        }
        for n in range(CHAIN)
    ]


def read_versions(url: str) -> list[tuple[object, ...]]:
    """Return the revision of the tables, and the oldest revision that may use them."""
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT version_num, oldest FROM alembic_version").fetchall()


def test_rolling_upgrade_loses_and_repeats_nothing(
    postgres_url: str,
    cloud: CloudProcess,
    fork_server: ForkServerClient,
    tmp_path: Path,
    tell: Callable[[str], None],
) -> None:
    """Given busy engines, when tables and then engines are upgraded, then all promises hold.

    No acknowledged work is lost, no call is paid twice, both engines return the same records, and
    the new version completes a workflow of the old version.
    """
    engines = [RollingEngine(cloud, tmp_path / name, postgres_url) for name in ("a", "b")]
    with ExitStack() as stack:
        later = ForkServerClient(tmp_path / "later.log", make_later_version(tmp_path / "later"))
        stack.callback(later.close)
        for engine in engines:
            stack.callback(engine.kill)
            engine.start(fork_server)
        for engine in engines:
            wait_until(engine.is_ready, "both engines are ready")
        roll = Roll(engines, Random(0))
        stack.callback(roll.close)
        first, second = roll.callers
        first.sign_up("minimax")
        second.sign_up("minimax", "openai")
        busy = stack.enter_context(ThreadPoolExecutor(1)).submit(roll.keep_busy)
        stack.callback(roll.stop)
        roll.wait_for_more()

        assert engines[0].run(later, "migrate").wait(PATIENCE_S) == 0, engines[0].read_log()
        assert read_versions(postgres_url) == [(LATER, HEAD_REVISION)]
        roll.wait_for_more()

        roll.replace(engines[0], later)
        slow = {"vendor": "google", "delay_ms": 1000, "times": None}
        HTTP.post(f"{cloud.url}/_sandbox/faults", json=slow).raise_for_status()
        chain = {"name": "chain", "nodes": make_chain()}
        chain_id = second.post("/v1/workflows", chain, second.sign_up("google"))["id"]
        engines[1].drain(roll.ledger)
        workflow = first.look(f"/v1/workflows/{chain_id}")
        assert workflow["status"] == "running", "the chain was too short"
        HTTP.delete(f"{cloud.url}/_sandbox/faults").raise_for_status()
        roll.replace(engines[1], later)
        roll.stop()
        busy.result(PATIENCE_S)
        second.wait_for_all()
        assert second.look(f"/v1/workflows/{chain_id}")["status"] == "completed"
        issues = check_promises(first, cloud, roll.ledger)
        assert not issues.wrong, "\n".join(issues.wrong)
        tell(f"two versions at once: {dict(issues.counts)}")
        # This code is the earlier version, and can open the upgraded tables.
        assert asyncio.run(count_workflows(tmp_path / "c", postgres_url)) > 0
        assert "Traceback" not in "".join(engine.read_log() for engine in engines)


async def count_workflows(folder: Path, url: str) -> int:
    """Open the database with this code, and count the workflows."""
    store = await Store.open(folder, database=url)
    try:
        return len(await store.find_rows("workflows"))
    finally:
        await store.close()
