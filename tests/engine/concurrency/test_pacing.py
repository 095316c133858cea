"""Pacing: long work on the event loop leaves most of its time to other work."""

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


def block(seconds: float) -> None:
    """Hold the loop for this time."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


async def run_slices(active: str) -> None:
    """Hold the loop for some slices of Ada's work, while an account is active."""
    async with Pacer("ada") as pacer:
        for _ in range(SLICES):
            block(SLICE_S)
            note_activity(active)
            await pacer.pause()


async def start_nodes(active: str) -> None:
    """Start some of Ada's nodes, while an account is active."""
    for _ in range(NODES):
        note_activity(active)
        await yield_to_others("ada")


async def test_a_slice_waits_for_other_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given other work that needs several turns of the loop, then it ends before the next slice."""
    monkeypatch.setattr(pacing, "MAX_WAIT_S", PATIENCE_S)

    async def request() -> None:
        for _ in range(5):
            block(0.001)
            await yield_turns()

    async with Pacer() as pacer:
        for _ in range(SLICES):
            task = asyncio.create_task(request())
            block(SLICE_S)
            await pacer.pause()
            assert task.done()


async def test_leaves_two_thirds_of_the_time_to_active_accounts() -> None:
    """Given another active account, then each slice and node is followed by a pause."""
    began = time.perf_counter()
    await run_slices(active="bob")
    assert time.perf_counter() - began >= SLICES * SLICE_S * (1 + OTHERS_SHARE)
    began = time.perf_counter()
    await start_nodes(active="bob")
    assert time.perf_counter() - began >= (NODES - 1) * NODE_COST_S * OTHERS_SHARE


async def test_does_not_pause_for_the_own_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given no other active account, then slices and nodes follow each other without a pause."""
    sleeps: list[float] = []
    sleep = asyncio.sleep

    async def note_sleep(seconds: float) -> None:
        sleeps.append(seconds)
        await sleep(seconds)

    monkeypatch.setattr(asyncio, "sleep", note_sleep)
    await run_slices(active="ada")
    await start_nodes(active="ada")
    assert not any(sleeps)


async def test_accounts_take_turns_slice_by_slice() -> None:
    """Given two accounts with long work, then their slices alternate."""
    order: list[str] = []

    async def work(account_id: str) -> None:
        async with Pacer(account_id) as pacer:
            for _ in range(3):
                await pacer.end_slice()
                order.append(account_id)

    async with asyncio.TaskGroup() as group:
        for account_id in ("ada", "ada", "ada", "bob"):
            group.create_task(work(account_id))
    assert order.count("bob") == 3
    assert order.index("bob") <= 2
    assert order[-2:] == ["ada", "ada"]  # otherwise Bob would wait for all of Ada's slices
