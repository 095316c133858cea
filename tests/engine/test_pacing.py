"""Long work on the event loop leaves others the most of its time."""

import asyncio
import time

from toolkit.engine.pacing import SLICE_S, Pacer

SLICES = 8


def work(seconds: float) -> None:
    """Hold the loop for so long."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


async def slices() -> None:
    """Hold it for some slices."""
    async with Pacer() as pacer:
        for _ in range(SLICES):
            work(SLICE_S)
            await pacer.pause()


async def test_others_have_more_than_a_turn_between_two_slices() -> None:
    """Given others with something to do, then each slice is followed by several turns of theirs."""
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            work(0.002)
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    await slices()
    beside.cancel()
    assert turns >= 3 * SLICES


async def test_it_does_not_wait_for_nobody() -> None:
    """Given nobody else, then one slice follows the other."""
    asked = 0
    loop = asyncio.get_running_loop()
    call_later = loop.call_later

    def counted(*given: object) -> asyncio.TimerHandle:
        nonlocal asked
        asked += 1
        return call_later(*given)  # type: ignore[arg-type]

    loop.call_later = counted  # type: ignore[method-assign, assignment]
    await slices()
    assert asked <= SLICES // 2  # a machine may be busy with other things just then
