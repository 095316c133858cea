"""Preloads of a Dask scheduler or worker that answers with objects that run code when unpickled.

Each process that unpickles such an object writes a file named by its id, with its environment.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support.dask_cluster import ROOT, clean_environment

FOLDER_VARIABLE = "HOSTILE_FOLDER"
CODE = """
import os
with open(os.path.join({folder!r}, str(os.getpid())), "w") as file:
    file.write(repr(dict(os.environ)))
"""
WORKER_PRELOAD = """
from tests.support.hostile_dask import {answer}
def dask_setup(worker):
    import toolkit.batch.remote.task as task
    import toolkit.workers.remote_step as remote_step
    remote_step.run_step = task.run_row = {answer}
"""
SCHEDULER_PRELOAD = """
from distributed.protocol.serialize import ToPickle
from tests.support.hostile_dask import Hostile
def dask_setup(scheduler):
    async def identity(*_, **__):
        return {"workers": ToPickle(Hostile())}
    scheduler.handlers["identity"] = identity
"""


class Hostile:
    """An object that runs code when it is unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return exec, (CODE.format(folder=os.environ[FOLDER_VARIABLE]),)


class HostileError(Exception):
    """An error that runs code when it is unpickled."""

    def __reduce__(self) -> tuple[object, ...]:  # type: ignore[override]
        return Hostile().__reduce__()


class Deadly:
    """An object that ends the process that unpickles it."""

    def __reduce__(self) -> tuple[object, ...]:
        return os._exit, (1,)


def answer_deadly(_: object) -> object:
    """Return an object that ends its reader."""
    return Deadly()


def answer_hostile(_: object) -> object:
    """Return a hostile object."""
    return Hostile()


def raise_hostile(_: object) -> object:
    """Raise a hostile error."""
    raise HostileError


def list_readers(folder: Path) -> dict[int, str]:
    """List the processes that ran the code of a hostile object, and the environment of each."""
    return {int(file.name): file.read_text() for file in folder.iterdir() if file.name.isdigit()}


@contextlib.contextmanager
def start_hostile(
    folder: Path, kind: str, preload: str, *arguments: str
) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a scheduler or a worker with a preload."""
    file = folder / f"hostile_{kind}.py"
    file.write_text(preload)
    command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *arguments]
    process = subprocess.Popen(
        [*command, "--no-dashboard", "--host", "127.0.0.1", "--preload", str(file)],
        cwd=ROOT,
        env={**clean_environment(), FOLDER_VARIABLE: str(folder), "OPENAI_API_KEY": ""},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
