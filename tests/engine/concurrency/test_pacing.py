"""Long work on the event loop leaves others the most of its time."""

import asyncio
import time

import pytest

from tests.support.timing import PATIENCE_S, yield_turns
from toolkit.engine.concurrency import pacing
from toolkit.engine.concurrency.pacing import (
    NODE_COST_S,
    OTHERS_SHARE,
    SLICE_S,
    Pacer,
    note_activity,
    yield_to_others,
)

SLICES, NODES = 8, 5


def work(seconds: float) -> None:
    """Hold the loop for so long."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


async def slices(account_id: str, other: str | None = None) -> None:
    """Hold it for some slices, while another account may be active."""
    async with Pacer(account_id) as pacer:
        for _ in range(SLICES):
            work(SLICE_S)
            if other is not None:
                note_activity(other)
            await pacer.pause()


async def nodes(account_id: str, other: str | None = None) -> None:
    """Begin some steps, while another account may be active."""
    for _ in range(NODES):
        if other is not None:
            note_activity(other)
        await yield_to_others(account_id)


@pytest.fixture
def sleeps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """For how long anybody slept."""
    found: list[float] = []
    sleep = asyncio.sleep

    async def note_sleep(seconds: float) -> None:
        found.append(seconds)
        await sleep(seconds)

    monkeypatch.setattr(asyncio, "sleep", note_sleep)
    return found


async def test_a_slice_waits_until_others_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given others with something to do, then a slice comes after what takes them several turns."""
    monkeypatch.setattr(pacing, "MAX_WAIT_S", PATIENCE_S)

    async def request() -> None:
        for _ in range(5):
            work(0.001)
            await yield_turns()

    async with Pacer() as pacer:
        for _ in range(SLICES):
            beside = asyncio.create_task(request())
            work(SLICE_S)
            await pacer.pause()
            assert beside.done()


async def test_while_others_are_active_two_thirds_are_theirs() -> None:
    """Given another account that asks for something, then each slice and step rests after it."""
    began = time.perf_counter()
    await slices("ada", "bob")
    assert time.perf_counter() - began >= SLICES * SLICE_S * (1 + OTHERS_SHARE)
    began = time.perf_counter()
    await nodes("ada", "bob")
    assert time.perf_counter() - began >= (NODES - 1) * NODE_COST_S * OTHERS_SHARE


async def test_it_does_not_wait_for_nobody(sleeps: list[float]) -> None:
    """Given nobody else, then one slice and one step follow the other."""
    note_activity("ada")
    await slices("ada")
    await nodes("ada")
    assert not any(sleeps)


async def test_one_slice_at_a_time_in_turns_by_account() -> None:
    """Given two accounts with long work, then neither goes on by itself."""
    order: list[str] = []

    async def long(account_id: str) -> None:
        async with Pacer(account_id) as pacer:
            for _ in range(3):
                await pacer.end_slice()
                order.append(account_id)

    async with asyncio.TaskGroup() as group:
        for account_id in ("ada", "ada", "ada", "bob"):
            group.create_task(long(account_id))
    assert order.count("bob") == 3
    assert order.index("bob") <= 2
    assert order[-2:] == ["ada", "ada"]  # were bob behind all of ada's, his would be the last
