"""Documents with the escape of a NUL, which the types of JSON that PostgreSQL has refuse."""

import json

from tests.store.rows import make_row
from toolkit.store import PatchDocument, Store


async def test_documents_with_a_nul_are_changed(stores: tuple[Store, Store]) -> None:
    """Given NULs and what looks like one, then members are changed, and the others are kept."""
    store = stores[0]
    doc = {"nul": "a\0b", "text": r"\u0000", "usd": 0.1, "n": 2**53 + 1}
    for name, each in (("acc_a", doc), ("acc_b", {"n": 1})):
        await store.write([make_row("accounts", name, doc=json.dumps(each))])
    patches = [PatchDocument("accounts", f"acc_{n}", {"at": "now"}) for n in "abc"]
    await store.write(patches)
    found = {row["id"]: json.loads(row["doc"]) for row in await store.find_rows("accounts")}
    assert found == {"acc_a": {**doc, "at": "now"}, "acc_b": {"n": 1, "at": "now"}}


async def test_nothing_is_found_by_a_nul(stores: tuple[Store, Store]) -> None:
    """Given a text with a NUL, then no row has it."""
    store = stores[0]
    assert await store.get_row("accounts", "acc_\0") is None
    assert await store.find_rows("accounts", email="\0") == []
