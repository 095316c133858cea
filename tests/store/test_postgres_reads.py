"""Reads of PostgreSQL, and notices of commits, while the server goes away and comes back."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import psycopg
import pytest

from tests._postgres import PostgresCluster
from tests.support.timing import PATIENCE_S, Watch, wait_until_async, yield_turns
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.postgres.connections import NETWORK_OPTIONS
from toolkit.store.postgres.notices import NOTIFY_SQL, CommitListener, build_payloads
from toolkit.store.postgres.reads import MAX_CONNECTIONS, PostgresReadConnection

NAME = "toolkit test"
SESSIONS_SQL = f"SELECT pid FROM pg_stat_activity WHERE application_name = '{NAME}'"


@pytest.fixture
async def reads(postgres_url: str) -> AsyncIterator[PostgresReadConnection]:
    """A way to read an empty database."""
    opened = PostgresReadConnection(postgres_url, NAME)
    yield opened
    await opened.close()


def cut_sessions(postgres: PostgresCluster) -> int:
    """End all sessions of the toolkit, as a restart does; return how many there were."""
    with postgres.connect() as connection:
        pids = [pid for (pid,) in connection.execute(SESSIONS_SQL.encode())]
        for pid in pids:
            connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
    return len(pids)


async def test_rows_are_read_by_name(reads: PostgresReadConnection) -> None:
    """Given a statement as SQLite has it, then rows have its names and Python's own types."""
    sql = (
        "SELECT 2 * :n AS twice, :name AS name, sum(v) AS total, '%' AS sign"
        " FROM (VALUES (1), (2)) AS t (v)"
    )
    given = {"n": 21, "name": "tea"}
    (row,) = await reads.fetch_rows(sql, given)
    assert row == {"twice": 42, "name": "tea", "total": 3, "sign": "%"}
    assert type(row["total"]) is int
    assert await reads.fetch_values("SELECT 1 WHERE 1 = :n", {"n": 2}) is None


async def test_many_reads_take_turns(
    reads: PostgresReadConnection, postgres: PostgresCluster
) -> None:
    """Given far more reads at once than connections, then all are answered by a few of them."""
    asked = [reads.fetch_values("SELECT :n + 0", {"n": n}) for n in range(200)]
    assert await asyncio.gather(*asked) == [(n,) for n in range(200)]
    with postgres.connect() as connection:
        assert len(list(connection.execute(SESSIONS_SQL.encode()))) <= MAX_CONNECTIONS


async def test_reads_follow_each_other(
    reads: PostgresReadConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given one connection, when each answer is followed by a question, then none is forgotten."""
    monkeypatch.setattr("toolkit.store.postgres.reads.MAX_CONNECTIONS", 1)
    async with asyncio.timeout(PATIENCE_S):
        for n in range(50):
            assert await reads.fetch_values("SELECT :n + 0", {"n": n}) == (n,)


async def test_a_read_that_was_given_up_leaves_nothing_behind(
    reads: PostgresReadConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given reads that are cancelled, then the next ones are not given their answers.

    The cancelled are over at once, and closing does not wait for what the server is still at.
    """
    monkeypatch.setattr("toolkit.store.postgres.reads.MAX_CONNECTIONS", 2)
    slow = reads.fetch_values("SELECT pg_sleep(60), 1", {})
    asked = [asyncio.create_task(reads.fetch_values("SELECT :n + 0", {"n": n})) for n in range(9)]
    await yield_turns(3)
    for each in asked[:-1]:
        each.cancel()
    assert await asked[-1] == (8,)
    given_up = asyncio.ensure_future(slow)
    await yield_turns()
    given_up.cancel()
    assert await reads.fetch_values("SELECT 2", {}) == (2,)
    watch = Watch()
    await reads.close()
    assert watch.measure_elapsed_s() < PATIENCE_S / 2
    with pytest.raises(ServiceError):
        await reads.fetch_values("SELECT 2", {})


async def test_a_statement_that_is_wrong_names_no_value(reads: PostgresReadConnection) -> None:
    """Given a statement that fails, then the error is one line, and the next read works."""
    with pytest.raises(ServiceError) as refused:
        await reads.fetch_rows("SELECT CAST(:text AS bigint)", {"text": "hunter2"})
    assert refused.value.code is ErrorCode.UNAVAILABLE
    assert "\n" not in str(refused.value)
    assert await reads.fetch_values("SELECT 1", {}) == (1,)


async def test_cut_connections_are_opened_anew(
    reads: PostgresReadConnection, postgres: PostgresCluster
) -> None:
    """Given connections that are cut between two reads, then the next ones do not notice."""
    await asyncio.gather(*[reads.fetch_values("SELECT 1", {}) for _ in range(20)])
    assert cut_sessions(postgres) >= 1
    again = [reads.fetch_values("SELECT 1", {}) for _ in range(20)]
    assert set(await asyncio.gather(*again)) == {(1,)}


async def test_a_server_that_is_stopped_in_the_middle_holds_up_nobody(
    own_postgres: PostgresCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a server that hangs, then all who read are told so before long, and then it works."""
    monkeypatch.setitem(NETWORK_OPTIONS, "connect_timeout", 2)
    reads = PostgresReadConnection(own_postgres.build_url(), NAME)
    asked = [reads.fetch_values("SELECT :n + 0", {"n": n}) for n in range(20)]
    assert len(await asyncio.gather(*asked)) == 20
    with own_postgres.hang(), monkeypatch.context() as briefly:
        briefly.setattr("toolkit.store.postgres.reads.READ_TIMEOUT_S", 0.2)
        async with asyncio.timeout(PATIENCE_S):
            told = await asyncio.gather(
                *[reads.fetch_values("SELECT 1", {}) for _ in range(60)], return_exceptions=True
            )
    assert all(isinstance(each, ServiceError) for each in told)
    assert await reads.fetch_values("SELECT 1", {}) == (1,)
    await reads.close()


async def test_a_read_that_takes_too_long_is_refused_alone(
    reads: PostgresReadConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a slow read, then it is given up, and what waits for its turn is answered."""
    monkeypatch.setattr("toolkit.store.postgres.reads.READ_TIMEOUT_S", 2.0)
    monkeypatch.setattr("toolkit.store.postgres.reads.MAX_CONNECTIONS", 1)
    asked = ["SELECT pg_sleep(60), 1", "SELECT 1"]
    slow, quick = await asyncio.gather(
        *[reads.fetch_values(sql, {}) for sql in asked], return_exceptions=True
    )
    assert isinstance(slow, ServiceError)
    assert quick == (1,)


async def test_a_read_that_hangs_leaves_nothing_on_the_server(
    reads: PostgresReadConnection, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a table that somebody has locked, then reads of it are refused, and wait no longer."""
    monkeypatch.setattr("toolkit.store.postgres.reads.READ_TIMEOUT_S", 1.0)
    with (
        psycopg.connect(postgres_url) as holder,
        psycopg.connect(postgres_url, autocommit=True) as onlooker,
    ):
        holder.execute("CREATE TABLE held (n int)")
        holder.commit()
        holder.execute("LOCK TABLE held IN ACCESS EXCLUSIVE MODE")
        for _ in range(3):  # as whoever asks does, again and again
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
async def heard(postgres_url: str) -> AsyncIterator[list[Sequence[str] | None]]:
    """All that a listener was told."""
    told: list[Sequence[str] | None] = []
    listener = CommitListener(postgres_url, NAME, "me", told.append, lambda: None)
    listener.start()
    async with asyncio.timeout(PATIENCE_S):
        await wait_until_async(lambda: told == [None])
    yield told
    await listener.close()


@pytest.fixture
def tell(postgres_url: str) -> Callable[[str, Sequence[str]], None]:
    """Tells of events, as an engine does."""

    def send(sender: str, ids: Sequence[str]) -> None:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(NOTIFY_SQL.encode(), (list(build_payloads(sender, ids)),))

    return send


async def test_a_listener_is_told_what_others_wrote(
    heard: list[Sequence[str] | None], tell: Callable[[str, Sequence[str]], None]
) -> None:
    """Given notices of this engine and of another one, then only the other's are passed on."""
    many = [f"run_{n:0>26}" for n in range(500)]
    for sender, ids in (("me", ["run_a"]), ("other", many)):
        await asyncio.to_thread(tell, sender, ids)
    async with asyncio.timeout(PATIENCE_S):
        await wait_until_async(lambda: sum(len(ids or ()) for ids in heard) == len(many))
    assert {each for ids in heard for each in ids or ()} == set(many)
