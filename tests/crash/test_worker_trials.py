"""Two workers of one `toolkit serve` on a data directory, while they and their database fail.

The trial and its variables are those of `test_postgres_trials.py`. Without the variables it is
skipped, because `test_two_servers.py` and `tests/server/test_workers.py` need less time.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from tests.crash.options import get_option
from tests.crash.processes import ForkServerClient, open_cloud
from tests.crash.promise_checks import is_database_intact
from tests.crash.trials.deployments import WorkersDeployment
from tests.crash.trials.trial import LATENCY_MS, LEDGER_MODULE, draw_seed, run_trial

FAULTS = int(get_option("TOOLKIT_CRASH_FAULTS") or 0)
pytestmark = pytest.mark.skipif(not FAULTS, reason="only with TOOLKIT_CRASH_FAULTS")


@pytest.fixture
def deployment(fork_server: ForkServerClient, tmp_path: Path) -> Iterator[WorkersDeployment]:
    """Two workers."""
    with (
        open_cloud(LEDGER_MODULE, LATENCY_MS, fork_server.start) as cloud,
        closing(WorkersDeployment(cloud, tmp_path, Random(draw_seed()))) as deployment,
    ):
        yield deployment


def test_worker_faults_lose_nothing_and_repeat_only_calls_in_flight(
    deployment: WorkersDeployment, tell: Callable[[str], None]
) -> None:
    """Given busy workers, when any part fails at any time, then all promises hold."""
    issues = run_trial(deployment, FAULTS, Random(0))
    tell(f"{dict(issues.counts)}, wrong: {len(issues.wrong)}")
    assert not issues.wrong, "\n".join(issues.wrong)
    assert is_database_intact(deployment.data_dir)
    assert issues.counts["billed"] > FAULTS, "too little work to find faults"
