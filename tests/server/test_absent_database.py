"""An engine that starts without its PostgreSQL: it waits for a bounded time, and says so."""

import logging
import threading
from pathlib import Path

import pytest

from tests._postgres import PostgresCluster
from tests.support.timing import PATIENCE_S, Watch
from toolkit import Client, ErrorCode, ServiceError


class _Starter(logging.Handler):
    """Starts the database server at the first log line."""

    def __init__(self, cluster: PostgresCluster) -> None:
        super().__init__(logging.WARNING)
        self.starting = threading.Thread(target=cluster.start)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
        if len(self.lines) == 1:
            self.starting.start()


def test_waits_for_the_database(tmp_path: Path, own_postgres: PostgresCluster) -> None:
    """Given a stopped database, when a client opens an engine, then it logs a line and waits."""
    url = own_postgres.create_database()
    own_postgres.stop()
    starter = _Starter(own_postgres)
    logging.getLogger("toolkit").addHandler(starter)
    try:
        with Client.local(tmp_path, sandbox=True, database=url) as client:
            assert client.runs.create("composition.layout", {"title": "Tea"}).wait().artifact_id
    finally:
        logging.getLogger("toolkit").removeHandler(starter)
    starter.starting.join()
    (line,) = starter.lines
    assert f"127.0.0.1:{own_postgres.port}" in line
    assert "up to 60 s" in line
    assert own_postgres.password not in line


def test_stops_waiting_after_the_configured_time(
    tmp_path: Path, own_postgres: PostgresCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a database that stays away, then the engine fails after the configured time."""
    url = own_postgres.create_database()
    own_postgres.stop()
    monkeypatch.setenv("TOOLKIT_DATABASE_WAIT_S", "0.2")
    with pytest.raises(ServiceError, match="cannot be reached") as error:
        Client.local(tmp_path, sandbox=True, database=url)
    assert error.value.code is ErrorCode.UNAVAILABLE
    own_postgres.start()


def test_fails_at_once_if_the_database_refuses(
    tmp_path: Path, postgres: PostgresCluster, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a wrong password or an unknown database, then the engine fails at once."""
    monkeypatch.setenv("TOOLKIT_DATABASE_WAIT_S", str(PATIENCE_S))
    watch = Watch()
    wrong_password = postgres_url.replace(postgres.password, "wrong-password")
    for url in (wrong_password, f"{postgres_url}_nowhere"):
        with pytest.raises(ServiceError):
            Client.local(tmp_path, sandbox=True, database=url)
    assert watch.measure_elapsed_s() < PATIENCE_S / 2
