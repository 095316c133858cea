"""The process that holds the client of a Dask cluster, as its parent sees it.

The parent unpickles nothing: it sends and reads messages of plain values, as to a worker process.
The child's environment has no key, because code of the cluster can run in it.
"""

import asyncio
import contextlib
import itertools
import logging
import os
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from toolkit.workers.process import (
    ChildProgram,
    filter_environment,
    list_import_path,
    start_program,
)
from toolkit.workers.serialization import encode_message

PROGRAM = Path(__file__).with_name("dask_program.py")
# Settings of Dask's connections. Other settings of Dask may be secrets.
_DASK_VARIABLES = frozenset({"DASK_CONFIG", "DASK_ROOT_CONFIG"})
_DASK_PREFIX = "DASK_DISTRIBUTED__"
_MAX_LOG_CHARS = 1_200

log = logging.getLogger(__name__)


class ClusterLostError(OSError):
    """Raised if the connection to the scheduler is lost, or the scheduler does not answer."""


class GatewayEndedError(ClusterLostError):
    """Raised if the process that speaks to the cluster has ended."""


class UntrustedSchedulerError(Exception):
    """Raised if the scheduler has no certificate that the client's authority signed."""


class WorkerKilledError(Exception):
    """Raised if every worker that Dask tried for a call was lost."""


class ClusterFailureError(Exception):
    """Raised if the cluster cannot do a call; the text is the name of the cluster's error."""


_ERRORS: Mapping[str, type[Exception]] = {
    "lost": ClusterLostError,
    "untrusted": UntrustedSchedulerError,
    "killed": WorkerKilledError,
    "failed": ClusterFailureError,
}


class DaskGateway:
    """A child process that speaks to a Dask cluster, started at its first request.

    A request returns the future of its answer, which any thread may wait for. The future fails with
    an error of this module, such as `ClusterLostError`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._pending: dict[int, Future[Any]] = {}
        self._messages: SimpleQueue[list[bytes] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._child: ChildProgram | None = None
        self._ended = False
        self._is_killed = False  # by the parent

    @property
    def has_ended(self) -> bool:
        """True if the process was killed or has died."""
        return self._ended

    def request(self, operation: str, **arguments: object) -> "Future[Any]":
        """Send a request, and return the future of its answer; does not wait.

        Args:
            operation: method of `dask_program.SchedulerClient`.

        Raises:
            NotSerializableError: an argument cannot travel.
        """
        future: Future[Any] = Future()
        number = next(self._numbers)
        message = encode_message({"id": number, "operation": operation, "arguments": arguments})
        with self._lock:
            if self._ended:
                future.set_exception(self._make_end())
                return future
            self._pending[number] = future
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()
        self._messages.put(message)
        return future

    async def ask(
        self, operation: str, timeout_s: float | None = None, /, **arguments: object
    ) -> Any:
        """Send a request, and await its answer; for as long as it takes by default.

        Raises:
            OSError: the scheduler or the process is lost, or the answer is late.
        """
        async with asyncio.timeout(timeout_s):
            return await asyncio.wrap_future(self.request(operation, **arguments))

    def _run(self) -> None:
        """Start the process, and read its answers until it has ended."""
        try:
            child = start_program(PROGRAM, (), list_import_path(), _filter_environment(os.environ))
        except OSError:
            self._fail_all()
            return
        with self._lock:
            self._child = child
        if self._is_killed:
            child.kill()
        threading.Thread(target=self._write_requests, args=(child,), daemon=True).start()
        try:
            while True:
                self._take(child.receive())
        except (EOFError, OSError):
            pass
        except Exception:  # the child is not trusted
            log.warning("The process that talks to Dask sent a malformed message and is stopped.")
        child.kill()
        self._fail_all()
        self._messages.put(None)
        child.join()

    def _write_requests(self, child: ChildProgram) -> None:
        with contextlib.suppress(OSError, ValueError):  # it has ended, as its reader will see
            while (message := self._messages.get()) is not None:
                child.send(message)

    def _take(self, message: Any) -> None:
        """Take an answer, or a line for the log."""
        if "log" in message:
            level = int(message["level"])
            log.log(min(level, logging.ERROR), "%s", str(message["log"])[:_MAX_LOG_CHARS])
            return
        with self._lock:
            future = self._pending.pop(message["id"])
        if not future.set_running_or_notify_cancel():
            return
        kind = message.get("error")
        if kind is None:
            future.set_result(message["value"])
        else:
            future.set_exception(_ERRORS[kind](str(message["detail"])))

    def _fail_all(self) -> None:
        with self._lock:
            self._ended = True
            pending, self._pending = list(self._pending.values()), {}
        for future in pending:
            if future.set_running_or_notify_cancel():
                future.set_exception(self._make_end())

    def _make_end(self) -> ClusterLostError:
        if self._is_killed:
            return ClusterLostError("the connection was closed")
        return GatewayEndedError("the process that talks to Dask ended")

    def close(self, timeout_s: float) -> None:
        """Leave the cluster, and end the process; blocks for at most `timeout_s` seconds."""
        if self._child is not None and not self._ended:
            with contextlib.suppress(Exception):
                self.request("close").result(timeout_s)
        self.kill()
        self.join()

    def kill(self) -> None:
        """Kill the process; does not wait."""
        with self._lock:
            self._ended = self._is_killed = True
            child = self._child
        if child is not None:
            child.kill()

    def join(self) -> None:
        """Wait until the killed process has ended."""
        if self._thread is not None:
            self._thread.join()


def _filter_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a worker process and the settings of Dask's connections."""
    dask = {
        name: value
        for name, value in environment.items()
        if name in _DASK_VARIABLES or name.startswith(_DASK_PREFIX)
    }
    return {**filter_environment(environment), **dask}
