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

from toolkit.batch.kernels import (
    LAUNCHER,
    ClosedError,
    Connection,
    Kernel,
    NotWarmError,
    Wanted,
)

BOUND_S = 60.0
LOOK_EVERY_S = 0.01
PORTS = ("shell_port", "iopub_port", "stdin_port", "hb_port", "control_port")


@dataclass(frozen=True, slots=True)
class Spare:
    """A kernel that was made ahead of need.

    Attributes:
        kernel: its process.
        connection: waits until it listens, and returns its address.
    """

    kernel: Kernel
    connection: Callable[[], Connection]


Make = Callable[[Wanted, Path], Spare]


class Spares:
    """Keeps some kernels ready, of the kind that was wanted last.

    Args:
        number: how many.
        make: makes one, whose connection file is at a path.
        folder: for connection files.
    """

    def __init__(self, number: int, make: Make, folder: Path) -> None:
        self._number = number
        self._make = make
        self._folder = folder
        self._numbers = count()
        self._lock = threading.Lock()
        self._kind: tuple[object, ...] | None = None
        self._ready: queue.SimpleQueue[Spare] = queue.SimpleQueue()
        self._given: list[Kernel] = []
        self._closed = False

    def start(self, wanted: Wanted) -> tuple[Kernel, Connection]:
        """Return the kernel that was made first; another is made in its place."""
        interpreter, argv = wanted.launcher()
        env = frozenset(wanted.env.items())
        kind = (interpreter, _options(argv), wanted.cwd, env, wanted.preload)
        with self._lock:
            if self._closed:
                raise ClosedError
            if self._kind != kind:
                self._discard()
                self._kind = kind
            while self._ready.qsize() <= self._number:
                self._ready.put(self._make(wanted, self._folder / f"{next(self._numbers)}.json"))
            spare = self._ready.get()
            self._given = [given for given in self._given if given.poll() is None]
            self._given.append(spare.kernel)
        return spare.kernel, spare.connection()

    def close(self) -> None:
        """Kill what is left, running kernels too."""
        self._closed = True
        with self._lock:
            self._discard()
        for kernel in self._given:
            kernel.kill()
            kernel.wait()

    def _discard(self) -> None:
        while not self._ready.empty():
            kernel = self._ready.get().kernel
            kernel.kill()
            kernel.wait()


def cold(wanted: Wanted, path: Path) -> Spare:
    """Start a kernel in a process of its own, as papermill does."""
    from jupyter_client.launcher import launch_kernel

    interpreter, argv = wanted.launcher()
    # Port 0: the kernel picks ports that are free and writes them into the file.
    write_connection(path, {**dict.fromkeys(PORTS, 0), "ip": "127.0.0.1", "transport": "tcp"})
    command = [*interpreter, "-m", LAUNCHER, "-f", str(path), *_options(argv)]
    process = launch_kernel(command, cwd=wanted.cwd, env={**wanted.env})
    return Spare(process, lambda: _bound(process, path))


def write_connection(path: Path, where: Connection) -> Connection:
    """Write a connection file with a key of its own, which only this user can read."""
    key = secrets.token_hex(16)
    info = {**where, "signature_scheme": "hmac-sha256", "key": key}
    path.touch(0o600)
    path.write_text(json.dumps(info), encoding="utf-8")
    return {**info, "key": key.encode()}


def _options(argv: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for word in argv if word.startswith("--"))


def _bound(process: "subprocess.Popen[bytes]", path: Path) -> Connection:
    waits_until = time.monotonic() + BOUND_S
    while process.poll() is None and time.monotonic() < waits_until:
        with suppress(ValueError, OSError):  # it is being written
            info: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if all(info[port] for port in PORTS):
                return {**info, "key": str(info["key"]).encode()}
        time.sleep(LOOK_EVERY_S)
    process.kill()
    raise NotWarmError
