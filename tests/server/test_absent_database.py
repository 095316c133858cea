"""An engine that starts while PostgreSQL is away: it waits for a bounded time, and says so."""

import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests._postgres import PostgresCluster
from tests.support.timing import PATIENCE_S, Watch
from toolkit import Client, ErrorCode, ServiceError


class _Starter(logging.Handler):
    """Starts the server at the first line that says that it is waited for."""

    def __init__(self, cluster: PostgresCluster) -> None:
        super().__init__(logging.WARNING)
        self.starting = threading.Thread(target=cluster.start)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
        if len(self.lines) == 1:
            self.starting.start()


def test_a_client_waits_for_the_database(tmp_path: Path, own_postgres: PostgresCluster) -> None:
    """Given a database that is away, when a client opens an engine, then it waits and says so."""
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


def test_a_server_waits_for_the_database(tmp_path: Path, own_postgres: PostgresCluster) -> None:
    """Given a database that is away, then `toolkit serve` says so in a line, and serves later."""
    url = own_postgres.create_database()
    own_postgres.stop()
    command = [sys.executable, "-m", "toolkit", "serve", "--sandbox", "--port", "0"]
    with subprocess.Popen(
        [*command, "--data-dir", str(tmp_path)],
        env=os.environ | {"TOOLKIT_DATABASE": url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as served:
        assert served.stdout is not None
        assert served.stderr is not None
        try:
            line = served.stderr.readline()
            assert f"127.0.0.1:{own_postgres.port}" in line
            assert "up to 60 s" in line
            own_postgres.start()
            assert "Serving /v1" in served.stdout.readline()
        finally:
            served.kill()


def test_the_wait_is_bounded(
    tmp_path: Path, own_postgres: PostgresCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a database that stays away, then the engine gives up after the time that is set."""
    url = own_postgres.create_database()
    own_postgres.stop()
    monkeypatch.setenv("TOOLKIT_DATABASE_WAIT_S", "0.2")
    with pytest.raises(ServiceError, match="cannot be reached") as refused:
        Client.local(tmp_path, sandbox=True, database=url)
    assert refused.value.code is ErrorCode.UNAVAILABLE
    own_postgres.start()


def test_a_refusal_is_not_waited_for(
    tmp_path: Path, postgres: PostgresCluster, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a wrong password, or a database that is not there, then the engine fails at once."""
    monkeypatch.setenv("TOOLKIT_DATABASE_WAIT_S", str(PATIENCE_S))
    watch = Watch()
    wrong = postgres_url.replace(postgres.password, "wrong-password")
    for url in (wrong, f"{postgres_url}_nowhere"):
        with pytest.raises(ServiceError):
            Client.local(tmp_path, sandbox=True, database=url)
    assert watch.measure_elapsed_s() < PATIENCE_S / 2
