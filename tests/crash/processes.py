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
from typing import Any, Protocol

import httpx

from tests.crash import fork_server
from tests.support.code_blocks import ROOT
from tests.support.database_pool import open_rows
from tests.support.ports import free_port
from tests.support.timing import PATIENCE_S, wait_until

LATENCY_MS = 40
# As the vendors' own hosts have them: what stands before the paths that an adapter adds.
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
# A client of httpx would read all certificates each time, which costs more than what it asks.
NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
Record = dict[str, Any]
FindUrl = Callable[[Path], str | None]


def open_http(url: str = "", *, max_kept: int | None = None) -> httpx.Client:
    """Open a client of what is served on this machine.

    Args:
        url: what stands before the paths that are asked for.
        max_kept: how many connections are kept for the next request.
    """
    limits = httpx.Limits(max_keepalive_connections=max_kept)
    return httpx.Client(
        base_url=url, trust_env=False, timeout=PATIENCE_S, verify=NO_CERTIFICATES, limits=limits
    )


# For requests to whoever, who may be away.
HTTP = open_http(max_kept=0)


class CloudProcess:
    """The vendor cloud, and what it tells of the calls that reached it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._client = open_http(url)

    def calls(self) -> list[Record]:
        """Every call so far, in the order of arrival."""
        found: list[Record] = self._client.get("/_sandbox/calls").json()["calls"]
        return found

    def wait_until_quiet(self) -> list[Record]:
        """Every call, once all of them have been answered."""
        calls: list[Record] = []

        def answered() -> bool:
            calls[:] = self.calls()
            return all(call["status"] for call in calls)

        wait_until(answered, "the cloud answers all calls")
        return calls

    def environment(self, engine: str = "") -> dict[str, str]:
        """The settings of a server whose vendors are here.

        Args:
            engine: a first word of the paths that it calls, for clouds that tell servers apart.
        """
        url = f"{self.url}/{engine}" if engine else self.url
        urls = {f"TOOLKIT_VENDORS__{name}": url + path for name, path in BASE_URLS.items()}
        # Callers here look around without a pause.
        often = {"TOOLKIT_RATE_LIMIT_PER_S": "100000", "TOOLKIT_RATE_LIMIT_BURST": "100000"}
        # The log is of the work; and what is served may be a copy, to be gone on with.
        alone = {"TOOLKIT_CONNECTION_TEST_S": "0", "TOOLKIT_TAKE_UP": "true"}
        return {**urls, **often, **alone, "TOOLKIT_ENCYCLOPEDIA_URL": f"{url}/encyclopedia"}

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()


def answers(url: str) -> bool:
    """Tell whether something is served there."""
    try:
        return HTTP.get(url).status_code < 500
    except httpx.TransportError:
        return False


class Process(Protocol):
    """A process, as `Popen` has it."""

    @property
    def pid(self) -> int:
        """Its id."""

    def poll(self) -> int | None:
        """Return its exit code; None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its exit code."""

    def send_signal(self, sig: int, /) -> None:
        """Send it a signal, if it is still there."""


Start = Callable[[Sequence[str], Mapping[str, str]], Process]


def start_python(command: Sequence[str], env: Mapping[str, str]) -> Process:
    """Start a module by `python -m`, with its arguments."""
    line = [sys.executable, "-m", *command]
    return subprocess.Popen(line, env={**os.environ, **env}, stdout=subprocess.DEVNULL)


@contextmanager
def process(
    *command: str, env: Mapping[str, str], ready: str, start: Start = start_python
) -> Iterator[Process]:
    """A child process that answers at `ready`; killed at the end if it still runs."""
    child = start(command, env)
    try:
        wait_until(lambda: answers(ready) or child.poll() is not None)
        assert child.poll() is None, f"{command[0]} stopped with {child.poll()}"
        yield child
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()


@contextmanager
def open_cloud(
    module: str = "toolkit.sandbox", latency_ms: float = LATENCY_MS, start: Start = start_python
) -> Iterator[CloudProcess]:
    """A vendor cloud in a process of its own, which a module serves."""
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
    **env: str,
) -> Iterator[tuple[str, Process]]:
    """A server that answers; its address, and the process."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    told = {**cloud.environment(), **name_database(database), **env}
    command = build_command(data_dir, port)
    with process(*command, env=told, ready=f"{url}/v1/health", start=start) as child:
        yield url, child


def build_command(data_dir: Path, port: int) -> list[str]:
    """Build the command of a server, with the module that has it."""
    return ["toolkit", "serve", "--port", str(port), "--data-dir", str(data_dir), "--sandbox"]


def name_database(url: str | None) -> dict[str, str]:
    """Name a database to a server, unless it is a file in its data directory."""
    return {} if url is None else {"TOOLKIT_DATABASE": url}


def sign_up(url: str) -> dict[str, str]:
    """The headers of a new account that has connected minimax."""
    answer = HTTP.post(f"{url}/v1/account", json={"email": "ada@example.org"})
    headers = {"Authorization": f"Bearer {answer.json()['data']['api_key']}"}
    pointer = {
        "provider": "minimax",
        "connection_type": "environment",
        "secret_ref": "MINIMAX_API_KEY",
    }
    made = HTTP.post(f"{url}/v1/providers/connections", json=pointer, headers=headers)
    assert made.status_code == 201
    return headers


class ForkServerClient:
    """Starts modules fast, as `python -m` would; see `fork_server.py`.

    Args:
        log: where their lines go.
        folder: where the package is.
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

    def ask(self, **asked: object) -> Any:
        """Ask it for something; its answer."""
        assert self._child.stdin is not None
        with self._lock:
            self._child.stdin.write(json.dumps(asked) + "\n")
            self._child.stdin.flush()
            return json.loads(self._read())

    def start(
        self, command: Sequence[str], env: Mapping[str, str], log: Path | None = None
    ) -> "ForkedProcess":
        """Start a module with arguments, with a log of its own or that of all."""
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
        """Start a server; it does not answer yet."""
        port = port or free_port()
        told = {**cloud.environment(), **name_database(database), **env}
        child = self.start(build_command(data_dir, port), told)
        return ServerProcess(child, port, self.log, data_dir, database)

    def close(self) -> None:
        """End it, and with it all that it has started."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.close()
        self._child.wait()
        self._child.stdout.close()


class ForkedProcess:
    """A process of the fork server."""

    def __init__(self, parent: ForkServerClient, pid: int) -> None:
        self.pid = pid
        self._parent = parent

    def poll(self) -> int | None:
        """Return its exit code; None while it runs."""
        code: int | None = self._parent.ask(poll=self.pid)
        return code

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its exit code."""
        wait_until(lambda: self.poll() is not None, "it ends", timeout or PATIENCE_S)
        code = self.poll()
        assert code is not None
        return code

    def send_signal(self, sig: int, /) -> None:
        """Send it a signal, if it is still there."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, sig)


class ServerProcess:
    """One server process.

    Args:
        child: the process.
        port: where it answers.
        log: has its lines, for who looks into how it ended.
        data_dir: its data directory.
        database: the address of its database; None where that is a file there.
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
        """Tell whether no work item is open in its directory, as far as that can be read now."""
        rows = open_rows(self._data_dir, self.database, read_only=True)
        with suppress(sqlite3.OperationalError), rows as store:
            return not store.execute("SELECT 1 FROM roots WHERE open").fetchall()
        return False

    def poll_exit_code(self) -> int | None:
        """Return its exit code; none while it runs."""
        return self._child.poll()

    def wait_until_ready(self) -> bool:
        """Wait until it answers, or has ended; whether it answers."""
        with open_http(self.url) as client:

            def settled() -> bool:
                with suppress(httpx.TransportError):
                    return client.get("/v1/health").status_code == 200
                return self.poll_exit_code() is not None

            wait_until(settled, "the server answers")
        return self.poll_exit_code() is None

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send it a signal, if it is still there."""
        self._child.send_signal(number)

    def wait(self) -> int:
        """Wait for its end; the exit code, or minus the signal.

        Raises:
            AssertionError: it stopped by a fault of its own.
        """
        ended = self._child.wait(PATIENCE_S)
        assert ended in (0, -signal.SIGKILL), f"it ended with {ended}: {self._log.read_text()}"
        return ended


class DelayedKill:
    """A server, killed at an instant that has nothing to do with what it is doing."""

    def __init__(self, server: ServerProcess, after_s: float) -> None:
        self._server = server
        self._timer = threading.Timer(after_s, self._kill_later)
        self.at: datetime | None = None
        self._timer.start()

    def _kill_later(self) -> None:
        self._server.kill()
        self.at = datetime.now(UTC)

    def wait_until_dead(self) -> datetime:
        """Wait until it is dead; when that was."""
        self._timer.join()
        self._server.wait()
        assert self.at is not None
        return self.at
