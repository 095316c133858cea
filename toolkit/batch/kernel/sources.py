"""The source of warm kernels: they are forked if this machine can fork, else started early."""

import os
import sys
import tempfile
import threading
from collections import OrderedDict
from pathlib import Path
from shutil import rmtree

from toolkit.batch.kernel.fork_server import READY_TIMEOUT_S, ForkServer
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
from toolkit.batch.records import IN_BATCH_VARIABLE

MAX_SOCKET_FOLDER = 80  # a path may have 107 bytes; the sockets' own names need some
MAX_ZYGOTES = 4
# Prefixes of variables that differ by kernel, which imports do not read.
_KERNEL_VARIABLE_PREFIXES = ("JPY_", "PYDEVD_")


class KernelSource:
    """A source of kernels that are already prepared; safe to call from many threads.

    They are forked from zygotes, by imports; a zygote that died or forked often is replaced. A
    kernel that cannot be forked is a process that was started ahead of need.

    Args:
        spares: number of kernels to keep ready. At most one forked kernel is kept ready; it gets
            ready while a notebook runs.
        renew_after: number of forks after which a zygote is replaced.

    Attributes:
        folder: folder of the connection files.
    """

    def __init__(self, *, fork: bool, spares: int, renew_after: int) -> None:
        self._forks = fork and can_fork()
        is_long = self._forks and len(tempfile.gettempdir()) >= MAX_SOCKET_FOLDER
        # The folder is private: mkdtemp makes it for this user alone.
        short = "/tmp" if is_long else None  # noqa: S108  # nosec B108
        self.folder = tempfile.mkdtemp(prefix="toolkit-", dir=short)
        self._renew_after = renew_after
        self._forked_pool = KernelPool(min(1, spares), self._fork, Path(self.folder))
        self._cold_pool = KernelPool(spares, launch_cold, Path(self.folder))
        self._lock = threading.Lock()
        self._servers: OrderedDict[tuple[object, ...], ForkServer] = OrderedDict()
        self._retired: list[ForkServer] = []
        self._closed = False

    def prepare(self, request: KernelRequest) -> None:
        """Start the process that will be forked: it does its imports meanwhile.

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
            if zygote is not None and zygote.forks >= self._renew_after:
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
    """Check whether processes can be forked here; on macOS its own frameworks do not survive it."""
    return hasattr(os, "fork") and sys.platform != "darwin"


def prepare_python(source: KernelSource, preload: tuple[str, ...]) -> None:
    """Make a source prepare kernels of this Python, because papermill will request them."""
    environment = {**os.environ, IN_BATCH_VARIABLE: "1"}
    command = (sys.executable, "-m", LAUNCHER)
    source.prepare(KernelRequest(command, os.getcwd(), environment, preload))
