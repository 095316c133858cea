"""Engines that hang in a transaction lose their work to other engines."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.store.rows import AT, acquire, claim_ended, make_row
from tests.support.timing import PATIENCE_S, wait_until_async
from toolkit.store import AppendEvent, Lease, LeaseLost, Store, UpdateRow
from toolkit.store.postgres import database
from toolkit.store.postgres.writing import writes
from toolkit.store.writing.direct_writer import DirectWriter
from toolkit.store.writing.write_connection import WriteConnection

LEASE_S = 0.5
MAX_TAKEOVER_S = 20.0


class Pause:
    """A point at which the first thread that arrives pauses, once armed."""

    def __init__(self) -> None:
        self.is_armed = False
        self.has_begun, self._resumed = threading.Event(), threading.Event()

    def wait_if_armed(self) -> None:
        """Pause the thread if it is the first one since `is_armed` was set."""
        if self.is_armed:
            self.is_armed = False
            self.has_begun.set()
            self._resumed.wait(PATIENCE_S)

    def end(self) -> None:
        """Resume the thread."""
        self._resumed.set()


@pytest.fixture
def pause() -> Iterator[Pause]:
    """A pause that ends with the test."""
    pause = Pause()
    yield pause
    pause.end()


def pause_in_pipeline(monkeypatch: pytest.MonkeyPatch, pause: Pause) -> None:
    """Pause a writer between two statements of a transaction."""
    build = writes.build_insert

    def build_after_pause(table: str, columns: tuple[str, ...], on_conflict: str = "") -> str:
        if table == "events":  # the last statement of a transaction
            pause.wait_if_armed()
        return build(table, columns, on_conflict)

    monkeypatch.setattr(writes, "build_insert", build_after_pause)


def pause_before_commit(monkeypatch: pytest.MonkeyPatch, pause: Pause) -> None:
    """Pause a writer after all answers and before its commit."""
    check = WriteConnection._check_limits

    def check_and_pause(connection: WriteConnection) -> None:
        check(connection)
        pause.wait_if_armed()

    monkeypatch.setattr(WriteConnection, "_check_limits", check_and_pause)


def pause_in_renewal(monkeypatch: pytest.MonkeyPatch, pause: Pause) -> None:
    """Pause a renewal of leases before its commit."""
    transact = DirectWriter.transact_now

    def transact_and_pause(writer: DirectWriter, work: Callable[[Any], Any]) -> Any:
        def work_and_pause(connection: Any) -> Any:
            answer = work(connection)
            pause.wait_if_armed()
            return answer

        return transact(writer, work_and_pause)

    monkeypatch.setattr(DirectWriter, "transact_now", transact_and_pause)


async def write_more(store: Store, lease: Lease) -> None:
    """Write under a lease."""
    event = AppendEvent(lease.root_id, "node.completed", {}, AT)
    await store.write([make_row("plans", "plan_a"), event], lease=lease)


async def renew(store: Store, _lease: Lease) -> None:
    """Renew the leases of a store."""
    await asyncio.to_thread(store.leases.renew)


@pytest.mark.parametrize(
    ("pause_in", "work"),
    [
        pytest.param(pause_in_pipeline, write_more, id="in a pipeline"),
        pytest.param(pause_before_commit, write_more, id="before a commit"),
        pytest.param(pause_in_renewal, renew, id="in a renewal"),
    ],
)
async def test_another_engine_takes_over_from_a_hung_transaction(
    tmp_path: Path,
    postgres_url: str,
    monkeypatch: pytest.MonkeyPatch,
    pause: Pause,
    pause_in: Callable[[pytest.MonkeyPatch, Pause], None],
    work: Callable[[Store, Lease], Any],
) -> None:
    """Given an engine that hangs while it locks its work, then another engine takes over.

    Later writes of the hung engine are refused, and leave nothing in the database.
    """
    monkeypatch.setattr(database, "SILENT_S", 0.5)
    monkeypatch.setattr(database, "LOOK_INTERVAL_S", 0.2)
    with monkeypatch.context() as patched:
        pause_in(patched, pause)
        first = await Store.open(tmp_path / "one", database=postgres_url, lease_s=LEASE_S)
        (lease,) = await acquire(first, "run_a")
        await first.write([UpdateRow("roots", "run_a", {"lease_until": 0.0})], lease=lease)
        second = await Store.open(tmp_path / "two", database=postgres_url, lease_s=LEASE_S)
        pause.is_armed = True
        working = asyncio.ensure_future(work(first, lease))
        await wait_until_async(pause.has_begun.is_set, "the pause begins")
        async with asyncio.timeout(MAX_TAKEOVER_S):
            new_leases = await claim_ended(second)
        pause.end()
        if work is write_more:
            with pytest.raises(LeaseLost):
                await working
        else:
            await asyncio.wait([working])
    assert [new_lease.fence for new_lease in new_leases] == [lease.fence + 1]
    (root,) = await second.find_rows("roots")
    assert root["fence"] == lease.fence + 1
    assert await second.find_rows("plans") == []
    await first.close()
    await second.close()
