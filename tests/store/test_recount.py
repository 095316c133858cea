"""`toolkit doctor --repair` corrects sums of stored bytes while an engine runs."""

from concurrent.futures import ThreadPoolExecutor
from typing import Final

import psycopg
import pytest

from tests.store.upkeep import diagnose
from tests.support.timing import wait_until
from toolkit import Client
from toolkit.settings import Settings
from toolkit.store.blobs import open_place
from toolkit.store.maintenance.doctor import repair_database
from toolkit.store.postgres.upkeep import PostgresUpkeep

ASKED: Final = {"objective": "One line on tides"}
WAITING_SQL: Final = (
    "SELECT 1 FROM pg_stat_activity WHERE application_name = 'toolkit-command'"
    " AND wait_event_type = 'Lock' AND datname = current_database()"
)
WRONG: Final = (
    "UPDATE stored_bytes SET records = records + 1000",
    "UPDATE stored_bytes SET artifacts = artifacts - 7",
    "DELETE FROM stored_bytes",
    "INSERT INTO stored_bytes VALUES ('acc_gone', 3, 4)",
)


@pytest.fixture
def database(database: Client) -> Client:
    """An engine with some work in its PostgreSQL database."""
    database.artifacts.upload(b"leaf" * 50)
    database.runs.create("llm.generate", ASKED).wait(progress=False)
    return database


@pytest.mark.parametrize("wrong", WRONG)
def test_repair_corrects_wrong_sums_once(
    database: Client, settings: Settings, postgres_url: str, wrong: str
) -> None:
    """Given sums that are wrong or gone, or of no account, then one repair corrects them."""
    assert "sums of stored bytes" not in diagnose(settings.data_dir)[1]
    with psycopg.connect(postgres_url, autocommit=True) as session:
        session.execute(wrong.encode())
    assert "sums of stored bytes" in diagnose(settings.data_dir)[1]
    _, output = diagnose(settings.data_dir, "--repair")
    assert "Recounted the stored bytes of accounts." in output
    assert "sums of stored bytes" not in output
    assert "Recounted" not in diagnose(settings.data_dir, "--repair")[1]
    assert database.health().status == "ok"


def test_an_engine_writes_during_a_repair(
    database: Client, settings: Settings, postgres_url: str
) -> None:
    """Given a long repair, then an engine writes meanwhile, and the sums include its rows."""
    with (
        psycopg.connect(postgres_url, autocommit=True) as session,
        psycopg.connect(postgres_url) as holder,
        ThreadPoolExecutor(1) as pool,
    ):
        session.execute("UPDATE stored_bytes SET records = records + 1000, artifacts = 0")
        # The repair waits when it adds up these rows, after its snapshot has begun.
        holder.execute("LOCK TABLE templates IN ACCESS EXCLUSIVE MODE")
        repairing = pool.submit(diagnose, settings.data_dir, "--repair")
        try:
            wait_until(lambda: session.execute(WAITING_SQL).fetchone(), "the repair has begun")
            database.artifacts.upload(b"bark" * 70)
            run = database.runs.create("llm.generate", ASKED).wait(progress=False)
            assert run.status == "completed"
            assert not repairing.done()
        finally:
            holder.rollback()
        _, output = repairing.result()
    assert "Recounted the stored bytes of accounts." in output
    assert "sums of stored bytes" not in output


def test_concurrent_repairs_correct_once(
    database: Client, settings: Settings, postgres_url: str
) -> None:
    """Given two repairs of the same sums, then one of them corrects the sums."""
    with (
        psycopg.connect(postgres_url, autocommit=True) as session,
        psycopg.connect(postgres_url) as holder,
        ThreadPoolExecutor(2) as pool,
    ):
        session.execute("UPDATE stored_bytes SET records = records - 1000")
        holder.execute("SELECT 1 FROM stored_bytes FOR UPDATE")  # so that neither is done
        # Not by the command, because its output is that of the whole process.
        place = open_place(settings.data_dir, None)

        def run_repair() -> list[str]:
            with PostgresUpkeep.open(postgres_url) as records:
                return repair_database(records, place)

        repairs = [pool.submit(run_repair) for _ in range(2)]
        wait_until(lambda: len(session.execute(WAITING_SQL).fetchall()) == 2, "both have begun")
        holder.rollback()
        actions = [repair.result() for repair in repairs]
    assert sorted(actions) == [[], ["Recounted the stored bytes of accounts."]]
    assert "sums of stored bytes" not in diagnose(settings.data_dir)[1]
    assert database.health().status == "ok"
