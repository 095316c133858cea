"""The source of warm kernels: they are forked if this machine can fork, else started early."""

import json
import os
import queue
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from shutil import rmtree
from typing import Any

from toolkit.batch.kernel.fork_server import (
    LAUNCHER,
    READY_TIMEOUT_S,
    ConnectionInfo,
    ForkServer,
    Kernel,
    KernelRequest,
    NotWarmError,
    SourceClosedError,
)
from toolkit.batch.records import IN_BATCH_VARIABLE

PORT_TIMEOUT_S = 60.0
POLL_INTERVAL_S = 0.01
PORTS = ("shell_port", "iopub_port", "stdin_port", "hb_port", "control_port")
MAX_SOCKET_FOLDER = 80  # a path may have 107 bytes; the sockets' own names need some
MAX_ZYGOTES = 4
RENEW_AFTER = 500  # forks after which a zygote is replaced
# Prefixes of variables that differ by kernel, which imports do not read.
_KERNEL_VARIABLE_PREFIXES = ("JPY_", "PYDEVD_")


@dataclass(frozen=True, slots=True)
class SpareKernel:
    """A kernel that was made ahead of need.

    Attributes:
        wait_for_connection: function that waits until the kernel listens, and returns its address.
    """

    kernel: Kernel
    wait_for_connection: Callable[[], ConnectionInfo]


KernelFactory = Callable[[KernelRequest, Path], SpareKernel]


class KernelPool:
    """A pool that keeps some kernels ready, of the kind that was requested last.

    Args:
        make: function that makes a kernel with its connection file at a path.
    """

    def __init__(self, number: int, make: KernelFactory, folder: Path) -> None:
        self._number = number
        self._factory = make
        self._folder = folder
        self._numbers = count()
        self._lock = threading.Lock()
        self._kind: tuple[object, ...] | None = None
        self._ready: queue.SimpleQueue[SpareKernel] = queue.SimpleQueue()
        self._issued: list[Kernel] = []
        self._closed = False

    def start(self, request: KernelRequest) -> tuple[Kernel, ConnectionInfo]:
        """Return the oldest ready kernel, and make another; raise an error after `close`."""
        env = frozenset(request.env.items())
        kind = (request.split_command(), request.cwd, env, request.preload)
        with self._lock:
            if self._closed:
                raise SourceClosedError
            if self._kind != kind:
                self._discard_ready()
                self._kind = kind
            while self._ready.qsize() <= self._number:
                self._ready.put(
                    self._factory(request, self._folder / f"{next(self._numbers)}.json")
                )
            spare = self._ready.get()
            self._issued = [kernel for kernel in self._issued if kernel.poll() is None]
            self._issued.append(spare.kernel)
        return spare.kernel, spare.wait_for_connection()

    def close(self) -> None:
        """Kill all kernels of the pool, running kernels too."""
        self._closed = True
        with self._lock:
            self._discard_ready()
        for kernel in self._issued:
            kernel.kill()
            kernel.wait()

    def _discard_ready(self) -> None:
        while not self._ready.empty():
            kernel = self._ready.get().kernel
            kernel.kill()
            kernel.wait()


def launch_cold(request: KernelRequest, path: Path) -> SpareKernel:
    """Start a kernel in a process of its own, as papermill does."""
    from jupyter_client.launcher import launch_kernel

    interpreter, options = request.split_command()
    # Port 0: the kernel picks ports that are free and writes them into the file.
    write_connection_file(path, {**dict.fromkeys(PORTS, 0), "ip": "127.0.0.1", "transport": "tcp"})
    command = [*interpreter, "-m", LAUNCHER, "-f", str(path), *options]
    process = launch_kernel(command, cwd=request.cwd, env={**request.env})
    return SpareKernel(process, lambda: _wait_for_ports(process, path))


def write_connection_file(path: Path, address: ConnectionInfo) -> ConnectionInfo:
    """Write a connection file with a new key, readable only by this user; return its content."""
    key = secrets.token_hex(16)
    info = {**address, "signature_scheme": "hmac-sha256", "key": key}
    path.touch(0o600)
    path.write_text(json.dumps(info), encoding="utf-8")
    return {**info, "key": key.encode()}


def _wait_for_ports(process: "subprocess.Popen[bytes]", path: Path) -> ConnectionInfo:
    waits_until = time.monotonic() + PORT_TIMEOUT_S
    while process.poll() is None and time.monotonic() < waits_until:
        with suppress(ValueError, OSError):  # it is being written
            info: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if all(info[port] for port in PORTS):
                return {**info, "key": str(info["key"]).encode()}
        time.sleep(POLL_INTERVAL_S)
    process.kill()
    raise NotWarmError


class KernelSource:
    """A source of kernels that are already prepared; safe to call from many threads.

    They are forked from zygotes, processes that have done the imports. A zygote that died or
    forked often is replaced. A kernel that cannot be forked is a process that was started ahead
    of need.

    Args:
        spares: number of kernels to keep ready. At most one forked kernel is kept ready; it gets
            ready while a notebook runs.
    """

    def __init__(self, *, fork: bool, spares: int) -> None:
        self._forks = fork and can_fork()
        is_long = self._forks and len(tempfile.gettempdir()) >= MAX_SOCKET_FOLDER
        # The folder is private: mkdtemp makes it for this user alone.
        short = "/tmp" if is_long else None  # noqa: S108  # nosec B108
        self.folder = tempfile.mkdtemp(prefix="toolkit-", dir=short)
        self._forked_pool = KernelPool(min(1, spares), self._fork, Path(self.folder))
        self._cold_pool = KernelPool(spares, launch_cold, Path(self.folder))
        self._lock = threading.Lock()
        self._servers: OrderedDict[tuple[object, ...], ForkServer] = OrderedDict()
        self._retired: list[ForkServer] = []
        self._closed = False

    def prepare(self, request: KernelRequest) -> None:
        """Start the process that kernels will be forked from, if this machine can fork.

        Other kernels are not started early: they are wasted if the request is of another kind.
        """
        if self._forks:
            self._get_server(request.split_command()[0], request)

    def start(self, request: KernelRequest) -> tuple[Kernel, ConnectionInfo]:
        """Return a kernel that was never used, and the address at which it listens.

        Raises:
            NotWarmError: if only a cold kernel is available.
            SourceClosedError: if the source was closed.
        """
        for _ in range(2 if self._forks else 0):  # the first may have died with its zygote
            try:
                return self._forked_pool.start(request)
            except NotWarmError:
                continue
        return self._cold_pool.start(request)

    def close(self) -> None:
        """Kill all kernels of the source, running kernels too."""
        with self._lock:
            self._closed = True
            zygotes = (*self._servers.values(), *self._retired)
        for zygote in zygotes:
            zygote.close()
        self._forked_pool.close()
        self._cold_pool.close()
        rmtree(self.folder, ignore_errors=True)

    def _fork(self, request: KernelRequest, path: Path) -> SpareKernel:
        interpreter, options = request.split_command()
        address: ConnectionInfo = {"ip": str(path.with_suffix("")), "transport": "ipc"}
        address |= {port: number for number, port in enumerate(PORTS, 1)}
        connection = write_connection_file(path, address)
        kernel = self._get_server(interpreter, request).fork(
            ("-f", str(path), *options), request.cwd, request.env
        )

        def wait_for_connection() -> ConnectionInfo:
            # A client that connects sooner is refused, and waits before it tries again.
            kernel.listening.wait(READY_TIMEOUT_S)
            if kernel.poll() is not None:
                raise NotWarmError
            return connection

        return SpareKernel(kernel, wait_for_connection)

    def _get_server(self, interpreter: tuple[str, ...], request: KernelRequest) -> ForkServer:
        env = frozenset(
            item
            for item in request.env.items()
            if not item[0].startswith(_KERNEL_VARIABLE_PREFIXES)
        )
        key = (interpreter, request.preload, env)
        with self._lock:
            if self._closed:
                raise SourceClosedError
            zygote = self._servers.pop(key, None)
            if zygote is not None and zygote.forks >= RENEW_AFTER:
                self._retire(zygote)
            if zygote is None or not zygote.is_alive:
                zygote = ForkServer(interpreter, request.env, request.preload)
            self._servers[key] = zygote
            while len(self._servers) > MAX_ZYGOTES:
                self._retire(self._servers.popitem(last=False)[1])
            return zygote

    def _retire(self, zygote: ForkServer) -> None:
        zygote.retire()
        self._retired = [old for old in (*self._retired, zygote) if old.has_kernels]


def can_fork() -> bool:
    """Check whether processes can be forked here; not on macOS, whose frameworks may crash then."""
    return hasattr(os, "fork") and sys.platform != "darwin"


def prepare_python(source: KernelSource, preload: tuple[str, ...]) -> None:
    """Make a source prepare kernels of this Python, because papermill will request them."""
    environment = {**os.environ, IN_BATCH_VARIABLE: "1"}
    command = (sys.executable, "-m", LAUNCHER)
    source.prepare(KernelRequest(command, os.getcwd(), environment, preload))
