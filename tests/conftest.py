"""Fixtures for every test: engines and servers on their own data directories."""

import asyncio
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path

import hypothesis
import pytest
import uvicorn

from tests.support.dask_cluster import DaskCluster
from tests.support.forked_programs import install_forked_programs
from tests.support.reused_workers import ReusedWorker, end_spare_workers
from tests.support.s3_server import BUCKET, VARIABLES, make_bucket, run_s3_server
from tests.support.socket_server import stop_listening
from tests.support.timing import PATIENCE_S, wait_until_async
from toolkit import capabilities, vendors
from toolkit.contract.account import AccountCreate
from toolkit.contract.connections import ConnectionCreate
from toolkit.engine import Registry
from toolkit.engine.request_context import RequestContext
from toolkit.engine.routing import registry
from toolkit.engine.transport import worker_pool
from toolkit.local import EngineThread, open_engine
from toolkit.sandbox import Faults
from toolkit.settings import Settings

# The sandbox's vendors, and the variables of their keys.
POINTERS = {
    "minimax": "MINIMAX_API_KEY",
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "google": "GEMINI_API_KEY",
    "elevenlabs": "ELEVENLABS_API_KEY",
    "aws": "AWS_BEARER_TOKEN_BEDROCK",
    "runpod": "RUNPOD_API_KEY",
}

pytest_plugins = ("tests._postgres", "tests.support.database_pool", "tests.support.tiers")

# The time of an example depends on the load of the machine.
hypothesis.settings.register_profile("toolkit", deadline=None)
# For `scripts/mutants.py`, which accepts any failing example.
UNSHRUNK = set(hypothesis.Phase) - {hypothesis.Phase.shrink, hypothesis.Phase.explain}
hypothesis.settings.register_profile("unshrunk", deadline=None, phases=UNSHRUNK)
hypothesis.settings.load_profile("toolkit")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Collect the tests without garbage collection, which takes a quarter of the time."""
    if session.config.getoption("dist", "no") == "no":  # the controller of xdist collects none
        gc.disable()


def pytest_collection_finish() -> None:
    """Exclude the thousands of test items from garbage collection."""
    gc.enable()
    gc.collect()
    gc.freeze()


def clear_environment(patch: pytest.MonkeyPatch) -> None:
    """Remove the variables of the machine's environment that affect the toolkit."""
    for name in list(os.environ):
        # IPython warns if it runs outside the virtual environment that the variable names.
        if name.startswith("TOOLKIT_") or name.endswith("_API_KEY") or name == "VIRTUAL_ENV":
            patch.delenv(name)


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start each test without settings from the machine's environment."""
    clear_environment(monkeypatch)
    # The person who runs the tests may be logged in to a service; tests must not read that login.
    monkeypatch.setenv("TOOLKIT_CONFIG_DIR", os.devnull)


@pytest.fixture
def heed_interrupts() -> Iterator[None]:
    """Let SIGINT interrupt this process and its children, also in a shell's background.

    A shell without job control starts background jobs with SIGINT ignored, and children inherit
    that.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """The URL of an S3 server with a bucket, shared by all tests of a worker."""
    pytest.importorskip("moto", reason="moto, which is a server for S3, is not installed")
    pytest.importorskip("s3fs")
    with run_s3_server() as url:
        make_bucket(url, BUCKET)
        yield url


@pytest.fixture
def s3_url(
    s3_server: str, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """A prefix of a test's own on the S3 server, with the variables to reach it."""
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/{tmp_path_factory.mktemp('place').name}"


@pytest.fixture(autouse=True, scope="session")
def _list_packages_once() -> Iterator[None]:
    """List the installed packages once, because they do not change during the tests."""

    @cache
    def list_installed(**group: str) -> EntryPoints:
        return entry_points(**group)

    with pytest.MonkeyPatch.context() as patch:
        for module in (capabilities, registry, vendors):
            patch.setattr(module, "entry_points", list_installed)
        yield


@pytest.fixture(autouse=True, scope="session")
def _workers_are_kept() -> Iterator[None]:
    """Reuse the worker processes of an engine that closes for the next engine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker_pool, "WorkerProcess", ReusedWorker)
        yield
    end_spare_workers()


@pytest.fixture(scope="session")
def _forked_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with install_forked_programs(tmp_path_factory.mktemp("programs") / "bin") as folder:
        yield folder / "python"


@pytest.fixture
def fork_programs(_forked_python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork the Python programs that a test starts, so that they cost no imports."""
    monkeypatch.setattr(sys, "executable", str(_forked_python))


@pytest.fixture(scope="session")
def cluster() -> Iterator[DaskCluster]:
    """A Dask cluster of two worker processes, shared by all tests of this process."""
    with DaskCluster() as dask_cluster:
        yield dask_cluster


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Prints a line about a trial, such as its seed, after all tests."""
    return lambda line: record_property("told", line)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the lines of the trials."""
    reports = [*terminalreporter.stats.get("passed", []), *terminalreporter.stats.get("failed", [])]
    lines = [line for report in reports for name, line in report.user_properties if name == "told"]
    if lines:
        terminalreporter.section("results of the trials")
        for line in lines:
            terminalreporter.line(str(line))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Sandbox settings with a short backoff."""
    return Settings(data_dir=tmp_path / "data", sandbox=True, retry_base_s=0.01)


@pytest.fixture
def faults() -> Faults:
    """The faults of the sandbox that a test sets, and the log of its calls."""
    return Faults()


class PromptServer(uvicorn.Server):
    """Stops at once; uvicorn itself checks every tenth of a second, and is as slow to stop."""

    async def main_loop(self) -> None:
        """Serve until `stop` is called."""
        self._stopped = asyncio.Event()
        await self._stopped.wait()

    async def stop(self) -> None:
        """Stop serving; called on the loop."""
        self._stopped.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the listeners and the connections."""
        for server in self.servers:
            await stop_listening(server)
        for listener in sockets or ():
            listener.close()

        def is_idle() -> bool:
            for connection in list(self.server_state.connections):
                connection.shutdown()
            return not (self.server_state.connections or self.server_state.tasks)

        await wait_until_async(is_idle)


class Server:
    """A real uvicorn server on loopback, over an engine on its own thread."""

    def __init__(
        self,
        settings: Settings,
        faults: Faults | None = None,
        registry: Registry | None = None,
        port: int = 0,
    ) -> None:
        from toolkit.server import create_app
        from toolkit.server.http_protocol import HTTP_PROTOCOL

        self.thread = EngineThread(open_engine(settings, registry=registry, faults=faults))
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        self.port: int = listener.getsockname()[1]
        listener.listen()  # an early caller waits for the server
        self.url = f"http://127.0.0.1:{self.port}"
        # As `toolkit serve` sets it, so that the body of a response does not wait for its head.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        config = uvicorn.Config(
            create_app(self.thread.engine),
            http=HTTP_PROTOCOL,
            log_level="warning",
            lifespan="off",
            ws="none",
        )
        self._server = PromptServer(config)
        self._serving = self.thread.submit(self._server.serve(sockets=[listener]))

    def sign_up(self, *providers: str, email: str = "ada@example.org") -> str:
        """Create an account with connections to providers; return its key."""
        engine = self.thread.engine
        account = self.thread.call(engine.accounts.create(AccountCreate(email=email)))
        for provider in providers:
            pointer = ConnectionCreate(
                provider=provider, connection_type="environment", secret_ref=POINTERS[provider]
            )
            connect = engine.connections.create(RequestContext(account.id), pointer, tested=False)
            self.thread.call(connect)
        return account.api_key

    def close(self) -> None:
        """Stop the server, then the engine, which asks waiting callers to retry."""
        self.thread.engine.drain()
        self.thread.submit(self._server.stop()).result(timeout=PATIENCE_S)
        self._serving.result(timeout=PATIENCE_S)
        self.thread.close(0)


@pytest.fixture
def server(settings: Settings) -> Iterator[Server]:
    """A served sandbox engine."""
    server = Server(settings)
    yield server
    server.close()
