"""One worker process as its parent sees it: started at its first call, and ended by `kill`."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import FileIO, RawIOBase
from pathlib import Path
from typing import Any, cast

from toolkit.workers.serialization import encode_message, read_message, write_message

PROGRAM = Path(__file__).with_name("program.py")
# The variables that a program needs to start and find its files, and no vendor's key.
PASSED_VARIABLES = frozenset(
    {
        "PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TMP", "TEMP",
        "VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH",
        "DYLD_FALLBACK_LIBRARY_PATH", "FONTCONFIG_FILE", "FONTCONFIG_PATH", "MPLCONFIGDIR",
        "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "SOURCE_DATE_EPOCH",
        "PYTHONHOME", "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED",
        "PYTHONUTF8", "PYTHONNOUSERSITE", "PYTHONUSERBASE", "PYTHONMALLOC", "PYTHONFAULTHANDLER",
        "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "APPDATA", "LOCALAPPDATA",
        "USERPROFILE", "PROGRAMDATA",
    }
)  # fmt: skip


class WorkerEndedError(Exception):
    """Raised if a worker process ended before it answered; the text says how."""


class WorkerProcess:
    """A worker process, which is started at its first call.

    Args:
        memory_bytes: maximum bytes that it may allocate; 0 for no limit.
    """

    def __init__(self, memory_bytes: int) -> None:
        self.memory_bytes = memory_bytes
        self._child: ChildProgram | None = None
        self._path: list[str] = []  # the process's current path
        self._lock = threading.Lock()
        self._killed = False

    @property
    def pid(self) -> int | None:
        """The process's id; None before its first call."""
        return None if self._child is None else self._child.process.pid

    @property
    def is_alive(self) -> bool:
        """True if the process runs, or will be started by the first call; False after `kill`."""
        return not self._killed and (self._child is None or self._child.process.poll() is None)

    def read_core_time_s(self) -> float:
        """Return the CPU seconds that the process has used; without /proc, the monotonic time."""
        try:
            # The second field is a name that may have spaces and brackets.
            fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2]
        except OSError:
            return time.monotonic()
        user, system = fields.split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def call_function(
        self,
        module: str,
        name: str,
        args: Sequence[object],
        timeout_s: float,
        *,
        is_short: bool = False,
    ) -> Any:
        """Call a function and wait for the result; blocks, so it belongs in a thread.

        Args:
            timeout_s: the time after which the worker ends itself, if it was not killed before.
            is_short: True if a caller waits for the call, so that it keeps the parent's priority.

        Raises:
            NotSerializableError: an argument cannot travel; the worker is as before.
            WorkerEndedError: it was killed or died.
        """
        path = list_import_path()
        call = {"module": module, "name": name, "args": list(args), "timeout_s": timeout_s}
        call["is_short"] = is_short
        if path != self._path:
            call["path"] = path
        pieces = encode_message(call)
        child = self._child or self._start(path)
        try:
            child.send(pieces)
            self._path = path
            return child.receive()
        except (EOFError, OSError, ValueError):  # also if another thread closed the pipes
            self.kill()
            self.join()
            raise WorkerEndedError(_describe_exit(child.process.returncode)) from None

    def _start(self, path: Sequence[str]) -> "ChildProgram":
        try:
            child = start_program(
                PROGRAM, [str(self.memory_bytes)], path, filter_environment(os.environ)
            )
        except OSError as error:
            raise WorkerEndedError(f"it could not be started ({error.strerror})") from None
        with self._lock:
            self._child = child
            killed = self._killed
        if killed:
            self.kill()
        return child

    def interrupt(self) -> None:
        """Interrupt the running function, whose answer then says so; does not wait."""
        with self._lock:
            child = self._child
        if child is None or child.process.returncode is not None:
            return
        with contextlib.suppress(OSError):
            if hasattr(signal, "SIGUSR1"):  # pragma: no branch - Windows has none
                child.process.send_signal(signal.SIGUSR1)

    def kill(self) -> None:
        """Kill the process and all processes that it has started; do not wait for their end."""
        with self._lock:
            self._killed = True
            child = self._child
        if child is not None:
            child.kill()

    def join(self) -> None:
        """Wait until a killed worker has ended, and close its pipes."""
        if self._child is not None:
            self._child.join()


@dataclass(frozen=True, slots=True)
class ChildProgram:
    """A program of our own that was started, and this end of its pipes.

    Attributes:
        lifeline: a pipe that closes with this process, which ends the program.
    """

    process: "subprocess.Popen[bytes]"
    lifeline: FileIO

    def send(self, message: list[bytes]) -> None:
        """Write a message to the program's stdin; blocks while the pipe is full."""
        write_message(cast("RawIOBase", self.process.stdin), message)

    def receive(self) -> Any:
        """Read the next message of the program; raise EOFError if the program has ended."""
        return read_message(cast("RawIOBase", self.process.stdout))

    def kill(self) -> None:
        """Kill the program and all processes that it has started; do not wait for their end."""
        if self.process.returncode is not None:
            return
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGKILL)
            else:  # pragma: no cover - Windows
                self.process.kill()

    def join(self) -> None:
        """Wait until the program has ended, and close the pipes to it."""
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.lifeline):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def list_import_path() -> list[str]:
    """List the folders of modules of this process, for a child that may run elsewhere."""
    return [folder if os.path.isabs(folder) else os.path.abspath(folder) for folder in sys.path]


def start_program(
    program: Path, arguments: Sequence[str], path: Sequence[str], environment: Mapping[str, str]
) -> ChildProgram:
    """Start a program of our own as a child that does not outlive this process.

    Args:
        arguments: its first arguments; the descriptor of its lifeline and the path follow.

    Raises:
        OSError: it could not be started.
    """
    lifeline, own_descriptor = os.pipe()
    our_end = FileIO(own_descriptor, "w")
    command = [sys.executable, "-P", str(program), *arguments, str(lifeline), *path]
    try:
        process = subprocess.Popen(  # noqa: S603 - our own program
            command,
            pass_fds=() if os.name == "nt" else (lifeline,),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env=environment,
            # The parent alone handles Ctrl-C, or a signal to its group.
            start_new_session=True,
        )
    except OSError:
        our_end.close()
        raise
    finally:
        os.close(lifeline)
    return ChildProgram(process, our_end)


def filter_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return only the variables that a worker needs: no key, no token, no setting.

    >>> filter_environment(dict.fromkeys(["PATH", "LC_ALL", "OPENAI_API_KEY"], "x"))
    {'PATH': 'x', 'LC_ALL': 'x'}
    """
    return {
        name: value
        for name, value in environment.items()
        if name.upper() in PASSED_VARIABLES or name.startswith("LC_")
    }


def _describe_exit(returncode: int | None) -> str:
    if returncode is None or returncode >= 0:
        return f"it exited with status {returncode}"
    try:
        return f"it was terminated by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"it was terminated by signal {-returncode}"
