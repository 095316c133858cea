"""Databases that the next version upgrades, and those of unreleased versions, which are refused."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support.database_pool import execute_sql
from tests.support.later_version import LATER, make_later_version
from toolkit import Client
from toolkit.cli import app
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store import Store
from toolkit.store.schema import HEAD_REVISION

LINE = {"objective": "Salt"}


def run_migrate(version: Path, folder: Path, url: str | None) -> subprocess.CompletedProcess[str]:
    """Run `toolkit migrate` of a version."""
    words = [sys.executable, "-m", "toolkit", "migrate", "--data-dir", str(folder)]
    env = {**os.environ, "PYTHONPATH": str(version)}
    if url is not None:
        words += ["--database", url]
    return subprocess.run(words, cwd=version, env=env, capture_output=True, text=True, timeout=60)


def test_the_next_version_upgrades_what_this_one_made(
    tmp_path: Path, url: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a run and its text, when the next version migrates, then both versions have them."""
    folder = tmp_path / "data"
    if url is not None:
        monkeypatch.setenv("TOOLKIT_DATABASE", url)
    with Client.local(folder, sandbox=True) as client:
        run = client.runs.create("llm.generate", LINE).wait()
    done = run_migrate(make_later_version(tmp_path / "later"), folder, url)
    assert (done.returncode, LATER in done.stdout) == (0, True), done.stderr
    versions = execute_sql(folder, url, "SELECT version_num, oldest FROM alembic_version")
    assert versions == [(LATER, HEAD_REVISION)]
    assert execute_sql(folder, url, "SELECT later FROM jobs") == [(None,)]
    with Client.local(folder, sandbox=True) as client:
        assert client.runs.get(run.id).output == run.output
        assert client.runs.create("llm.generate", LINE).wait().status == "completed"


async def test_no_tables_are_taken_from_under_engines(tmp_path: Path, url: str | None) -> None:
    """Given engines that cannot use the next tables, then these are not made while they run."""
    later = make_later_version(tmp_path / "later", oldest=LATER)
    store = await Store.open(tmp_path / "data", database=url)
    try:
        done = run_migrate(later, tmp_path / "data", url)
        assert (done.returncode, "stop them" in done.stderr) == (4, True), done.stderr
        now = execute_sql(tmp_path / "data", url, "SELECT version_num FROM alembic_version")
        assert now == [(HEAD_REVISION,)]
    finally:
        await store.close()
    assert run_migrate(later, tmp_path / "data", url).returncode == 0


async def test_tables_that_were_never_released_are_refused(tmp_path: Path, url: str | None) -> None:
    """Given tables of a version before the first release, then one line says what to do."""
    await (await Store.open(tmp_path, database=url)).close()
    execute_sql(tmp_path, url, "UPDATE alembic_version SET version_num = '0015'")
    before = (tmp_path / "state.db").read_bytes() if url is None else b""
    with pytest.raises(ServiceError, match="begin with a new data directory") as refused:
        await Store.open(tmp_path, database=url)
    assert refused.value.code is ErrorCode.UNAVAILABLE
    assert "\n" not in refused.value.message
    where = ["--data-dir", str(tmp_path), *(["--database", url] if url is not None else [])]
    shown = CliRunner().invoke(app, ["doctor", "--no-vendors", *where])
    assert (shown.exit_code, "unreleased" in f"{shown.output}{shown.exception}") == (1, True)
    assert execute_sql(tmp_path, url, "SELECT version_num FROM alembic_version") == [("0015",)]
    assert url is not None or (tmp_path / "state.db").read_bytes() == before
