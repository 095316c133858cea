"""The cache of values read in one turn of the event loop."""

import asyncio
from pathlib import Path

from tests.store.rows import make_row
from tests.support.timing import yield_turns
from toolkit.store import Store
from toolkit.store.turn_memo import TurnMemo


async def test_reads_a_value_once_per_turn() -> None:
    """Given a value, then it is read once per turn, and again after `forget`."""
    memo, reads = TurnMemo(), []

    async def read() -> int:
        reads.append(1)
        return len(reads)

    assert [await memo.find("a", read), await memo.find("a", read)] == [1, 1]
    assert await memo.find("b", read) == 2
    memo.forget()
    assert await memo.find("a", read) == 3
    await yield_turns()
    assert await memo.find("a", read) == 4


async def test_callers_in_one_turn_share_a_read() -> None:
    """Given slow reads, then callers in one turn share a read, and a later caller has its own.

    The first read may be older than a write that the later caller knows of.
    """
    memo, answers = TurnMemo(), [asyncio.Event() for _ in range(2)]
    reads: list[int] = []

    async def read() -> int:
        reads.append(number := len(reads))
        await answers[number].wait()
        return number

    callers = [asyncio.create_task(memo.find("a", read)) for _ in range(3)]
    await yield_turns(2)
    later = asyncio.create_task(memo.find("a", read))
    await yield_turns(2)
    callers[1].cancel()
    answers[1].set()
    answers[0].set()
    assert await asyncio.gather(callers[0], callers[2], later) == [0, 0, 1]
    assert callers[1].cancelled()


async def test_a_caller_repeats_a_cancelled_read() -> None:
    """Given callers of one read, when its reader is cancelled, then one other caller reads."""
    memo, answer = TurnMemo(), asyncio.Event()
    reads: list[int] = []

    async def read() -> int:
        reads.append(number := len(reads))
        await answer.wait()
        return number

    callers = [asyncio.create_task(memo.find("a", read)) for _ in range(3)]
    await yield_turns(2)
    callers[0].cancel()
    await yield_turns(2)
    answer.set()
    assert await asyncio.gather(*callers[1:]) == [1, 1]


async def test_does_not_cache_a_failed_read() -> None:
    """Given a read that fails, then all its callers get the error, and the next caller reads."""
    memo, reads = TurnMemo(), []

    async def read() -> int:
        reads.append(1)
        await yield_turns()
        if len(reads) == 1:
            raise LookupError
        return len(reads)

    errors = await asyncio.gather(*[memo.find("a", read) for _ in range(2)], return_exceptions=True)
    assert [*map(type, errors)] == [LookupError] * 2
    assert await memo.find("a", read) == 2


async def test_reads_the_version_after_a_write(tmp_path: Path) -> None:
    """Given a completed write, then the configuration's version is read anew."""
    store = await Store.open(tmp_path)
    for n in range(5):
        before = await store.get_configuration_version()
        await store.write([make_row("accounts", f"acc_{n}")])
        assert await store.get_configuration_version() > before
    await store.close()
