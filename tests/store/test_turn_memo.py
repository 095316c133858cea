"""The memory of what was read in a turn of the event loop."""

import asyncio
from pathlib import Path

from toolkit.store import InsertRow, Store
from toolkit.store.turn_memo import TurnMemo

AT = "2026-11-23T00:00:00.000Z"


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


async def test_what_was_written_is_read(tmp_path: Path) -> None:
    """Given a write that is done, then what it changed is read, in whichever turn."""
    store = await Store.open(tmp_path)
    for n in range(5):
        before = await store.get_configuration_version()
        row = {"id": f"acc_{n}", "email": f"{n}@example.org", "created_at": AT, "doc": "{}"}
        await store.write([InsertRow("accounts", row)])
        assert await store.get_configuration_version() > before
    await store.close()
