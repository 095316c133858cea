"""Batches on workers elsewhere: Dask's and an executor's, which all ask one engine."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.batch.conftest import PROCESSES, Write, run_batch
from tests.conftest import Server
from tests.support.dask_cluster import DaskCluster, clean_environment
from tests.support.timing import PATIENCE_S, wait_until
from toolkit import Client, batch
from toolkit.batch.remote.row import RowRequest
from toolkit.batch.remote.task import run_row
from toolkit.cli import app
from toolkit.contract.errors import RequestError, ServiceError
from toolkit.settings import Settings

pytest.importorskip("distributed")

ASK = """
from toolkit import Client, batch
client = Client()
first = client.runs.create("llm.generate", {"objective": f"A line on {x}"}).wait()
"""
# The parent of the process that kernels are forked from is the worker.
LOSE_WORKER = """
import os, signal
from pathlib import Path
marker = Path(folder, "lost")
if x == 1 and not marker.exists():
    marker.write_text("lost")
    stat = Path(f"/proc/{os.getppid()}/stat").read_text()
    os.kill(int(stat.rpartition(")")[2].split()[1]), signal.SIGKILL)
    signal.pause()
"""
GO_ON = """
second = client.runs.create("llm.generate", {"objective": f"A line on {x}"}).wait()
batch.record("runs", [first.id, second.id])
"""

# The parent of a kernel is what it was forked from, whose parent is a worker of the cluster.
LIST_FORKED_FROM = """
import os, time
import psutil
from toolkit import batch
def list_zygotes():
    cluster = psutil.Process(os.getppid()).parent().parent()
    found = [one for one in cluster.children(recursive=True) if is_zygote(one)]
    return [one.pid for one in found if not is_zygote(one.parent())]
def is_zygote(process):
    return any(word.endswith("_zygote.py") for word in process.cmdline())
give_up = time.monotonic() + 30
while len(list_zygotes()) < 2 and time.monotonic() < give_up:
    pass
batch.record("zygotes", list_zygotes())
batch.record("own", os.getppid())
"""


def start_command(
    notebook: Path, grid: str, *options: str, server: Mapping[str, str] | None = None
) -> "subprocess.Popen[str]":
    """Start `toolkit batch` in a process of its own, beside its notebook.

    Args:
        notebook: its notebook.
        grid: as YAML.
        options: more of them.
        server: variables of the server that it asks; none for an engine of its own.
    """
    own = [] if server else ["--sandbox", "--data-dir", "data"]
    (notebook.parent / "grid.yaml").write_text(grid)
    command = [sys.executable, "-m", "toolkit", "batch", str(notebook), "--grid", "grid.yaml"]
    return subprocess.Popen(
        [*command, "--out", "out", *own, *options],
        cwd=notebook.parent,
        env={**clean_environment(), **(server or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("carrier", ["dask", "executor"])
def test_a_lost_worker_s_notebook_is_resumed_and_nothing_is_paid_twice(
    carrier: str, cluster: DaskCluster, notebook: Write, tmp_path: Path
) -> None:
    """Given a worker that is killed after a paid call, then another one has the same answer."""
    path = notebook("x: int = 1\nfolder = ''", ASK, LOSE_WORKER, GO_ON)
    workers = {"dask": cluster.address} if carrier == "dask" else {"executor": PROCESSES}
    table = run_batch(path, {"x": [1, 2, 3], "folder": [str(tmp_path)]}, **workers)
    assert set(table["status"]) == {"completed"}, list(table["error"])
    assert (tmp_path / "lost").exists()
    told = {run for runs in table["runs"] for run in runs}
    assert len(told) == 6
    with Client.local(tmp_path / "data", sandbox=True) as client:
        runs = list(client.runs.list())
    assert {run.id for run in runs} == told  # and no others, which a second call would be
    assert "sk_live_" not in "".join(one.read_text() for one in (tmp_path / "out").iterdir())


# One kills its worker each time, some others kill theirs once, as a machine does that is out of
# memory.
KILL_WORKERS = """
import os, signal
from pathlib import Path
marker = Path(folder, f"lost-{x}")
if x == 7 or (x in (3, 14) and not marker.exists()):
    marker.write_text("lost")
    stat = Path(f"/proc/{os.getppid()}/stat").read_text()
    os.kill(int(stat.rpartition(")")[2].split()[1]), signal.SIGKILL)
    signal.pause()
"""


def test_one_that_kills_its_workers_is_the_only_one_that_fails(
    notebook: Write, tmp_path: Path
) -> None:
    """Given a pool that breaks again and again, then the notebook that breaks it alone fails."""
    path = notebook("x: int = 1\nfolder = ''", KILL_WORKERS)
    (tmp_path / "grid.yaml").write_text(f"x: {list(range(20))}\nfolder: {tmp_path}")
    where = ["--out", str(tmp_path / "out"), "--sandbox", "--data-dir", str(tmp_path / "data")]
    given = [str(path), "--grid", str(tmp_path / "grid.yaml"), "--executor", PROCESSES, "--json"]
    shown = CliRunner().invoke(app, ["batch", *given, *where])
    assert shown.exit_code == 1, shown.stderr
    (failed,) = [row for row in json.loads(shown.stdout)["rows"] if row["status"] != "completed"]
    assert failed["parameters"]["x"] == 7
    assert "The worker was lost at 3 attempts" in failed["error"]
    assert "\n" not in failed["error"]
    assert {one.name for one in tmp_path.glob("lost-*")} == {"lost-3", "lost-7", "lost-14"}


def test_one_engine_has_one_cache_and_its_key_is_stored_nowhere(
    cluster: DaskCluster, notebook: Write, tmp_path: Path
) -> None:
    """Given two notebooks that ask for the same, then the second is free; no key is left."""
    path = notebook(
        "x: int = 1",
        "from toolkit import Client, batch\nrun = Client(cache=True).runs.create(\n"
        "    'llm.generate', {'objective': 'On salt'}).wait()\n"
        "batch.record('cached', run.record.cached)",
    )
    table = run_batch(path, {"x": [1, 2]}, workers=1, dask=cluster.address)
    assert sorted(table["cached"]) == [False, True]
    with Client.local(tmp_path / "data", sandbox=True) as client:
        assert not list(client.api_keys.list())


def test_a_key_that_a_server_lends_expires(
    cluster: DaskCluster, notebook: Write, tmp_path: Path
) -> None:
    """Given a batch that asks a server and is killed, then its key expires within a week."""
    path = notebook(
        "x: int = 1",
        "import os, signal\nfrom toolkit import Client\nClient().info()\n"
        "open('began', 'w').write(str(os.getpid()))\nsignal.pause()",
    )
    with closing(Server(Settings(data_dir=tmp_path / "served", sandbox=True))) as server:
        with Client(server.url, "") as nobody:
            key = nobody.account.create("batch@example.org").api_key
        variables = {"TOOLKIT_BASE_URL": server.url, "TOOLKIT_API_KEY": key}
        running = start_command(path, "x: [1]", "--dask", cluster.address, server=variables)
        wait_until(lambda: (tmp_path / "began").exists(), "it has begun")
        running.kill()
        running.communicate(timeout=PATIENCE_S)
        with Client(server.url, key) as client:
            kept = [one.record for one in client.api_keys.list()]
    (left,) = [one for one in kept if one.name == "toolkit batch"]
    assert left.expires_at is not None
    assert left.expires_at - left.created_at < timedelta(days=7, minutes=1)
    assert left.revoked_at is None


def test_all_workers_get_ready_at_once(cluster: DaskCluster, notebook: Write) -> None:
    """Given one notebook, then two workers are prepared for it, and what they started ends."""
    path = notebook("x: int = 1", LIST_FORKED_FROM)
    table = run_batch(path, {"x": [1]}, dask=cluster.address)
    (zygotes,), (own,) = table["zygotes"], table["own"]
    assert len(zygotes) == 2  # of one kind: what was prepared is what the kernel came from
    assert own in zygotes
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in zygotes), "they end")


@pytest.mark.usefixtures("heed_interrupts")
def test_a_stop_reaches_the_kernels(cluster: DaskCluster, notebook: Write, tmp_path: Path) -> None:
    """Given Ctrl-C, then the kernel on the worker is ended, and the rest was not run."""
    path = notebook(
        "x: int = 1",
        "import os, signal\nopen(f'began', 'w').write(str(os.getpid()))\nsignal.pause()",
    )
    running = start_command(path, "x: [1, 2, 3]", "--dask", cluster.address, "--workers", "1")
    began = tmp_path / "began"
    wait_until(lambda: began.exists() and began.read_text())
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 130
    wait_until(lambda: not Path(f"/proc/{began.read_text()}").exists(), "the kernel is gone")
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["counts"]["not run"] == 3


def test_what_cannot_be_used_is_refused(notebook: Write, tmp_path: Path) -> None:
    """Given workers that there are not, then nothing runs, and one line says why."""
    path = notebook("x: int = 1")
    given: dict[str, Any] = {"out": tmp_path / "out", "progress": False}
    with pytest.raises(RequestError, match="give only one"):
        batch.run(path, {"x": [1]}, dask="127.0.0.1:9", executor=PROCESSES, **given)
    for wrong in ("tests.support.nothing:there", "os:no_such", "os"):
        with pytest.raises(RequestError, match=f"The executor `{wrong}`"):
            batch.run(path, {"x": [1]}, executor=wrong, **given)
    with pytest.raises(ServiceError, match="cannot listen on"):
        batch.run(
            path, {"x": [1]}, executor=PROCESSES, host="192.0.2.1", data_dir=tmp_path, **given
        )
    assert not list((tmp_path / "out").glob("*.ipynb"))


def test_a_batch_waits_for_no_worker_for_ever(
    notebook: Write, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given a cluster without workers, and then no cluster, a batch says so at once, and ends."""
    monkeypatch.setenv("TOOLKIT_WORKER_WAIT_S", "0")
    monkeypatch.setenv("TOOLKIT_SCHEDULER_WAIT_S", "0")
    path = notebook("x: int = 1")
    with (
        DaskCluster(workers=0) as cluster,
        pytest.raises(ServiceError, match="none joined in 0 s"),
    ):
        run_batch(path, {"x": [1]}, dask=cluster.address)
    assert "has no worker; notebooks wait up to 0 s" in capsys.readouterr().err
    with pytest.raises(ServiceError, match=r"scheduler at tcp://127\.0\.0\.1:9 does not"):
        run_batch(path, {"x": [1]}, dask="127.0.0.1:9")


def test_a_worker_of_another_version_runs_no_notebook() -> None:
    """Given a batch of another version, then its notebook is refused in one line."""
    asked = RowRequest(
        version="9.9.9",
        batch_id="b",
        notebook="{}",
        parameters={},
        name="n",
        came_from="n",
        kernel="python3",
        preload=(),
        timeout=None,
        folder=os.getcwd(),
        environment={},
        fork=True,
        renew_after=1,
    )
    answer = json.loads(run_row(asked.to_json()))
    assert "has version" in answer["refusal"]
    assert "9.9.9" in answer["refusal"]
    assert "\n" not in answer["refusal"]
