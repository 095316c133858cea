"""Worker processes from where a person stands: a client, and programs that end in every way."""

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
    with Client.local(settings=settings, registry=load_work_registry()) as made:
        yield made


def is_there(path: Path) -> int:
    """Wait until a process has said which one it is."""
    wait_until(lambda: path.exists() and path.read_text())
    return int(path.read_text())


def is_gone(pid: int) -> None:
    """Wait until a process is no more."""
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), f"{pid} is gone")


def test_a_cancelled_runaway_makes_room(client: Client, tmp_path: Path) -> None:
    """Given a run that never ends on the only worker, to cancel it lets the next one run."""
    run = client.runs.create("test.work", {"task": "run_away", "args": [str(tmp_path / "pid")]})
    pid = is_there(tmp_path / "pid")
    run.cancel()
    done = client.runs.create("test.work", {"task": "double", "args": [4]}).wait(progress=False)
    assert done.output == {"result": 8}
    is_gone(pid)


def test_a_run_s_deadline_ends_its_work(client: Client, tmp_path: Path) -> None:
    """Given a run with a deadline, its process is ended then."""
    asked = {"task": "run_away", "args": [str(tmp_path / "pid")]}
    run = client.runs.create("test.work", asked, deadline_s=0.5).wait(progress=False, check=False)
    assert (run.status, run.error.code) == ("failed", "PROVIDER_TIMEOUT")
    if (tmp_path / "pid").exists():
        is_gone(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("die", "The worker process that ran `die` died: it was terminated by SIGKILL."),
        ("answer_oddly", "The result of a worker process contains a set: only"),
        (
            "no such task",
            "`run_task.<locals>.<lambda>` cannot run in a worker process, as it",
        ),
    ],
)
def test_what_goes_wrong_is_told(client: Client, task: str, said: str) -> None:
    """Given work whose process dies, or that cannot travel, the run says so in one line."""
    run = client.runs.create("test.work", {"task": task}).wait(progress=False, check=False)
    assert run.error.code == "INTERNAL"
    assert run.error.message.startswith(said)


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
ENDS = {
    "without close": ("", 0),
    "killed": ("os.kill(os.getpid(), 9)", -signal.SIGKILL),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_program_s_end_is_its_workers_end(end: str, tmp_path: Path) -> None:
    """Given a script of no guard with a runaway, it ends at once, and leaves no process."""
    words, status = ENDS[end]
    script = tmp_path / "script.py"
    script.write_text(SCRIPT + words, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "data"), str(tmp_path / "pid")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (status, "the script runs\n8\n", "")
    is_gone(int((tmp_path / "pid").read_text()))
