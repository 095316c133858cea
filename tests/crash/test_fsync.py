"""With `durability = "full"`: killed at each sync to disk, and what is sent only after one.

No kill can show that a sync is missing, as the system's cache outlives the process: the order of
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
    """A server that strace follows from when it answers; before, it would slow each system call."""

    server: ServerProcess
    strace: "subprocess.Popen[bytes]"
    log: Path

    @classmethod
    def follow(cls, server: ServerProcess, log: Path, *options: str) -> "Trace":
        """Wait until a server answers, and is followed."""
        assert server.wait_until_ready()
        follow = ["strace", "-f", "-qq", "-o", str(log), "-p", str(server.pid)]
        made = cls(server, subprocess.Popen([*follow, *options]), log)
        wait_until(made.is_on, "strace follows every thread")
        return made

    def is_on(self) -> bool:
        """Tell whether every thread is followed."""
        threads = Path(f"/proc/{self.server.pid}/task").glob("*/status")
        return not any(re.search(r"^TracerPid:\t0$", one.read_text(), re.M) for one in threads)

    def end(self) -> str:
        """Kill the server; what strace has written."""
        self.server.kill()
        self.server.wait()
        self.strace.wait()
        return self.log.read_text(errors="replace")


StartTraced = Callable[..., Trace]


@pytest.fixture
def start_traced(bench: CrashBench) -> Iterator[StartTraced]:
    """Starts traced servers, and sees to it that none is left."""
    with ExitStack() as stack:

        def start(data_dir: Path, durability: str, *options: str) -> Trace:
            server = bench.serve(data_dir, TOOLKIT_DURABILITY=durability)
            trace = Trace.follow(server, data_dir.with_suffix(".strace"), *options)
            stack.callback(trace.end)
            return trace

        yield start


def test_a_kill_at_any_sync_breaks_no_promise(
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
        found = bench.recover(data_dir, ledger)
        assert not found.wrong, f"{inject}: " + "\n".join(found.wrong)
        totals += found.counts
    tell(f"up to {n - 1} syncs of one thread: {dict(totals)}")
    assert totals["kills"] >= 3, "the workflow had next to no syncs"


@pytest.mark.parametrize("durability", ["full", "normal"])
def test_an_acknowledgement_leaves_after_the_sync(
    bench: CrashBench, start_traced: StartTraced, durability: str
) -> None:
    """Given a workflow that is accepted, then with full durability it was synced before the 202.

    With normal durability it was not, which shows that this test can tell.
    """
    data_dir, ledger = bench.copy_directory(f"order-{durability}"), bench.ledger()
    calls = "trace=fdatasync,recvfrom,sendto,read,write,writev,sendmsg"
    trace = start_traced(data_dir, durability, "-y", "-s", "40", "-e", calls)
    # A new log is synced once in any case, so it is the second workflow that tells.
    assert all(bench.work(trace.server, ledger) for _ in range(2))
    told = trace.end().splitlines()
    asked_at = [i for i, line in enumerate(told) if '"POST /v1/workflows' in line][-1]
    told_at = [i for i, line in enumerate(told) if '"HTTP/1.1 202' in line][-1]
    assert asked_at < told_at
    synced = find_synced_logs(told[asked_at:told_at])
    assert bool(synced) is (durability == "full"), "\n".join(told[asked_at : told_at + 1])


def test_bytes_and_the_folder_that_names_them_are_synced(
    bench: CrashBench, start_traced: StartTraced
) -> None:
    """Given full durability, when bytes are put in place, then both were synced by the end.

    The file before it gets its name, its folder after.
    """
    data_dir, ledger = bench.copy_directory("folders"), bench.ledger()
    trace = start_traced(data_dir, "full", "-y", "-e", "trace=fsync,rename")
    assert bench.work(trace.server, ledger)
    told = trace.end()
    renamed = re.findall(r'rename\("(.*/artifacts/../\..*)", "(.*)"', told)
    assert len(renamed) >= 2, "speech and card have bytes to put in place"
    for partial, target in renamed:
        before, after = told.split(f'rename("{partial}"')
        assert f"<{partial}>" in before
        assert f"<{Path(target).parent}>" in after


def find_synced_logs(lines: list[str]) -> list[str]:
    """The write-ahead logs whose sync began and returned within these lines of strace's."""
    begun: dict[str, str] = {}
    done = []
    for line in lines:
        process = line.split(maxsplit=1)[0]
        if found := re.search(r"fdatasync\(\d+<(.*-wal)>", line):
            begun[process] = found[1]
        if process in begun and re.search(r"fdatasync.*\)\s+= 0$", line):
            done.append(begun.pop(process))
    return done
