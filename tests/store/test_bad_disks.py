"""Disks that fill or turn read-only: errors are clear, reads work, and writes recover."""

import asyncio
import hashlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from tests.store.disks import Disk, small_disk
from tests.store.rows import acquire, make_row
from tests.support.commands import run_toolkit
from tests.support.embedded import get_thread
from tests.support.sqlite import get_sqlite
from tests.support.timing import PATIENCE_S, check_stays, wait_until, wait_until_async
from toolkit import Client, Run, Workflow
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.sandbox import Fault, Faults
from toolkit.settings import Settings
from toolkit.store import Store, StoreUnavailableError, UpdateRow
from toolkit.store.writing import result_room
from toolkit.store.writing.outages import ROWS, WriteOutages

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
    """A client with its data on that disk."""
    settings = Settings(data_dir=disk.path / "data", sandbox=True, retry_base_s=0.01, lease_s=1.0)
    with Client.local(settings=settings, faults=faults) as client:
        yield client


def get_refusal(client: Client) -> ServiceError:
    """Return the error of a run that is refused."""
    with pytest.raises(ServiceError) as failed:
        client.runs.create("llm.generate", ASKED)
    return failed.value


def ask_until_accepted(client: Client) -> Run:
    """Create a run, repeatedly until it is accepted, and wait for its end."""
    accepted: list[Run] = []

    def ask() -> bool:
        with suppress(ServiceError):
            accepted.append(client.runs.create("llm.generate", ASKED))
        return bool(accepted)

    wait_until(ask)
    return accepted[0].wait(progress=False)


def test_refuses_new_work_on_a_full_disk(client: Client, disk: Disk) -> None:
    """Given a full disk, then new work gets 503, reads work, and free space ends the outage."""
    first_run = client.runs.create("llm.generate", ASKED).wait()
    disk.fill()
    error = get_refusal(client)
    assert error.code is ErrorCode.UNAVAILABLE
    assert error.retry_after is not None
    assert str(disk.path) not in str(error)
    assert client.runs.get(first_run.id).output == first_run.output
    assert [run.id for run in client.runs.list()] == [first_run.id]
    disk.empty()
    assert client.runs.create("llm.generate", ASKED).wait().status == "completed"
    assert len(client.runs.list()) == 2  # the refused run left no record


def test_a_workflow_completes_after_a_full_disk(client: Client, disk: Disk, faults: Faults) -> None:
    """Given a disk that fills during a workflow, then the workflow completes once there is space.

    The completed nodes are not paid for again.
    """
    faults.add(Fault("minimax", delay_ms=60, times=None))
    workflow = Workflow("speeches")
    for i in range(12):
        previous = [f"n{i - 1}"] if i else []
        workflow.add(f"n{i}", "llm.generate", objective=f"Line {i}", depends_on=previous)
    run = client.workflows.submit(workflow)

    def count_completed() -> int:
        return sum(node.status == "completed" for node in client.workflows.get(run.id).nodes)

    wait_until(lambda: count_completed() >= 3)
    disk.fill()
    check_stays(lambda: count_completed() < 12, 0.5)
    completed = {n.id: n.artifact_id for n in client.workflows.get(run.id).nodes if n.artifact_id}
    assert 3 <= len(completed) < 12
    disk.empty()
    wait_until(lambda: client.workflows.get(run.id).status == "completed")
    after = {node.id: node.artifact_id for node in client.workflows.get(run.id).nodes}
    assert {node_id: after[node_id] for node_id in completed} == completed
    paid = sum(call.billed for call in faults.calls)
    assert 12 <= paid <= 13  # one was in flight


@pytest.mark.parametrize(
    ("capability", "payload"),
    [
        ("llm.generate", {"objective": "A line on" + " tides" * 300}),
        ("speech.generate", {"text": "The tide turns twice a day. " * 20}),
    ],
    ids=["in its row", "in a file"],
)
def test_stores_a_result_on_a_full_disk_and_makes_no_new_call(
    client: Client, disk: Disk, faults: Faults, capability: str, payload: dict[str, str]
) -> None:
    """Given a call in flight, when its disk fills, then there is reserved space for its result.

    The next call waits until the disk has space.
    """
    faults.add(Fault("minimax", delay_ms=1_000, times=None))
    run = client.runs.create(capability, payload)
    wait_until(lambda: len(faults.calls) == 1)
    disk.fill()
    wait_until(lambda: client.runs.get(run.id).status == "completed")
    completed = client.runs.get(run.id)
    content = client.artifacts.content(completed.artifact_id or "")
    with ThreadPoolExecutor(1) as thread:
        disk.fill()  # the rest of the reserved space
        late = thread.submit(ask_until_accepted, client)
        check_stays(lambda: len(faults.calls) == 1, 1.0)
        disk.empty()
        assert late.result().status == "completed"
    assert [call.billed for call in faults.calls] == [True, True]
    assert client.artifacts.content(completed.artifact_id or "") == content


async def test_leases_that_expire_on_a_full_disk_stay_with_their_owner(disk: Disk) -> None:
    """Given a lease that expired on a full disk, then its owner keeps it once there is space.

    Another engine is idle, and looks for abandoned work at that moment.
    """
    first, second = [await Store.open(disk.path / "data", lease_s=LEASE_S) for _ in range(2)]
    (lease,) = await acquire(first, "run_a")
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
    await first.write([UpdateRow("roots", "run_a", {"cancel_requested": False})], lease=lease)
    await first.close()
    await second.close()


async def test_leaves_no_part_of_bytes_that_do_not_fit(disk: Disk) -> None:
    """Given no space for an artifact, then no bytes of it stay, and a later write succeeds."""
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


def test_reads_from_a_read_only_database(settings: Settings) -> None:
    """Given a database that turns read-only, then reads work, and no work is accepted."""
    with Client.local(settings=settings) as client:
        first_run = client.runs.create("llm.generate", ASKED).wait()
        store = get_thread(client).engine.core.store
        get_sqlite(store).write_connection.exec_driver_sql("PRAGMA query_only=ON")
        assert get_refusal(client).code is ErrorCode.UNAVAILABLE
        assert client.runs.get(first_run.id).output == first_run.output
        get_sqlite(store).write_connection.exec_driver_sql("PRAGMA query_only=OFF")
        assert client.runs.create("llm.generate", ASKED).wait().status == "completed"


def test_refuses_a_read_only_directory_in_one_line(disk: Disk) -> None:
    """Given a read-only directory, then opening it fails with one line, without a retry."""
    disk.remount("ro")
    with pytest.raises(ServiceError) as failed:
        Client.local(disk.path / "new", sandbox=True)
    assert failed.value.code is ErrorCode.UNAVAILABLE
    assert "\n" not in str(failed.value)
    assert "Try again" not in str(failed.value)


@pytest.mark.parametrize("command", ["backup", "prune"])
def test_upkeep_refuses_a_read_only_disk(disk: Disk, tmp_path: Path, command: str) -> None:
    """Given a read-only disk, then one line says what to change, and not to try again."""
    folder = disk.path / "data"
    with Client.local(folder if command == "prune" else tmp_path / "data", sandbox=True) as client:
        client.runs.create("llm.generate", ASKED).wait(progress=False)
    disk.remount("ro")
    if command == "prune":
        error = run_toolkit("prune", "--older-than=0d", "--data-dir", folder).exception
    else:
        target = disk.path / "copy"
        error = run_toolkit("backup", target, "--data-dir", tmp_path / "data").exception
    assert isinstance(error, ServiceError), error
    assert "Allow this user to write there" in str(error)
    assert "\n" not in str(error)


async def test_writes_a_request_while_calls_wait_for_space(tmp_path: Path) -> None:
    """Given calls that wait for more space than there is, then rows that fit are written."""
    store = await Store.open(tmp_path)
    writer = store.writer
    writer.wanted_ballast_bytes = 1 << 45  # more than any disk has
    calls = [writer.grow_ballast() for _ in range(12)]
    await store.write([make_row("plans", "a")])
    assert not any(call.done() for call in calls)
    writer.wanted_ballast_bytes = 0
    for call in calls:
        await call
    await store.close()


async def test_refuses_a_call_that_waits_too_long_for_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given an outage of writes that lasts, then a call is refused after the longest wait."""
    monkeypatch.setattr(result_room, "WORK_WAIT_S", 0.05)
    store = await Store.open(tmp_path)
    outages = WriteOutages()
    outages.note_failure(ROWS)
    room = result_room.ResultRoom(outages, store.writer, store.blobs)
    with pytest.raises(StoreUnavailableError, match="free disk space"):
        await asyncio.wait_for(room.hold(result_room.ResultSize(1, 1)), PATIENCE_S)
    assert store.writer.wanted_ballast_bytes == 0
    await store.close()
