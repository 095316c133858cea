"""Functions that worker processes call in tests; it imports little because each worker loads it."""

import importlib
import os
import re
import signal
import sys
from pathlib import Path


def double(number: int) -> int:
    """Return twice a number."""
    return 2 * number


def run_away(pid_file: str) -> None:
    """Write the id of this process, and never return: this search holds the interpreter's lock."""
    Path(pid_file).write_text(str(os.getpid()), encoding="utf-8")
    re.match("(a+)+$", "a" * 80 + "b")


def spin(*_args: object) -> None:
    """Run Python code without end."""
    while True:
        pass


def wait_for(path: str) -> None:
    """Return when a pipe is written to."""
    Path(path).read_bytes()


def die() -> None:
    """Die as a process does that the kernel kills because it is out of memory."""
    os.kill(os.getpid(), signal.SIGKILL)


def chatter() -> str:
    """Write to the file descriptor of messages, and read from that of messages."""
    print("{}" * 100, flush=True)
    os.write(1, b"\0" * 100)
    return sys.stdin.read()


def environment() -> list[str]:
    """Return the names of all environment variables."""
    return sorted(os.environ)


def use_memory(size: int) -> int:
    """Allocate memory of a size in bytes."""
    return len(bytearray(size))


def refuse() -> None:
    """Raise an error class of this module."""
    raise RefusedError("not like this")


def leave() -> None:
    """Try to end the process."""
    sys.exit("gone")


def answer_oddly() -> object:
    """Return a value that cannot be serialized."""
    return {"found": {1, 2}}


class RefusedError(ValueError):
    """An error that only this module defines."""


def import_from(folder: str, module: str, attribute: str) -> bool:
    """Import a module from a folder, and return whether it has an attribute."""
    sys.path.insert(0, folder)
    return hasattr(importlib.import_module(module), attribute)


def has_loaded(module: str) -> bool:
    """Return whether this process has imported a module."""
    return module in sys.modules


def lose_worker_once(marker: str) -> int:
    """Kill the parent process, but only the first time; return the parent's id."""
    if not Path(marker).exists():
        Path(marker).write_text("lost", encoding="utf-8")
        os.kill(os.getppid(), signal.SIGKILL)
        signal.pause()  # this process is ended with it
    return os.getppid()


def find_parent() -> int:
    """Return the id of the parent process."""
    return os.getppid()


def begin_and_wait(begun_file: str, gate: str) -> str:
    """Report the start of the function, and return when a pipe is written to."""
    Path(begun_file).write_text(str(os.getpid()), encoding="utf-8")
    Path(gate).read_bytes()
    return "through"
