"""The process killed before and after each write of one workflow, one after the other.

Sampling finds what happens often; this finds what happens between two particular writes. Each time
others of the points are stepped over, as is told, and `TOOLKIT_CRASH_ALL=1` takes every one.
"""

import random
from collections import Counter
from collections.abc import Callable
from itertools import count, product

import pytest

from tests.crash.conftest import CrashBench
from tests.crash.options import get_option
from toolkit.store.crashpoints import CRASH_VARIABLE, find_crash_point

ALL = get_option("TOOLKIT_CRASH_ALL") is not None
STEP = 1 if ALL else 4
SIDES = ("before", "after")
# Where a restarted server is killed as it takes up what the first one left behind.
AGAIN = [*product(("lease",), SIDES, (1,)), *product(("commit",), SIDES, (1, 2, 3))]


def check_kill_points(
    bench: CrashBench, durability: str, points: list[str], totals: Counter[str]
) -> bool:
    """Check all promises after a kill at each point; tell whether the first was never come to.

    Servers that take up what it left behind are killed at the other points, if they come to them.
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
    found = bench.recover(data_dir, ledger)
    assert not found.wrong, f"{points}: " + "\n".join(found.wrong)
    totals += found.counts
    return False


@pytest.mark.parametrize(
    "durability",
    ["normal", pytest.param("full", marks=pytest.mark.sqlite("when a commit is on its disk"))],
)
def test_a_kill_around_any_commit_breaks_no_promise(
    bench: CrashBench, durability: str, tell: Callable[[str], None]
) -> None:
    """Given a workflow, when killed before or after any commit of it, then all promises hold."""
    totals: Counter[str] = Counter()
    # Commits to disk are slow enough for what must wait for them to go ahead where it does not.
    sides = SIDES if ALL or durability == "normal" else ("before",)
    first = random.randint(1, STEP)
    for n in count(first, STEP):
        points = [[f"commit:{side}:{n}"] for side in sides]
        if all([check_kill_points(bench, durability, one, totals) for one in points]):  # noqa: C419
            break
    tell(f"{durability}: from commit {first} on, of fewer than {n}: {dict(totals)}")
    assert n > 5, "the workflow had next to no commits"


def test_a_kill_in_mid_recovery_breaks_no_promise(
    bench: CrashBench, tell: Callable[[str], None]
) -> None:
    """Given a killed workflow, when killed again as it is taken up, then all promises hold."""
    totals: Counter[str] = Counter()
    first = random.randint(1, STEP)
    for n in count(first, STEP):
        some = AGAIN if ALL else [AGAIN[n % len(AGAIN)]]
        later = [":".join(map(str, point)) for point in some]
        points = [[f"commit:after:{n}", point] for point in later]
        if all([check_kill_points(bench, "normal", two, totals) for two in points]):  # noqa: C419
            break
    tell(f"in recovery, from commit {first} on: {dict(totals)}")


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_around_the_writing_of_bytes_breaks_no_promise(bench: CrashBench, when: str) -> None:
    """Given large artifacts, when killed as their bytes are put in place, then nothing is torn."""
    numbers = count(1)
    while not check_kill_points(bench, "normal", [f"blob:{when}:{next(numbers)}"], Counter()):
        continue
    assert next(numbers) >= 4, "speech and card have bytes to write"


@pytest.mark.parametrize(
    "asked_for", ["commit", "commit:later:3", "tea:before:3", "commit:after:x"]
)
def test_a_crash_point_that_does_not_exist_is_refused(
    asked_for: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a name that is no crash point, when a store opens, then it says so."""
    monkeypatch.setenv(CRASH_VARIABLE, asked_for)
    with pytest.raises(ValueError, match="commit:before:17"):
        find_crash_point("commit")


def test_crash_points_are_off_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given no variable, or one about other writes, then a moment does nothing."""
    find_crash_point("commit")("before")
    monkeypatch.setenv(CRASH_VARIABLE, "blob:before:1")
    find_crash_point("commit")("before")
    find_crash_point("blob")("after")
