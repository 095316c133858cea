"""A wall clock that jumps an hour forward and back again, while an engine works."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

LIBRARIES = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
# Two engines share a directory. The clock jumps during a workflow, and jumps back during the next.
SCRIPT = """
import json, pathlib, select, sys, time
from toolkit import Client, Workflow
from toolkit.sandbox import Fault, Faults
from toolkit.settings import Settings

def nap(seconds):  # libfaketime breaks time.sleep, which sleeps until a point of time
    select.select([], [], [], seconds)

def work(client, clock, jump):
    calls, wall, real = len(faults.calls), time.time(), time.monotonic()
    flow, before = Workflow("long", deadline_s=1800), []
    for i in range(10):
        line = f"Line {i} of {jump}"
        before = [flow.add(f"n{i}", "llm.generate", objective=line, depends_on=before)]
    run = client.workflows.submit(flow)
    first = client.runs.create("llm.generate", {"objective": f"before {jump}"})
    while sum(n.status == "completed" for n in client.workflows.get(run.id).nodes) < 3:
        nap(0.02)
    clock.write_text(jump)
    nap(0.2)
    jumped_s = time.time() - wall - (time.monotonic() - real)
    second = client.runs.create("llm.generate", {"objective": f"after {jump}"})
    done = run.wait(600, progress=False)
    second.wait(600, progress=False)
    jobs = [client.jobs.get(node.job_id).record for node in done.nodes]
    print(json.dumps({
        "jumped_s": jumped_s,
        "status": done.status,
        "latency_ms": done.latency_ms,
        "job_latencies": [job.latency_ms for job in jobs],
        "attempts": [attempt.status for job in jobs for attempt in job.attempts],
        "calls": sum(call.billed for call in faults.calls[calls:]),
        "newest_first": [run.id for run in client.runs.list()][:2] == [second.id, first.id],
    }))

folder, clock = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
settings = Settings(data_dir=folder, sandbox=True, lease_s=60.0)
faults = Faults()
faults.add(Fault("minimax", delay_ms=100, times=None))
with Client.local(settings=settings, faults=faults) as client, Client.local(settings=settings):
    for jump in ("+1h", "+0"):
        work(client, clock, jump)
"""


@pytest.mark.skipif(not LIBRARIES, reason="libfaketime is not installed")
def test_a_clock_jump_does_not_affect_work(tmp_path: Path) -> None:
    """Given a wall clock that jumps and jumps back, then work is not affected.

    No lease or deadline expires early, no duration is wrong, and lists keep their order.
    """
    clock = tmp_path / "clock"
    clock.write_text("+0")
    env = {
        **os.environ,
        "LD_PRELOAD": str(LIBRARIES[0]),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "data"), str(clock)]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    forward, back = map(json.loads, ran.stdout.splitlines()[-2:])
    assert forward["jumped_s"] == pytest.approx(3600, abs=300)
    assert back["jumped_s"] == pytest.approx(-3600, abs=300)
    for report in (forward, back):
        assert report["status"] == "completed"
        assert report["calls"] == 12
        assert set(report["attempts"]) == {"completed"}
        assert 1000 < report["latency_ms"] < 1_800_000
        assert all(80 <= latency < 1_800_000 for latency in report["job_latencies"])
        assert report["newest_first"]
