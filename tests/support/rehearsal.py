"""Types the commands of a page into a shell, as a stranger would."""

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
    """What came of a page's commands.

    Attributes:
        exit_code: of the shell, which ends at the first command that fails.
        answers: all that was shown.
        errors: all that was said beside it: the commands themselves, too.
        cpu_s: the seconds of CPU that it took.
    """

    exit_code: int
    answers: str
    errors: str
    cpu_s: float


def type_commands(
    script: str, folder: Path, beside: Path, env: Mapping[str, str] | None = None, *modules: str
) -> Rehearsal:
    """Type commands into a shell that knows `toolkit`; all that they began ends with it.

    Where the page sleeps, the shell looks again soon.

    Args:
        script: the commands.
        folder: where they are typed.
        beside: a folder for what is needed to do so.
        env: more variables of the environment.
        modules: what most of the commands import, beside what a server does.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with (
        install_forked_programs(beside / "bin", *modules) as found,
        (beside / "typed").open("w+") as typed,
        (beside / "shown").open("w+") as shown,
    ):
        installed = Path(sys.executable).parent  # where what is installed beside us has commands
        path = os.pathsep.join([str(found), str(installed), os.environ["PATH"]])
        shell = subprocess.Popen(
            ["bash", "-c", f"{BEGINNING}\n{script}"],
            cwd=folder,
            env={**os.environ, **(env or {}), "PATH": path},
            stdout=shown,
            stderr=typed,
            start_new_session=True,
        )
        try:
            ended = shell.wait(5 * PATIENCE_S)  # dozens of programs, one after the other
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
        typed.seek(0)
        shown.seek(0)
        answers, errors = shown.read(), typed.read()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Rehearsal(ended, answers, errors, used_s)
