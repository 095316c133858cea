"""Equal work in two processes at once: the vendor's log has each input once."""

from collections import Counter
from pathlib import Path

import pytest

from tests.crash.processes import ForkServerClient, name_database, open_cloud
from tests.crash.trials.equal_rows import ROWS
from tests.support.database_pool import BOTH_DATABASES
from tests.support.timing import wait_until


@pytest.mark.parametrize("database", BOTH_DATABASES)
def test_two_kernels_with_equal_rows_pay_each_row_once(
    database: str, fork_server: ForkServerClient, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Given two kernels that map the same rows at once, then no input is billed twice."""
    url = request.getfixturevalue("postgres_url") if database == "postgresql" else None
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    command = ["tests.crash.trials.equal_rows", str(tmp_path / "data"), str(meeting)]
    with open_cloud(latency_ms=200, start=fork_server.start) as cloud:
        env = {**cloud.environment(), **name_database(url)}
        kernels = [fork_server.start(command, env) for _ in range(2)]
        wait_until(lambda: len(list(meeting.iterdir())) == len(kernels), "both are ready")
        (meeting / "go").touch()
        assert [kernel.wait() for kernel in kernels] == [0, 0], fork_server.log.read_text()
        billed = Counter(call["digest"] for call in cloud.calls() if call["billed"])
    assert len(billed) == ROWS
    assert set(billed.values()) == {1}
