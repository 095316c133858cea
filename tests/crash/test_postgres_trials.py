"""Three engines on one database of PostgreSQL, while engines, the database and the network fail.

`TOOLKIT_CRASH_FAULTS` is how often something fails, `TOOLKIT_CRASH_SEED` repeats what a failure has
printed (the work and the faults; what the engines are doing at that instant is the machine's).
However few the faults are, an engine is killed, and the database is killed or restarted.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random

import pytest

from tests._postgres import start_cluster
from tests.crash.options import get_option
from tests.crash.processes import ForkServerClient, open_cloud
from tests.crash.trials.deployments import PostgresDeployment
from tests.crash.trials.trial import LATENCY_MS, LEDGER_MODULE, draw_seed, run_trial

FAULTS = int(get_option("TOOLKIT_CRASH_FAULTS") or 4)


@pytest.fixture
def deployment(fork_server: ForkServerClient, tmp_path: Path) -> Iterator[PostgresDeployment]:
    """Three engines."""
    with ExitStack() as stack:
        cluster = start_cluster()
        stack.callback(cluster.remove)
        cloud = stack.enter_context(open_cloud(LEDGER_MODULE, LATENCY_MS, fork_server.start))
        made = PostgresDeployment(cluster, cloud, tmp_path, Random(draw_seed()), fork_server)
        stack.callback(made.close)
        yield made


def test_faults_lose_nothing_and_repeat_only_what_was_in_flight(
    deployment: PostgresDeployment, tell: Callable[[str], None]
) -> None:
    """Given busy engines, when anything fails at any time, then all that was promised holds.

    What was acknowledged is there, what was shown as completed stays and is not called again, a
    provider is called again only for what the very engine that failed had in flight, money is equal
    to the last digit, limits hold as the provider sees them, and everything comes to its end.
    """
    found = run_trial(deployment, FAULTS, Random(0))
    assert found.counts["kill_engine"] > 0
    assert found.counts["restart_database"] + found.counts["kill_database"] > 0
    tell(f"{dict(found.counts)}, wrong: {len(found.wrong)}")
    assert not found.wrong, "\n".join(found.wrong)
    assert found.counts["billed"] > FAULTS, "too little was going on to tell anything"
