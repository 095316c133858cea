"""Three engines on one database of PostgreSQL, while engines, the database and the network fail.

`TOOLKIT_CRASH_FAULTS` is the number of faults. `TOOLKIT_CRASH_SEED` repeats the work and the faults
of a printed seed, but not the timing of the machine. Even with few faults, an engine is killed, and
the database is killed or restarted.
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
        deployment = PostgresDeployment(cluster, cloud, tmp_path, Random(draw_seed()), fork_server)
        stack.callback(deployment.close)
        yield deployment


def test_faults_lose_nothing_and_repeat_only_calls_in_flight(
    deployment: PostgresDeployment, tell: Callable[[str], None]
) -> None:
    """Given busy engines, when any part fails at any time, then all promises hold.

    Acknowledged work exists, and completed work stays and is not called again. A provider is called
    again only for calls in flight at the engine that failed. Money is equal to the last digit,
    limits hold in the provider's ledger, and all work ends.
    """
    issues = run_trial(deployment, FAULTS, Random(0))
    assert issues.counts["kill_engine"] > 0
    assert issues.counts["restart_database"] + issues.counts["kill_database"] > 0
    tell(f"{dict(issues.counts)}, wrong: {len(issues.wrong)}")
    assert not issues.wrong, "\n".join(issues.wrong)
    assert issues.counts["billed"] > FAULTS, "too little work to find faults"
