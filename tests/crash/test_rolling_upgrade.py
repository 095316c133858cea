"""Two versions at once on one database of PostgreSQL, which every rolling upgrade comes to.

The earlier one is the code at hand. The later one has one migration more (`later_version`).
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
    open_cloud,
)
from tests.crash.promise_checks import check_promises
from tests.support.later_version import LATER, make_later_version
from tests.support.ports import free_port
from tests.support.timing import PATIENCE_S, wait_until
from toolkit.store import Store
from toolkit.store.schema import HEAD_REVISION

DRAIN_S = 10.0  # docs/deploy.md: calls under way have at least ten seconds after SIGTERM
MOST_OPEN, PAUSE_S = 8, 0.02
ENDED_PER_STEP = 4
CHAIN = 20


class RollingEngine:
    """One engine of a deployment, in a process of its own, of whichever version starts it.

    Args:
        cloud: the vendors.
        folder: for its data directory and log.
        database: the address of the database.
    """

    def __init__(self, cloud: CloudProcess, folder: Path, database: str) -> None:
        self._env = {
            **cloud.environment(),
            "TOOLKIT_DATABASE": database,
            "TOOLKIT_ARTIFACT_URL": str(folder.parent / "artifacts"),
            "TOOLKIT_LEASE_S": "60",  # nothing is taken up here but what is released
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
        """Start it."""
        _, *command = build_command(self._folder, self._port)
        self.process = self.run(version, *command)

    def is_ready(self) -> bool:
        """Tell whether it takes new work."""
        assert self.process is not None
        assert self.process.poll() is None, self.read_log()
        try:
            answer = HTTP.get(f"{self.url}/v1/health?ready=true")
        except httpx.TransportError:
            return False
        return answer.status_code == 200

    def drain(self, ledger: Ledger) -> None:
        """Stop the engine with SIGTERM, and record a drain that passed its deadline as a kill.

        Work that outlasts the deadline is cut off and resumed elsewhere, as after a kill; on a busy
        machine even a step of a second may outlast it. Work within the deadline is not excused.
        """
        assert self.process is not None
        began_at, began = datetime.now(UTC), time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(PATIENCE_S) == 0, self.read_log()
        if time.monotonic() - began >= DRAIN_S:
            record_kill(self._cloud, ledger, began_at)

    def read_log(self) -> str:
        """Read what it has said."""
        return self._log.read_text()

    def kill(self) -> None:
        """End it, if it is there."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()


class Unready(Exception):  # noqa: N818 - names what happened
    """An engine that takes no new work, and says so."""


class BalancedCaller(Caller):
    """A caller behind a balancer, which asks another engine where one takes no work."""

    def _receive(self, answer: httpx.Response) -> httpx.Response:
        """Take an answer, unless it is that the engine stops."""
        if answer.status_code == 503:
            raise Unready(answer.text)
        return answer


class Roll:
    """Two engines on one database, one caller for each, and a busy thread that uses both."""

    def __init__(self, engines: list[RollingEngine], random: Random) -> None:
        self.ledger = Ledger()
        self._random = random
        self._stopped = threading.Event()
        numbers = itertools.count(1)
        # The busy thread has connections of its own, and so has the test.
        self.callers, self._busy = (
            [BalancedCaller(each.url, self.ledger, random, numbers) for each in engines]
            for _ in range(2)
        )

    def keep_busy(self) -> None:
        """Ask for work and look at it, at whichever engine answers, until `stop`."""
        people = list(self.ledger.people)
        while not self._stopped.wait(PAUSE_S):
            caller = self._random.choice(self._busy)
            with suppress(httpx.TransportError, Unready):
                if len(self.ledger.open) < MOST_OPEN:
                    caller.work(self._random.choice(people))
                caller.look_around()

    def wait_for_more(self) -> None:
        """Wait until some more of what was asked for has ended."""
        enough = self._count_ended() + ENDED_PER_STEP
        wait_until(lambda: self._count_ended() >= enough, "work goes on")

    def replace(self, engine: RollingEngine, version: ForkServerClient) -> None:
        """Replace an engine, which may have ended; then both show the same of what has ended."""
        engine.drain(self.ledger)
        engine.start(version)
        wait_until(engine.is_ready, "the next version is ready")
        self.wait_for_more()
        ended = self.ledger.acknowledged.keys() - self.ledger.open.keys()
        path = max(each for each in ended if each.startswith(("/v1/runs", "/v1/workflows")))
        shown = [caller.look(path) for caller in self.callers]
        assert shown[0] == shown[1]

    def _count_ended(self) -> int:
        return len(self.ledger.acknowledged) - len(self.ledger.open)

    def stop(self) -> None:
        """Have the busy thread end."""
        self._stopped.set()

    def close(self) -> None:
        """Let go of all connections."""
        for caller in (*self.callers, *self._busy):
            caller.close()


@pytest.fixture
def cloud(fork_server: ForkServerClient) -> Iterator[CloudProcess]:
    """The vendors; one of them slow until its faults are forgotten."""
    with open_cloud(start=fork_server.start) as opened:
        yield opened


def make_chain() -> list[Record]:
    """Nodes, one after the other, of the slow vendor."""
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
    """Return the revision of the tables, and the oldest one that may use them."""
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT version_num, oldest FROM alembic_version").fetchall()


def test_an_engine_after_the_other_is_replaced_by_the_next_version(
    postgres_url: str,
    cloud: CloudProcess,
    fork_server: ForkServerClient,
    tmp_path: Path,
    tell: Callable[[str], None],
) -> None:
    """Given busy engines, when tables and then engines are upgraded, then nobody notices.

    Nothing that was acknowledged is lost, nothing is paid twice, each engine shows what the other
    has done, and a workflow that one version began is ended by the next.
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
        begun = second.post("/v1/workflows", chain, second.sign_up("google"))["id"]
        engines[1].drain(roll.ledger)
        left = first.look(f"/v1/workflows/{begun}")
        assert left["status"] == "running", "the chain was too short"
        HTTP.delete(f"{cloud.url}/_sandbox/faults").raise_for_status()
        roll.replace(engines[1], later)
        roll.stop()
        busy.result(PATIENCE_S)
        second.wait_for_all()
        assert second.look(f"/v1/workflows/{begun}")["status"] == "completed"
        found = check_promises(first, cloud, roll.ledger)
        assert not found.wrong, "\n".join(found.wrong)
        tell(f"two versions at once: {dict(found.counts)}")
        # The code at hand is the version before, and is let in.
        assert asyncio.run(count_workflows(tmp_path / "c", postgres_url)) > 0
        assert "Traceback" not in "".join(engine.read_log() for engine in engines)


async def count_workflows(folder: Path, url: str) -> int:
    """Open the database by the code at hand, and count what is there."""
    store = await Store.open(folder, database=url)
    try:
        return len(await store.find_rows("workflows"))
    finally:
        await store.close()
