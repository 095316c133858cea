"""Two workers of one `toolkit serve` on a data directory, while they and their database fail.

It is the trial of `test_postgres_trials.py`, whose variables hold here, too; without them it is
left out, as `test_two_servers.py` and `tests/server/test_workers.py` try the same in less time.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from tests.crash.options import get_option
from tests.crash.processes import ForkServerClient, open_cloud
from tests.crash.trials.deployments import WorkersDeployment
from tests.crash.trials.trial import LATENCY_MS, LEDGER_MODULE, draw_seed, run_trial

FAULTS = int(get_option("TOOLKIT_CRASH_FAULTS") or 0)
pytestmark = pytest.mark.skipif(not FAULTS, reason="only with TOOLKIT_CRASH_FAULTS")


@pytest.fixture
def deployment(fork_server: ForkServerClient, tmp_path: Path) -> Iterator[WorkersDeployment]:
    """Two workers."""
    with open_cloud(LEDGER_MODULE, LATENCY_MS, fork_server.start) as cloud:
        made = WorkersDeployment(cloud, tmp_path, Random(draw_seed()))
        try:
            yield made
        finally:
            made.close()


def test_faults_of_workers_lose_nothing_and_repeat_only_what_was_in_flight(
    deployment: WorkersDeployment, tell: Callable[[str], None]
) -> None:
    """Given busy workers, when anything fails at any time, then all that was promised holds."""
    found = run_trial(deployment, FAULTS, Random(0))
    tell(f"{dict(found.counts)}, wrong: {len(found.wrong)}")
    assert not found.wrong, "\n".join(found.wrong)
    assert deployment.is_database_intact()
    assert found.counts["billed"] > FAULTS, "too little was going on to tell anything"
