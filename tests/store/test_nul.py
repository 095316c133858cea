"""Documents with the escape of a NUL, which the types of JSON that PostgreSQL has refuse."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from toolkit.store import InsertRow, PatchDocument, Store


@pytest.fixture
async def store(tmp_path: Path, url: str | None) -> AsyncIterator[Store]:
    """A store of either kind."""
    opened = await Store.open(tmp_path, database=url)
    yield opened
    await opened.close()


async def test_documents_with_a_nul_are_changed(store: Store) -> None:
    """Given NULs and what looks like one, then members are changed, and the others are kept."""
    doc = {"nul": "a\0b", "text": r"\u0000", "usd": 0.1, "n": 2**53 + 1}
    for name, each in (("acc_a", doc), ("acc_b", {"n": 1})):
        row = {"id": name, "email": name, "created_at": "", "doc": json.dumps(each)}
        await store.write([InsertRow("accounts", row)])
    patches = [PatchDocument("accounts", f"acc_{n}", {"at": "now"}) for n in "abc"]
    await store.write(patches)
    found = {row["id"]: json.loads(row["doc"]) for row in await store.find_rows("accounts")}
    assert found == {"acc_a": {**doc, "at": "now"}, "acc_b": {"n": 1, "at": "now"}}


async def test_nothing_is_found_by_a_nul(store: Store) -> None:
    """Given a text with a NUL, then no row has it."""
    assert await store.get_row("accounts", "acc_\0") is None
    assert await store.find_rows("accounts", email="\0") == []
