"""A `python` and a `toolkit` without import time: each is forked from a process with the imports.

Starting a program costs more time than the work of most tests. The scripts `python` and `toolkit`
(`CALLER`) send their arguments, folder, variables and open files to that process over a socket; a
fork of it then becomes the program, and ends with its caller. Its process id differs from its
caller's.
"""

import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType

from tests.crash.fork_server import preload
from toolkit.batch.kernel._zygote import INLINE_BACKEND, KERNEL_IMPORTS
from toolkit.batch.kernel.fork_server import LAUNCHER

# Arguments that are neither a module nor a text are run by Python itself.
CALLER = """\
#!{python} -SE
import json, os, signal, socket, sys
words = {words!r} + sys.argv[1:]
if words[:1] not in (["-m"], ["-c"]):
    os.execv({python!r}, [{python!r}, *words])
os.umask(mask := os.umask(0))
asked = json.dumps([words, os.getcwd(), dict(os.environ), mask]).encode()
with socket.socket(socket.AF_UNIX) as line:
    line.connect({address!r})
    socket.send_fds(line, [len(asked).to_bytes(4, "big")], [0, 1, 2])
    line.sendall(asked)
    with line.makefile("r") as answers:
        program = int(answers.readline())
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, _: os.kill(program, number))
        ended = answers.readline()
sys.exit(int(ended or 1))
"""
# Modules that our notebooks import.
NOTEBOOK_IMPORTS = (
    "matplotlib.pyplot", "pandas", "toolkit.batch", "toolkit.notebook", "toolkit.sandbox",
)  # fmt: skip
PROGRAMS: dict[str, list[str]] = {"python": [], "toolkit": ["-m", "toolkit"]}


@contextmanager
def install_forked_programs(folder: Path, *modules: str) -> Iterator[Path]:
    """Put the programs into a folder for PATH; all started programs end with the block.

    Args:
        folder: folder for the programs.
        modules: modules to import in addition to those of a server.
    """
    folder.mkdir()
    address = str(folder / "s")
    for name, words in PROGRAMS.items():
        caller = folder / name
        text = CALLER.format(python=sys.executable, words=words, address=address)
        caller.write_text(text, encoding="utf-8")
        caller.chmod(0o700)
    line = [sys.executable, "-m", __name__, address, *modules]
    parent = subprocess.Popen(line, stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        yield folder
    finally:
        os.killpg(parent.pid, signal.SIGKILL)
        parent.wait()
        parent.stdout.close()


@contextmanager
def install_forked_kernel(folder: Path) -> Iterator[Path]:
    """Install a forking kernel in a folder, to be used as `JUPYTER_PATH`."""
    modules = (*KERNEL_IMPORTS, *NOTEBOOK_IMPORTS)
    with install_forked_programs(folder / "bin", *modules) as programs:
        argv = [str(programs / "python"), "-m", LAUNCHER, "-f", "{connection_file}"]
        kernel = {"argv": argv, "language": "python", "display_name": "Python 3 (ipykernel)"}
        spec = folder / "kernels" / "python3" / "kernel.json"
        spec.parent.mkdir(parents=True)
        spec.write_text(json.dumps(kernel), encoding="utf-8")
        yield folder


def _run_program(line: socket.socket) -> None:
    """Become the program that a caller asks for."""
    size, files, _, _ = socket.recv_fds(line, 4, 3)
    with line.makefile("rb") as stream:
        message = stream.read(int.from_bytes(size, "big"))
    if not message.endswith(b"]"):  # the caller was killed meanwhile
        os._exit(1)
    words, folder, environment, mask = json.loads(message)
    for mine, theirs in enumerate(files):
        os.dup2(theirs, mine)
        os.close(theirs)
    os.umask(mask)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    line.sendall(f"{os.getpid()}\n".encode())
    threading.Thread(target=_end_with_caller, args=[line], daemon=True).start()
    kind, target, *arguments = words
    if kind == "-m":
        sys.argv = [target, *arguments]
        runpy.run_module(target, run_name="__main__", alter_sys=True)
    else:
        sys.argv = ["-c", *arguments]
        sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(target, "<string>", "exec"), vars(sys.modules["__main__"]))


def _end_with_caller(line: socket.socket) -> None:
    if not line.recv(1):
        os.kill(os.getpid(), signal.SIGKILL)


def _answer(line: socket.socket) -> None:
    code = 1
    try:
        _run_program(line)
        code = 0
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        with suppress(OSError):  # the caller may have been killed
            line.sendall(f"{code}\n".encode())
        os._exit(0)


def _reap_children(*_: object) -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def main(address: str, *imports: str) -> None:
    """Fork a program for each caller, until killed."""
    preload()
    import ipykernel.kernelapp  # noqa: F401

    from toolkit.cli import resources

    for module in pkgutil.iter_modules(resources.__path__, f"{resources.__name__}."):
        import_module(module.name)
    modules = "client", "engine.access.account_admin", "store.maintenance.backup"
    for name in (*modules, "store.maintenance.doctor"):
        import_module(f"toolkit.{name}")
    os.environ["MPLBACKEND"] = INLINE_BACKEND  # as in a kernel when it imports matplotlib
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # a kernel's debugger would warn
    for name in imports:
        import_module(name)
    signal.signal(signal.SIGCHLD, _reap_children)  # so that the CPU time of the children is counted
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        print("ready", flush=True)
        while True:
            line, _ = listener.accept()
            if os.fork() == 0:
                _answer(line)
            line.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
