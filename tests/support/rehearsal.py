"""Types the commands of a page into a shell, as a new user would."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support.forked_programs import install_forked_programs
from tests.support.timing import PATIENCE_S

BEGINNING = "sleep() { command sleep 0.3; }\nset -euo pipefail\nset -x"


@dataclass(frozen=True)
class Rehearsal:
    """The result of a page's commands.

    Attributes:
        exit_code: exit code of the shell, which stops at the first command that fails.
        answers: standard output.
        errors: standard error, including the commands themselves.
        cpu_s: CPU seconds of all commands.
    """

    exit_code: int
    answers: str
    errors: str
    cpu_s: float


def type_commands(
    script: str,
    folder: Path,
    work_folder: Path,
    env: Mapping[str, str] | None = None,
    *modules: str,
) -> Rehearsal:
    """Type commands into a shell that has `toolkit`; all started programs end with it.

    Where the page sleeps, the shell sleeps only for a moment.

    Args:
        script: commands to type.
        folder: working directory of the shell.
        work_folder: folder for the files of the rehearsal itself.
        env: additional variables of the environment.
        modules: modules that most commands import, in addition to those of a server.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with (
        install_forked_programs(work_folder / "bin", *modules) as programs,
        (work_folder / "typed").open("w+") as typed,
        (work_folder / "shown").open("w+") as output,
    ):
        installed = Path(sys.executable).parent  # commands of installed packages
        path = os.pathsep.join([str(programs), str(installed), os.environ["PATH"]])
        shell = subprocess.Popen(
            ["bash", "-c", f"{BEGINNING}\n{script}"],
            cwd=folder,
            env={**os.environ, **(env or {}), "PATH": path},
            stdout=output,
            stderr=typed,
            start_new_session=True,
        )
        try:
            exit_code = shell.wait(5 * PATIENCE_S)  # dozens of programs, one after the other
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
        typed.seek(0)
        output.seek(0)
        answers, errors = output.read(), typed.read()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Rehearsal(exit_code, answers, errors, used_s)
