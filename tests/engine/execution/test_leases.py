"""Leases of a busy process, which keeps them, and of a suspended process, which loses them."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.engine.execution.test_shared_directory import build_run
from tests.support.clock import LeaseClock
from tests.support.engine_accounts import connect_account, run_to_end
from tests.support.process_kill import kill_engine
from tests.support.slow_capability import SLOW_CAPABILITY, NapInput
from tests.support.timing import PATIENCE_S, wait_until_async
from toolkit.contract.workflows import NodeCreate, WorkflowCreate, WorkflowRecord
from toolkit.engine import Engine, Registry
from toolkit.engine.execution import leases
from toolkit.local import EngineThread, open_engine
from toolkit.plugins import Call, Flow, Result
from toolkit.sandbox import Faults
from toolkit.settings import Settings
from toolkit.store import Change, Lease, UpdateRow

CLOCK_STEP_S = 1e-6  # of the clock of a database


@pytest.fixture
def clock(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, find_url: Callable[[Path], str | None]
) -> Iterator[LeaseClock]:
    """The clock of the leases of all engines in this process."""
    clock = LeaseClock(monkeypatch, find_url(settings.data_dir))
    yield clock
    clock.close()


@pytest.fixture
def short(settings: Settings) -> Settings:
    """Settings with short leases."""
    return settings.model_copy(update={"lease_s": 0.05})


@pytest.fixture
async def engine(short: Settings, clock: LeaseClock) -> AsyncIterator[Engine]:
    """An engine that takes over expired work."""
    engine = await open_engine(short)
    yield engine
    await engine.close(0)


class LoopHolder:
    """A capability of a third party that blocks the loop of its engine until it is released."""

    def __init__(self) -> None:
        self.holds = threading.Event()
        self.released = threading.Event()
        self.capability = replace(SLOW_CAPABILITY, id="test.hold", flow=self._flow)

    def _flow(self, call: Call[NapInput]) -> Flow[Result]:
        self.holds.set()
        self.released.wait(PATIENCE_S)
        yield from ()
        return Result({"seconds": call.input.seconds})


@pytest.fixture
def holder() -> Iterator[LoopHolder]:
    """A capability that blocks the loop, and is released at the end of the test at the latest."""
    holder = LoopHolder()
    yield holder
    holder.released.set()


async def test_work_that_fails_unexpectedly_is_tried_less_and_less_often(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given work whose handler fails by a bug, then each wait is twice the last, until it works."""
    monkeypatch.setattr(leases, "KEEPER_INTERVAL_S", 0.02)
    engine = await open_engine(settings)
    carry_out, tries = engine.leases._handlers["run"], list[float]()

    async def fail(lease: Lease) -> object:
        tries.append(time.monotonic())
        if len(tries) < 5:
            raise LookupError("a bug")
        return await carry_out(lease)

    engine.leases.register_handler("run", fail)
    run = await run_to_end(
        engine, await connect_account(engine, "minimax"), "llm.generate", {"objective": "Salt"}
    )
    await engine.close(0)
    assert run.status == "completed"
    waits = [later - earlier for earlier, later in pairwise(tries[:5])]
    assert all(wait >= 0.02 * 2**count for count, wait in enumerate(waits, 1)), waits


async def test_a_blocked_loop_keeps_its_leases(
    engine: Engine, short: Settings, clock: LeaseClock, holder: LoopHolder
) -> None:
    """Given a plugin that blocks the loop for ten leases, then no engine takes the work over.

    Each call is paid once. The clock advances only after a renewal, so that the test does not
    depend on the speed of the machine.
    """
    faults = Faults()
    registry = Registry.load(extra=[holder.capability])
    busy = EngineThread(open_engine(short, registry=registry, faults=faults))
    context = await connect_account(engine, "minimax")
    text: dict[str, object] = {"objective": "x"}
    nodes = [
        NodeCreate(id="hold", capability="test.hold", input={"seconds": 0}),
        NodeCreate(id="text", capability="llm.generate", input=text, depends_on=["hold"]),
    ]
    request = WorkflowCreate(name="held", nodes=nodes)
    created: Future[WorkflowRecord] = busy.submit(busy.engine.workflows.create(context, request))
    workflow = await asyncio.wrap_future(created)
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


async def test_a_suspended_engine_does_not_make_its_call(
    engine: Engine, short: Settings, clock: LeaseClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given an engine that is suspended between intent and call, then it does not make the call.

    Another engine has taken the work over by then, so the vendor is called once.
    """
    faults = Faults()
    suspended = await open_engine(short, faults=faults)
    store, write = suspended.core.store, suspended.core.store.write
    is_durable, goes_on = asyncio.Event(), asyncio.Event()

    def suspend(
        changes: list[Change], *, lease: Lease | None = None, **options: Any
    ) -> "asyncio.Future[None]":
        future = write(changes, lease=lease, **options)
        # Only the intent of a call names a provider; the start of the job is written before.
        is_intent = any(isinstance(c, UpdateRow) and c.values.get("provider") for c in changes)
        if not is_intent or is_durable.is_set():
            return future

        async def wait() -> None:
            await future
            is_durable.set()
            await goes_on.wait()

        return asyncio.ensure_future(wait())

    context = await connect_account(suspended, "minimax")
    async with asyncio.timeout(PATIENCE_S):
        monkeypatch.setattr(store, "write", suspend)
        run = await suspended.runs.create(context, build_run(0))
        await is_durable.wait()
        row = (await store.find_rows("jobs", root_id=run.id))[0]
        assert '"status":"running"' in row["doc"].replace(" ", "")  # the intent is durable
        suspended.leases._heartbeat.close()
        clock.now += 10 * short.lease_s
        await engine.wait(context, run.id, PATIENCE_S)
        assert (await engine.runs.get(context, run.id)).status == "completed"
        tasks = list(suspended.leases._running.values())
        goes_on.set()
        await asyncio.gather(*tasks, return_exceptions=True)
    # Reads at the vendor of the suspended engine are free.
    assert [call for call in faults.calls if call.billed] == []
    await kill_engine(suspended)
