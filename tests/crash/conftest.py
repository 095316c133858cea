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

# Where nothing tells that a process has died, its work is taken up once its lease has ended.
LEASE_S = "2"


@dataclass
class CrashBench:
    """Runs the same work over and over, each time on a copy of the same directory.

    Attributes:
        person: an account in that directory, with minimax connected.
    """

    cloud: CloudProcess
    folder: Path
    numbers: Iterator[int]
    person: Person
    databases: DatabasePool | None
    fork_server: ForkServerClient

    def serve(self, data_dir: Path, **env: str) -> ServerProcess:
        """Start a server on a directory; it does not answer yet."""
        url = self.find_url(data_dir)
        return self.fork_server.serve(self.cloud, data_dir, url, TOOLKIT_LEASE_S=LEASE_S, **env)

    def find_url(self, data_dir: Path) -> str | None:
        """Find the address of a directory's database; none where it is a file there."""
        return None if self.databases is None else self.databases.find_url(data_dir)

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
            wait_until(caller.look_at_all, "the work ends")
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
        server = self.serve(data_dir)
        assert server.wait_until_ready()
        caller = Caller(server.url, ledger, Random(0), self.numbers)
        caller.wait_for_all()
        found = check_promises(caller, self.cloud, ledger)
        caller.close()
        server.kill()
        server.wait()
        if not is_database_intact(data_dir, self.find_url(data_dir)):
            found.wrong.append("the database is damaged")
        if self.databases is not None:
            self.databases.drop(data_dir)
        return found


@pytest.fixture(scope="package")
def fork_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServerClient]:
    """Starts servers and clouds without their imports."""
    client = ForkServerClient(tmp_path_factory.mktemp("forked") / "server.log")
    yield client
    client.close()


@pytest.fixture(scope="package")
def bench(
    tmp_path_factory: pytest.TempPathFactory,
    fork_server: ForkServerClient,
    database_pool: DatabasePool | None,
) -> Iterator[CrashBench]:
    """a cloud, a fork server and a directory with an account that has connected a vendor."""
    folder = tmp_path_factory.mktemp("crash")
    numbers = itertools.count(1)
    with open_cloud(start=fork_server.start) as cloud:
        made = CrashBench(cloud, folder, numbers, Person({}), database_pool, fork_server)
        server = made.serve(folder / "template")
        assert server.wait_until_ready()
        caller = Caller(server.url, Ledger(), Random(0), numbers)
        made.person = caller.sign_up("minimax")
        caller.close()
        server.kill(signal.SIGTERM)
        server.wait()
        yield made
