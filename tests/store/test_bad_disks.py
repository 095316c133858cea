"""Disks that fill, turn read-only or lie: refused in the open, read on, and well again after."""

import hashlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.store.disks import Disk, small_disk
from tests.store.rows import acquire
from tests.support.embedded import get_thread
from tests.support.sqlite import get_sqlite
from tests.support.timing import PATIENCE_S, check_stays, wait_until, wait_until_async
from toolkit import Client, Run, Workflow
from toolkit.cli import app
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.sandbox import Fault, Faults
from toolkit.settings import Settings
from toolkit.store import Store, UpdateRow

pytestmark = pytest.mark.sqlite("the disk of its file")

LEASE_S = 1.0
ASKED = {"objective": "One line on tides"}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A disk of eight megabytes."""
    with small_disk(tmp_path / "disk", 8) as disk:
        yield disk


@pytest.fixture
def client(disk: Disk, faults: Faults) -> Iterator[Client]:
    """A client whose data is on that disk."""
    settings = Settings(data_dir=disk.path / "data", sandbox=True, retry_base_s=0.01, lease_s=1.0)
    with Client.local(settings=settings, faults=faults) as client:
        yield client


def get_refusal(client: Client) -> ServiceError:
    """The error of a run that is not accepted."""
    with pytest.raises(ServiceError) as failed:
        client.runs.create("llm.generate", ASKED)
    return failed.value


def ask_until_accepted(client: Client) -> Run:
    """Ask for a run until it is accepted, and wait for its end."""
    accepted: list[Run] = []

    def ask() -> bool:
        with suppress(ServiceError):
            accepted.append(client.runs.create("llm.generate", ASKED))
        return bool(accepted)

    wait_until(ask)
    return accepted[0].wait(progress=False)


def until_completed(client: Client, workflow_id: str, timeout_s: float = PATIENCE_S) -> None:
    """Wait for a workflow by asking, whatever becomes of single questions."""
    wait_until(lambda: client.workflows.get(workflow_id).status == "completed", "", timeout_s)


def test_a_disk_that_is_full(client: Client, disk: Disk) -> None:
    """Given a full disk, then new work is refused with 503, reading goes on, and space cures it."""
    done = client.runs.create("llm.generate", ASKED).wait()
    disk.fill()
    error = get_refusal(client)
    assert error.code is ErrorCode.UNAVAILABLE
    assert error.retry_after is not None
    assert str(disk.path) not in str(error)
    assert client.runs.get(done.id).output == done.output
    assert [run.id for run in client.runs.list()] == [done.id]
    disk.empty()
    assert client.runs.create("llm.generate", ASKED).wait().status == "completed"
    assert len(client.runs.list()) == 2  # nothing is left of what was refused


def test_a_disk_that_fills_in_mid_workflow(client: Client, disk: Disk, faults: Faults) -> None:
    """Given a disk that fills while work is under way, then it ends well once there is space.

    What had completed is not paid again.
    """
    faults.add(Fault("minimax", delay_ms=60, times=None))
    flow = Workflow("speeches")
    before = None
    for i in range(12):
        before = flow.add(
            f"n{i}", "llm.generate", objective=f"Line {i}", depends_on=[before] if before else []
        )
    run = client.workflows.submit(flow)

    def count_completed() -> int:
        return sum(node.status == "completed" for node in client.workflows.get(run.id).nodes)

    wait_until(lambda: count_completed() >= 3)
    disk.fill()
    check_stays(lambda: count_completed() < 12, 0.5)
    shown = {n.id: n.artifact_id for n in client.workflows.get(run.id).nodes if n.artifact_id}
    assert 3 <= len(shown) < 12
    disk.empty()
    until_completed(client, run.id)
    after = {node.id: node.artifact_id for node in client.workflows.get(run.id).nodes}
    assert {node_id: after[node_id] for node_id in shown} == shown
    paid = sum(call.billed for call in faults.calls)
    assert 12 <= paid <= 13  # one was in flight


@pytest.mark.parametrize(
    ("capability", "given"),
    [
        ("llm.generate", {"objective": "A line on" + " tides" * 300}),
        ("speech.generate", {"text": "The tide turns twice a day. " * 20}),
    ],
    ids=["in its row", "in a file"],
)
def test_a_result_is_stored_on_a_full_disk_and_nothing_new_is_called(
    client: Client, disk: Disk, faults: Faults, capability: str, given: dict[str, str]
) -> None:
    """Given a call in flight, when its disk fills, then room was held for its result.

    While the disk is full, no other call is made; it is made once there is space.
    """
    faults.add(Fault("minimax", delay_ms=1_000, times=None))
    run = client.runs.create(capability, given)
    wait_until(lambda: len(faults.calls) == 1)
    disk.fill()
    wait_until(lambda: client.runs.get(run.id).status == "completed")
    shown = client.runs.get(run.id)
    content = client.artifacts.content(shown.artifact_id or "")
    with ThreadPoolExecutor(1) as thread:
        disk.fill()  # what is left of the room
        late = thread.submit(ask_until_accepted, client)
        check_stays(lambda: len(faults.calls) == 1, 1.0)
        disk.empty()
        assert late.result().status == "completed"
    assert [call.billed for call in faults.calls] == [True, True]
    assert client.artifacts.content(shown.artifact_id or "") == content


async def test_leases_that_ended_on_a_full_disk_stay_with_their_owner(disk: Disk) -> None:
    """Given a lease that nobody could renew, when there is space again, then its owner has it.

    The other engine is idle, and looks for abandoned work at the very moment.
    """
    first, second = [await Store.open(disk.path / "data", lease_s=LEASE_S) for _ in range(2)]
    (held,) = await acquire(first, "run_a")
    disk.fill()

    async def has_ended() -> bool:
        (row,) = await second.find_rows("roots")
        return bool(row["lease_until"] < time.monotonic())

    await wait_until_async(has_ended)
    with pytest.raises(ServiceError):
        await second.leases.claim(10)
    with pytest.raises(ServiceError):
        first.leases.renew()
    disk.empty()
    assert await second.leases.claim(10) == []
    first.leases.renew()
    assert await second.leases.claim(10) == []
    await first.write([UpdateRow("roots", "run_a", {"cancel_requested": False})], lease=held)
    await first.close()
    await second.close()


async def test_bytes_that_do_not_fit(disk: Disk) -> None:
    """Given no space for an artifact's bytes, then nothing is left of them, and space cures it."""
    data = bytes(range(256)) * 4096
    digest = hashlib.sha256(data).hexdigest()
    store = await Store.open(disk.path / "data")
    disk.fill(leave_bytes=256 * 1024)
    with pytest.raises(ServiceError):
        await store.put_blob(digest, data)
    assert [path for path in (disk.path / "data" / "artifacts").rglob("*") if path.is_file()] == []
    disk.empty()
    await store.put_blob(digest, data)
    assert await store.blobs.get(digest) == data
    await store.close()


def test_a_database_that_turns_read_only(settings: Settings) -> None:
    """Given a database that may only be read, then it is read, and nothing is accepted."""
    with Client.local(settings=settings) as client:
        done = client.runs.create("llm.generate", ASKED).wait()
        store = get_thread(client).engine.core.store
        get_sqlite(store).write_connection.exec_driver_sql("PRAGMA query_only=ON")
        assert get_refusal(client).code is ErrorCode.UNAVAILABLE
        assert client.runs.get(done.id).output == done.output
        get_sqlite(store).write_connection.exec_driver_sql("PRAGMA query_only=OFF")
        assert client.runs.create("llm.generate", ASKED).wait().status == "completed"


def test_a_read_only_directory_is_refused_in_one_line(disk: Disk) -> None:
    """Given a directory that may only be read, then opening it says so, without a path."""
    disk.remount("ro")
    with pytest.raises(ServiceError) as failed:
        Client.local(disk.path / "new", sandbox=True)
    assert failed.value.code is ErrorCode.UNAVAILABLE
    assert "\n" not in str(failed.value)
    assert "Try again" not in str(failed.value)


@pytest.mark.parametrize("command", ["backup", "prune"])
def test_upkeep_of_what_may_only_be_read(disk: Disk, tmp_path: Path, command: str) -> None:
    """Given a disk that may only be read, then a line says what to change, not to try again."""
    folder = disk.path / "data"
    with Client.local(folder if command == "prune" else tmp_path / "data", sandbox=True) as client:
        client.runs.create("llm.generate", ASKED).wait(progress=False)
    disk.remount("ro")
    line = {
        "prune": ["prune", "--older-than=0d", "--data-dir", str(folder)],
        "backup": ["backup", str(disk.path / "copy"), "--data-dir", str(tmp_path / "data")],
    }[command]
    failed = CliRunner().invoke(app, line).exception
    assert isinstance(failed, ServiceError), failed
    assert "Allow this user to write there" in str(failed)
    assert "\n" not in str(failed)
