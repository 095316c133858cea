"""With `durability = "full"`: kills at each sync to disk, and acknowledgements after a sync.

No kill can show a missing sync, because the system's cache outlives the process. The order of
system calls can.
"""

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from tests.crash.conftest import CrashBench
from tests.crash.processes import ServerProcess
from tests.support.timing import wait_until

pytestmark = [
    pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace"),
    pytest.mark.sqlite("what it asks of the disk"),
]


@dataclass
class Trace:
    """A server that strace follows after it answers; before, strace would slow its start."""

    server: ServerProcess
    strace: "subprocess.Popen[bytes]"
    log: Path

    @classmethod
    def follow(cls, server: ServerProcess, log: Path, *options: str) -> "Trace":
        """Wait until a server answers and strace follows it."""
        assert server.wait_until_ready()
        follow = ["strace", "-f", "-qq", "-o", str(log), "-p", str(server.pid)]
        trace = cls(server, subprocess.Popen([*follow, *options]), log)
        wait_until(trace.is_on, "strace follows every thread")
        return trace

    def is_on(self) -> bool:
        """Return whether strace follows every thread."""
        threads = Path(f"/proc/{self.server.pid}/task").glob("*/status")
        return not any(re.search(r"^TracerPid:\t0$", path.read_text(), re.M) for path in threads)

    def end(self) -> str:
        """Kill the server; return the log of strace."""
        self.server.kill()
        self.server.wait()
        self.strace.wait()
        return self.log.read_text(errors="replace")


StartTraced = Callable[..., Trace]


@pytest.fixture
def start_traced(bench: CrashBench) -> Iterator[StartTraced]:
    """Starts traced servers, and ends them after the test."""
    with ExitStack() as stack:

        def start(data_dir: Path, durability: str, *options: str) -> Trace:
            server = bench.serve(data_dir, TOOLKIT_DURABILITY=durability)
            trace = Trace.follow(server, data_dir.with_suffix(".strace"), *options)
            stack.callback(trace.end)
            return trace

        yield start


def test_kill_at_any_sync_breaks_no_promise(
    bench: CrashBench, start_traced: StartTraced, tell: Callable[[str], None]
) -> None:
    """Given full durability, when killed at any sync of a workflow, then all promises hold."""
    totals: Counter[str] = Counter()
    for n in count(1):
        data_dir, ledger = bench.copy_directory(f"sync-{n}"), bench.ledger()
        inject = f"inject=fdatasync:signal=SIGKILL:when={n}"
        trace = start_traced(data_dir, "full", "-e", "trace=fdatasync", "-e", inject)
        if bench.work(trace.server, ledger):
            break
        trace.end()
        bench.record_death(ledger)
        issues = bench.recover(data_dir, ledger)
        assert not issues.wrong, f"{inject}: " + "\n".join(issues.wrong)
        totals += issues.counts
    tell(f"up to {n - 1} syncs of one thread: {dict(totals)}")
    assert totals["kills"] >= 3, "the workflow had next to no syncs"


@pytest.mark.parametrize("durability", ["full", "normal"])
def test_acknowledges_after_the_sync(
    bench: CrashBench, start_traced: StartTraced, durability: str
) -> None:
    """Given a workflow, then with full durability the server syncs it before it acknowledges it.

    With normal durability it does not, which shows that the test can fail.
    """
    data_dir, ledger = bench.copy_directory(f"order-{durability}"), bench.ledger()
    calls = "trace=fdatasync,recvfrom,sendto,read,write,writev,sendmsg"
    trace = start_traced(data_dir, durability, "-y", "-s", "40", "-e", calls)
    # SQLite syncs a new log in any case, so the test reads the second workflow.
    assert all(bench.work(trace.server, ledger) for _ in range(2))
    lines = trace.end().splitlines()
    asked_at = [i for i, line in enumerate(lines) if '"POST /v1/workflows' in line][-1]
    told_at = [i for i, line in enumerate(lines) if '"HTTP/1.1 202' in line][-1]
    assert asked_at < told_at
    synced = find_synced_logs(lines[asked_at:told_at])
    assert bool(synced) is (durability == "full"), "\n".join(lines[asked_at : told_at + 1])


def test_syncs_bytes_and_their_folder(bench: CrashBench, start_traced: StartTraced) -> None:
    """Given full durability, then a file is synced before its rename, and its folder after."""
    data_dir, ledger = bench.copy_directory("folders"), bench.ledger()
    trace = start_traced(data_dir, "full", "-y", "-e", "trace=fsync,rename")
    assert bench.work(trace.server, ledger)
    log = trace.end()
    renamed = re.findall(r'rename\("(.*/artifacts/../\..*)", "(.*)"', log)
    assert len(renamed) >= 2, "speech and card have bytes to put in place"
    for partial, target in renamed:
        before, after = log.split(f'rename("{partial}"')
        assert f"<{partial}>" in before
        assert f"<{Path(target).parent}>" in after


def find_synced_logs(lines: list[str]) -> list[str]:
    """Return the write-ahead logs whose sync began and returned within lines of strace."""
    pending: dict[str, str] = {}
    logs = []
    for line in lines:
        process = line.split(maxsplit=1)[0]
        if match := re.search(r"fdatasync\(\d+<(.*-wal)>", line):
            pending[process] = match[1]
        if process in pending and re.search(r"fdatasync.*\)\s+= 0$", line):
            logs.append(pending.pop(process))
    return logs
