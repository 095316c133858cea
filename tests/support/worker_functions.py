"""Functions that worker processes call in tests; imports little, as each of them imports it."""

import importlib
import os
import re
import signal
import sys
from pathlib import Path


def double(number: int) -> int:
    """Twice a number."""
    return 2 * number


def run_away(pid_file: str) -> None:
    """Say which process this is, and never come back: this search holds the interpreter's lock."""
    Path(pid_file).write_text(str(os.getpid()), encoding="utf-8")
    re.match("(a+)+$", "a" * 80 + "b")


def spin(*_args: object) -> None:
    """Run Python code without an end."""
    while True:
        pass


def wait_for(path: str) -> None:
    """Come back when a pipe is written to."""
    Path(path).read_bytes()


def die() -> None:
    """Die as one does whom the kernel ends for want of memory."""
    os.kill(os.getpid(), signal.SIGKILL)


def chatter() -> str:
    """Write where a message would be written, and read where one would be read."""
    print("{}" * 100, flush=True)
    os.write(1, b"\0" * 100)
    return sys.stdin.read()


def environment() -> list[str]:
    """The names of the variables there are."""
    return sorted(os.environ)


def use_memory(size: int) -> int:
    """Use so many bytes."""
    return len(bytearray(size))


def refuse() -> None:
    """Raise an error of this module's own."""
    raise RefusedError("not like this")


def leave() -> None:
    """Try to end the process."""
    sys.exit("gone")


def answer_oddly() -> object:
    """Return what cannot travel."""
    return {"found": {1, 2}}


class RefusedError(ValueError):
    """An error that only this module knows."""


def import_from(folder: str, module: str, attribute: str) -> bool:
    """Import a module from a folder, and tell whether it has an attribute."""
    sys.path.insert(0, folder)
    return hasattr(importlib.import_module(module), attribute)


def has_loaded(module: str) -> bool:
    """Tell whether this process has imported a module."""
    return module in sys.modules


def lose_worker_once(marker: str) -> int:
    """Kill the process that started this one, but only the first time; say which it is."""
    if not Path(marker).exists():
        Path(marker).write_text("lost", encoding="utf-8")
        os.kill(os.getppid(), signal.SIGKILL)
        signal.pause()  # this process is ended with it
    return os.getppid()


def find_parent() -> int:
    """The id of the process that started this one."""
    return os.getppid()


def begin_and_wait(begun: str, gate: str) -> str:
    """Say that it has begun, and come back when a pipe is written to."""
    Path(begun).write_text(str(os.getpid()), encoding="utf-8")
    Path(gate).read_bytes()
    return "through"
