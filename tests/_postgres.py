"""A PostgreSQL cluster for the tests: its own folder, port and user, removed afterwards.

A test requests `postgres_url`, the address of an empty database of its own, as
`postgresql://toolkit:PASSWORD@127.0.0.1:PORT/test_N`: it may change it freely, and create more
databases by `postgres.create_database()`. `postgres` is the cluster itself, which all tests of a
worker share. A test that kills or restarts PostgreSQL requests `own_postgres`.

The cluster's locale is not "C", as on most installations, so that errors that depend on the order
of texts are visible. Tests are skipped if PostgreSQL is not installed.
"""

import itertools
import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

import psycopg
import pytest

from tests.support.ports import free_port
from tests.support.timing import PATIENCE_S, wait_until

DEBIANS: Final = Path("/usr/lib/postgresql")
USER: Final = "toolkit"
# Programs that root must not run are run by the first of these users that exists.
UNPRIVILEGED: Final = ("postgres", "nobody")


def find_postgres() -> Path | None:
    """Return the folder of PostgreSQL's programs, the newest if there are several."""
    program = shutil.which("postgres")
    if program is not None:
        return Path(program).resolve().parent
    installed = sorted(DEBIANS.glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    return installed[-1].parent if installed else None


class PostgresCluster:
    """A cluster of databases: initialized at once, and served on loopback from `start` to `stop`.

    Args:
        programs: folder of PostgreSQL's programs.
        synced: True if a commit waits for the disk, as outside of tests.
        parent: folder for the cluster's folder; the folder of temporary files by default.
        options: further settings of the server.

    Attributes:
        port: port of the server, also after a restart.
        password: password of its superuser.
    """

    def __init__(
        self, programs: Path, *, synced: bool = False, parent: Path | None = None, **options: str
    ) -> None:
        self._programs = programs
        self._owner = _find_unprivileged() if os.name == "posix" and os.geteuid() == 0 else None
        self._folder = Path(mkdtemp(prefix="toolkit-postgres-", dir=parent))
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)
        self.password = secrets.token_hex(12)
        self.port = free_port()
        flags = {"fsync": "off", "full_page_writes": "off"} if not synced else {}
        self._options = {
            **flags,
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            "max_connections": "100",
            "shared_buffers": "32MB",
            "password_encryption": "scram-sha-256",
            "logging_collector": "off",
            **options,
        }
        self._make()

    def _make(self) -> None:
        password = self._folder / "password"
        password.write_text(self.password)
        if self._owner is not None:
            for path in (self._folder, password):
                shutil.chown(path, self._owner)
        self._run(
            "initdb", "--pgdata", str(self._data), "--username", USER, "--pwfile", str(password),
            "--auth", "scram-sha-256", "--encoding", "UTF8", "--no-sync", "--locale", "C.UTF-8",
            "--locale-provider", "icu", "--icu-locale", "en-US",
        )  # fmt: skip

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _run(self, program: str, *arguments: str) -> None:
        """Run a PostgreSQL program to its end."""
        process = subprocess.run(
            [str(self._programs / program), *arguments],
            capture_output=True, check=False, cwd=self._folder, user=self._owner, text=True,
        )  # fmt: skip
        assert process.returncode == 0, process.stderr

    def start(self) -> None:
        """Start the server, and wait until it accepts connections."""
        set_options = [f"--{name}={value}" for name, value in self._options.items()]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._programs / "postgres"), "-D", str(self._data), *set_options],
                stdout=log, stderr=log, cwd=self._folder, user=self._owner, start_new_session=True,
            )  # fmt: skip
        wait_until(self._is_serving)

    def _is_serving(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "log").read_text()
        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True

    @property
    def has_ended(self) -> bool:
        """True if the server has ended by itself, as it does if it cannot recover from a crash."""
        return self._process is not None and self._process.poll() is not None

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server.

        Args:
            how: SIGINT ends its sessions; SIGQUIT ends everything at once, as a crash does, so that
                the server recovers at its next start.
        """
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(PATIENCE_S)
            self._process = None

    @contextmanager
    def hang(self) -> Iterator[None]:
        """Stop the server and its sessions from doing anything: it neither answers nor refuses."""
        assert self._process is not None
        with self.connect() as connection:
            listed = connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE backend_type = "
                "'client backend' AND pid <> pg_backend_pid()"
            ).fetchall()
        pids = [self._process.pid, *(int(str(pid)) for (pid,) in listed)]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def remove(self) -> None:
        """Stop the server, and delete everything."""
        self.stop()
        shutil.rmtree(self._folder)

    def build_url(self, database: str = "postgres") -> str:
        """Build the address of a database."""
        return f"postgresql://{USER}:{self.password}@127.0.0.1:{self.port}/{database}"

    def connect(self, database: str = "postgres") -> "psycopg.Connection[tuple[object, ...]]":
        """Connect to a database, without a transaction."""
        return psycopg.connect(self.build_url(database), autocommit=True)

    def create_database(self, template: str = "template0") -> str:
        """Create a database, and return its address."""
        name = f"test_{next(self._numbers)}"
        with self.connect() as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
        return self.build_url(name)

    def drop_database(self, url: str) -> None:
        """Delete a database, even if sessions are connected to it."""
        name = url.rpartition("/")[2]
        with self.connect() as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())


def _find_unprivileged() -> str:
    import pwd

    users = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in UNPRIVILEGED if name in users)


def start_cluster(parent: Path | None = None, **options: str) -> PostgresCluster:
    """Start a cluster, which its caller removes; skip the test without PostgreSQL.

    Args:
        parent: folder for the cluster's folder; the folder of temporary files by default.
        options: further settings of the server.
    """
    programs = find_postgres()
    if programs is None:
        pytest.skip("PostgreSQL is not installed")
    server = PostgresCluster(programs, parent=parent, **options)
    try:
        server.start()
    except BaseException:
        server.remove()
        raise
    return server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresCluster]:
    """A running cluster, shared by all tests of this worker."""
    server = start_cluster()
    yield server
    server.remove()


@pytest.fixture
def own_postgres() -> Iterator[PostgresCluster]:
    """A cluster of a single test, which may stop it."""
    server = start_cluster()
    yield server
    server.remove()


@pytest.fixture
def postgres_url(postgres: PostgresCluster) -> Iterator[str]:
    """The address of an empty database of a single test."""
    url = postgres.create_database()
    yield url
    postgres.drop_database(url)
