"""`toolkit doctor` at the GPU cloud: resources that only the vendor has, and the reverse."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from sqlalchemy import NullPool, create_engine

from tests.support.commands import run_toolkit
from tests.support.timing import wait_until
from toolkit import Client
from toolkit.sandbox import SANDBOX_KEYS, create_app
from toolkit.settings import Settings

KEY = SANDBOX_KEYS["RUNPOD_API_KEY"]
GPU = "NVIDIA A40"


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx.Client]:
    """A client of a GPU cloud on a real socket, which the settings name as RunPod's."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()  # an early caller waits for the server
    config = uvicorn.Config(create_app(), log_level="warning", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/runpod/v2"
    monkeypatch.setenv("TOOLKIT_VENDORS", json.dumps({"runpod": {"base_urls": {"api": url}}}))
    monkeypatch.setenv("RUNPOD_API_KEY", KEY)
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {KEY}"}) as client:
        yield client
    server.should_exit = True
    thread.join(timeout=5)


@pytest.fixture(params=["sqlite", "postgresql"])
def run(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], list[Any]]:
    """Run a statement in the database, which the environment names."""
    url = f"sqlite:///{tmp_path / 'data' / 'state.db'}"
    if request.param == "postgresql":
        postgres_url: str = request.getfixturevalue("postgres_url")
        monkeypatch.setenv("TOOLKIT_DATABASE", postgres_url)
        url = postgres_url.replace("postgresql://", "postgresql+psycopg://")

    def run_in_database(sql: str) -> list[Any]:
        with create_engine(url, poolclass=NullPool).begin() as connection:
            result = connection.exec_driver_sql(sql)
            return list(result) if result.returns_rows else []

    return run_in_database


@pytest.fixture
def folder(cloud: httpx.Client, run: Callable[[str], list[Any]], tmp_path: Path) -> Path:
    """A data directory that has a resource of each kind at the cloud."""
    with Client.local(settings=Settings(data_dir=tmp_path / "data")) as client:
        client.connections.connect("runpod")
        client.compute.create("easel", GPU)
        client.endpoints.create("studio")
        client.storage.create("weights", 20)
        client.templates.create("worker", "example/worker:1")
    return tmp_path / "data"


def run_doctor(folder: Path, *options: str) -> tuple[int, list[dict[str, Any]]]:
    """Return the exit code and the findings of doctor, without those about the machine."""
    result = run_toolkit("doctor", "--data-dir", folder, "--json", *options)
    findings = json.loads(result.stdout)["findings"]
    return result.exit_code, [row for row in findings if "SQLite" not in row["what"]]


def test_finds_nothing_if_both_sides_agree(folder: Path) -> None:
    """Given the same resources on both sides, then doctor finds nothing."""
    assert run_doctor(folder) == (0, [])


def test_finds_resources_without_a_record(
    folder: Path, cloud: httpx.Client, run: Callable[[str], list[Any]]
) -> None:
    """Given resources of others, and one that the toolkit gave up, then each has a line."""
    elsewhere = "weights-sto_01m7zbs60n7rtynkht4fdg35ns"
    for kind, fields in {
        "pods": {"name": "by hand", "gpu": {"id": GPU}, "image": "x"},
        "templates": {"name": "somebody's own", "image": "x"},
        "network-volumes": {"name": elsewhere, "size": 10, "dataCenter": "EU-RO-1"},
    }.items():
        assert cloud.post(kind, json=fields).status_code == 201
    run("UPDATE endpoints SET status = 'deleted'")
    ((endpoint,),) = run("SELECT id FROM endpoints")
    code, findings = run_doctor(folder)
    assert code == 1
    lines = {row["what"]: row["serious"] for row in findings}
    assert len(lines) == 3
    for text, serious in (("by hand", False), (elsewhere, False), (endpoint, True)):
        (line,) = [what for what in lines if f"`{text}`" in what]
        assert (lines[line], "delete" in line) == (serious, True)
    assert run_doctor(folder, "--no-vendors") == (0, [])


def test_finds_records_without_a_resource(folder: Path, cloud: httpx.Client) -> None:
    """Given a pod and a volume that were deleted at the vendor, then their records are named."""
    for kind in ("pods", "network-volumes"):
        for resource in next(iter(cloud.get(kind).json().values())):
            cloud.delete(f"{kind}/{resource['id']}")
    code, findings = run_doctor(folder)
    assert code == 0
    assert all("but no longer exists at runpod: delete it here" in row["what"] for row in findings)
    assert {row["what"][1:4] for row in findings} == {"cmp", "sto"}


def test_finds_interrupted_changes(folder: Path, run: Callable[[str], list[Any]]) -> None:
    """Given changes that a crash interrupted, then doctor names the next step."""
    run(
        "UPDATE storage SET status = 'creating', vendor_id = NULL,"
        """ doc = replace(doc, '"status":"ready"', '"status":"creating"')"""
    )
    run("UPDATE endpoints SET status = 'deleting'")
    code, findings = run_doctor(folder, "--no-vendors")
    assert code == 1
    assert sorted(row["what"][1:4] for row in findings) == ["ep_", "sto"]
    assert all("open the d" in row["what"] for row in findings)
    with Client.local(settings=Settings(data_dir=folder)) as client:
        wait_until(
            lambda: client.storage.list()[0].status == "ready" and not list(client.endpoints.list())
        )
    assert run_doctor(folder) == (0, [])


@pytest.mark.parametrize("trouble", ["no secret", "offline", "refused"])
def test_reports_a_vendor_that_cannot_be_listed(
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
    code, findings = run_doctor(folder)
    assert (code, len(findings)) == (0, 1)
    assert "could not be listed" in findings[0]["what"]


def test_sandbox_has_no_vendors(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given the sandbox, then doctor checks no vendor."""
    monkeypatch.setenv("TOOLKIT_SANDBOX", "true")
    code, findings = run_doctor(folder)
    assert code == 0
    assert "sandbox" in findings[0]["what"]
