"""The processes of a crash trial: the vendor cloud, which survives, and servers, which do not."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from tests.crash import fork_server
from tests.support.database_pool import open_rows
from tests.support.ports import free_port
from tests.support.timing import wait_until

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
Record = dict[str, Any]
FindUrl = Callable[[Path], str | None]


class CloudProcess:
    """The vendor cloud, and what it tells of the calls that reached it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._client = httpx.Client(base_url=url, trust_env=False)

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
        return httpx.get(url).status_code < 500
    except httpx.TransportError:
        return False


@contextmanager
def process(*command: str, env: dict[str, str], ready: str) -> Iterator[subprocess.Popen[bytes]]:
    """A child process that answers at `ready`; killed at the end if it still runs."""
    child = subprocess.Popen(
        [sys.executable, "-m", *command], env={**os.environ, **env}, stdout=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: answers(ready) or child.poll() is not None)
        assert child.poll() is None, f"{command[0]} stopped with {child.returncode}"
        yield child
    finally:
        if child.poll() is None:
            child.kill()
        child.wait()


@contextmanager
def open_cloud(
    module: str = "toolkit.sandbox", latency_ms: float = LATENCY_MS
) -> Iterator[CloudProcess]:
    """A vendor cloud in a process of its own, which a module serves."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = (module, "--port", str(port), "--latency-ms", str(latency_ms))
    with process(*command, env={}, ready=f"{url}/_sandbox/calls"):
        cloud = CloudProcess(url)
        try:
            yield cloud
        finally:
            cloud.close()


@contextmanager
def serve(
    cloud: CloudProcess, data_dir: Path, database: str | None = None, **env: str
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A server by its own command, which answers; its address, and the process."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    shared = {} if database is None else {"TOOLKIT_DATABASE": database}
    command = ("toolkit", "serve", "--port", str(port), "--data-dir", str(data_dir), "--sandbox")
    told = {**cloud.environment(), **shared, **env}
    with process(*command, env=told, ready=f"{url}/v1/health") as child:
        yield url, child


def sign_up(url: str) -> dict[str, str]:
    """The headers of a new account that has connected minimax."""
    answer = httpx.post(f"{url}/v1/account", json={"email": "ada@example.org"})
    headers = {"Authorization": f"Bearer {answer.json()['data']['api_key']}"}
    pointer = {
        "provider": "minimax",
        "connection_type": "environment",
        "secret_ref": "MINIMAX_API_KEY",
    }
    made = httpx.post(f"{url}/v1/providers/connections", json=pointer, headers=headers)
    assert made.status_code == 201
    return headers


class ForkServerClient:
    """Starts servers on one port, one at a time; see `fork_server.py`.

    Args:
        cloud: what their vendors are.
        log: where their lines go.
        find_url: finds the address of a data directory's database; none where it is a file there.
    """

    def __init__(self, cloud: CloudProcess, log: Path, find_url: FindUrl = lambda _: None) -> None:
        self._find_url = find_url
        self._child = subprocess.Popen(
            [sys.executable, "-m", fork_server.__name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._log = log
        self._cloud = cloud
        self.port = free_port()
        self._read()

    def _read(self) -> str:
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        assert line, "the fork server has died"
        return line

    def _ask(self, **asked: object) -> Any:
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(asked) + "\n")
        self._child.stdin.flush()
        return json.loads(self._read())

    def serve(self, data_dir: Path, *, port: int | None = None, **env: str) -> "ServerProcess":
        """Start a server on a data directory; it does not answer yet."""
        port = port or self.port
        argv = ["serve", "--port", str(port), "--data-dir", str(data_dir), "--sandbox"]
        database = self._find_url(data_dir)
        shared = {} if database is None else {"TOOLKIT_DATABASE": database}
        told = {**self._cloud.environment(), **shared, **env}
        pid = self._ask(argv=argv, env=told, log=str(self._log))
        return ServerProcess(port, pid, lambda: self._ask(poll=pid), self._log, data_dir, database)

    def close(self) -> None:
        """End it, and with it its servers."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.close()
        self._child.wait()
        self._child.stdout.close()


class ServerProcess:
    """One server process."""

    def __init__(
        self,
        port: int,
        pid: int,
        poll: Callable[[], int | None],
        log: Path,
        data_dir: Path,
        database: str | None = None,
    ) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.pid = pid
        self._poll = poll
        self._data_dir = data_dir
        self.database = database
        self._log = log

    def has_closed_all(self) -> bool:
        """Tell whether no work item is open in its directory, as far as that can be read now."""
        rows = open_rows(self._data_dir, self.database, read_only=True)
        with suppress(sqlite3.OperationalError), rows as store:
            return not store.execute("SELECT 1 FROM roots WHERE open").fetchall()
        return False

    def poll_exit_code(self) -> int | None:
        """Return its exit code; none while it runs."""
        return self._poll()

    def wait_until_ready(self) -> bool:
        """Wait until it answers, or has ended; whether it answers."""
        with httpx.Client(base_url=self.url, trust_env=False) as client:

            def settled() -> bool:
                with suppress(httpx.TransportError):
                    return client.get("/v1/health").status_code == 200
                return self.poll_exit_code() is not None

            wait_until(settled, "the server answers")
        return self.poll_exit_code() is None

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send it a signal, if it is still there."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def wait(self) -> int:
        """Wait for its end; the exit code, or minus the signal.

        Raises:
            AssertionError: it stopped by a fault of its own.
        """
        wait_until(lambda: self.poll_exit_code() is not None, "the server ends")
        ended = self.poll_exit_code()
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
