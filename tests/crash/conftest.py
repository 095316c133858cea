"""Fixtures of the crash tests: a cloud, a fork server, and a template of a data directory."""

import itertools
import shutil
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import httpx
import pytest

from tests.crash.callers import Caller, Ledger, Person, record_kill
from tests.crash.processes import CloudProcess, ForkServerClient, ServerProcess, open_cloud
from tests.crash.promise_checks import PromiseIssues, check_promises, is_database_intact
from tests.support.database_pool import DatabasePool
from tests.support.timing import wait_until

# If nothing reports the death of a process, its work is resumed after its lease has expired.
LEASE_S = "2"


@dataclass
class CrashBench:
    """Runs the same work repeatedly, each time on a copy of a template directory.

    Attributes:
        person: account in the template, with minimax connected.
    """

    cloud: CloudProcess
    folder: Path
    numbers: Iterator[int]
    person: Person
    databases: DatabasePool | None
    fork_server: ForkServerClient

    def serve(self, data_dir: Path, **env: str) -> ServerProcess:
        """Start a server on a directory, without waiting until it answers."""
        url = self.find_url(data_dir)
        return self.fork_server.serve(self.cloud, data_dir, url, TOOLKIT_LEASE_S=LEASE_S, **env)

    def find_url(self, data_dir: Path) -> str | None:
        """Return the address of a directory's database, or None for a file."""
        return None if self.databases is None else self.databases.find_url(data_dir)

    def copy_directory(self, name: str) -> Path:
        """Copy the template."""
        copy = Path(shutil.copytree(self.folder / "template", self.folder / name))
        if self.databases is not None:
            self.databases.copy(self.folder / "template", copy)
        return copy

    def ledger(self) -> Ledger:
        """Return an empty ledger that begins now."""
        return Ledger(people=[self.person], first_call=len(self.cloud.calls()))

    @contextmanager
    def open_caller(self, server: ServerProcess, ledger: Ledger) -> Iterator[Caller]:
        """Wait until a server answers, and call it."""
        if not server.wait_until_ready():
            raise httpx.ConnectError("the server ended before it answered")
        with closing(Caller(server.url, ledger, Random(0), self.numbers)) as caller:
            yield caller

    def work(self, server: ServerProcess, ledger: Ledger) -> bool:
        """Complete a workflow and a run; return whether the server outlived them."""
        with suppress(httpx.TransportError), self.open_caller(server, ledger) as caller:
            caller.create_fixed_workflow(self.person)
            caller.run(self.person)
            wait_until(caller.look_at_all, "the work ends")
            # A root is closed a moment after the work has ended.
            wait_until(lambda: server.poll_exit_code() is not None or server.has_closed_all())
            caller.get("/v1/health", self.person)
            return True
        return False

    def wait_until_resumed(self, server: ServerProcess, ledger: Ledger) -> bool:
        """Wait until all resumed work has ended; return whether the server outlived it."""
        with suppress(httpx.TransportError), self.open_caller(server, ledger) as caller:
            caller.wait_for_all()
            return True
        return False

    def record_death(self, ledger: Ledger) -> None:
        """Record that a server has just been found dead."""
        record_kill(self.cloud, ledger, datetime.now(UTC))

    def recover(self, data_dir: Path, ledger: Ledger) -> PromiseIssues:
        """Start a server on the directory of a dead server, and check all promises at the end."""
        server = self.serve(data_dir)
        with self.open_caller(server, ledger) as caller:
            caller.wait_for_all()
            issues = check_promises(caller, self.cloud, ledger)
        server.kill()
        server.wait()
        if not is_database_intact(data_dir, self.find_url(data_dir)):
            issues.wrong.append("the database is damaged")
        if self.databases is not None:
            self.databases.drop(data_dir)
        return issues


@pytest.fixture(scope="package")
def fork_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServerClient]:
    """Starts servers and clouds by forks, so that they import nothing."""
    client = ForkServerClient(tmp_path_factory.mktemp("forked") / "server.log")
    yield client
    client.close()


@pytest.fixture(scope="package")
def bench(
    tmp_path_factory: pytest.TempPathFactory,
    fork_server: ForkServerClient,
    database_pool: DatabasePool | None,
) -> Iterator[CrashBench]:
    """A cloud, a fork server and a directory with an account that has connected a vendor."""
    folder = tmp_path_factory.mktemp("crash")
    numbers = itertools.count(1)
    with open_cloud(start=fork_server.start) as cloud:
        bench = CrashBench(cloud, folder, numbers, Person({}), database_pool, fork_server)
        server = bench.serve(folder / "template")
        with bench.open_caller(server, Ledger()) as caller:
            bench.person = caller.sign_up("minimax")
        server.kill(signal.SIGTERM)
        server.wait()
        yield bench
