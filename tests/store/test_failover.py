"""A database of PostgreSQL that lost its last commits, as an asynchronous failover may have it."""

import json
from pathlib import Path

import psycopg

from tests._postgres import PostgresCluster
from tests.store.rows import make_row
from tests.support.timing import wait_until_async
from toolkit.contract.errors import ServiceError
from toolkit.store import ConfigurationCache, PatchDocument, Store


async def test_what_is_kept_of_a_lost_configuration_is_dropped(
    own_postgres: PostgresCluster, tmp_path: Path
) -> None:
    """Given a number that goes back and is reached again, then what was read at it is not used."""
    url = own_postgres.build_url()
    store = await Store.open(tmp_path, database=url)
    await store.write([make_row("api_keys", "key_a")])

    async def load(key_id: str) -> object:
        row = await store.get_row("api_keys", key_id)
        return None if row is None else json.loads(row["doc"]).get("told")

    cache = ConfigurationCache(store, load)
    await store.write([PatchDocument("api_keys", "key_a", {"told": "lost"})])
    assert await cache.find("key_a") == "lost"
    own_postgres.stop()
    own_postgres.start()
    with psycopg.connect(url) as elsewhere:  # the server before that commit, and another after it
        (number,) = elsewhere.execute("SELECT version FROM configuration").fetchone() or (0,)
        elsewhere.execute("UPDATE configuration SET version = version - 1")
        elsewhere.execute("""UPDATE api_keys SET doc = '{"told": "kept"}'""")
        assert elsewhere.execute("SELECT version FROM configuration").fetchone() == (number,)

    async def is_back() -> bool:
        try:
            return await store.get_row("api_keys", "key_a") is not None
        except ServiceError:
            return False

    await wait_until_async(is_back)
    assert await cache.find("key_a") == "kept"
    await store.close()
