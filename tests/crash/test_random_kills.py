"""A server that is killed repeatedly at random moments while it works, on one directory.

`TOOLKIT_CRASH_KILLS` is the number of kills. `TOOLKIT_CRASH_SEED` repeats the work and the delays
of a printed seed, but not the timing of the machine.
"""

import itertools
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from random import Random

import httpx
import pytest

from tests.crash.callers import WRITERS, Caller, Ledger, record_kill
from tests.crash.conftest import LEASE_S
from tests.crash.options import get_option
from tests.crash.processes import (
    DelayedKill,
    FindUrl,
    ForkServerClient,
    ServerProcess,
    open_cloud,
)
from tests.crash.promise_checks import check_promises, is_database_intact

KILLS = int(get_option("TOOLKIT_CRASH_KILLS") or 12)
MOST_LIVES = 5
MOST_OPEN = 6
MOST_PEOPLE = 4


def keep_busy(caller: Caller, ledger: Ledger, random: Random) -> None:
    """Create work and read it until the server is gone."""
    while True:
        few = len(ledger.people) < MOST_PEOPLE and random.random() < 0.05
        if not ledger.people:
            caller.sign_up("minimax")  # only accounts with this provider alone create tasks
        elif few:
            caller.sign_up("minimax", random.choice(WRITERS[1:]))
        elif len(ledger.open) < MOST_OPEN:
            connected = [person for person in ledger.people if "minimax" in person.connections]
            if connected:
                caller.work(random.choice(connected))
            else:
                caller.connect(ledger.people[0], "minimax")
        else:
            time.sleep(0.005)
        caller.look_around()


def test_random_kills_lose_nothing_and_repeat_only_calls_in_flight(
    fork_server: ForkServerClient, tmp_path: Path, tell: Callable[[str], None], find_url: FindUrl
) -> None:
    """Given a busy server, when it is killed at random, then all promises hold.

    Acknowledged work exists, and completed work stays and is not called again. A vendor is called
    again only for calls in flight, and all work ends.
    """
    seed = int(get_option("TOOLKIT_CRASH_SEED") or time.time_ns() % 1_000_000)
    print(f"TOOLKIT_CRASH_SEED={seed}")
    random, numbers = Random(seed), itertools.count(1)
    data_dir, ledger = tmp_path / "data", Ledger()
    began = time.monotonic()
    with open_cloud(start=fork_server.start) as cloud:

        def serve() -> ServerProcess:
            return fork_server.serve(cloud, data_dir, find_url(data_dir), TOOLKIT_LEASE_S=LEASE_S)

        for kill in range(MOST_LIVES * KILLS):
            # A server on a busy machine may be killed before it has called a vendor.
            if kill >= KILLS and sum(call["billed"] for call in cloud.calls()) > KILLS / 4:
                break
            killed_at = _run_one_life(serve(), ledger, random, numbers)
            record_kill(cloud, ledger, killed_at)
        server = serve()
        assert server.wait_until_ready()
        caller = Caller(server.url, ledger, random, numbers)
        caller.wait_for_all()
        issues = check_promises(caller, cloud, ledger)
        caller.close()
        server.kill()
        server.wait()
    took = time.monotonic() - began
    tell(f"seed {seed}, {took:.1f} s: {dict(issues.counts)}, wrong: {len(issues.wrong)}")
    assert not issues.wrong, "\n".join(issues.wrong)
    assert is_database_intact(data_dir, find_url(data_dir))
    assert issues.counts["billed"] > KILLS / 4, "too little work to find faults"


def _run_one_life(
    server: ServerProcess, ledger: Ledger, random: Random, numbers: Iterator[int]
) -> datetime:
    """Keep a server busy and kill it, at times while it starts; return the time of the kill."""
    early = random.random() < 1 / 6
    killing = DelayedKill(server, random.uniform(0, 0.3)) if early else None
    if server.wait_until_ready():
        after_s = random.uniform(0.02, 0.7) * (1 if server.database is None else 3)
        killing = killing or DelayedKill(server, after_s)
        caller = Caller(server.url, ledger, random, numbers)
        with pytest.raises(httpx.TransportError):
            keep_busy(caller, ledger, random)
        caller.close()
    assert killing is not None
    return killing.wait_until_dead()
