"""The end of a program that does not close its client: silent, soon, with all resumable."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.slow_capability import load_slow_registry
from toolkit import Client

SOON_S = 8.0  # of which the grace for vendor calls is one; the rest is for a machine that is busy
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
# What a script does, its exit code, and how what it says on stderr itself begins.
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
        "    except Exception as error:\n        assert 'forked' in str(error)\n"
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
    """Write a script to a file, and say how it is run; a warning is an error to it."""
    file = folder / "script.py"
    file.write_text(BEGIN + script)
    return [sys.executable, "-W", "error", str(file)]


def environment() -> dict[str, str]:
    """The variables of a script, which finds the tests' capabilities."""
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}


def assert_it_goes_on(data: Path) -> None:
    """Open a folder anew, and see each workflow end, at most one node of it run twice."""
    with Client.local(data, sandbox=True, registry=load_slow_registry()) as client:
        workflows = client.workflows.list()
        assert len(workflows)
        for workflow in workflows:
            done = workflow.wait(timeout=60, progress=False)
            assert done.status == "completed"
            attempts = [len(client.jobs.get(n.job_id or "").record.attempts) for n in done.nodes]
            assert sum(attempts) <= len(attempts) + 1


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_that_closes_nothing_ends_in_silence(tmp_path: Path, name: str) -> None:
    """Given a script without `close()`, then it ends soon and silently, and its work goes on."""
    script, code, said = SCRIPTS[name]
    done = subprocess.run(
        command(tmp_path, script),
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    took_s = time.monotonic() - float(done.stdout)
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith(said)
    assert len(done.stderr.splitlines()) == bool(said)
    assert took_s < SOON_S
    assert_it_goes_on(tmp_path / "data")


@pytest.mark.usefixtures("heed_interrupts")
def test_ctrl_c_ends_the_wait_and_not_the_work(tmp_path: Path) -> None:
    """Given a script that waits, when it is interrupted, then it says that, and work goes on."""
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
        process.stderr.readline()  # of what happens while it waits
        process.send_signal(signal.SIGINT)
        sent = time.monotonic()
        _, stderr = process.communicate(timeout=60)
    assert time.monotonic() - sent < SOON_S
    said = stderr.splitlines()[-1]
    assert "Interrupted; the work goes on. To wait again: client.workflows" in said
    assert process.returncode == -signal.SIGINT
    assert stderr.count("Traceback") == 1
    assert_it_goes_on(tmp_path / "data")


def test_a_closed_client_says_so(tmp_path: Path) -> None:
    """Given a client that was closed, when it is asked, then one line says what to do."""
    client = Client.local(tmp_path, sandbox=True)
    client.close()
    with pytest.raises(Exception, match="closed") as refused:
        client.health()
    assert len(str(refused.value).splitlines()) == 1
