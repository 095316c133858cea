"""Leases of a process that is busy, or that stood still: it keeps them, or notices that it lost."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from tests.engine.execution.test_shared_directory import build_run
from tests.support.clock import LeaseClock
from tests.support.engine_accounts import connect_account
from tests.support.process_kill import kill_engine
from tests.support.timing import PATIENCE_S, wait_until_async
from toolkit.contract.base import Record, Request
from toolkit.contract.workflows import NodeCreate, WorkflowCreate, WorkflowRecord
from toolkit.engine import Engine, Registry
from toolkit.local import EngineThread, open_engine
from toolkit.plugins import Call, Capability, Flow, Result
from toolkit.sandbox import Faults
from toolkit.settings import Settings
from toolkit.store import Change, Lease, UpdateRow

CLOCK_STEP_S = 1e-6  # of the clock of a database


@pytest.fixture
def clock(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, find_url: Callable[[Path], str | None]
) -> Iterator[LeaseClock]:
    """The clock that the leases of all engines of this process go by."""
    clock = LeaseClock(monkeypatch, find_url(settings.data_dir))
    yield clock
    clock.close()


@pytest.fixture
def short(settings: Settings) -> Settings:
    """Leases that are soon renewed."""
    return settings.model_copy(update={"lease_s": 0.05})


@pytest.fixture
async def engine(short: Settings, clock: LeaseClock) -> AsyncIterator[Engine]:
    """An engine that would take over what another one let go of."""
    engine = await open_engine(short)
    yield engine
    await engine.close(0)


class Nothing(Request):
    """Nothing is asked."""


class Nobody(Record):
    """Nothing is answered."""


class LoopHolder:
    """A capability of a third party that holds the loop of its engine until it is let go."""

    def __init__(self) -> None:
        self.holds = threading.Event()
        self.released = threading.Event()
        self.capability = Capability(
            id="test.hold",
            title="Hold",
            description="Holds the loop",
            input_model=Nothing,
            output_model=Nobody,
            flow=self._flow,
        )

    def _flow(self, _call: Call[Nothing]) -> Flow[Result]:
        self.holds.set()
        self.released.wait(PATIENCE_S)
        yield from ()
        return Result({})


@pytest.fixture
def holder() -> Iterator[LoopHolder]:
    """It lets go at the end whatever comes."""
    holder = LoopHolder()
    yield holder
    holder.released.set()


async def test_a_loop_that_is_held_keeps_its_leases(
    engine: Engine, short: Settings, clock: LeaseClock, holder: LoopHolder
) -> None:
    """Given a plugin that holds the loop for ten leases, then nobody takes the work over.

    What is paid for is paid for once. The clock goes on only when the lease has been renewed, so
    that it is not the machine's speed that is tried.
    """
    faults = Faults()
    registry = Registry.load(extra=[holder.capability])
    busy = EngineThread(open_engine(short, registry=registry, faults=faults))
    context = await connect_account(engine, "minimax")
    graph = WorkflowCreate(
        name="held",
        nodes=[
            NodeCreate(id="hold", capability="test.hold", input={}),
            NodeCreate(
                id="text", capability="llm.generate", input={"objective": "x"}, depends_on=["hold"]
            ),
        ],
    )
    made: Future[WorkflowRecord] = busy.submit(busy.engine.workflows.create(context, graph))
    workflow = await asyncio.wrap_future(made)
    store = engine.core.store

    async def is_renewed() -> bool:
        row = await store.get_row("roots", workflow.id)
        return row is None or row["lease_until"] > clock.now + CLOCK_STEP_S

    async with asyncio.timeout(PATIENCE_S):
        await asyncio.to_thread(holder.holds.wait)
        for _ in range(20):
            clock.now += short.lease_s / 2
            await wait_until_async(is_renewed)
            assert await store.leases.claim(10) == []
        holder.released.set()
        await engine.wait(context, workflow.id, PATIENCE_S)
    assert (await engine.workflows.get(context, workflow.id)).status == "completed"
    assert len(faults.calls) == 1
    await asyncio.to_thread(busy.close, 0)


async def test_who_stood_still_before_the_call_does_not_make_it(
    engine: Engine, short: Settings, clock: LeaseClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given an engine that stands still between the intent and the call, then it does not pay.

    Another one has taken the work over by then: the vendor is asked once.
    """
    faults = Faults()
    stopped = await open_engine(short, faults=faults)
    store, write = stopped.core.store, stopped.core.store.write
    written, goes_on = asyncio.Event(), asyncio.Event()

    def stand_still(
        changes: list[Change], *, lease: Lease | None = None, **how: Any
    ) -> "asyncio.Future[None]":
        done = write(changes, lease=lease, **how)
        # Only a call's own intent names a provider: that a job has begun is written before it.
        intent = any(isinstance(one, UpdateRow) and one.values.get("provider") for one in changes)
        if not intent or written.is_set():
            return done
        return asyncio.ensure_future(_stand_still(done))

    async def _stand_still(done: "asyncio.Future[None]") -> None:
        await done
        written.set()
        await goes_on.wait()

    context = await connect_account(stopped, "minimax")
    async with asyncio.timeout(PATIENCE_S):
        monkeypatch.setattr(store, "write", stand_still)
        run = await stopped.runs.create(context, build_run(0))
        await written.wait()
        row = (await store.find_rows("jobs", root_id=run.id))[0]
        assert '"status":"running"' in row["doc"].replace(" ", "")  # the intent is durable
        stopped.leases._heartbeat.close()
        clock.now += 10 * short.lease_s
        await engine.wait(context, run.id, PATIENCE_S)
        assert (await engine.runs.get(context, run.id)).status == "completed"
        tasks = list(stopped.leases._running.values())
        goes_on.set()
        await asyncio.gather(*tasks, return_exceptions=True)
    # The vendor of the one that stood still: to look at it is free.
    assert [call for call in faults.calls if call.billed] == []
    await kill_engine(stopped)
