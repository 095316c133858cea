"""A disk that fills while engines work, without a kill: no input is paid twice or lost.

`TOOLKIT_CRASH_FAULTS` is the number of times that the disk fills, and with it the disk stays full
for longer. The trial is skipped if a small disk cannot be mounted.
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
from tests.support.database_pool import BOTH_DATABASES
from tests.support.timing import wait_until
from toolkit import Client
from toolkit.sandbox import Fault, Faults
from toolkit.settings import Settings

ASKED_TIMES = get_option("TOOLKIT_CRASH_FAULTS")
TIMES = int(ASKED_TIMES or 2)
FULL_S = 9.0 if ASKED_TIMES else 2.5
# Shorter than the time for which the disk is full, so that the leases of all work expire.
LEASES = {"TOOLKIT_LEASE_S": "2.0"}
CALLS = 12
COUNT_COMPLETED_SQL = "SELECT count(*) FROM jobs WHERE status = 'completed'"
SQLITE_MEGABYTES, POSTGRES_MEGABYTES = 24, 160


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """The resources of a trial."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def cloud(stack: ExitStack, fork_server: ForkServerClient) -> CloudProcess:
    """The vendor, with its own ledger, in a process that survives."""
    return stack.enter_context(open_cloud(LEDGER_MODULE, LATENCY_MS, fork_server.start))


def mount(stack: ExitStack, megabytes: int) -> Disk:
    """Mount a small disk that the user of PostgreSQL can access."""
    folder = Path(tempfile.gettempdir()) / f"toolkit-disk-{token_hex(6)}"
    stack.callback(lambda: folder.rmdir() if folder.exists() else None)
    return stack.enter_context(small_disk(folder, megabytes))


def open_small_cluster(stack: ExitStack) -> tuple[Disk, PostgresCluster]:
    """Start a PostgreSQL server on a small disk."""
    disk = mount(stack, POSTGRES_MEGABYTES)
    cluster = start_cluster(parent=disk.path)
    stack.callback(cluster.remove)
    return disk, cluster


@pytest.mark.parametrize("kind", BOTH_DATABASES)
def test_full_disk_repeats_no_call(
    kind: str,
    stack: ExitStack,
    cloud: CloudProcess,
    fork_server: ForkServerClient,
    tmp_path: Path,
    tell: Callable[[str], None],
) -> None:
    """Given two engines on one database, when its disk fills, then each input is billed once."""
    if kind == "sqlite":
        disk = mount(stack, SQLITE_MEGABYTES)
        folders, database, free = [disk.path / "data"] * 2, None, disk.empty
        env = LEASES
    else:
        disk, cluster = open_small_cluster(stack)
        folders, database = [tmp_path / "a", tmp_path / "b"], cluster.create_database()
        env = {**LEASES, "TOOLKIT_ARTIFACT_URL": str(tmp_path / "artifacts")}

        def free() -> None:
            disk.empty()
            # PostgreSQL ends if it finds no space for its log.
            if cluster.has_ended:
                cluster.stop()
                wait_until(lambda: not cluster.has_ended)
                cluster.start()

    serving = [serve(cloud, folder, database, fork_server.start, **env) for folder in folders]
    urls = [stack.enter_context(server)[0] for server in serving]
    result = run_full_disk_trial(
        urls, cloud.url, sign_up(urls[0]), times=TIMES, full_s=FULL_S, fill=disk.fill, free=free
    )
    tell(result.describe())
    assert not result.wrong, "\n".join(result.wrong)


@pytest.mark.postgresql
def test_stores_results_while_the_disk_of_postgresql_is_full(
    stack: ExitStack, tmp_path: Path
) -> None:
    """Given calls in flight, when the disk fills, then reserved space holds their results.

    The results are so long that the tables must grow. Another session reads them as completed.
    """
    disk, cluster = open_small_cluster(stack)
    database = cluster.create_database()
    faults = Faults()
    faults.add(Fault("minimax", delay_ms=2_000, times=None))
    settings = Settings(data_dir=tmp_path / "data", database=database, sandbox=True)
    client = stack.enter_context(Client.local(settings=settings, faults=faults))
    stack.callback(disk.empty)
    fields = {"objective": "A line on" + " tides" * 3_000}
    for _ in range(CALLS):
        client.runs.create("llm.generate", fields)
    wait_until(lambda: len(faults.calls) == CALLS)
    disk.fill()
    with psycopg.connect(database, autocommit=True) as session:
        wait_until(lambda: session.execute(COUNT_COMPLETED_SQL).fetchone() == (CALLS,))
    assert [call.billed for call in faults.calls] == [True] * CALLS
