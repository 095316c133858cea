"""The end of a program that does not close its client: silent, soon, with all work resumable."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.slow_capability import load_slow_registry
from toolkit import Client

SOON_S = 8.0  # one second of grace for vendor calls; the rest is for a busy machine
BEGIN = """
import asyncio, multiprocessing, os, sys, threading, time
from toolkit import AsyncClient, Client
from tests.support.slow_capability import build_nap_workflow, load_slow_registry

def ends():
    print(time.monotonic(), flush=True)

def work(client):
    return client.workflows.submit(build_nap_workflow(3, seconds=0.6))

"""
OPEN = "client = Client.local('data', sandbox=True, registry=load_slow_registry())\n"
# The code of a script, its exit code, and the beginning of its own text on stderr.
SCRIPTS = {
    "an end of its own": (OPEN + "work(client); ends(); sys.exit('its own words')", 1, "its own"),
    "two clients, each commit synced": (
        "os.environ['TOOLKIT_DURABILITY'] = 'full'\n"
        + OPEN
        + "also = Client.local('data', sandbox=True); more = Client.local('more', sandbox=True)\n"
        "work(client); ends()",
        0,
        "",
    ),
    "async": (
        "async def main():\n"
        "    client = AsyncClient.local('data', sandbox=True, registry=load_slow_registry())\n"
        "    await (await work(client)).wait(progress=False)\n    await work(client)\n    ends()\n"
        "asyncio.run(main())",
        0,
        "",
    ),
    "a thread": (
        OPEN + "def later():\n"
        "    threading.main_thread().join(0.3)\n"
        "    client.artifacts.upload(b'x' * 9000)\n"
        "    work(client); ends()\n"
        "threading.Thread(target=later).start()",
        0,
        "",
    ),
    "a fork": (
        OPEN + "def ask():\n"
        "    try:\n        client.health()\n"
        "    except Exception as error:\n        assert 'parent process' in str(error)\n"
        "    else:\n        sys.exit(1)\n"
        "work(client)\n"
        "child = multiprocessing.get_context('fork').Process(target=ask)\n"
        "child.start(); child.join(); ends(); sys.exit(child.exitcode)",
        0,
        "",
    ),
    "a spawned process": (
        "def ask():\n    " + OPEN + "    work(client)\n"
        "if __name__ == '__main__':\n"
        "    child = multiprocessing.get_context('spawn').Process(target=ask)\n"
        "    child.start(); child.join(); ends(); sys.exit(child.exitcode)",
        0,
        "",
    ),
}


def command(folder: Path, script: str) -> list[str]:
    """Write a script to a file, and return the command that runs it with warnings as errors."""
    file = folder / "script.py"
    file.write_text(BEGIN + script)
    return [sys.executable, "-W", "error", str(file)]


def environment() -> dict[str, str]:
    """Return the variables of a script, which can import the tests' capabilities."""
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}


def check_work_is_resumed(data: Path) -> None:
    """Open a folder again, and check that each workflow ends with at most one node run twice."""
    with Client.local(data, sandbox=True, registry=load_slow_registry()) as client:
        workflows = client.workflows.list()
        assert len(workflows)
        for workflow in workflows:
            ended_workflow = workflow.wait(timeout=60, progress=False)
            assert ended_workflow.status == "completed"
            attempts = [
                len(client.jobs.get(n.job_id or "").record.attempts) for n in ended_workflow.nodes
            ]
            assert sum(attempts) <= len(attempts) + 1


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_without_close_ends_silently(tmp_path: Path, name: str) -> None:
    """Given a script without `close()`, then it ends soon and silently; its work is resumable."""
    script, code, own_text = SCRIPTS[name]
    process = subprocess.run(
        command(tmp_path, script),
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    took_s = time.monotonic() - float(process.stdout)
    assert process.returncode == code, process.stderr
    assert process.stderr.startswith(own_text)
    assert len(process.stderr.splitlines()) == bool(own_text)
    assert took_s < SOON_S
    check_work_is_resumed(tmp_path / "data")


@pytest.mark.usefixtures("heed_interrupts")
def test_ctrl_c_ends_only_the_wait(tmp_path: Path) -> None:
    """Given a script that waits, when it is interrupted, then it says so; its work continues."""
    script = OPEN + "work(client).wait(progress='lines')"
    with subprocess.Popen(
        command(tmp_path, script),
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        process.stderr.readline()  # a line of progress
        process.send_signal(signal.SIGINT)
        sent = time.monotonic()
        _, stderr = process.communicate(timeout=60)
    assert time.monotonic() - sent < SOON_S
    last_line = stderr.splitlines()[-1]
    assert "Interrupted; the work goes on. To wait again: client.workflows" in last_line
    assert process.returncode == -signal.SIGINT
    assert stderr.count("Traceback") == 1
    check_work_is_resumed(tmp_path / "data")


def test_closed_client_raises_an_error(tmp_path: Path) -> None:
    """Given a closed client, when it is used, then an error of one line says what to do."""
    client = Client.local(tmp_path, sandbox=True)
    client.close()
    with pytest.raises(Exception, match="closed") as refused:
        client.health()
    assert len(str(refused.value).splitlines()) == 1
