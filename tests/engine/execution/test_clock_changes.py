"""A wall clock that somebody sets, by an hour forward and back again, in the middle of work."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

LIBRARIES = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
# Two engines share a directory; the clock jumps while one of them works, and jumps back in the next
# piece of its work.
SCRIPT = """
import json, pathlib, select, sys, time
from toolkit import Client, Workflow
from toolkit.sandbox import Fault, Faults
from toolkit.settings import Settings

def nap(seconds):  # the library spoils time.sleep, which sleeps until a point of time
    select.select([], [], [], seconds)

def work(works, clock, jump):
    calls, wall, real = len(faults.calls), time.time(), time.monotonic()
    flow, before = Workflow("long", deadline_s=1800), []
    for i in range(10):
        line = f"Line {i} of {jump}"
        before = [flow.add(f"n{i}", "llm.generate", objective=line, depends_on=before)]
    run = works.workflows.submit(flow)
    first = works.runs.create("llm.generate", {"objective": f"before {jump}"})
    while sum(n.status == "completed" for n in works.workflows.get(run.id).nodes) < 3:
        nap(0.02)
    clock.write_text(jump)
    nap(0.2)
    jumped_s = time.time() - wall - (time.monotonic() - real)
    second = works.runs.create("llm.generate", {"objective": f"after {jump}"})
    done = run.wait(600, progress=False)
    second.wait(600, progress=False)
    jobs = [works.jobs.get(node.job_id).record for node in done.nodes]
    print(json.dumps({
        "jumped_s": jumped_s,
        "status": done.status,
        "latency_ms": done.latency_ms,
        "job_latencies": [job.latency_ms for job in jobs],
        "attempts": [attempt.status for job in jobs for attempt in job.attempts],
        "calls": sum(call.billed for call in faults.calls[calls:]),
        "newest_first": [one.id for one in works.runs.list()][:2] == [second.id, first.id],
    }))

folder, clock = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
settings = Settings(data_dir=folder, sandbox=True, lease_s=60.0)
faults = Faults()
faults.add(Fault("minimax", delay_ms=100, times=None))
with Client.local(settings=settings, faults=faults) as works, Client.local(settings=settings):
    for jump in ("+1h", "+0"):
        work(works, clock, jump)
"""


@pytest.mark.skipif(not LIBRARIES, reason="libfaketime is not installed")
def test_a_clock_that_jumps(tmp_path: Path) -> None:
    """Given a wall clock that jumps and jumps back, then work goes on as if it had not.

    No lease ends early, no deadline passes, no time is negative or an hour too long, and what is
    listed keeps its order.
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
    for told in (forward, back):
        assert told["status"] == "completed"
        assert told["calls"] == 12
        assert set(told["attempts"]) == {"completed"}
        assert 1000 < told["latency_ms"] < 1_800_000
        assert all(80 <= each < 1_800_000 for each in told["job_latencies"])
        assert told["newest_first"]
