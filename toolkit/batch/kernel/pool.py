"""A pool of kernels that are made ahead of need, each for one notebook: forked or started."""

import json
import queue
import secrets
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from toolkit.batch.kernel.protocols import (
    LAUNCHER,
    ConnectionInfo,
    Kernel,
    KernelRequest,
    NotWarmError,
    SourceClosedError,
)

PORT_TIMEOUT_S = 60.0
POLL_INTERVAL_S = 0.01
PORTS = ("shell_port", "iopub_port", "stdin_port", "hb_port", "control_port")


@dataclass(frozen=True, slots=True)
class SpareKernel:
    """A kernel that was made ahead of need.

    Attributes:
        kernel: process of the kernel.
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
        """Return the oldest ready kernel, and make another in its place."""
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
    """Write a connection file with a key of its own, which only this user can read."""
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
