"""The zygote: a process that has done imports, has no thread or socket, and forks kernels.

`toolkit.batch.kernel.fork_server` starts it as a script, with the interpreter of the kernel, so it
imports nothing of ours. A kernel is a child that runs one notebook and exits, and all its changes
to modules, environment, folder, handlers or builtins end with it. Both sides exchange JSON lines:

    {"fork": {"argv": [...], "cwd": "...", "env": {...}}}   ->   {"forked": 4711}
    {"signal": [4711, 9]}                                        {"listens": 4711}
                                                                 {"ended": [4711, -9]}

A kernel itself announces that it listens. When the other side hangs up, all kernels are killed.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

# The modules that a kernel imports while it starts. The inline backend of matplotlib is left out:
# it would find no kernel here, and would not search again.
KERNEL_IMPORTS = (
    "ipykernel.kernelapp",
    "ipykernel.debugger",
    "ipykernel.zmqshell",
    "IPython.core.completerlib",
    "IPython.core.debugger",
    "IPython.core.oinspect",
    "IPython.extensions.storemagic",
    "IPython.core.logger",
    "IPython.utils.wildcard",
    "concurrent.futures.thread",
    "dateutil.easter",
    "faulthandler",
    "pdb",
    "psutil",
    "sqlite3",
    "tornado.platform.asyncio",
)
INLINE_BACKEND = "module://matplotlib_inline.backend_inline"


class Zygote:
    """The process that forks kernels on request, and reports when one has ended."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._kernels: set[int] = set()
        self._buffer = b""
        self._wake_fd, waker = os.pipe()
        self._fds = (self._wake_fd, waker)
        for fd in self._fds:
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(waker)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self) -> None:
        """Fork and signal kernels on request until the parent process closes the channel.

        At the end, all kernels are killed.
        """
        while True:
            ready, _, _ = select.select([self._channel.fileno(), self._wake_fd], [], [])
            if self._wake_fd in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake_fd, 4096)
                self._reap_kernels()
            if self._channel.fileno() in ready:
                received = self._channel.recv(65536)
                if not received:
                    break
                *lines, self._buffer = (self._buffer + received).split(b"\n")
                for line in lines:
                    self._handle_request(json.loads(line))
        for pid in self._kernels:
            self._signal(pid, signal.SIGKILL)

    def send_message(self, what: dict[str, object]) -> None:
        """Send a message as one line of JSON; do nothing if the channel is closed."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._channel.sendall(json.dumps(what).encode() + b"\n")

    def _handle_request(self, request: dict[str, Any]) -> None:
        if "signal" in request:
            pid, number = request["signal"]
            # Only a kernel that was not reaped, because no other process can have its number yet.
            if pid in self._kernels:
                self._signal(pid, number)
            return
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for fd in self._fds:
                os.close(fd)
            run_kernel(self._announce_listening, **request["fork"])
        self._kernels.add(pid)
        self.send_message({"forked": pid})

    def _announce_listening(self) -> None:
        """Tell the parent that this kernel accepts connections, and close the channel to it."""
        self.send_message({"listens": os.getpid()})
        self._channel.close()

    def _reap_kernels(self) -> None:
        for pid in tuple(self._kernels):
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                # Kill its child processes; until it is reaped, its group id is not reused.
                self._signal(pid, signal.SIGKILL)
                _, status = os.waitpid(pid, 0)
                self._kernels.discard(pid)
                self.send_message({"ended": [pid, os.waitstatus_to_exitcode(status)]})

    @staticmethod
    def _signal(pid: int, number: int) -> None:
        # The kernel and its child processes; it may not lead its process group yet.
        for send in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                send(pid, number)
                return


def run_kernel(
    listens: Callable[[], None], argv: list[str], cwd: str, env: dict[str, str]
) -> NoReturn:
    """Run as a kernel until exit, as if it had been started with these arguments."""
    code = 1
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.environ.clear()
        os.environ.update(env)
        os.chdir(cwd)
        sys.argv = argv
        if "numpy" in sys.modules:
            # Python's own generator reseeds itself; NumPy's would give all kernels equal numbers.
            sys.modules["numpy"].random.seed()
        gc.enable()
        from ipykernel.kernelapp import IPKernelApp

        app = IPKernelApp.instance()
        app.parent_handle = os.getppid()
        app.initialize(argv[1:])
        # Sometimes its threads wait there for each other for seconds; the process exit ends them.
        atexit.unregister(app.close)
        listens()
        app.start()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc(file=sys.__stderr__)
    finally:
        exit_kernel(code)


def exit_kernel(code: int) -> NoReturn:
    """Exit as an interpreter does, except that modules are not taken down one by one.

    Taking them down would touch, and so copy, every page shared with the zygote: it tripled the
    cost of a small notebook. Resources that the notebook itself left open are closed.
    """
    from IPython.core.getipython import get_ipython

    with contextlib.suppress(BaseException):
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        if (shell := get_ipython()) is not None:
            shell.user_ns.clear()
            sys.modules.pop("__main__", None)
        gc.collect()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    os._exit(code)


def preload_module(name: str) -> None:
    """Import `module`; for `module:name`, also load the name, even if it is a submodule.

    The names come from the batch's starter, or from the cells of the notebook that runs anyway.
    """
    path, _, member = name.partition(":")
    module = importlib.import_module(path)  # nosemgrep: rules.no-import-of-data
    if member and not hasattr(module, member):
        importlib.import_module(f"{path}.{member}")  # nosemgrep: rules.no-import-of-data


def main() -> None:
    """Import the preloads, report whether that left threads running, and serve."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    if not sys.flags.safe_path:
        del sys.path[0]  # the folder of this script, where a kernel must not look for modules
    os.environ.setdefault("MPLBACKEND", INLINE_BACKEND)
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")  # a kernel's debugger warns of it
    gc.disable()
    for name in (*KERNEL_IMPORTS, *json.loads(sys.argv[2])):
        # A failed import is raised again in the notebook, where its author sees it.
        with contextlib.suppress(BaseException):
            preload_module(name)
    gc.freeze()  # uncollected: a hundredth of these objects is garbage
    zygote = Zygote(channel)
    zygote.send_message({"threads": threading.active_count()})
    zygote.serve()


if __name__ == "__main__":
    main()
