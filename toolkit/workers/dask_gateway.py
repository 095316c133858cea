"""The process that holds the client of a Dask cluster, as its parent sees it.

The parent unpickles nothing: it sends and reads messages of plain values, as to a worker process.
The child's environment has no key, because code of the cluster can run in it.
"""

import contextlib
import itertools
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from io import FileIO, RawIOBase
from pathlib import Path
from typing import Any, cast

from toolkit.workers.process import filter_environment, start_program
from toolkit.workers.serialization import encode_message, read_message, write_message

PROGRAM = Path(__file__).with_name("dask_program.py")
# Settings of Dask's connections. Other settings of Dask may be secrets.
_DASK_VARIABLES = frozenset({"DASK_CONFIG", "DASK_ROOT_CONFIG"})
_DASK_PREFIX = "DASK_DISTRIBUTED__"
_MAX_LOG_CHARS = 1_200

log = logging.getLogger(__name__)


class ClusterLostError(OSError):
    """The scheduler is lost, or does not answer."""


class GatewayEndedError(ClusterLostError):
    """The process that holds the client has ended."""


class UntrustedSchedulerError(Exception):
    """The scheduler has no certificate that the client's authority signed."""


class WorkerKilledError(Exception):
    """Every worker that ran a call was lost."""


class ClusterFailureError(Exception):
    """The cluster cannot do a call; the text is the name of its error."""


_ERRORS: Mapping[str, type[Exception]] = {
    "lost": ClusterLostError,
    "untrusted": UntrustedSchedulerError,
    "killed": WorkerKilledError,
    "failed": ClusterFailureError,
}


class DaskGateway:
    """A child process that speaks to a Dask cluster, started at its first request.

    A request returns the future of its answer, which any thread may wait for. It fails with one
    of the errors above.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._numbers = itertools.count()
        self._pending: dict[int, Future[Any]] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._lifeline: FileIO | None = None
        self._ended = False
        self._is_killed = False  # by the parent

    @property
    def pid(self) -> int | None:
        """The process's id; None before the first request."""
        return None if self._process is None else self._process.pid

    @property
    def has_ended(self) -> bool:
        """True if the process was killed or has died."""
        return self._ended

    def request(self, operation: str, **arguments: object) -> "Future[Any]":
        """Send a request, and return the future of its answer; blocks while the pipe is full.

        Args:
            operation: method of `dask_program.SchedulerClient`.
            arguments: plain values.

        Raises:
            NotSerializableError: an argument cannot travel.
        """
        future: Future[Any] = Future()
        number = next(self._numbers)
        pieces = encode_message({"id": number, "operation": operation, "arguments": arguments})
        try:
            process = self._get_process()
            with self._lock:
                if self._ended:
                    raise GatewayEndedError
                self._pending[number] = future
            with self._write_lock:
                write_message(cast("RawIOBase", process.stdin), pieces)
        except (OSError, ValueError):  # it has ended, or another thread closed the pipe
            self._fail_all()
            with contextlib.suppress(Exception):
                future.set_exception(self._make_end())
        return future

    def _get_process(self) -> "subprocess.Popen[bytes]":
        with self._lock:
            if self._process is None and not self._ended:
                self._process, self._lifeline = start_program(
                    PROGRAM, (), _list_path(), _filter_environment(os.environ)
                )
                threading.Thread(
                    target=self._read_answers, args=(self._process,), daemon=True
                ).start()
            if self._process is None:
                raise GatewayEndedError
            return self._process

    def _read_answers(self, process: "subprocess.Popen[bytes]") -> None:
        try:
            while True:
                self._take(read_message(cast("RawIOBase", process.stdout)))
        except Exception as error:  # the end of the pipe, or no message: the child is not trusted
            if not isinstance(error, EOFError | OSError):
                log.warning(
                    "The process that speaks to Dask sent a malformed message. It is ended."
                )
        self._end(process)
        process.wait()
        with contextlib.suppress(OSError):
            cast("RawIOBase", process.stdout).close()
        self._fail_all()

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
        return GatewayEndedError("the process that speaks to Dask ended")

    def close(self, timeout_s: float) -> None:
        """Leave the cluster, and end the process; blocks for so many seconds at most."""
        if self._process is not None and not self._ended:
            with contextlib.suppress(Exception):
                self.request("close").result(timeout_s)
        self.kill()
        self.join()

    def kill(self) -> None:
        """Kill the process; does not wait."""
        with self._lock:
            self._ended = True
            self._is_killed = True
            process = self._process
        if process is not None:
            self._end(process)

    @staticmethod
    def _end(process: "subprocess.Popen[bytes]") -> None:
        if process.returncode is not None:
            return
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:  # pragma: no cover - Windows
                process.kill()

    def join(self) -> None:
        """Wait until the killed process has ended, and close its pipes."""
        process = self._process
        if process is None:
            return
        process.wait()
        for pipe in (process.stdin, self._lifeline):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def _list_path() -> list[str]:
    return [one if os.path.isabs(one) else os.path.abspath(one) for one in sys.path]


def _filter_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a worker process and the settings of Dask's connections."""
    dask = {
        name: value
        for name, value in environment.items()
        if name in _DASK_VARIABLES or name.startswith(_DASK_PREFIX)
    }
    return {**filter_environment(environment), **dask}
