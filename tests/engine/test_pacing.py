"""Long work on the event loop leaves others the most of its time."""

import asyncio
import time

import pytest

from toolkit.engine.pacing import OTHERS_SHARE, SLICE_S, Pacer, give_way, note_activity

SLICES, NODES = 8, 5


def work(seconds: float) -> None:
    """Hold the loop for so long."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


async def slices(account_id: str | None) -> None:
    """Hold it for some slices."""
    async with Pacer(account_id) as pacer:
        for _ in range(SLICES):
            work(SLICE_S)
            await pacer.pause()


async def nodes(account_id: str) -> None:
    """Begin some steps."""
    for _ in range(NODES):
        await give_way(account_id)


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """For how long anybody slept."""
    found: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        found.append(seconds)
        await sleep(seconds)

    monkeypatch.setattr(asyncio, "sleep", noted)
    return found


async def test_a_slice_waits_until_others_are_done() -> None:
    """Given others with something to do, then a slice comes after what takes them several turns."""
    done: list[int] = []

    async def request(turns: int) -> None:
        for _ in range(turns):
            work(0.001)
            await asyncio.sleep(0)
        done.append(len(between))

    between: list[int] = []
    async with Pacer() as pacer:
        for _ in range(SLICES):
            beside = asyncio.create_task(request(5))
            work(SLICE_S)
            await pacer.pause()
            assert beside.done()
            between.append(1)
    assert done == list(range(SLICES))


async def test_while_others_are_active_two_thirds_are_theirs(slept: list[float]) -> None:
    """Given another account that asked for something, then its share follows each slice."""
    note_activity("ada")
    note_activity("bob")
    await slices("ada")
    assert sum(slept) >= 0.9 * SLICES * SLICE_S * OTHERS_SHARE  # others' turns count as rest
    slept.clear()
    await nodes("ada")
    assert sum(slept) > 0


async def test_it_does_not_wait_for_nobody(slept: list[float]) -> None:
    """Given nobody else, then one slice and one step follow the other."""
    note_activity("ada")
    await slices("ada")
    await nodes("ada")
    assert not any(slept)


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
