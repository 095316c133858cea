"""Reads and writes of PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

import psycopg
import pytest

from tests._postgres import PostgresCluster
from tests.store.rows import make_row
from tests.support.timing import PATIENCE_S, Watch, wait_until_async, yield_turns
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store import Store
from toolkit.store.postgres.connections import NETWORK_OPTIONS
from toolkit.store.postgres.notices import NOTIFY_SQL, CommitListener, build_payloads
from toolkit.store.postgres.reads import MAX_CONNECTIONS, PostgresReadConnection

NAME = "toolkit test"

SESSIONS_SQL = f"SELECT pid FROM pg_stat_activity WHERE application_name = '{NAME}'"


@pytest.fixture
async def reads(postgres_url: str) -> AsyncIterator[PostgresReadConnection]:
    """A connection for reads of an empty database."""
    opened = PostgresReadConnection(postgres_url, NAME)
    yield opened
    await opened.close()


def cut_sessions(postgres: PostgresCluster) -> int:
    """End all sessions of the toolkit, as a restart does; return their number."""
    with postgres.connect() as connection:
        pids = [pid for (pid,) in connection.execute(SESSIONS_SQL.encode())]
        for pid in pids:
            connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
    return len(pids)


async def test_reads_rows_by_name(reads: PostgresReadConnection) -> None:
    """Given a statement in SQLite's form, then rows have its names and Python's own types."""
    sql = (
        "SELECT 2 * :n AS twice, :name AS name, sum(v) AS total, '%' AS sign"
        " FROM (VALUES (1), (2)) AS t (v)"
    )
    parameters = {"n": 21, "name": "tea"}
    (row,) = await reads.fetch_rows(sql, parameters)
    assert row == {"twice": 42, "name": "tea", "total": 3, "sign": "%"}
    assert type(row["total"]) is int
    assert await reads.fetch_values("SELECT 1 WHERE 1 = :n", {"n": 2}) is None


async def test_many_reads_share_few_connections(
    reads: PostgresReadConnection, postgres: PostgresCluster
) -> None:
    """Given far more reads than connections, then a few connections answer all of them."""
    calls = [reads.fetch_values("SELECT :n + 0", {"n": n}) for n in range(200)]
    assert await asyncio.gather(*calls) == [(n,) for n in range(200)]
    with postgres.connect() as connection:
        assert len(list(connection.execute(SESSIONS_SQL.encode()))) <= MAX_CONNECTIONS


async def test_answers_consecutive_reads_on_one_connection(
    reads: PostgresReadConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given one connection, when a read follows each answer, then all are answered."""
    monkeypatch.setattr("toolkit.store.postgres.reads.MAX_CONNECTIONS", 1)
    async with asyncio.timeout(PATIENCE_S):
        for n in range(50):
            assert await reads.fetch_values("SELECT :n + 0", {"n": n}) == (n,)


async def test_a_cancelled_read_leaves_no_answer_behind(
    reads: PostgresReadConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given cancelled reads, then later reads do not get their answers.

    Cancelled reads end at once, and closing does not wait for the server.
    """
    monkeypatch.setattr("toolkit.store.postgres.reads.MAX_CONNECTIONS", 2)
    slow = reads.fetch_values("SELECT pg_sleep(60), 1", {})
    tasks = [asyncio.create_task(reads.fetch_values("SELECT :n + 0", {"n": n})) for n in range(9)]
    await yield_turns(3)
    for task in tasks[:-1]:
        task.cancel()
    assert await tasks[-1] == (8,)
    cancelled = asyncio.ensure_future(slow)
    await yield_turns()
    cancelled.cancel()
    assert await reads.fetch_values("SELECT 2", {}) == (2,)
    watch = Watch()
    await reads.close()
    assert watch.measure_elapsed_s() < PATIENCE_S / 2
    with pytest.raises(ServiceError):
        await reads.fetch_values("SELECT 2", {})


async def test_the_error_of_a_statement_names_no_value(reads: PostgresReadConnection) -> None:
    """Given a statement that fails, then the error is one line, and the next read works."""
    with pytest.raises(ServiceError) as refused:
        await reads.fetch_rows("SELECT CAST(:text AS bigint)", {"text": "hunter2"})
    assert refused.value.code is ErrorCode.UNAVAILABLE
    assert "\n" not in str(refused.value)
    assert await reads.fetch_values("SELECT 1", {}) == (1,)


async def test_replaces_connections_that_were_cut(
    reads: PostgresReadConnection, postgres: PostgresCluster
) -> None:
    """Given connections that are cut between reads, then the next reads work."""
    await asyncio.gather(*[reads.fetch_values("SELECT 1", {}) for _ in range(20)])
    assert cut_sessions(postgres) >= 1
    again = [reads.fetch_values("SELECT 1", {}) for _ in range(20)]
    assert set(await asyncio.gather(*again)) == {(1,)}


async def test_reads_of_a_hung_server_time_out(
    own_postgres: PostgresCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a server that hangs, then all reads fail by their timeout, and later reads work."""
    monkeypatch.setitem(NETWORK_OPTIONS, "connect_timeout", 2)
    reads = PostgresReadConnection(own_postgres.build_url(), NAME)
    calls = [reads.fetch_values("SELECT :n + 0", {"n": n}) for n in range(20)]
    assert len(await asyncio.gather(*calls)) == 20
    with own_postgres.hang(), monkeypatch.context() as briefly:
        briefly.setattr("toolkit.store.postgres.reads.READ_TIMEOUT_S", 0.2)
        async with asyncio.timeout(PATIENCE_S):
            errors = await asyncio.gather(
                *[reads.fetch_values("SELECT 1", {}) for _ in range(60)], return_exceptions=True
            )
    assert all(isinstance(error, ServiceError) for error in errors)
    assert await reads.fetch_values("SELECT 1", {}) == (1,)
    await reads.close()


async def test_a_slow_read_does_not_fail_the_next_read(
    reads: PostgresReadConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a slow read, then it times out, and the read that waits behind it is answered."""
    monkeypatch.setattr("toolkit.store.postgres.reads.READ_TIMEOUT_S", 2.0)
    monkeypatch.setattr("toolkit.store.postgres.reads.MAX_CONNECTIONS", 1)
    slow, quick = await asyncio.gather(
        reads.fetch_values("SELECT pg_sleep(60), 1", {}),
        reads.fetch_values("SELECT 1", {}),
        return_exceptions=True,
    )
    assert isinstance(slow, ServiceError)
    assert quick == (1,)


async def test_cancels_a_read_that_hangs_on_the_server(
    reads: PostgresReadConnection, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a locked table, then its reads time out, and none still runs on the server."""
    monkeypatch.setattr("toolkit.store.postgres.reads.READ_TIMEOUT_S", 1.0)
    with (
        psycopg.connect(postgres_url) as holder,
        psycopg.connect(postgres_url, autocommit=True) as onlooker,
    ):
        holder.execute("CREATE TABLE held (n int)")
        holder.commit()
        holder.execute("LOCK TABLE held IN ACCESS EXCLUSIVE MODE")
        for _ in range(3):  # as a caller that retries
            watch = Watch()
            with pytest.raises(ServiceError) as refused:
                await reads.fetch_rows("SELECT n FROM held", {})
            assert refused.value.retry_after
            assert watch.measure_elapsed_s() < PATIENCE_S / 4
        listed = onlooker.execute(f"{SESSIONS_SQL} AND state = 'active'".encode()).fetchall()
        assert listed == []
        assert len(onlooker.execute(SESSIONS_SQL.encode()).fetchall()) <= MAX_CONNECTIONS
    assert await reads.fetch_rows("SELECT n FROM held", {}) == []


@pytest.fixture
async def received(postgres_url: str) -> AsyncIterator[list[Sequence[str] | None]]:
    """The ids of each notice that a listener received."""
    received: list[Sequence[str] | None] = []
    listener = CommitListener(postgres_url, NAME, "me", received.append, lambda: None)
    listener.start()
    async with asyncio.timeout(PATIENCE_S):
        await wait_until_async(lambda: received == [None])
    yield received
    await listener.close()


async def test_a_listener_receives_notices_of_other_engines(
    received: list[Sequence[str] | None], postgres_url: str
) -> None:
    """Given notices of this engine and of another engine, then only the latter are received."""
    many = [f"run_{n:0>26}" for n in range(500)]
    with psycopg.connect(postgres_url, autocommit=True) as session:
        for sender, ids in (("me", ["run_a"]), ("other", many)):
            session.execute(NOTIFY_SQL.encode(), (list(build_payloads(sender, ids)),))
    async with asyncio.timeout(PATIENCE_S):
        await wait_until_async(lambda: sum(len(ids or ()) for ids in received) == len(many))
    assert {run_id for ids in received for run_id in ids or ()} == set(many)


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
