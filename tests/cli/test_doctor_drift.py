"""`toolkit doctor` at the GPU cloud: what is there and not here, and the reverse."""

import json
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import uvicorn

from tests.support.commands import run_toolkit
from tests.support.timing import wait_until
from toolkit import Client
from toolkit.sandbox import SANDBOX_KEYS, create_app
from toolkit.settings import Settings

KEY = SANDBOX_KEYS["RUNPOD_API_KEY"]
GPU = "NVIDIA A40"


class GPUCloud:
    """A GPU cloud on a real socket, as somebody with the key may also use it directly."""

    def __init__(self, url: str) -> None:
        self.url = f"{url}/runpod/v2"
        self._headers = {"Authorization": f"Bearer {KEY}"}

    def make(self, kind: str, **fields: Any) -> None:
        """Make something there, without the toolkit."""
        answer = httpx.post(f"{self.url}/{kind}", json=fields, headers=self._headers)
        assert answer.status_code == 201, answer.text

    def empty(self, kind: str) -> None:
        """Delete all of a kind there, without the toolkit."""
        listed = httpx.get(f"{self.url}/{kind}", headers=self._headers).json()
        for one in next(iter(listed.values())):
            httpx.delete(f"{self.url}/{kind}/{one['id']}", headers=self._headers)


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[GPUCloud]:
    """A cloud, and an environment in which it is RunPod's."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()  # who is early waits for the server
    config = uvicorn.Config(create_app(), log_level="warning", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    cloud = GPUCloud(f"http://127.0.0.1:{listener.getsockname()[1]}")
    monkeypatch.setenv("TOOLKIT_VENDORS", json.dumps({"runpod": {"base_urls": {"api": cloud.url}}}))
    monkeypatch.setenv("RUNPOD_API_KEY", KEY)
    yield cloud
    server.should_exit = True
    thread.join(timeout=5)


@pytest.fixture(params=["sqlite", "postgresql"])
def run(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], list[Any]]:
    """What runs a statement in the records' database, which the environment names."""
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_url")
        monkeypatch.setenv("TOOLKIT_DATABASE", url)

    def run_in_database(sql: str) -> list[Any]:
        with closing(
            psycopg.connect(url, autocommit=True)
            if request.param == "postgresql"
            else sqlite3.connect(tmp_path / "data" / "state.db", isolation_level=None)
        ) as database:
            cursor = database.execute(sql)
            return list(cursor.fetchall()) if cursor.description else []

    return run_in_database


@pytest.fixture
def folder(cloud: GPUCloud, run: Callable[[str], list[Any]], tmp_path: Path) -> Path:
    """A data directory that has one thing of each kind at the cloud."""
    with Client.local(settings=Settings(data_dir=tmp_path / "data")) as client:
        client.connections.connect("runpod")
        client.compute.create("easel", GPU)
        client.endpoints.create("studio")
        client.storage.create("weights", 20)
        client.templates.create("worker", "example/worker:1")
    return tmp_path / "data"


def doctor(folder: Path, *more: str) -> tuple[int, list[dict[str, Any]]]:
    """The exit code, and what doctor finds beside what it says of the machine."""
    shown = run_toolkit("doctor", "--data-dir", folder, "--json", *more)
    told = [one for one in json.loads(shown.stdout)["findings"] if "SQLite" not in one["what"]]
    return shown.exit_code, told


def test_both_sides_agree(folder: Path) -> None:
    """Given the same here and there, then there is nothing to say."""
    assert doctor(folder) == (0, [])


def test_what_is_there_and_not_here(
    folder: Path, cloud: GPUCloud, run: Callable[[str], list[Any]]
) -> None:
    """Given things that others made, and one given up here, then each has a line."""
    cloud.make("pods", name="by hand", gpu={"id": GPU}, image="x")
    cloud.make("templates", name="somebody's own", image="x")
    elsewhere = "weights-sto_01m7zbs60n7rtynkht4fdg35ns"
    cloud.make("network-volumes", name=elsewhere, size=10, dataCenter="EU-RO-1")
    run("UPDATE endpoints SET status = 'deleted'")
    ((endpoint,),) = run("SELECT id FROM endpoints")
    code, found = doctor(folder)
    assert code == 1
    lines = {one["what"]: one["serious"] for one in found}
    assert len(lines) == 3
    for text, serious in (("by hand", False), (elsewhere, False), (endpoint, True)):
        (line,) = [what for what in lines if f"`{text}`" in what]
        assert (lines[line], "delete" in line) == (serious, True)
    assert doctor(folder, "--no-vendors") == (0, [])


def test_what_is_here_and_not_there(folder: Path, cloud: GPUCloud) -> None:
    """Given a pod and a volume that were deleted at the vendor, then their records are named."""
    cloud.empty("pods")
    cloud.empty("network-volumes")
    code, found = doctor(folder)
    assert code == 0
    assert all("but no longer exists at runpod: delete it here" in one["what"] for one in found)
    assert {one["what"][1:4] for one in found} == {"cmp", "sto"}


def test_what_is_in_between(folder: Path, run: Callable[[str], list[Any]]) -> None:
    """Given what a crash cut off, then doctor names what settles it, and that it does."""
    run(
        "UPDATE storage SET status = 'creating', vendor_id = NULL,"
        """ doc = replace(doc, '"status":"ready"', '"status":"creating"')"""
    )
    run("UPDATE endpoints SET status = 'deleting'")
    code, found = doctor(folder, "--no-vendors")
    assert code == 1
    assert sorted(one["what"][1:4] for one in found) == ["ep_", "sto"]
    assert all("open the d" in one["what"] for one in found)
    with Client.local(settings=Settings(data_dir=folder)) as client:
        wait_until(
            lambda: client.storage.list()[0].status == "ready" and not list(client.endpoints.list())
        )
    assert doctor(folder) == (0, [])


@pytest.mark.parametrize("trouble", ["no secret", "offline", "refused"])
def test_what_cannot_be_looked_at(
    folder: Path, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    """Given no secret, no network or no access, then doctor says so, and it is not serious."""
    if trouble == "no secret":
        monkeypatch.delenv("RUNPOD_API_KEY")
    elif trouble == "refused":
        monkeypatch.setenv("RUNPOD_API_KEY", "another-key")
    else:
        nowhere = {"runpod": {"base_urls": {"api": "http://127.0.0.1:9/v2"}}}
        monkeypatch.setenv("TOOLKIT_VENDORS", json.dumps(nowhere))
    code, found = doctor(folder)
    assert (code, len(found)) == (0, 1)
    assert "could not be listed" in found[0]["what"]


def test_the_sandbox_has_no_vendors(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given the sandbox, then there is nothing at vendors to look at."""
    monkeypatch.setenv("TOOLKIT_SANDBOX", "true")
    code, found = doctor(folder)
    assert code == 0
    assert "sandbox" in found[0]["what"]
