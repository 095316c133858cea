"""Kernels started ahead of need, for where none can be forked: each serves one notebook."""

import json
import queue
import secrets
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from shutil import rmtree
from typing import Any

from toolkit.batch.kernels import ClosedError, Connection, Kernel, NotWarmError, Wanted

BOUND_S = 60.0
LOOK_EVERY_S = 0.01
PORTS = ("shell_port", "iopub_port", "stdin_port", "hb_port", "control_port")
_Spare = tuple["subprocess.Popen[bytes]", Path]


class Spares:
    """Keeps some kernels ready, all alike: who wants another kind gets one started for it."""

    ipc = False

    def __init__(self, number: int) -> None:
        self.folder = tempfile.mkdtemp(prefix="toolkit-")
        self._number = number
        self._numbers = count()
        self._lock = threading.Lock()
        self._kind: tuple[object, ...] | None = None
        self._ready: queue.SimpleQueue[_Spare] = queue.SimpleQueue()
        self._given: list[subprocess.Popen[bytes]] = []
        self._closed = False

    def start(self, wanted: Wanted) -> tuple[Kernel, Connection]:
        """The kernel that was started first, while another is started in its place."""
        interpreter, argv = wanted.launcher()
        options = tuple(word for word in argv if word.startswith("--"))
        env = frozenset(wanted.env.items())
        kind = (interpreter, options, wanted.cwd, env)
        with self._lock:
            if self._closed:
                raise ClosedError
            if self._kind is None:
                self._kind = kind
                for _ in range(self._number):
                    self._ready.put(self._launch(interpreter, options, wanted.cwd, wanted.env))
            spare = self._launch(interpreter, options, wanted.cwd, wanted.env)
            if kind == self._kind:
                self._ready.put(spare)
                spare = self._ready.get()
            process, path = spare
            self._given = [given for given in self._given if given.poll() is None] + [process]
        return process, self._bound(process, path)

    def close(self) -> None:
        """Kill what is left, running kernels too."""
        with self._lock:
            self._closed = True
            left = self._given
            while not self._ready.empty():
                left.append(self._ready.get()[0])
        for process in left:
            process.kill()
            process.wait()
        rmtree(self.folder, ignore_errors=True)

    def _launch(
        self,
        interpreter: tuple[str, ...],
        options: tuple[str, ...],
        cwd: str,
        env: Mapping[str, str],
    ) -> _Spare:
        from jupyter_client.launcher import launch_kernel

        path = Path(self.folder) / f"{next(self._numbers)}.json"
        # Port 0: the kernel picks ports that are free and writes them into the file.
        info: dict[str, object] = dict.fromkeys(PORTS, 0)
        info |= {"ip": "127.0.0.1", "transport": "tcp", "signature_scheme": "hmac-sha256"}
        info["key"] = secrets.token_hex(16)
        path.touch(0o600)
        path.write_text(json.dumps(info), encoding="utf-8")
        command = [*interpreter, "-m", "ipykernel_launcher", "-f", str(path), *options]
        return launch_kernel(command, cwd=cwd, env={**env}), path

    def _bound(self, process: "subprocess.Popen[bytes]", path: Path) -> Connection:
        waits_until = time.monotonic() + BOUND_S
        while process.poll() is None and time.monotonic() < waits_until:
            with suppress(ValueError, OSError):  # it is being written
                info: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
                if all(info[port] for port in PORTS):
                    return {**info, "key": str(info["key"]).encode()}
            time.sleep(LOOK_EVERY_S)
        process.kill()
        raise NotWarmError
