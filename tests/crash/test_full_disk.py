"""A disk that fills while engines work, and nobody dies: nothing is paid twice, nothing is lost.

`TOOLKIT_CRASH_FAULTS` is how often the disk fills; more than a few make the trial a long one, in
which the disk stays full for longer. The trial is skipped if no small disk may be mounted here.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from secrets import token_hex

import psycopg
import pytest

from tests._postgres import PostgresCluster, start_cluster
from tests.crash.options import get_option
from tests.crash.processes import CloudProcess, ForkServerClient, open_cloud, serve, sign_up
from tests.crash.trials.full_disk import run_full_disk_trial
from tests.crash.trials.trial import LATENCY_MS, LEDGER_MODULE
from tests.store.disks import Disk, small_disk
from tests.support.timing import wait_until
from toolkit import Client
from toolkit.sandbox import Fault, Faults
from toolkit.settings import Settings

ASKED_TIMES = get_option("TOOLKIT_CRASH_FAULTS")
TIMES = int(ASKED_TIMES or 2)
FULL_S = 9.0 if ASKED_TIMES else 2.5
# Shorter than the disk stays full: the leases of all work end meanwhile.
LEASES = {"TOOLKIT_LEASE_S": "2.0"}
CALLS = 12
COUNT_COMPLETED_SQL = "SELECT count(*) FROM jobs WHERE status = 'completed'"
SQLITE_MEGABYTES, POSTGRES_MEGABYTES = 24, 160


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """All that a trial opens."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def cloud(stack: ExitStack, fork_server: ForkServerClient) -> CloudProcess:
    """The vendor, which survives and bills by its own books."""
    return stack.enter_context(open_cloud(LEDGER_MODULE, LATENCY_MS, fork_server.start))


def mount(stack: ExitStack, megabytes: int) -> Disk:
    """Mount a small disk that the user of PostgreSQL reaches, too."""
    folder = Path(tempfile.gettempdir()) / f"toolkit-disk-{token_hex(6)}"
    stack.callback(lambda: folder.rmdir() if folder.exists() else None)
    return stack.enter_context(small_disk(folder, megabytes))


@pytest.mark.sqlite("the disk of its file")
def test_a_full_disk_under_sqlite_has_nothing_paid_twice(
    stack: ExitStack,
    cloud: CloudProcess,
    fork_server: ForkServerClient,
    tell: Callable[[str], None],
) -> None:
    """Given two engines on one directory, when its disk fills, then each input is billed once."""
    disk = mount(stack, SQLITE_MEGABYTES)
    serving = [
        serve(cloud, disk.path / "data", start=fork_server.start, **LEASES) for _ in range(2)
    ]
    urls = [stack.enter_context(one)[0] for one in serving]
    result = run_full_disk_trial(
        urls, cloud.url, sign_up(urls[0]),
        times=TIMES, full_s=FULL_S, fill=disk.fill, free=disk.empty,
    )  # fmt: skip
    tell(result.describe())
    assert not result.wrong, "\n".join(result.wrong)


@pytest.mark.postgresql
def test_a_full_disk_under_postgresql_has_nothing_paid_twice(
    stack: ExitStack,
    cloud: CloudProcess,
    fork_server: ForkServerClient,
    tmp_path: Path,
    tell: Callable[[str], None],
) -> None:
    """Given two engines on one database, when its disk fills, then each input is billed once."""
    disk = mount(stack, POSTGRES_MEGABYTES)
    cluster = start_cluster(parent=disk.path)
    stack.callback(cluster.remove)
    database = cluster.create_database()
    shared = {**LEASES, "TOOLKIT_ARTIFACT_URL": str(tmp_path / "artifacts")}
    serving = [
        serve(cloud, tmp_path / f"data{n}", database, fork_server.start, **shared) for n in range(2)
    ]
    urls = [stack.enter_context(one)[0] for one in serving]

    def free() -> None:
        disk.empty()
        _start_again(cluster)

    result = run_full_disk_trial(
        urls, cloud.url, sign_up(urls[0]), times=TIMES, full_s=FULL_S, fill=disk.fill, free=free
    )
    tell(result.describe())
    assert not result.wrong, "\n".join(result.wrong)


def _start_again(cluster: PostgresCluster) -> None:
    """Start a server that has ended because it found no room for its log."""
    if cluster.has_ended:
        cluster.stop()
        wait_until(lambda: not cluster.has_ended)
        cluster.start()


@pytest.mark.postgresql
def test_results_are_stored_while_the_disk_of_postgresql_is_full(
    stack: ExitStack, tmp_path: Path
) -> None:
    """Given calls in flight, when the database's disk fills, then room was held for their results.

    The results are so long that the tables have to grow. Another session sees them as completed.
    """
    disk = mount(stack, POSTGRES_MEGABYTES)
    cluster = start_cluster(parent=disk.path)
    stack.callback(cluster.remove)
    database = cluster.create_database()
    faults = Faults()
    faults.add(Fault("minimax", delay_ms=2_000, times=None))
    settings = Settings(data_dir=tmp_path / "data", database=database, sandbox=True)
    client = stack.enter_context(Client.local(settings=settings, faults=faults))
    stack.callback(disk.empty)
    asked = {"objective": "A line on" + " tides" * 3_000}
    for _ in range(CALLS):
        client.runs.create("llm.generate", asked)
    wait_until(lambda: len(faults.calls) == CALLS)
    disk.fill()
    with psycopg.connect(database, autocommit=True) as session:
        wait_until(lambda: session.execute(COUNT_COMPLETED_SQL).fetchone() == (CALLS,))
    assert [call.billed for call in faults.calls] == [True] * CALLS
