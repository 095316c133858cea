"""Fixtures of the enumerating tests: a cloud, a fork server, and a directory to start from."""

import itertools
import shutil
import signal
from collections.abc import Iterator
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


@dataclass
class CrashBench:
    """Runs the same work over and over, each time on a copy of the same directory.

    Attributes:
        person: an account in that directory, with minimax connected.
    """

    cloud: CloudProcess
    fork_server: ForkServerClient
    folder: Path
    numbers: Iterator[int]
    person: Person
    databases: DatabasePool | None

    def copy_directory(self, name: str) -> Path:
        """A fresh copy of the directory."""
        made = Path(shutil.copytree(self.folder / "template", self.folder / name))
        if self.databases is not None:
            self.databases.copy(self.folder / "template", made)
        return made

    def ledger(self) -> Ledger:
        """An empty ledger from here on."""
        return Ledger(people=[self.person], first_call=len(self.cloud.calls()))

    def work(self, server: ServerProcess, ledger: Ledger) -> bool:
        """Have a workflow and a run done, looking all along; whether the server outlived them."""
        if not server.wait_until_ready():
            return False
        caller = Caller(server.url, ledger, Random(0), self.numbers)
        try:
            caller.create_fixed_workflow(self.person)
            caller.run(self.person)
            while ledger.open:
                for path in list(ledger.open):
                    caller.look(path)
            # A root is closed a moment after the work has ended.
            wait_until(lambda: server.poll_exit_code() is not None or server.has_closed_all())
            caller.get("/v1/health", self.person)
        except httpx.TransportError:
            return False
        finally:
            caller.close()
        return True

    def wait_until_resumed(self, server: ServerProcess, ledger: Ledger) -> bool:
        """Wait until a server has ended what it took up; whether it outlived that."""
        if not server.wait_until_ready():
            return False
        caller = Caller(server.url, ledger, Random(0), self.numbers)
        try:
            caller.wait_for_all()
        except httpx.TransportError:
            return False
        finally:
            caller.close()
        return True

    def record_death(self, ledger: Ledger) -> None:
        """Write down that a server has just been found dead."""
        record_kill(self.cloud, ledger, datetime.now(UTC))

    def recover(self, data_dir: Path, ledger: Ledger) -> PromiseIssues:
        """Start a server on what another left behind, and look at everything once it is done."""
        server = self.fork_server.serve(data_dir)
        assert server.wait_until_ready()
        caller = Caller(server.url, ledger, Random(0), self.numbers)
        caller.wait_for_all()
        found = check_promises(caller, self.cloud, ledger)
        caller.close()
        server.kill()
        server.wait()
        url = None if self.databases is None else self.databases.find_url(data_dir)
        if not is_database_intact(data_dir, url):
            found.wrong.append("the database is damaged")
        if self.databases is not None:
            self.databases.drop(data_dir)
        return found


@pytest.fixture(scope="package")
def bench(
    tmp_path_factory: pytest.TempPathFactory, database_pool: DatabasePool | None
) -> Iterator[CrashBench]:
    """a cloud, a fork server and a directory with an account that has connected a vendor."""
    folder = tmp_path_factory.mktemp("crash")
    numbers = itertools.count(1)
    with open_cloud() as cloud:
        find_url = {} if database_pool is None else {"find_url": database_pool.find_url}
        fork_server = ForkServerClient(cloud, folder / "server.log", **find_url)
        try:
            server = fork_server.serve(folder / "template")
            assert server.wait_until_ready()
            caller = Caller(server.url, Ledger(), Random(0), numbers)
            person = caller.sign_up("minimax")
            caller.close()
            server.kill(signal.SIGTERM)
            server.wait()
            yield CrashBench(cloud, fork_server, folder, numbers, person, database_pool)
        finally:
            fork_server.close()
