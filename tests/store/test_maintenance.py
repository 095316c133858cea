"""`toolkit doctor`, `backup` and `prune`, on data directories that real work was done in."""

import asyncio
import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.commands import run_toolkit, say
from tests.support.process_kill import kill_engine
from tests.support.timing import wait_until, wait_until_async
from toolkit import Client, Workflow
from toolkit.contract.errors import ServiceError
from toolkit.engine.request_context import RequestContext
from toolkit.sandbox import Fault, Faults
from toolkit.settings import Settings
from toolkit.store.data_dir.owners import LeaseOwner, find_active_owners

pytestmark = pytest.mark.sqlite("upkeep of a directory; that of a database: test_database")

SPOKEN = {"text": "Tides turn twice a day, and mills with them. " * 12}
LONG_AGO = "2020-01-01T00:00:00.000Z"


@pytest.fixture
def folder(settings: Settings) -> Path:
    """A data directory in which a workflow and two runs have been done."""
    with Client.local(settings=settings) as client:
        flow = Workflow("poster")
        copy = flow.add("copy", "llm.generate", objective="One line on tides")
        flow.add("voice", "speech.generate", depends_on=[copy], **SPOKEN)
        client.workflows.submit(flow).wait()
        client.runs.create("speech.generate", SPOKEN, tags=["said"]).wait()
        client.runs.create("llm.generate", {"objective": "One line on mills"}).wait()
        client.tasks.create("A social card about tides").wait()
    return settings.data_dir


@pytest.fixture
def database(folder: Path) -> Iterator[sqlite3.Connection]:
    """The database itself."""
    with closing(sqlite3.connect(folder / "state.db", isolation_level=None)) as connection:
        yield connection


def everything(folder: Path) -> dict[str, object]:
    """Read what a client sees in a directory: each run, workflow and artifact, with its bytes."""
    with Client.local(folder, sandbox=True) as client:
        artifacts = {
            one.id: client.artifacts.get(one.id).content() for one in client.artifacts.list()
        }
        return {
            "runs": [run.to_dict() for run in client.runs.list()],
            "workflows": [flow.to_dict() for flow in client.workflows.list()],
            "artifacts": artifacts,
        }


def test_a_sound_directory(folder: Path) -> None:
    """Given a directory that nothing is wrong with, then doctor says so."""
    shown = run_toolkit("doctor", "--data-dir", folder, "--deep")
    assert (shown.exit_code, "is sound" in shown.stdout) == (0, True), shown.stdout
    told = json.loads(run_toolkit("doctor", "--data-dir", folder, "--json").stdout)
    assert [finding for finding in told["findings"] if finding["serious"]] == []


def test_the_operator_s_prices_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """Given prices of one's own, then doctor says what they are, and which are for no model."""
    monkeypatch.chdir(tmp_path)
    settings = (
        "[vendors.openai.prices]\n"
        "gpt-6-luna = { input_tokens = 0.08, output_tokens = 0.4 }\n"
        "gpt-6-lunar = { input_tokens = 1, output_tokens = 1 }\n"
        "[vendors.minimax.prices]\n"
        '"*" = { input_tokens = 0, output_tokens = 0 }\n'
    )
    (tmp_path / "toolkit.toml").write_text(settings, encoding="utf-8")
    shown = run_toolkit("doctor", "--data-dir", folder)
    assert shown.exit_code == 0
    luna, lunar, every = (
        next(line for line in shown.stdout.splitlines() if word in line)
        for word in ("gpt-6-luna:", "has gpt-6-lunar", "[vendors.minimax]")
    )
    assert "$0.08 in and $0.4 out" in luna
    assert "is not a text model of openai" in lunar
    assert "gpt-6-luna" in lunar.partition("use one of")[2]
    assert "all models without their own price: $0 in and $0 out" in every
    told = json.loads(run_toolkit("doctor", "--data-dir", folder, "--json").stdout)["prices"]
    assert len([line for line in told if "prices" in line and "vendors." in line]) == 3


@pytest.mark.parametrize("command", [["doctor"], ["backup", "copy"], ["prune", "--older-than=1d"]])
def test_a_directory_of_somebody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    """Given a directory that may not be read, then a line says who may, and none is raw."""

    def refuse(_path: Path) -> bool:
        raise PermissionError(13, "Permission denied")  # root, who runs tests, is refused nothing

    (tmp_path / "state.db").write_bytes(b"")
    with monkeypatch.context() as patched:
        patched.setattr(Path, "is_file", refuse)
        shown = run_toolkit(*command, "--data-dir", tmp_path)
    assert isinstance(shown.exception, ServiceError), shown.exception
    assert "cannot be read: run this as the user who owns it" in str(shown.exception)


@pytest.mark.parametrize("harm", ["gone", "cut", "changed"])
def test_bytes_that_are_lost(folder: Path, harm: str) -> None:
    """Given an artifact whose bytes are gone, cut or changed, then doctor names it."""
    victim = next(path for path in (folder / "artifacts").glob("*/*"))
    data = victim.read_bytes()
    if harm == "gone":
        victim.unlink()
    else:
        victim.write_bytes(data[:-1] if harm == "cut" else data[:-1] + bytes([data[-1] ^ 1]))
    shown = run_toolkit("doctor", "--data-dir", folder, "--deep")
    words = {"gone": "not there", "cut": "not whole", "changed": "damaged"}[harm]
    assert (shown.exit_code, words in shown.stdout) == (1, True), shown.stdout
    copied = run_toolkit("backup", folder.parent / "copy", "--data-dir", folder)
    assert (copied.exit_code, "are missing or damaged" in copied.stdout) == (1, True)


def flip(folder: Path, needle: bytes) -> None:
    """Destroy the page of the database in which something stands."""
    path = folder / "state.db"
    data = bytearray(path.read_bytes())
    at = data.rindex(needle) // 4096 * 4096
    data[at : at + 64] = os.urandom(64)
    path.write_bytes(data)


def test_a_damaged_database(folder: Path) -> None:
    """Given a page that is destroyed, then doctor says so, and --repair saves what can be read."""
    before = everything(folder)
    flip(folder, b"One line on mills")
    shown = run_toolkit("doctor", "--data-dir", folder)
    assert (shown.exit_code, "is damaged" in shown.stdout) == (1, True), shown.stdout
    assert "--repair would save all readable rows" in shown.stdout
    repaired = run_toolkit("doctor", "--data-dir", folder, "--repair")
    assert (repaired.exit_code, "Saved" in repaired.stdout) == (0, True), repaired.stdout
    assert list(folder.glob("state.db.damaged-*"))
    after = everything(folder)
    kept = [run for run in after["runs"] if run in before["runs"]]  # type: ignore[attr-defined, operator]
    assert kept or after["workflows"]
    assert after["artifacts"]
    with Client.local(folder, sandbox=True) as client:
        assert client.runs.create("llm.generate", {"objective": "Salt"}).wait().output


def test_a_database_that_is_none(folder: Path) -> None:
    """Given a database whose beginning is destroyed, then opening it is refused in one line."""
    path = folder / "state.db"
    path.write_bytes(os.urandom(4096) + path.read_bytes()[4096:])
    with pytest.raises(ServiceError) as failed:
        Client.local(folder, sandbox=True)
    assert "\n" not in str(failed.value)
    assert run_toolkit("doctor", "--data-dir", folder).exit_code == 1


def test_nothing_is_repaired_under_a_running_process(folder: Path, settings: Settings) -> None:
    """Given a directory that is open, then it may be examined, and not repaired."""
    with Client.local(settings=settings):
        assert run_toolkit("doctor", "--data-dir", folder).exit_code == 0
        shown = run_toolkit("doctor", "--data-dir", folder, "--repair")
        assert "stop it first" in str(shown.exception)


def test_leftovers_are_swept_up(folder: Path) -> None:
    """Given files that a crash left behind, then --repair deletes them, and nothing else."""
    before = everything(folder)
    old = time.time() - 7200
    for name in ("aa/.partial", "bb/" + "c" * 62):
        path = folder / "artifacts" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"left")
        os.utime(path, (old, old))
    (folder / "owners" / "0123456789abcdef.lock").touch()
    shown = run_toolkit("doctor", "--data-dir", folder)
    assert (shown.exit_code, "No record names 2 of the files" in shown.stdout) == (0, True)
    done = json.loads(say("doctor", "--data-dir", folder, "--repair", "--json"))["done"]
    assert done[0] == "Deleted 2 files that no record names."
    assert everything(folder) == before


def test_a_backup_is_a_directory_like_the_first(folder: Path) -> None:
    """Given a backup, then a client of it sees what a client of the first sees."""
    copy = folder.parent / "copy"
    shown = run_toolkit("backup", copy, "--data-dir", folder)
    assert shown.exit_code == 0, shown.stdout
    assert everything(copy) == everything(folder)
    assert run_toolkit("doctor", "--data-dir", copy, "--deep").exit_code == 0
    again = run_toolkit("backup", copy, "--data-dir", folder)
    assert "exists" in str(again.exception)


def test_a_backup_while_work_goes_on(settings: Settings, tmp_path: Path) -> None:
    """Given work under way, then the copy is of one moment, and what ran goes on in it."""
    faults = Faults()
    faults.add(Fault("minimax", delay_ms=20, times=None))
    copy = tmp_path / "copy"
    with Client.local(settings=settings, faults=faults) as client:
        flow, before = Workflow("long"), None
        for i in range(30):
            before = flow.add(
                f"n{i}",
                "llm.generate",
                objective=f"Line {i}",
                depends_on=[before] if before else [],
            )
        run = client.workflows.submit(flow)

        def count_completed() -> int:
            return sum(n.status == "completed" for n in client.workflows.get(run.id).nodes)

        wait_until(lambda: count_completed() >= 5)
        assert run_toolkit("backup", copy, "--data-dir", settings.data_dir).exit_code == 0
        shown = {n.id: n.artifact_id for n in run.wait().nodes}
    assert run_toolkit("doctor", "--data-dir", copy, "--deep").exit_code == 0
    with Client.local(copy, sandbox=True, take_up=True) as client:
        done = client.workflows.get(run.id).wait()
        theirs = {n.id: n.artifact_id for n in done.nodes}
    same = [node_id for node_id, artifact_id in shown.items() if theirs[node_id] == artifact_id]
    assert 5 <= len(same) < 30  # what had completed then; the rest was done in the copy


def test_prune_leaves_what_is_open(settings: Settings) -> None:
    """Given work that a process left when it died, then prune leaves it to be resumed."""
    from toolkit.contract.connections import ConnectionCreate
    from toolkit.contract.runs import RunCreate
    from toolkit.local import open_engine

    async def leave() -> str:
        faults = Faults()
        faults.add(Fault("minimax", mangle="hang", times=None))
        engine = await open_engine(settings, faults=faults)
        account, _ = await engine.accounts.open_local_account()
        context = RequestContext(account.id)
        pointer = ConnectionCreate(
            provider="minimax", connection_type="environment", secret_ref="MINIMAX_API_KEY"
        )
        await engine.connections.create(context, pointer)
        run = await engine.runs.create(
            context, RunCreate(name="llm.generate", input={"objective": "Tides"})
        )
        await wait_until_async(lambda: any("chat" in call.path for call in faults.calls))
        await kill_engine(engine)
        return run.id

    run_id = asyncio.run(leave())
    with closing(sqlite3.connect(settings.data_dir / "state.db")) as connection:
        connection.execute("UPDATE roots SET created_at = ?", (LONG_AGO,))
        connection.commit()
    shown = run_toolkit("doctor", "--data-dir", settings.data_dir)
    assert "An ended engine left 1 runs" in shown.stdout
    run_toolkit("prune", "--older-than", "1d", "--data-dir", settings.data_dir)
    with Client.local(settings=settings) as client:
        assert client.runs.get(run_id).wait().attempts[0].status == "interrupted"


@pytest.mark.parametrize("age", ["30", "d", "3y", "-1d"])
def test_what_is_no_age(folder: Path, age: str) -> None:
    """Given what is no age, then nothing is pruned."""
    assert run_toolkit("prune", f"--older-than={age}", "--data-dir", folder).exit_code == 2


@pytest.mark.parametrize(
    "command", [["capabilities"], ["runs", "--sandbox"], ["health"], ["usage"], ["keys"]]
)
def test_looking_makes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    """Given a folder without data, when something is only looked at, then it stays empty."""
    monkeypatch.chdir(tmp_path)
    shown = run_toolkit(*command)
    assert shown.exit_code == 0, shown.exception
    assert list(tmp_path.iterdir()) == []


def test_a_backup_in_what_it_copies(folder: Path) -> None:
    """Given a target in the directory itself, then it is refused, and nothing is made."""
    before = sorted(folder.rglob("*"))
    shown = run_toolkit("backup", folder / "copies" / "first", "--data-dir", folder)
    assert "another directory" in str(shown.exception)
    assert sorted(folder.rglob("*")) == before


def test_lists_owners_while_others_close(tmp_path: Path) -> None:
    """Given processes that close the store, then another one is still found to have it open."""

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
