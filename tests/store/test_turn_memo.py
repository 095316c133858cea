"""The memory of what was read in a turn of the event loop."""

import asyncio
from pathlib import Path

from tests.store.rows import make_row
from tests.support.timing import yield_turns
from toolkit.store import Store
from toolkit.store.turn_memo import TurnMemo


async def test_a_value_is_read_once_a_turn() -> None:
    """Given a value, then it is read once in a turn, again in the next, and once forgotten."""
    memo, reads = TurnMemo(), []

    async def read() -> int:
        reads.append(1)
        return len(reads)

    assert [await memo.find("a", read), await memo.find("a", read)] == [1, 1]
    assert await memo.find("b", read) == 2
    memo.forget()
    assert await memo.find("a", read) == 3
    turned = asyncio.Event()
    asyncio.get_running_loop().call_soon(turned.set)
    await turned.wait()
    assert await memo.find("a", read) == 4


async def test_who_asks_in_one_turn_waits_for_one_reading() -> None:
    """Given readings that take a while, then those who ask in one turn have one, later ones theirs.

    A later one must not be given the first's answer, which may be older than what they know of.
    """
    memo, answers = TurnMemo(), [asyncio.Event() for _ in range(3)]
    reads: list[int] = []

    async def read() -> int:
        reads.append(mine := len(reads))
        await answers[mine].wait()
        return mine

    asking = [asyncio.create_task(memo.find("a", read)) for _ in range(3)]
    await yield_turns(2)
    later = asyncio.create_task(memo.find("a", read))
    await yield_turns(2)
    asking[1].cancel()
    for answer in answers[:2][::-1]:
        answer.set()
    assert await asyncio.gather(asking[0], asking[2], later) == [0, 0, 1]
    assert asking[1].cancelled()


async def test_a_reading_that_is_given_up_is_made_by_another() -> None:
    """Given several who wait for one reading, when whoever made it is cancelled, one reads anew."""
    memo, answer = TurnMemo(), asyncio.Event()
    reads: list[int] = []

    async def read() -> int:
        reads.append(mine := len(reads))
        await answer.wait()
        return mine

    asking = [asyncio.create_task(memo.find("a", read)) for _ in range(3)]
    await yield_turns(2)
    asking[0].cancel()
    await yield_turns(2)
    answer.set()
    assert await asyncio.gather(*asking[1:]) == [1, 1]


async def test_a_reading_that_fails_is_not_kept() -> None:
    """Given a reading that fails, then all who wait for it are told, and the next is made anew."""
    memo, reads = TurnMemo(), []

    async def read() -> int:
        reads.append(1)
        await yield_turns()
        if len(reads) == 1:
            raise LookupError
        return len(reads)

    failed = await asyncio.gather(*[memo.find("a", read) for _ in range(2)], return_exceptions=True)
    assert [type(each) for each in failed] == [LookupError] * 2
    assert await memo.find("a", read) == 2


async def test_what_was_written_is_read(tmp_path: Path) -> None:
    """Given a write that is done, then what it changed is read, in whichever turn."""
    store = await Store.open(tmp_path)
    for n in range(5):
        before = await store.get_configuration_version()
        await store.write([make_row("accounts", f"acc_{n}")])
        assert await store.get_configuration_version() > before
    await store.close()
