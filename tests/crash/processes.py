"""The processes of a crash trial: the vendor cloud, which survives, and servers, which do not."""

import json
import os
import signal
import sqlite3
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from tests.crash import fork_server
from tests.support.code_blocks import ROOT
from tests.support.database_pool import open_rows
from tests.support.ports import free_port
from tests.support.timing import PATIENCE_S, wait_until

LATENCY_MS = 40
# Prefixes of the paths that an adapter adds, as on the vendors' own hosts.
BASE_URLS = {
    "MINIMAX__BASE_URLS__API": "/minimax",
    "OPENAI__BASE_URLS__API": "/openai/v1",
    "ANTHROPIC__BASE_URLS__API": "/anthropic",
    "GOOGLE__BASE_URLS__API": "/google",
    "ELEVENLABS__BASE_URLS__API": "/elevenlabs",
    "AWS__BASE_URLS__API": "/aws",
    "RUNPOD__BASE_URLS__API": "/runpod",
    "RUNPOD__BASE_URLS__JOBS": "/runpod-jobs",
    "RUNPOD__BASE_URLS__IMAGES": "/runpod-images",
}
# Otherwise each client of httpx would read all certificates, which costs more than its requests.
NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
Record = dict[str, Any]
FindUrl = Callable[[Path], str | None]


def open_http(url: str = "", *, max_kept: int | None = None) -> httpx.Client:
    """Open a client of a server on this machine.

    Args:
        url: prefix of the requests' paths.
        max_kept: maximum number of idle connections.
    """
    limits = httpx.Limits(max_keepalive_connections=max_kept)
    return httpx.Client(
        base_url=url, trust_env=False, timeout=PATIENCE_S, verify=NO_CERTIFICATES, limits=limits
    )


# For requests to servers that may be away.
HTTP = open_http(max_kept=0)


class CloudProcess:
    """The vendor cloud, and its log of calls."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._client = open_http(url)

    def calls(self) -> list[Record]:
        """Return all calls so far, in the order of arrival."""
        calls: list[Record] = self._client.get("/_sandbox/calls").json()["calls"]
        return calls

    def wait_until_quiet(self) -> list[Record]:
        """Wait until all calls are answered, and return them."""
        calls: list[Record] = []

        def answered() -> bool:
            calls[:] = self.calls()
            return all(call["status"] for call in calls)

        wait_until(answered, "the cloud answers all calls")
        return calls

    def environment(self, engine: str = "") -> dict[str, str]:
        """Return the settings of a server that calls the cloud's vendors.

        Args:
            engine: first part of the server's paths, for clouds that distinguish servers.
        """
        url = f"{self.url}/{engine}" if engine else self.url
        urls = {f"TOOLKIT_VENDORS__{name}": url + path for name, path in BASE_URLS.items()}
        return {
            **urls,
            "TOOLKIT_ENCYCLOPEDIA_URL": f"{url}/encyclopedia",
            # Callers poll without a pause.
            "TOOLKIT_RATE_LIMIT_PER_S": "100000",
            "TOOLKIT_RATE_LIMIT_BURST": "100000",
            # A test of a connection would be a call that no work makes.
            "TOOLKIT_CONNECTION_TEST_S": "0",
            # A directory may be a copy, whose work must be resumed.
            "TOOLKIT_TAKE_UP": "true",
        }

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


def is_answering(url: str, timeout_s: float = PATIENCE_S) -> bool:
    """Return whether a server answers a request with success."""
    try:
        return HTTP.get(url, timeout=timeout_s).status_code == 200
    except httpx.TransportError:
        return False


class ForkedProcess:
    """A process of the fork server."""

    def __init__(self, parent: "ForkServerClient", pid: int) -> None:
        self.pid = pid
        self._parent = parent

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        code: int | None = self._parent.ask(poll=self.pid)
        return code

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit code."""
        wait_until(lambda: self.poll() is not None, "it ends", timeout or PATIENCE_S)
        code = self.poll()
        assert code is not None
        return code

    def send_signal(self, sig: int, /) -> None:
        """Send a signal, unless the process has ended."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, sig)


Process = subprocess.Popen[bytes] | ForkedProcess
Start = Callable[[Sequence[str], Mapping[str, str]], Process]


def start_python(command: Sequence[str], env: Mapping[str, str]) -> Process:
    """Start a module by `python -m`, with its arguments."""
    line = [sys.executable, "-m", *command]
    return subprocess.Popen(line, env={**os.environ, **env}, stdout=subprocess.DEVNULL)


@contextmanager
def process(
    *command: str, env: Mapping[str, str], ready: str, start: Start = start_python
) -> Iterator[Process]:
    """Start a process that answers at `ready`, and kill it at the end."""
    child = start(command, env)
    try:
        wait_until(lambda: is_answering(ready) or child.poll() is not None)
        assert child.poll() is None, f"{command[0]} stopped with {child.poll()}"
        yield child
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()


@contextmanager
def open_cloud(
    module: str = "toolkit.sandbox", latency_ms: float = LATENCY_MS, start: Start = start_python
) -> Iterator[CloudProcess]:
    """Start a vendor cloud in a process of its own, which a module serves."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = (module, "--port", str(port), "--latency-ms", str(latency_ms))
    with process(*command, env={}, ready=f"{url}/_sandbox/calls", start=start):
        cloud = CloudProcess(url)
        try:
            yield cloud
        finally:
            cloud.close()


@contextmanager
def serve(
    cloud: CloudProcess,
    data_dir: Path,
    database: str | None = None,
    start: Start = start_python,
    *,
    workers: int = 1,
    **env: str,
) -> Iterator[tuple[str, Process]]:
    """Start a server and wait until it answers; yield its address and process."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    settings = {**cloud.environment(), **name_database(database), **env}
    command = build_command(data_dir, port, workers)
    with process(*command, env=settings, ready=f"{url}/v1/health", start=start) as child:
        yield url, child


def build_command(data_dir: Path, port: int, workers: int = 1) -> list[str]:
    """Build the command of a server, with its module."""
    command = ["toolkit", "serve", "--port", str(port), "--data-dir", str(data_dir), "--sandbox"]
    return command if workers == 1 else [*command, "--workers", str(workers)]


def name_database(url: str | None) -> dict[str, str]:
    """Return the setting of a server's database, unless it is a file in its data directory."""
    return {} if url is None else {"TOOLKIT_DATABASE": url}


def sign_up(url: str) -> dict[str, str]:
    """Create an account that has connected minimax; return the headers of its key."""
    answer = HTTP.post(f"{url}/v1/account", json={"email": "ada@example.org"})
    headers = {"Authorization": f"Bearer {answer.json()['data']['api_key']}"}
    pointer = {
        "provider": "minimax",
        "connection_type": "environment",
        "secret_ref": "MINIMAX_API_KEY",
    }
    response = HTTP.post(f"{url}/v1/providers/connections", json=pointer, headers=headers)
    assert response.status_code == 201
    return headers


class ForkServerClient:
    """Starts modules like `python -m`, but fast; see `fork_server.py`.

    Args:
        log: file of the processes' output.
        folder: folder of the package.
    """

    def __init__(self, log: Path, folder: Path = ROOT) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-m", fork_server.__name__],
            env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"},
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.log = log
        self._lock = threading.Lock()
        self._read()

    def _read(self) -> str:
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        assert line, "the fork server has died"
        return line

    def ask(self, **request: object) -> Any:
        """Send a request to the fork server; return its response."""
        assert self._child.stdin is not None
        with self._lock:
            self._child.stdin.write(json.dumps(request) + "\n")
            self._child.stdin.flush()
            return json.loads(self._read())

    def start(
        self, command: Sequence[str], env: Mapping[str, str], log: Path | None = None
    ) -> ForkedProcess:
        """Start a module with arguments, with its own log or the common log."""
        return ForkedProcess(self, self.ask(command=command, env=env, log=str(log or self.log)))

    def serve(
        self,
        cloud: CloudProcess,
        data_dir: Path,
        database: str | None = None,
        *,
        port: int | None = None,
        **env: str,
    ) -> "ServerProcess":
        """Start a server, without waiting until it answers."""
        port = port or free_port()
        settings = {**cloud.environment(), **name_database(database), **env}
        child = self.start(build_command(data_dir, port), settings)
        return ServerProcess(child, port, self.log, data_dir, database)

    def close(self) -> None:
        """End the fork server and all processes that it has started."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.close()
        self._child.wait()
        self._child.stdout.close()


class ServerProcess:
    """A server process.

    Args:
        child: the process.
        port: port of the server.
        log: file of its output, for the message of a failure.
        data_dir: data directory.
        database: address of the database, or None for a file.
    """

    def __init__(
        self, child: Process, port: int, log: Path, data_dir: Path, database: str | None = None
    ) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.pid = child.pid
        self.database = database
        self._child = child
        self._log = log
        self._data_dir = data_dir

    def has_closed_all(self) -> bool:
        """Return whether the store has no open work item; False while it cannot be read."""
        rows = open_rows(self._data_dir, self.database, read_only=True)
        with suppress(sqlite3.OperationalError), rows as store:
            return not store.execute("SELECT 1 FROM roots WHERE open").fetchall()
        return False

    def poll_exit_code(self) -> int | None:
        """Return the exit code, or None while the server runs."""
        return self._child.poll()

    def wait_until_ready(self) -> bool:
        """Wait until the server answers or has ended; return whether it answers."""
        with open_http(self.url) as client:

            def settled() -> bool:
                with suppress(httpx.TransportError):
                    return client.get("/v1/health").status_code == 200
                return self.poll_exit_code() is not None

            wait_until(settled, "the server answers")
        return self.poll_exit_code() is None

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal, unless the server has ended."""
        self._child.send_signal(number)

    def wait(self) -> int:
        """Wait for the exit code, which must be 0 or of a kill."""
        code = self._child.wait(PATIENCE_S)
        assert code in (0, -signal.SIGKILL), f"it ended with {code}: {self._log.read_text()}"
        return code


class DelayedKill:
    """Kills a server after a delay, independently of its work."""

    def __init__(self, server: ServerProcess, after_s: float) -> None:
        self._server = server
        self._timer = threading.Timer(after_s, self._kill_later)
        self.at: datetime | None = None
        self._timer.start()

    def _kill_later(self) -> None:
        self._server.kill()
        self.at = datetime.now(UTC)

    def wait_until_dead(self) -> datetime:
        """Wait until the server is dead; return the time of the kill."""
        self._timer.join()
        self._server.wait()
        assert self.at is not None
        return self.at
