"""A `toolkit` for shells that costs no imports: each is forked from one process that made them.

A page's script is dozens of programs, and starting one costs more than what it does. What a shell
finds as `toolkit` (`CALLER`) hands its words, folder, variables and open files to that process over
a socket; from then on it is the command itself.
"""

import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

from tests.crash.fork_server import preload

CALLER = """\
#!{python} -SE
import json, os, signal, socket, sys
os.umask(mask := os.umask(0))
asked = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ), mask]).encode()
with socket.socket(socket.AF_UNIX) as line:
    line.connect({address!r})
    socket.send_fds(line, [len(asked).to_bytes(4, "big")], [0, 1, 2])
    line.sendall(asked)
    with line.makefile("r") as answers:
        command = int(answers.readline())
        signal.signal(signal.SIGTERM, lambda *_: os.kill(command, signal.SIGTERM))
        ended = answers.readline()
sys.exit(int(ended or 1))
"""


@contextmanager
def install_forked_toolkit(folder: Path) -> Iterator[Path]:
    """Put a `toolkit` into a folder, which is what to find it by; all that it began ends after."""
    folder.mkdir()
    address = str(folder / "s")
    caller = folder / "toolkit"
    caller.write_text(CALLER.format(python=sys.executable, address=address), encoding="utf-8")
    caller.chmod(0o700)
    line = [sys.executable, "-m", __name__, address]
    parent = subprocess.Popen(line, stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        yield folder
    finally:
        os.killpg(parent.pid, signal.SIGKILL)
        parent.wait()
        parent.stdout.close()


def _run_command(line: socket.socket) -> None:
    """Be the command that a caller asks for."""
    size, files, _, _ = socket.recv_fds(line, 4, 3)
    left = int.from_bytes(size, "big")
    said = b""
    while len(said) < left:
        said += line.recv(left - len(said))
    argv, folder, environment, mask = json.loads(said)
    for mine, theirs in enumerate(files):
        os.dup2(theirs, mine)
        os.close(theirs)
    os.umask(mask)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    line.sendall(f"{os.getpid()}\n".encode())
    sys.argv = ["toolkit", *argv]
    from toolkit.cli import main

    main()


def _answer(line: socket.socket) -> None:
    code = 1
    try:
        _run_command(line)
        code = 0
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        line.sendall(f"{code}\n".encode())
        os._exit(0)


def _reap_children(*_: object) -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def main(address: str) -> None:
    """Fork a command for each caller, until it is killed."""
    preload()
    from toolkit.cli import resources

    for module in pkgutil.iter_modules(resources.__path__, f"{resources.__name__}."):
        import_module(module.name)
    modules = "client", "engine.access.account_admin", "store.maintenance.backup"
    for name in (*modules, "store.maintenance.doctor"):
        import_module(f"toolkit.{name}")
    signal.signal(signal.SIGCHLD, _reap_children)  # so that what they cost counts
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
    main(sys.argv[1])
