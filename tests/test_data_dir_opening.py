"""Opening a data directory has no side effects: trials of shells, copies and versions."""

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import Result

from tests.store.disks import small_disk
from tests.support.commands import run_toolkit
from tests.support.model_server import ModelServer
from toolkit import Client, RequestError, Workflow
from toolkit.contract.errors import ServiceError
from toolkit.engine.execution.leases import LeaseManager
from toolkit.sandbox import Faults
from toolkit.settings import Settings

ASK = {"objective": "One line on tides"}


def toolkit(*arguments: object, exit_code: int = 0) -> Result:
    """Run a command, and return its result."""
    result = run_toolkit(*arguments)
    assert result.exit_code == exit_code, result.output + str(result.exception)
    return result


@pytest.fixture
def model_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A model server, and the operator's key for it."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    server = ModelServer()
    yield server
    server.close()


@pytest.fixture
def live(model_server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings of a real engine, as variables and as a value."""
    vendors = {"openai": {"base_urls": {"api": model_server.url}}}
    monkeypatch.setenv("TOOLKIT_VENDORS", json.dumps(vendors))
    return Settings(data_dir=tmp_path / "data")


@pytest.fixture
def leave_work(monkeypatch: pytest.MonkeyPatch) -> Callable[[Settings, str], str]:
    """Leaves a run, workflow or task unfinished: its process ends after accepting it."""

    def leave(settings: Settings, kind: str = "run") -> str:
        client = Client.local(settings=settings, take_up=False)
        with monkeypatch.context() as patch, client:
            if not settings.sandbox and not client.connections.list():
                client.connections.connect("openai")
            patch.setattr(LeaseManager, "start", lambda self, lease: None)
            if kind == "run":
                return client.runs.create("llm.generate", ASK).id
            if kind == "task":
                return client.tasks.create("One line on tides").id
            flow = Workflow("one")
            flow.add("line", "llm.generate", **ASK)
            return client.workflows.submit(flow).id

    return leave


AREAS = {"run": "runs", "workflow": "workflows", "task": "tasks"}


@pytest.mark.parametrize("kind", AREAS)
def test_listing_leaves_unfinished_work_intact(
    model_server: ModelServer,
    live: Settings,
    leave_work: Callable[[Settings, str], str],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    """Given unfinished work, when a shell without keys lists it, then the work continues later."""
    work_id, area = leave_work(live, kind), AREAS[kind]
    monkeypatch.delenv("OPENAI_API_KEY")
    for command in ([area], [area, "show", work_id], [area, "events", work_id], ["usage"]):
        toolkit(*command, "--data-dir", live.data_dir)
    with Client.local(settings=live) as client:  # the engine may work, but has no key
        waiting = getattr(client, area).get(work_id)
        assert (waiting.status_detail, waiting.done) == ("waiting_secret", False)
        assert client.events(work_id).__next__().type == f"{kind}.queued" or kind == "task"
    assert model_server.asked == []
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with Client.local(settings=live) as client:
        handle = getattr(client, area).get(work_id).wait(progress=False, check=False)
        assert (handle.done, handle.status_detail) == (True, None)
        # The model's answer is not a line on tides, so it passes no review.
        assert handle.error is None or (kind, handle.error.code) == ("task", "RETRIES_EXHAUSTED")
    assert model_server.asked


def test_shell_resumes_only_the_named_run(
    live: Settings, leave_work: Callable[[Settings, str], str]
) -> None:
    """Given two unfinished runs, when a shell waits for one, then only this run is resumed."""
    first, second = leave_work(live, "run"), leave_work(live, "run")
    result = toolkit("runs", "wait", second, "--data-dir", live.data_dir, "--json")
    assert json.loads(result.stdout)["status"] == "completed"
    result = toolkit("runs", "show", first, "--data-dir", live.data_dir, "--json")
    assert json.loads(result.stdout)["status"] == "queued"
    toolkit("runs", "cancel", first, "--data-dir", live.data_dir)
    with Client.local(settings=live) as client:
        assert client.runs.get(first).status == "cancelled"


def test_cancels_work_that_waits_for_a_secret(
    live: Settings, leave_work: Callable[[Settings, str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given work that waits for a secret, when it is cancelled, then its status is cancelled."""
    work_id = leave_work(live, "workflow")
    monkeypatch.delenv("OPENAI_API_KEY")
    with Client.local(settings=live) as client:
        assert client.workflows.get(work_id).cancel().status == "cancelled"


def copy_data_dir(folder: Path, how: str) -> Path:
    """Copy a data directory; `restored` deletes the original and moves the copy to its place."""
    copy = folder.with_name("copy")
    if how == "backup":
        toolkit("backup", copy, "--data-dir", folder)
        return copy
    shutil.copytree(folder, copy, copy_function=shutil.copy2 if how == "cp -a" else shutil.copyfile)
    if how != "restored":
        return copy
    shutil.rmtree(folder)
    return copy.rename(folder)


@pytest.mark.parametrize("how", ["backup", "cp -r", "cp -a", "restored"])
def test_copy_resumes_nothing_by_itself(
    settings: Settings, leave_work: Callable[[Settings, str], str], how: str
) -> None:
    """Given a copy, when it is listed or opened, then nothing is resumed without `take_up=True`."""
    run_id = leave_work(settings, "run")
    copy = copy_data_dir(settings.data_dir, how)
    for command in (["runs"], ["runs", "show", run_id], ["doctor"]):
        toolkit(*command, "--data-dir", copy, *(["--sandbox"] if command != ["doctor"] else []))
    assert "It is a copy" in toolkit("doctor", "--data-dir", copy).stdout
    faults = Faults()
    for _ in range(2):
        with Client.local(copy, faults=faults) as client:
            assert client.is_held
            with pytest.raises(RequestError, match="take_up=True"):
                client.runs.get(run_id).wait(progress=False)
            assert client.runs.create("llm.generate", ASK).wait(progress=False).output
    assert len(faults.calls) == 2  # only the runs that were created there
    with Client.local(copy, faults=faults, take_up=True) as client:
        assert client.runs.get(run_id).wait(progress=False).status == "completed"
    assert "It is a copy" not in toolkit("doctor", "--data-dir", copy).stdout
    with Client.local(copy, faults=faults) as client:
        assert not client.is_held


def test_moved_directory_is_not_a_copy(
    settings: Settings, leave_work: Callable[[Settings, str], str]
) -> None:
    """Given a directory that was renamed or repaired, or has a new owner, then it is no copy."""
    run_id = leave_work(settings, "run")
    moved = settings.data_dir.rename(settings.data_dir.with_name("moved"))
    (moved / "state.db").chmod(0o640)
    assert "It is a copy" not in toolkit("doctor", "--data-dir", moved).stdout
    with Client.local(moved, sandbox=True) as client:
        assert client.runs.get(run_id).wait(progress=False).status == "completed"


@pytest.mark.parametrize("log", [False, True])
def test_reads_a_read_only_disk(settings: Settings, tmp_path: Path, log: bool) -> None:
    """Given a directory on a read-only disk, then doctor reports no error and all is readable.

    This also holds after its process was killed, so that a part of the data is only in the log.
    """
    with small_disk(tmp_path / "disk", 8) as disk:
        folder = disk.path / "data"
        with Client.local(folder, sandbox=True) as client:
            run = client.runs.create("composition.layout", {"title": "Tea"}).wait(progress=False)
            if log:
                killed = disk.path / "killed"
                shutil.copytree(folder, killed, ignore=shutil.ignore_patterns("*-shm"))
                folder = killed
        disk.remount("ro")
        result = toolkit("doctor", "--data-dir", folder)
        assert "is sound" in result.stdout
        assert "open it read-only" in result.stdout
        runs = toolkit("runs", "--data-dir", folder, "--read-only", "--json")
        assert [row["id"] for row in json.loads(runs.stdout)] == [run.id]
        toolkit("backup", tmp_path / "copy", "--data-dir", folder)
        disk.remount("rw")


COMMANDS = [
    ["doctor"],
    ["doctor", "--repair"],
    ["backup", "copy"],
    ["prune", "--older-than", "1d"],
    ["runs", "--sandbox"],
    ["runs", "--read-only"],
    ["account", "create", "ada@example.org"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_rejects_a_directory_of_a_later_version(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    """Given a directory of a later version, then every command rejects it and changes nothing."""
    monkeypatch.chdir(settings.data_dir.parent)
    with Client.local(settings=settings) as client:
        client.runs.create("composition.layout", {"title": "Tea"}).wait(progress=False)
    with closing(sqlite3.connect(settings.data_dir / "state.db")) as connection:
        connection.execute("UPDATE roots SET created_at = '2020-01-01T00:00:00.000Z'")
        connection.execute("UPDATE alembic_version SET version_num = '9999', oldest = '9999'")
        connection.commit()
        result = run_toolkit(*command, "--data-dir", str(settings.data_dir))
        assert isinstance(result.exception, ServiceError), result.output
        assert "later version" in str(result.exception)
        (jobs,) = connection.execute("SELECT count(*) FROM jobs").fetchone()
    assert jobs == 1
    assert not Path("copy").exists()


@pytest.mark.parametrize(
    "command",
    [
        "account create ada@example.org", "keys create", "verify", "doctor", "doctor --repair",
        "prune --older-than 30d", "backup copy", "runs", "runs show run_x", "tasks cancel tsk_x",
        "usage --sandbox", "keys",
    ],
)  # fmt: skip
@pytest.mark.parametrize("exists", [True, False])
def test_commands_create_no_mistyped_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, exists: bool
) -> None:
    """Given a mistyped directory, then no command creates a key or a directory."""
    monkeypatch.chdir(tmp_path)
    mistyped = tmp_path / "typo"
    if exists:
        mistyped.mkdir()
    result = run_toolkit(*command.split(), "--data-dir", "typo")
    assert isinstance(result.exception, ServiceError), result.output
    assert "no data directory at typo" in str(result.exception)
    assert list(tmp_path.rglob("*")) == ([mistyped] if exists else [])


@pytest.mark.parametrize("command", [["run", "composition.layout", "title=Tea"], ["runs"]])
def test_rejects_a_key_without_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    """Given a server's key without a server, then an error reports it, and no directory is made."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOOLKIT_API_KEY", "sk_live_" + "x" * 43)
    assert "TOOLKIT_API_KEY is set" in toolkit(*command, exit_code=2).output
    assert list(tmp_path.iterdir()) == []
