"""A kill of the process before and after each write of a workflow.

Random kills find frequent faults; these tests find faults between two particular writes. Each run
takes a sample of the points, which it prints; `TOOLKIT_CRASH_ALL=1` takes all points.
"""

import random
from collections import Counter
from collections.abc import Callable
from itertools import count, product

import pytest

from tests.crash.conftest import CrashBench
from tests.crash.crash_points import CRASH_VARIABLE
from tests.crash.options import get_option

ALL = get_option("TOOLKIT_CRASH_ALL") is not None
STEP = 1 if ALL else 4
SIDES = ("before", "after")
# Points of a kill of the restarted server, while it resumes the work of the first server.
AGAIN = [*product(("lease",), SIDES, (1,)), *product(("commit",), SIDES, (1, 2, 3))]


def check_kill_points(
    bench: CrashBench, durability: str, points: list[str], totals: Counter[str]
) -> bool:
    """Check all promises after a kill at each point; return whether the first was not reached.

    Servers that resume the work are killed at the other points, if they reach them.
    """
    data_dir, ledger = bench.copy_directory("-".join((durability, *points))), bench.ledger()
    for i, point in enumerate(points):
        env = {CRASH_VARIABLE: point, "TOOLKIT_DURABILITY": durability}
        server = bench.serve(data_dir, **env)
        outlived = (
            bench.work(server, ledger) if i == 0 else bench.wait_until_resumed(server, ledger)
        )
        if outlived:
            server.kill()
        server.wait()
        if outlived and i == 0:
            return True
        bench.record_death(ledger)
    issues = bench.recover(data_dir, ledger)
    assert not issues.wrong, f"{points}: " + "\n".join(issues.wrong)
    totals += issues.counts
    return False


@pytest.mark.parametrize(
    "durability",
    ["normal", pytest.param("full", marks=pytest.mark.sqlite("when a commit is on its disk"))],
)
def test_kill_at_any_commit_breaks_no_promise(
    bench: CrashBench, durability: str, tell: Callable[[str], None]
) -> None:
    """Given a workflow, when killed before or after any commit of it, then all promises hold."""
    totals: Counter[str] = Counter()
    # Commits to disk are slow, so code that does not wait for them acts before: a side is enough.
    sides = SIDES if ALL or durability == "normal" else ("before",)
    first = random.randint(1, STEP)
    for n in count(first, STEP):
        points = [[f"commit:{side}:{n}"] for side in sides]
        if all([check_kill_points(bench, durability, names, totals) for names in points]):  # noqa: C419
            break
    tell(f"{durability}: from commit {first} on, of fewer than {n}: {dict(totals)}")
    assert n > 5, "the workflow had next to no commits"


def test_kill_during_recovery_breaks_no_promise(
    bench: CrashBench, tell: Callable[[str], None]
) -> None:
    """Given a killed workflow, when killed again as it resumes, then all promises hold."""
    totals: Counter[str] = Counter()
    first = random.randint(1, STEP)
    for n in count(first, STEP):
        chosen = AGAIN if ALL else [AGAIN[n % len(AGAIN)]]
        points = [[f"commit:after:{n}", ":".join(map(str, point))] for point in chosen]
        if all([check_kill_points(bench, "normal", names, totals) for names in points]):  # noqa: C419
            break
    tell(f"in recovery, from commit {first} on: {dict(totals)}")


@pytest.mark.parametrize("when", ["before", "after"])
def test_kill_at_a_write_of_bytes_breaks_no_promise(bench: CrashBench, when: str) -> None:
    """Given large artifacts, when killed at a write of bytes, then no artifact is incomplete."""
    numbers = count(1)
    while not check_kill_points(bench, "normal", [f"blob:{when}:{next(numbers)}"], Counter()):
        continue
    assert next(numbers) >= 4, "speech and card have bytes to write"
