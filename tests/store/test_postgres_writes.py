"""PostgreSQL sessions that write: query plans, retries and timeouts."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import psycopg
import pytest

from tests.store.rows import make_row
from tests.support.timing import PATIENCE_S, wait_until_async
from toolkit.contract.errors import ServiceError
from toolkit.store import Store

NOTE_SQL = """
CREATE TABLE noted (jit text);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql
    AS $$ BEGIN INSERT INTO noted VALUES (current_setting('jit')); RETURN NULL; END $$;
CREATE TRIGGER note AFTER INSERT ON accounts FOR EACH STATEMENT EXECUTE FUNCTION note()
"""


async def test_writes_without_jit(tmp_path: Path, postgres_url: str) -> None:
    """Given a server that compiles expensive statements, then writes disable the compiler."""
    store = await Store.open(tmp_path, database=postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        assert connection.execute("SHOW jit").fetchone() == ("on",)
        connection.execute(NOTE_SQL)
        await store.write([make_row("accounts", "acc")])
        assert connection.execute("SELECT jit FROM noted").fetchall() == [("off",)]
    await store.close()


# Writes to these tables take a minute while `obstacles` has a row.
SLOW_SQL = """
CREATE TABLE obstacles (n int);
INSERT INTO obstacles VALUES (1);
CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF EXISTS (SELECT 1 FROM obstacles) THEN PERFORM pg_sleep(60); END IF; RETURN NULL;
END $$;
CREATE TRIGGER dawdle AFTER INSERT ON accounts FOR EACH STATEMENT EXECUTE FUNCTION dawdle();
CREATE TRIGGER dawdle AFTER UPDATE ON roots FOR EACH STATEMENT EXECUTE FUNCTION dawdle();
"""
DAWDLING_SQL: Final = (
    "SELECT xact_start FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    " AND datname = current_database()"
)


@pytest.fixture
async def slow_store(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Store]:
    """A store with an open root, in a database in which some writes hang."""
    monkeypatch.setattr("toolkit.store.postgres.connections.ANSWER_TIMEOUT_S", 1.0)
    store = await Store.open(tmp_path, database=postgres_url)
    await store.write([store.leases.build_root("run_a", "run", "acc")[0]])
    with psycopg.connect(postgres_url, autocommit=True) as session:
        session.execute(SLOW_SQL)
    yield store
    await store.close()


async def test_cancels_a_small_change_that_hangs(slow_store: Store, postgres_url: str) -> None:
    """Given a change that hangs, then it is refused after some tries, and none still runs."""
    with psycopg.connect(postgres_url, autocommit=True) as onlooker:
        with pytest.raises(ServiceError) as refused:
            await slow_store.leases.request_cancel("run_a")
        assert refused.value.retry_after
        assert onlooker.execute(DAWDLING_SQL).fetchall() == []
        onlooker.execute("DELETE FROM obstacles")
        await slow_store.leases.request_cancel("run_a")
        (row,) = await slow_store.find_rows("roots")
        assert row["cancel_requested"]


async def test_retries_a_write_that_hangs(slow_store: Store, postgres_url: str) -> None:
    """Given a write that the server cancels, then the store retries it until it succeeds."""
    with psycopg.connect(postgres_url, autocommit=True) as onlooker:
        write = slow_store.write([make_row("accounts", "acc")], max_wait_s=PATIENCE_S)
        tries: set[object] = set()

        def count_tries() -> int:
            running = onlooker.execute(DAWDLING_SQL).fetchall()
            assert len(running) <= 1
            tries.update(running)
            return len(tries)

        await wait_until_async(lambda: count_tries() == 2)
        onlooker.execute("DELETE FROM obstacles")
        await write
    assert len(await slow_store.find_rows("accounts")) == 1
