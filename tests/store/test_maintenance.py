"""`toolkit doctor`, `backup` and `prune` on data directories with completed work."""

import asyncio
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.store.upkeep import LONG_AGO, diagnose, do_work, read_json
from tests.support.commands import run_toolkit, say
from tests.support.database_pool import execute_sql
from tests.support.engine_accounts import connect_account
from tests.support.process_kill import kill_engine
from tests.support.timing import wait_until, wait_until_async
from toolkit import Client, Workflow
from toolkit.contract.errors import ServiceError
from toolkit.sandbox import Fault, Faults
from toolkit.settings import Settings
from toolkit.store.data_dir.owners import LeaseOwner, find_active_owners

pytestmark = pytest.mark.sqlite("upkeep of a directory; that of a database: test_database")


@pytest.fixture
def folder(settings: Settings) -> Path:
    """A data directory with completed work."""
    with Client.local(settings=settings) as client:
        do_work(client)
    return settings.data_dir


def read_records(folder: Path) -> dict[str, Any]:
    """Read each run, workflow and artifact of a directory, with the artifacts' bytes."""
    with Client.local(folder, sandbox=True) as client:
        return {
            "runs": [run.to_dict() for run in client.runs.list()],
            "workflows": [workflow.to_dict() for workflow in client.workflows.list()],
            "artifacts": {artifact.id: artifact.content() for artifact in client.artifacts.list()},
        }


def test_doctor_shows_the_operator_s_prices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """Given configured prices, then doctor shows them, and names prices without a model."""
    monkeypatch.chdir(tmp_path)
    settings = (
        "[vendors.openai.prices]\n"
        "gpt-6-luna = { input_tokens = 0.08, output_tokens = 0.4 }\n"
        "gpt-6-lunar = { input_tokens = 1, output_tokens = 1 }\n"
        "[vendors.minimax.prices]\n"
        '"*" = { input_tokens = 0, output_tokens = 0 }\n'
    )
    (tmp_path / "toolkit.toml").write_text(settings, encoding="utf-8")
    prices = read_json("doctor", "--data-dir", folder)["prices"]
    luna, lunar, default = (
        next(line for line in prices if word in line)
        for word in ("gpt-6-luna:", "has gpt-6-lunar", "[vendors.minimax]")
    )
    assert "$0.08 in and $0.4 out" in luna
    assert "is not a text model of openai" in lunar
    assert "gpt-6-luna" in lunar.partition("use one of")[2]
    assert "all models without their own price: $0 in and $0 out" in default
    assert len([line for line in prices if "prices" in line and "vendors." in line]) == 3
    assert luna in say("doctor", "--data-dir", folder)


@pytest.mark.parametrize("command", [["doctor"], ["backup", "copy"], ["prune", "--older-than=1d"]])
def test_refuses_a_directory_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    """Given a directory that this user may not read, then one line names the reason."""

    def refuse(_path: Path) -> bool:
        raise PermissionError(13, "Permission denied")  # because root may read all files

    (tmp_path / "state.db").write_bytes(b"")
    with monkeypatch.context() as patched:
        patched.setattr(Path, "is_file", refuse)
        error = run_toolkit(*command, "--data-dir", tmp_path).exception
    assert isinstance(error, ServiceError), error
    assert "cannot be read: run this as the user who owns it" in str(error)


@pytest.mark.parametrize("harm", ["gone", "cut", "changed"])
def test_doctor_reports_lost_bytes(folder: Path, harm: str) -> None:
    """Given an artifact whose bytes are gone, cut or changed, then doctor and backup report it."""
    path = next((folder / "artifacts").glob("*/*"))
    data = path.read_bytes()
    if harm == "gone":
        path.unlink()
    else:
        path.write_bytes(data[:-1] if harm == "cut" else data[:-1] + bytes([data[-1] ^ 1]))
    code, output = diagnose(folder, "--deep")
    words = {"gone": "not there", "cut": "not whole", "changed": "damaged"}[harm]
    assert (code, words in output) == (1, True), output
    backup = run_toolkit("backup", folder.parent / "copy", "--data-dir", folder)
    assert (backup.exit_code, "are missing or damaged" in backup.stdout) == (1, True)


def test_repair_saves_the_readable_rows(folder: Path) -> None:
    """Given a damaged page, then doctor reports it, and `--repair` saves the readable rows."""
    before = read_records(folder)
    path = folder / "state.db"
    data = bytearray(path.read_bytes())
    page = data.rindex(b"One line on tides") // 4096 * 4096
    data[page : page + 64] = os.urandom(64)
    path.write_bytes(data)
    code, output = diagnose(folder)
    assert (code, "is damaged" in output) == (1, True), output
    assert "--repair would save all readable rows" in output
    code, output = diagnose(folder, "--repair")
    assert (code, "Saved" in output) == (0, True), output
    assert list(folder.glob("state.db.damaged-*"))
    after = read_records(folder)
    assert [run for run in after["runs"] if run in before["runs"]] or after["workflows"]
    assert after["artifacts"]
    with Client.local(folder, sandbox=True) as client:
        assert client.runs.create("llm.generate", {"objective": "Salt"}).wait().output


def test_doctor_reports_a_destroyed_database(folder: Path) -> None:
    """Given a database with a destroyed header, then doctor exits with 1."""
    path = folder / "state.db"
    path.write_bytes(os.urandom(4096) + path.read_bytes()[4096:])
    assert diagnose(folder)[0] == 1


def test_repairs_nothing_while_a_process_runs(folder: Path, settings: Settings) -> None:
    """Given an open directory, then doctor examines it, and refuses to repair it."""
    with Client.local(settings=settings):
        assert diagnose(folder)[0] == 0
        result = run_toolkit("doctor", "--data-dir", folder, "--repair")
        assert "stop it first" in str(result.exception)


def test_repair_deletes_leftover_files(folder: Path) -> None:
    """Given files that a crash left, then `--repair` deletes them, and keeps all records."""
    before = read_records(folder)
    old = time.time() - 7200
    for name in ("aa/.partial", "bb/" + "c" * 62):
        path = folder / "artifacts" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"left")
        os.utime(path, (old, old))
    (folder / "owners" / "0123456789abcdef.lock").touch()
    code, output = diagnose(folder)
    assert (code, "No record names 2 of the files" in output) == (0, True)
    actions = read_json("doctor", "--data-dir", folder, "--repair")["done"]
    assert actions[0] == "Deleted 2 files that no record names."
    assert read_records(folder) == before


def test_a_backup_has_all_records(folder: Path) -> None:
    """Given a backup, then it has the records and the bytes of the original, and is sound."""
    copy = folder.parent / "copy"
    say("backup", copy, "--data-dir", folder)
    assert read_records(copy) == read_records(folder)
    code, output = diagnose(copy, "--deep")
    assert (code, "is sound" in output) == (0, True), output
    findings = read_json("doctor", "--data-dir", copy)["findings"]
    assert [finding for finding in findings if finding["serious"]] == []
    again = run_toolkit("backup", copy, "--data-dir", folder)
    assert "exists" in str(again.exception)


def test_a_backup_during_work_is_consistent(settings: Settings, tmp_path: Path) -> None:
    """Given work in progress, then the backup has its state at one moment, and can resume it."""
    faults = Faults()
    faults.add(Fault("minimax", delay_ms=20, times=None))
    copy = tmp_path / "copy"
    with Client.local(settings=settings, faults=faults) as client:
        workflow = Workflow("long")
        for i in range(30):
            previous = [f"n{i - 1}"] if i else []
            workflow.add(f"n{i}", "llm.generate", objective=f"Line {i}", depends_on=previous)
        run = client.workflows.submit(workflow)

        def count_completed() -> int:
            return sum(n.status == "completed" for n in client.workflows.get(run.id).nodes)

        wait_until(lambda: count_completed() >= 5)
        say("backup", copy, "--data-dir", settings.data_dir)
        originals = {n.artifact_id for n in run.wait().nodes}
    assert diagnose(copy, "--deep")[0] == 0
    with Client.local(copy, sandbox=True, take_up=True) as client:
        copies = {n.artifact_id for n in client.workflows.get(run.id).wait().nodes}
    assert 5 <= len(originals & copies) < 30  # the copy repeats the nodes that were not complete


def test_prune_keeps_open_work(settings: Settings) -> None:
    """Given work of a process that died, then prune keeps it, and it can be resumed."""
    from toolkit.contract.runs import RunCreate
    from toolkit.local import open_engine

    async def leave_run() -> str:
        faults = Faults()
        faults.add(Fault("minimax", mangle="hang", times=None))
        engine = await open_engine(settings, faults=faults)
        context = await connect_account(engine, "minimax")
        request = RunCreate(name="llm.generate", input={"objective": "Tides"})
        run = await engine.runs.create(context, request)
        await wait_until_async(lambda: any("chat" in call.path for call in faults.calls))
        await kill_engine(engine)
        return run.id

    run_id = asyncio.run(leave_run())
    execute_sql(settings.data_dir, None, f"UPDATE roots SET created_at = '{LONG_AGO}'")
    assert "An ended engine left 1 runs" in diagnose(settings.data_dir)[1]
    say("prune", "--older-than", "1d", "--data-dir", settings.data_dir)
    with Client.local(settings=settings) as client:
        assert client.runs.get(run_id).wait().attempts[0].status == "interrupted"


@pytest.mark.parametrize("age", ["30", "d", "3y", "-1d"])
def test_prune_refuses_an_invalid_age(tmp_path: Path, age: str) -> None:
    """Given an invalid age, then prune exits with 2."""
    assert run_toolkit("prune", f"--older-than={age}", "--data-dir", tmp_path).exit_code == 2


@pytest.mark.parametrize(
    "command", [["capabilities"], ["runs", "--sandbox"], ["health"], ["usage"], ["keys"]]
)
def test_reading_commands_create_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    """Given an empty folder, then commands that read leave it empty."""
    monkeypatch.chdir(tmp_path)
    say(*command)
    assert list(tmp_path.iterdir()) == []


def test_refuses_a_backup_within_its_directory(folder: Path) -> None:
    """Given a target within the directory, then backup refuses it, and creates nothing."""
    before = sorted(folder.rglob("*"))
    result = run_toolkit("backup", folder / "copies" / "first", "--data-dir", folder)
    assert "another directory" in str(result.exception)
    assert sorted(folder.rglob("*")) == before


def test_lists_an_open_owner_while_other_owners_close(tmp_path: Path) -> None:
    """Given owners that close at that moment, then an open owner is listed."""

    def close_many() -> None:
        for _ in range(300):
            LeaseOwner(tmp_path).close()

    owner = LeaseOwner(tmp_path)
    churn = threading.Thread(target=close_many)
    churn.start()
    while churn.is_alive():
        assert owner.id in find_active_owners(tmp_path)
    churn.join()
    owner.close()
