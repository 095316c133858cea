"""`toolkit doctor --repair` of what accounts keep, beside an engine on a database of PostgreSQL."""

from concurrent.futures import ThreadPoolExecutor
from typing import Final

import psycopg
import pytest
from typer.testing import CliRunner

from tests.support.timing import wait_until
from toolkit import Client
from toolkit.cli import app
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
    """An engine with some work in its database."""
    database.artifacts.upload(b"leaf" * 50)
    database.runs.create("llm.generate", ASKED).wait(progress=False)
    return database


def diagnose(settings: Settings, *options: str) -> str:
    """Run doctor, and return what it says."""
    given = ["doctor", "--no-vendors", "--data-dir", str(settings.data_dir), *options]
    return CliRunner().invoke(app, given, catch_exceptions=False).stdout


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_sums_are_found_and_corrected(
    database: Client, settings: Settings, postgres_url: str, wrong: str
) -> None:
    """Given sums that are too large, too small, lost or of nobody, then they are put right once."""
    assert "sums of stored bytes" not in diagnose(settings)
    with psycopg.connect(postgres_url, autocommit=True) as session:
        session.execute(wrong.encode())
    assert "sums of stored bytes" in diagnose(settings)
    told = diagnose(settings, "--repair")
    assert "Recounted the stored bytes of accounts." in told
    assert "sums of stored bytes" not in told
    assert "Recounted" not in diagnose(settings, "--repair")
    assert database.health().status == "ok"


def test_an_engine_goes_on_while_sums_are_corrected(
    database: Client, settings: Settings, postgres_url: str
) -> None:
    """Given rows that take long to add up, then an engine writes meanwhile, and all is counted."""
    with (
        psycopg.connect(postgres_url, autocommit=True) as session,
        psycopg.connect(postgres_url) as holder,
        ThreadPoolExecutor(1) as pool,
    ):
        session.execute("UPDATE stored_bytes SET records = records + 1000, artifacts = 0")
        # Where it adds up these rows it waits, having begun to look.
        holder.execute("LOCK TABLE templates IN ACCESS EXCLUSIVE MODE")
        repairing = pool.submit(diagnose, settings, "--repair")
        try:
            wait_until(lambda: session.execute(WAITING_SQL).fetchone(), "the repair has begun")
            database.artifacts.upload(b"bark" * 70)
            run = database.runs.create("llm.generate", ASKED).wait(progress=False)
            assert run.status == "completed"
            assert not repairing.done()
        finally:
            holder.rollback()
        told = repairing.result()
    assert "Recounted the stored bytes of accounts." in told
    assert "sums of stored bytes" not in told


def test_two_repairs_at_once_correct_once(
    database: Client, settings: Settings, postgres_url: str
) -> None:
    """Given two repairs of the same sums, then what is missing is added by one of them."""
    with (
        psycopg.connect(postgres_url, autocommit=True) as session,
        psycopg.connect(postgres_url) as holder,
        ThreadPoolExecutor(2) as pool,
    ):
        session.execute("UPDATE stored_bytes SET records = records - 1000")
        holder.execute("SELECT 1 FROM stored_bytes FOR UPDATE")  # so that neither is done
        # Not by the command, whose output is that of the whole process.
        place = open_place(settings.data_dir, None)

        def repair() -> list[str]:
            with PostgresUpkeep.open(postgres_url) as records:
                return repair_database(records, place)

        repairs = [pool.submit(repair) for _ in range(2)]
        wait_until(lambda: len(session.execute(WAITING_SQL).fetchall()) == 2, "both have begun")
        holder.rollback()
        told = [each.result() for each in repairs]
    assert sorted(told) == [[], ["Recounted the stored bytes of accounts."]]
    assert "sums of stored bytes" not in diagnose(settings)
    assert database.health().status == "ok"
