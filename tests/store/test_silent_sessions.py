"""Engines that stand still in the middle of a transaction, whose work others take up."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.store.rows import AT, acquire, claim_ended, make_row
from tests.support.timing import PATIENCE_S, wait_until_async
from toolkit.store import AppendEvent, Lease, LeaseLost, Store, UpdateRow
from toolkit.store.postgres import silent_sessions
from toolkit.store.postgres.writing import statements
from toolkit.store.writing import direct_writer, write_connection

LEASE_S = 0.5
TAKEN_WITHIN_S = 20.0


class StandingThread:
    """A place in which the first thread that is armed for it stands still, until it is let go."""

    def __init__(self) -> None:
        self.is_armed = False
        self.stands, self._goes_on = threading.Event(), threading.Event()

    def pass_by(self) -> None:
        """Stand still, if that is due."""
        if self.is_armed:
            self.is_armed = False
            self.stands.set()
            self._goes_on.wait(PATIENCE_S)

    def let_go(self) -> None:
        """Have who stands still go on."""
        self._goes_on.set()


@pytest.fixture
def standing() -> Iterator[StandingThread]:
    """The place."""
    made = StandingThread()
    yield made
    made.let_go()


def stand_in_pipeline(monkeypatch: pytest.MonkeyPatch, standing: StandingThread) -> None:
    """Have a writer stand still between two statements, of which it has sent one."""
    build = statements.build_insert

    def build_and_stand(table: str, columns: tuple[str, ...], on_conflict: str = "") -> str:
        if table == "events":  # the last of a transaction
            standing.pass_by()
        return build(table, columns, on_conflict)

    monkeypatch.setattr(statements, "build_insert", build_and_stand)


def stand_before_commit(monkeypatch: pytest.MonkeyPatch, standing: StandingThread) -> None:
    """Have a writer stand still when all is answered, and nothing is committed."""
    monkeypatch.setattr(
        write_connection, "find_crash_point", lambda _: lambda _: standing.pass_by()
    )


def stand_in_renewal(monkeypatch: pytest.MonkeyPatch, standing: StandingThread) -> None:
    """Have a renewal of leases stand still before it is committed."""
    monkeypatch.setattr(direct_writer, "find_crash_point", lambda _: lambda _: standing.pass_by())


async def write_more(store: Store, lease: Lease) -> None:
    """Write under a lease."""
    event = AppendEvent(lease.root_id, "node.completed", {}, AT)
    await store.write([make_row("plans", "plan_a"), event], lease=lease)


async def renew(store: Store, _lease: Lease) -> None:
    """Renew what leases a store has."""
    await asyncio.to_thread(store.leases.renew)


@pytest.mark.parametrize(
    ("stand", "work"),
    [
        pytest.param(stand_in_pipeline, write_more, id="in a pipeline"),
        pytest.param(stand_before_commit, write_more, id="before a commit"),
        pytest.param(stand_in_renewal, renew, id="in a renewal"),
    ],
)
async def test_who_stands_still_keeps_no_work(
    tmp_path: Path,
    postgres_url: str,
    monkeypatch: pytest.MonkeyPatch,
    standing: StandingThread,
    stand: Callable[[pytest.MonkeyPatch, StandingThread], None],
    work: Callable[[Store, Lease], Any],
) -> None:
    """Given an engine that holds a lock of its work as it stops, then another one gets the work.

    What it goes on with is refused, and the database has nothing of it.
    """
    monkeypatch.setattr(silent_sessions, "SILENT_S", 0.5)
    monkeypatch.setattr(silent_sessions, "LOOK_INTERVAL_S", 0.2)
    with monkeypatch.context() as patched:
        stand(patched, standing)
        first = await Store.open(tmp_path / "one", database=postgres_url, lease_s=LEASE_S)
        (lease,) = await acquire(first, "run_a")
        await first.write([UpdateRow("roots", "run_a", {"lease_until": 0.0})], lease=lease)
        second = await Store.open(tmp_path / "two", database=postgres_url, lease_s=LEASE_S)
        standing.is_armed = True
        working = asyncio.ensure_future(work(first, lease))
        await wait_until_async(standing.stands.is_set, "it stands still")
        async with asyncio.timeout(TAKEN_WITHIN_S):
            taken = await claim_ended(second)
        standing.let_go()
        if work is write_more:
            with pytest.raises(LeaseLost):
                await working
        else:
            await asyncio.wait([working])
    assert [each.fence for each in taken] == [lease.fence + 1]
    (root,) = await second.find_rows("roots")
    assert root["fence"] == lease.fence + 1
    assert await second.find_rows("plans") == []
    for each in (first, second):
        await each.close()
