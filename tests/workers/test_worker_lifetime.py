"""Worker processes seen from a client, and from programs that end without closing it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.timing import PATIENCE_S, wait_until
from tests.support.worker_capability import load_work_registry
from toolkit import Client
from toolkit.settings import Settings

ROOT = Path(__file__).parents[2]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """An engine with one worker."""
    settings = Settings(data_dir=tmp_path / "data", sandbox=True, cpu_workers=1)
    with Client.local(settings=settings, registry=load_work_registry()) as client:
        yield client


def wait_until_gone(pid: int) -> None:
    """Wait until a process has ended."""
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), f"{pid} is gone")


def test_a_cancelled_runaway_makes_room(client: Client, tmp_path: Path) -> None:
    """Given a runaway on the only worker, when it is cancelled, then the next run is served."""
    run = client.runs.create("test.work", {"task": "run_away", "args": [str(tmp_path / "pid")]})
    file = tmp_path / "pid"
    wait_until(lambda: file.exists() and file.read_text())
    run.cancel()
    after = client.runs.create("test.work", {"task": "double", "args": [4]}).wait(progress=False)
    assert after.output == {"result": 8}
    wait_until_gone(int(file.read_text()))


def test_a_deadline_ends_the_process_of_a_run(client: Client, tmp_path: Path) -> None:
    """Given a run with a deadline, then its process is ended at the deadline."""
    work = {"task": "run_away", "args": [str(tmp_path / "pid")]}
    run = client.runs.create("test.work", work, deadline_s=0.5).wait(progress=False, check=False)
    assert (run.status, run.error.code) == ("failed", "PROVIDER_TIMEOUT")
    if (tmp_path / "pid").exists():
        wait_until_gone(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("die", "The worker process that ran `die` died: it was terminated by SIGKILL."),
        ("answer_oddly", "The result of a worker process contains a set: only"),
        ("no such task", "`run_task.<locals>.<lambda>` cannot run in a worker process, as it"),
    ],
)
def test_reports_a_failed_worker_process(client: Client, task: str, message: str) -> None:
    """Given work whose process dies or cannot be sent, then the error of the run says so."""
    run = client.runs.create("test.work", {"task": task}).wait(progress=False, check=False)
    assert run.error.code == "INTERNAL"
    assert run.error.message.startswith(message)


SCRIPT = """
import os, sys
from pathlib import Path
print("the script runs", flush=True)
from tests.support.timing import wait_until
from tests.support.worker_capability import load_work_registry
from toolkit import Client
client = Client.local(sys.argv[1], sandbox=True, registry=load_work_registry())
run = client.runs.create("test.work", {"task": "double", "args": [4]}).wait(progress=False)
print(run.output["result"], flush=True)
client.runs.create("test.work", {"task": "run_away", "args": [sys.argv[2]]})
wait_until(lambda: Path(sys.argv[2]).exists() and Path(sys.argv[2]).read_text())
"""


@pytest.mark.parametrize(
    ("last_line", "status"), [("", 0), ("os.kill(os.getpid(), 9)", -signal.SIGKILL)]
)
def test_a_program_s_end_is_its_workers_end(last_line: str, status: int, tmp_path: Path) -> None:
    """Given a script with a runaway, when it ends or is killed, then no worker process is left."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT + last_line, encoding="utf-8")
    program = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "data"), str(tmp_path / "pid")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert (program.returncode, program.stderr) == (status, "")
    assert program.stdout == "the script runs\n8\n"
    wait_until_gone(int((tmp_path / "pid").read_text()))
