"""With `durability = "full"`: killed at each sync to disk, and what is sent only after one.

No kill can show that a sync is missing, as the system's cache outlives the process: the order of
system calls can.
"""

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
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

Trace = Callable[..., "TracedServerProcess"]


class TracedServerProcess(ServerProcess):
    """A server that strace follows from when it answers; before, it would slow each system call."""

    def __init__(self, bench: CrashBench, data_dir: Path, durability: str, *options: str) -> None:
        self.log = data_dir.with_suffix(".strace")
        server = bench.fork_server.serve(data_dir, TOOLKIT_DURABILITY=durability)
        port = bench.fork_server.port
        super().__init__(port, server.pid, server.poll_exit_code, self.log, data_dir)
        self._options = options
        self._strace: subprocess.Popen[bytes] | None = None

    def wait_until_ready(self) -> bool:
        """Wait until it answers, and is followed."""
        if not super().wait_until_ready():
            return False
        if self._strace is None:
            follow = ["strace", "-f", "-qq", "-o", str(self.log), "-p", str(self.pid)]
            self._strace = subprocess.Popen([*follow, *self._options])
            wait_until(self._is_traced, "strace follows every thread")
        return True

    def _is_traced(self) -> bool:
        states = [path.read_text() for path in Path(f"/proc/{self.pid}/task").glob("*/status")]
        return not any(re.search(r"^TracerPid:\t0$", state, re.MULTILINE) for state in states)

    def wait(self) -> int:
        """Wait for the end of both."""
        ended = super().wait()
        if self._strace is not None:
            self._strace.wait()
        return ended


@pytest.fixture
def trace(bench: CrashBench) -> Iterator[Trace]:
    """Starts traced servers, and sees to it that none is left."""
    started: list[TracedServerProcess] = []

    def start(data_dir: Path, durability: str, *options: str) -> TracedServerProcess:
        started.append(TracedServerProcess(bench, data_dir, durability, *options))
        return started[-1]

    yield start
    for server in started:
        server.kill()
    for server in started:
        server.wait()


def test_a_kill_at_any_sync_breaks_no_promise(
    bench: CrashBench, trace: Trace, tell: Callable[[str], None]
) -> None:
    """Given full durability, when killed at any sync of a workflow, then all promises hold."""
    totals: Counter[str] = Counter()
    for n in count(1):
        data_dir, ledger = bench.copy_directory(f"sync-{n}"), bench.ledger()
        inject = f"inject=fdatasync:signal=SIGKILL:when={n}"
        server = trace(data_dir, "full", "-e", "trace=fdatasync", "-e", inject)
        if bench.work(server, ledger):
            break
        server.wait()
        bench.record_death(ledger)
        found = bench.recover(data_dir, ledger)
        assert not found.wrong, f"{inject}: " + "\n".join(found.wrong)
        totals += found.counts
    tell(f"up to {n - 1} syncs of one thread: {dict(totals)}")
    assert totals["kills"] >= 3, "the workflow had next to no syncs"


@pytest.mark.parametrize("durability", ["full", "normal"])
def test_an_acknowledgement_leaves_after_the_sync(
    bench: CrashBench, trace: Trace, durability: str
) -> None:
    """Given a workflow that is accepted, then with full durability it was synced before the 202.

    With normal durability it was not, which shows that this test can tell.
    """
    data_dir, ledger = bench.copy_directory(f"order-{durability}"), bench.ledger()
    calls = "trace=fdatasync,recvfrom,sendto,read,write,writev,sendmsg"
    server = trace(data_dir, durability, "-y", "-s", "40", "-e", calls)
    # A new log is synced once in any case, so it is the second workflow that tells.
    assert all(bench.work(server, ledger) for _ in range(2))
    server.kill()
    server.wait()
    told = server.log.read_text(errors="replace").splitlines()
    asked_at = [i for i, line in enumerate(told) if '"POST /v1/workflows' in line][-1]
    told_at = [i for i, line in enumerate(told) if '"HTTP/1.1 202' in line][-1]
    assert asked_at < told_at
    synced = find_synced_logs(told[asked_at:told_at])
    assert bool(synced) is (durability == "full"), "\n".join(told[asked_at : told_at + 1])


def test_bytes_and_the_folder_that_names_them_are_synced(bench: CrashBench, trace: Trace) -> None:
    """Given full durability, when bytes are put in place, then both were synced by the end.

    The file before it gets its name, its folder after.
    """
    data_dir, ledger = bench.copy_directory("folders"), bench.ledger()
    server = trace(data_dir, "full", "-y", "-e", "trace=fsync,rename")
    assert bench.work(server, ledger)
    server.kill()
    server.wait()
    told = server.log.read_text(errors="replace")
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
