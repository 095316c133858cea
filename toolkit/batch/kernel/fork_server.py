"""Kernels forked from a process that has done their imports: milliseconds instead of a second."""

import json
import os
import queue
import signal
import socket
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol, cast

from toolkit.batch.kernel import _zygote

LAUNCHER = "ipykernel_launcher"
ConnectionInfo = dict[str, Any]
READY_TIMEOUT_S = 60.0


class NotWarmError(Exception):
    """Raised if no prepared kernel can serve a request; the caller starts a kernel as usual."""


class SourceClosedError(Exception):
    """Raised to callers that wait for a kernel from a source that was closed."""


class Kernel(Protocol):
    """The process of a kernel: a `subprocess.Popen`, or a process that a zygote forked."""

    pid: int

    def poll(self) -> int | None:
        """Return the exit code of the kernel, or None while the kernel runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the kernel ends, and return its exit code; raise an error after `timeout`."""

    def kill(self) -> None:
        """Send SIGKILL to the kernel, without waiting for its end."""


@dataclass(frozen=True, slots=True)
class KernelRequest:
    """A request to a source of kernels for one new kernel.

    Attributes:
        command: command that would start the kernel cold.
        preload: imports that it may have done already, as `module` or `module:name`.
    """

    command: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    preload: tuple[str, ...] = ()

    def split_command(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Split the command in two: the interpreter with its options, and the kernel's own options.

        Raises:
            NotWarmError: if the command does not start an IPython kernel.
        """
        if LAUNCHER not in self.command:
            raise NotWarmError
        at = self.command.index(LAUNCHER)
        options = tuple(word for word in self.command[at + 1 :] if word.startswith("--"))
        return self.command[: at - 1], options


class ForkedKernel:
    """A kernel that a zygote forked, from the view of the parent process."""

    stdin: IO[bytes] | None = None
    stdout: IO[bytes] | None = None
    stderr: IO[bytes] | None = None

    def __init__(self, pid: int, zygote: "ForkServer") -> None:
        self.pid = pid
        self._zygote = zygote
        self.listening = threading.Event()  # or it has ended
        self._ended = threading.Event()
        self._exit_code: int | None = None

    def mark_ended(self, code: int) -> None:
        """Keep the kernel's exit code, and wake the threads that wait for it."""
        self._exit_code = code
        self._ended.set()
        self.listening.set()

    def poll(self) -> int | None:
        """Return the kernel's exit code, or None while the kernel runs."""
        return self._exit_code

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the kernel's end and return its exit code, or raise `TimeoutExpired`."""
        if not self._ended.wait(timeout) or self._exit_code is None:
            raise subprocess.TimeoutExpired(f"kernel {self.pid}", timeout or 0)
        return self._exit_code

    def send_signal(self, sig: int, /) -> None:
        """Send a signal to the kernel and to the processes that it started."""
        self._zygote.signal(self.pid, sig)

    def terminate(self) -> None:
        """Send SIGTERM to the kernel and to the processes that it started."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL to the kernel and to the processes that it started."""
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """The parent's side of a `toolkit.batch.kernel._zygote` process, and its kernels."""

    def __init__(
        self, interpreter: tuple[str, ...], env: Mapping[str, str], preload: tuple[str, ...]
    ) -> None:
        self._channel, theirs = socket.socketpair()
        script = str(Path(_zygote.__file__))
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603
                [*interpreter, script, str(theirs.fileno()), json.dumps(preload)],
                env=dict(env),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                # A Ctrl-C must reach the process that runs the batch, not its kernels.
                start_new_session=True,
            )
        self.forks = 0
        self._lock = threading.Lock()
        self._retired = False
        self._can_fork: bool | None = None
        self._kernels: dict[int, ForkedKernel] = {}
        self._replies: queue.SimpleQueue[bool | ForkedKernel | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read_messages, daemon=True, name="zygote")
        self._reader.start()

    @property
    def is_alive(self) -> bool:
        """True if the process can be asked to fork kernels."""
        return self._reader.is_alive() and not self._retired

    @property
    def has_kernels(self) -> bool:
        """True if kernels that the process forked still run."""
        return bool(self._kernels)

    def fork(self, argv: tuple[str, ...], cwd: str, env: Mapping[str, str]) -> ForkedKernel:
        """Fork a new kernel.

        Raises:
            NotWarmError: if the process has died, or if its imports have started threads, which a
                fork would lose.
        """
        with self._lock:
            if self._can_fork is None:
                self._can_fork = self._next_reply() is True
            if not self._can_fork:
                raise NotWarmError
            self._send({"fork": {"argv": [LAUNCHER, *argv], "cwd": cwd, "env": {**env}}})
            self.forks += 1
            return cast("ForkedKernel", self._next_reply())

    def signal(self, pid: int, number: int) -> None:
        """Send a signal to a kernel; do nothing if the kernel or its zygote has ended."""
        with suppress(NotWarmError):
            self._send({"signal": [pid, int(number)]})

    def retire(self) -> None:
        """Fork no more kernels; the process ends with its last kernel, or now if it has none."""
        self._retired = True
        if not self._kernels:
            self.close()

    def close(self) -> None:
        """End the process and kill the kernels that it forked; wait until all have ended."""
        self._retired = True
        with suppress(OSError):
            self._channel.shutdown(socket.SHUT_RDWR)
        self._process.wait()
        self._reader.join()

    def _next_reply(self) -> "bool | ForkedKernel":
        reply = self._replies.get(timeout=READY_TIMEOUT_S)
        if reply is None:
            self._replies.put(None)
            raise NotWarmError
        return reply

    def _send(self, what: dict[str, object]) -> None:
        try:
            self._channel.sendall(json.dumps(what).encode() + b"\n")
        except OSError:
            raise NotWarmError from None

    def _read_messages(self) -> None:
        with self._channel, self._channel.makefile("rb") as lines, suppress(OSError):
            for line in lines:
                self._handle_message(json.loads(line))
        self._replies.put(None)
        for kernel in tuple(self._kernels.values()):
            # Its parent has exited, and no other process would end it.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(kernel.pid, signal.SIGKILL)
            kernel.mark_ended(-signal.SIGKILL)
        self._process.wait()

    def _handle_message(self, message: dict[str, object]) -> None:
        match message:
            case {"threads": int(count)}:
                self._replies.put(count == 1)
            case {"forked": int(pid)}:
                self._replies.put(self._find_kernel(pid))
            case {"listens": int(pid)}:
                self._find_kernel(pid).listening.set()
            case {"ended": [int(pid), int(code)]}:
                self._kernels.pop(pid).mark_ended(code)
                if self._retired and not self._kernels:
                    self._channel.shutdown(socket.SHUT_RDWR)

    def _find_kernel(self, pid: int) -> ForkedKernel:
        """Find or add a kernel: its message that it listens may arrive before that of its fork."""
        return self._kernels.setdefault(pid, ForkedKernel(pid, self))
