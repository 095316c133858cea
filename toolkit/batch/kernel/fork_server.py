"""Kernels forked from a process that has done their imports: milliseconds instead of a second."""

import json
import os
import queue
import signal
import socket
import subprocess
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from typing import IO, cast

from toolkit.batch.kernel import _zygote
from toolkit.batch.kernel.pool import (
    PORTS,
    KernelPool,
    SpareKernel,
    launch_cold,
    write_connection_file,
)
from toolkit.batch.kernel.protocols import (
    LAUNCHER,
    ConnectionInfo,
    Kernel,
    KernelRequest,
    NotWarmError,
    SourceClosedError,
)

READY_TIMEOUT_S = 60.0
MAX_SOCKET_FOLDER = 80  # a path may have 107 bytes; the sockets' own names need some
MAX_ZYGOTES = 4
_KERNEL_VARIABLE_PREFIXES = (
    "JPY_",
    "PYDEVD_",
)  # variables that differ by kernel, which imports do not read


class ForkedKernel:
    """A kernel that a zygote forked, as its parent process sees it."""

    stdin: IO[bytes] | None = None
    stdout: IO[bytes] | None = None
    stderr: IO[bytes] | None = None

    def __init__(self, pid: int, zygote: "ForkServer") -> None:
        self.pid = pid
        self._zygote = zygote
        self._listening = threading.Event()
        self._ended = threading.Event()
        self._exit_code: int | None = None

    def mark_ended(self, code: int) -> None:
        """Note that it has ended."""
        self._exit_code = code
        self._ended.set()
        self._listening.set()

    def mark_listening(self) -> None:
        """Note that it listens."""
        self._listening.set()

    def wait_until_listening(self) -> None:
        """Wait until it listens or has ended: who connects sooner is turned away, and waits to try
        again.
        """
        self._listening.wait(READY_TIMEOUT_S)

    def poll(self) -> int | None:
        """Return its exit code, once it has one."""
        return self._exit_code

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its exit code."""
        if not self._ended.wait(timeout) or self._exit_code is None:
            raise subprocess.TimeoutExpired(f"kernel {self.pid}", timeout or 0)
        return self._exit_code

    def send_signal(self, sig: int, /) -> None:
        """Signal it and what it started."""
        self._zygote.signal(self.pid, sig)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
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
                # A Ctrl-C is for the process that runs the batch, not for its kernels.
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
        """True if it can be asked for kernels."""
        return self._reader.is_alive() and not self._retired

    @property
    def has_kernels(self) -> bool:
        """True if it still has kernels."""
        return bool(self._kernels)

    def fork(self, argv: tuple[str, ...], cwd: str, env: Mapping[str, str]) -> ForkedKernel:
        """Fork a new kernel.

        Raises:
            NotWarmError: if the process has died, or what it imported has started threads, which
                a fork would lose.
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
        """Signal a kernel that is still there."""
        with suppress(NotWarmError):
            self._send({"signal": [pid, int(number)]})

    def retire(self) -> None:
        """Fork no more, and end with the last kernel."""
        self._retired = True
        if not self._kernels:
            self.close()

    def close(self) -> None:
        """End it and its kernels."""
        self._retired = True
        with suppress(OSError):
            self._channel.shutdown(socket.SHUT_RDWR)
        self._process.wait()
        self._reader.join()

    def _next_reply(self) -> "bool | ForkedKernel":
        told = self._replies.get(timeout=READY_TIMEOUT_S)
        if told is None:
            self._replies.put(None)
            raise NotWarmError
        return told

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
            # Its parent is gone, and nobody else would end it.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(kernel.pid, signal.SIGKILL)
            kernel.mark_ended(-signal.SIGKILL)
        self._process.wait()

    def _handle_message(self, told: dict[str, object]) -> None:
        match told:
            case {"threads": int(count)}:
                self._replies.put(count == 1)
            case {"forked": int(pid)}:
                self._replies.put(self._find_kernel(pid))
            case {"listens": int(pid)}:
                self._find_kernel(pid).mark_listening()
            case {"ended": [int(pid), int(code)]}:
                self._kernels.pop(pid).mark_ended(code)
                if self._retired and not self._kernels:
                    self._channel.shutdown(socket.SHUT_RDWR)

    def _find_kernel(self, pid: int) -> ForkedKernel:
        """Find a kernel, or note a new one: it may say that it listens before its fork is told."""
        return self._kernels.setdefault(pid, ForkedKernel(pid, self))


class ForkedKernelSource:
    """A source of kernels from zygotes, by imports; one that died or forked often is replaced.

    Where any spares are kept, one kernel is always forked ahead: it gets ready while a notebook
    runs.
    """

    def __init__(self, *, spares: int, renew_after: int) -> None:
        usual = len(tempfile.gettempdir()) < MAX_SOCKET_FOLDER
        # The folder is private: mkdtemp makes it for this user alone.
        short = None if usual else "/tmp"  # noqa: S108  # nosec B108
        self.folder = tempfile.mkdtemp(prefix="toolkit-", dir=short)
        self._renew_after = renew_after
        self._forked_pool = KernelPool(min(1, spares), self._fork, Path(self.folder))
        self._cold_pool = KernelPool(spares, launch_cold, Path(self.folder))
        self._lock = threading.Lock()
        self._servers: OrderedDict[tuple[object, ...], ForkServer] = OrderedDict()
        self._retired: list[ForkServer] = []
        self._closed = False

    def prepare(self, wanted: KernelRequest) -> None:
        """Start the process that will be forked: it does its imports meanwhile."""
        self._get_server(wanted.split_command()[0], wanted)

    def start(self, wanted: KernelRequest) -> tuple[Kernel, ConnectionInfo]:
        """Return a forked kernel; where that cannot be, one that was started ahead of need."""
        for _ in range(2):  # the first may have died with its zygote
            try:
                return self._forked_pool.start(wanted)
            except NotWarmError:
                continue
        return self._cold_pool.start(wanted)

    def close(self) -> None:
        """Kill what is left, running kernels too."""
        with self._lock:
            self._closed = True
            zygotes = (*self._servers.values(), *self._retired)
        for zygote in zygotes:
            zygote.close()
        self._forked_pool.close()
        self._cold_pool.close()
        rmtree(self.folder, ignore_errors=True)

    def _fork(self, wanted: KernelRequest, path: Path) -> SpareKernel:
        interpreter, argv = wanted.split_command()
        where: ConnectionInfo = {"ip": str(path.with_suffix("")), "transport": "ipc"}
        where |= {port: number for number, port in enumerate(PORTS, 1)}
        connection = write_connection_file(path, where)
        options = [word for word in argv if word.startswith("--")]
        kernel = self._get_server(interpreter, wanted).fork(
            ("-f", str(path), *options), wanted.cwd, wanted.env
        )

        def wait_for_connection() -> ConnectionInfo:
            kernel.wait_until_listening()
            if kernel.poll() is not None:
                raise NotWarmError
            return connection

        return SpareKernel(kernel, wait_for_connection)

    def _get_server(self, interpreter: tuple[str, ...], wanted: KernelRequest) -> ForkServer:
        env = frozenset(
            item for item in wanted.env.items() if not item[0].startswith(_KERNEL_VARIABLE_PREFIXES)
        )
        key = (interpreter, wanted.preload, env)
        with self._lock:
            if self._closed:
                raise SourceClosedError
            zygote = self._servers.pop(key, None)
            if zygote is not None and zygote.forks >= self._renew_after:
                self._retire(zygote)
            if zygote is None or not zygote.is_alive:
                zygote = ForkServer(interpreter, wanted.env, wanted.preload)
            self._servers[key] = zygote
            while len(self._servers) > MAX_ZYGOTES:
                self._retire(self._servers.popitem(last=False)[1])
            return zygote

    def _retire(self, zygote: ForkServer) -> None:
        zygote.retire()
        self._retired = [old for old in (*self._retired, zygote) if old.has_kernels]
