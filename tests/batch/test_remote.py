"""Batches on remote workers, of Dask or of an executor, which share one engine."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from tests.batch.conftest import PROCESSES, Write, run_batch
from tests.conftest import Server
from tests.support.commands import run_toolkit
from tests.support.dask_cluster import DaskCluster, clean_environment
from tests.support.timing import PATIENCE_S, wait_until
from toolkit import Client
from toolkit.batch.remote.row import RowRequest
from toolkit.batch.remote.task import run_row
from toolkit.contract.errors import RequestError, ServiceError

pytest.importorskip("distributed")

ASK = """
from toolkit import Client, batch
client = Client()
first = client.runs.create("llm.generate", {"objective": f"A line on {x}"}).wait()
"""
# The parent of a kernel is its zygote, whose parent is the worker. The worker dies for each x of
# `always`, and once for each x of `once`, like on a machine without memory.
KILL_WORKER = """
import os, signal
from pathlib import Path
marker = Path(folder, f"lost-{x}")
if x in always or (x in once and not marker.exists()):
    marker.write_text("lost")
    stat = Path(f"/proc/{os.getppid()}/stat").read_text()
    os.kill(int(stat.rpartition(")")[2].split()[1]), signal.SIGKILL)
    signal.pause()
"""
ASK_AGAIN = """
second = client.runs.create("llm.generate", {"objective": f"A line on {x}"}).wait()
batch.record("runs", [first.id, second.id])
"""

# Records the zygotes of all workers of the cluster.
LIST_ZYGOTES = """
import os, time
import psutil
from toolkit import batch
def list_zygotes():
    cluster = psutil.Process(os.getppid()).parent().parent()
    zygotes = [child for child in cluster.children(recursive=True) if is_zygote(child)]
    return [zygote.pid for zygote in zygotes if not is_zygote(zygote.parent())]
def is_zygote(process):
    return any(word.endswith("_zygote.py") for word in process.cmdline())
deadline = time.monotonic() + 30
while len(list_zygotes()) < 2 and time.monotonic() < deadline:
    pass
batch.record("zygotes", list_zygotes())
batch.record("parent", os.getppid())
"""


PARAMETERS = "x: int = 1\nfolder = ''\nalways: list = []\nonce: list = []"
HANG = "import os, signal\nopen('pid', 'w').write(str(os.getpid()))\nsignal.pause()"


def start_command(
    notebook: Path, grid: str, cluster: DaskCluster, server: Mapping[str, str] | None = None
) -> "subprocess.Popen[str]":
    """Start `toolkit batch` in another process, and wait until a notebook hangs.

    Args:
        notebook: path of the notebook, which ends with `HANG`.
        grid: the grid as YAML.
        cluster: cluster whose workers run the notebook.
        server: variables that name a server. Default: the batch has its own engine.
    """
    folder = notebook.parent
    (folder / "grid.yaml").write_text(grid)
    options = ["--grid", "grid.yaml", "--out", "out", "--dask", cluster.address, "--workers", "1"]
    options += [] if server else ["--sandbox", "--data-dir", "data"]
    process = subprocess.Popen(
        [sys.executable, "-m", "toolkit", "batch", str(notebook), *options],
        cwd=folder,
        env={**clean_environment(), **(server or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: (folder / "pid").exists() and (folder / "pid").read_text())
    return process


@pytest.mark.parametrize("carrier", ["dask", "executor"])
def test_resumes_the_notebook_of_a_lost_worker_without_paying_twice(
    carrier: str, cluster: DaskCluster, notebook: Write, tmp_path: Path
) -> None:
    """Given a worker that is killed after a paid call, then the next worker gets its result."""
    path = notebook(PARAMETERS, ASK, KILL_WORKER, ASK_AGAIN)
    workers = {"dask": cluster.address} if carrier == "dask" else {"executor": PROCESSES}
    grid = [{"x": x, "folder": str(tmp_path), "once": [1]} for x in (1, 2, 3)]
    table = run_batch(path, grid, **workers)
    assert set(table["status"]) == {"completed"}, list(table["error"])
    assert (tmp_path / "lost-1").exists()
    recorded_ids = {run_id for run_ids in table["runs"] for run_id in run_ids}
    assert len(recorded_ids) == 6
    with Client.local(tmp_path / "data", sandbox=True) as client:
        assert {run.id for run in client.runs.list()} == recorded_ids
        assert not list(client.api_keys.list())
    assert "sk_live_" not in "".join(file.read_text() for file in (tmp_path / "out").iterdir())


def test_fails_only_the_notebook_that_kills_its_workers(notebook: Write, tmp_path: Path) -> None:
    """Given a pool that breaks repeatedly, then only the notebook that breaks it fails."""
    grid = f"x: {list(range(20))}\nfolder: {tmp_path}\nalways: [[7]]\nonce: [[3, 14]]"
    (tmp_path / "grid.yaml").write_text(grid)
    options = ["--grid", tmp_path / "grid.yaml", "--executor", PROCESSES, "--json", "--sandbox"]
    options += ["--out", tmp_path / "out", "--data-dir", tmp_path / "data"]
    result = run_toolkit("batch", notebook(PARAMETERS, KILL_WORKER), *options)
    assert result.exit_code == 1, result.stderr
    rows = json.loads(result.stdout)["rows"]
    (row,) = [row for row in rows if row["status"] != "completed"]
    assert row["parameters"]["x"] == 7
    assert "The worker was lost at 3 attempts" in row["error"]
    assert "\n" not in row["error"]
    assert {file.name for file in tmp_path.glob("lost-*")} == {"lost-3", "lost-7", "lost-14"}


def test_a_key_that_a_server_lends_expires(
    cluster: DaskCluster, notebook: Write, server: Server
) -> None:
    """Given a batch of a server that is killed, then its key expires within a week."""
    key = server.sign_up()
    path = notebook("x: int = 1", f"from toolkit import Client\nClient().info()\n{HANG}")
    variables = {"TOOLKIT_BASE_URL": server.url, "TOOLKIT_API_KEY": key}
    process = start_command(path, "x: [1]", cluster, variables)
    process.kill()
    process.communicate(timeout=PATIENCE_S)
    with Client(server.url, key) as client:
        records = [api_key.record for api_key in client.api_keys.list()]
    (record,) = [record for record in records if record.name == "toolkit batch"]
    assert record.expires_at is not None
    assert record.expires_at - record.created_at < timedelta(days=7, minutes=1)
    assert record.revoked_at is None


def test_prepares_all_workers_at_once(cluster: DaskCluster, notebook: Write) -> None:
    """Given one notebook, then two workers prepare zygotes, which end with the batch."""
    table = run_batch(notebook("x: int = 1", LIST_ZYGOTES), {"x": [1]}, dask=cluster.address)
    (zygotes,), (parent,) = table["zygotes"], table["parent"]
    assert len(zygotes) == 2
    assert parent in zygotes
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in zygotes), "they end")


@pytest.mark.usefixtures("heed_interrupts")
def test_ctrl_c_ends_remote_kernels(cluster: DaskCluster, notebook: Write, tmp_path: Path) -> None:
    """Given Ctrl-C, then the kernel on the worker ends, and the other rows are not run."""
    process = start_command(notebook("x: int = 1", HANG), "x: [1, 2, 3]", cluster)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    pid = (tmp_path / "pid").read_text()
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the kernel is gone")
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["counts"]["not run"] == 3


def test_rejects_unusable_workers(notebook: Write, tmp_path: Path) -> None:
    """Given workers that do not exist, then nothing runs, and the error says why."""
    path, grid = notebook("x: int = 1"), {"x": [1]}
    with pytest.raises(RequestError, match="give only one"):
        run_batch(path, grid, dask="127.0.0.1:9", executor=PROCESSES)
    for executor in ("tests.support.nothing:there", "os:no_such", "os"):
        with pytest.raises(RequestError, match=f"The executor `{executor}`"):
            run_batch(path, grid, executor=executor)
    with pytest.raises(ServiceError, match="cannot listen on"):
        run_batch(path, grid, executor=PROCESSES, host="192.0.2.1")
    assert not list((tmp_path / "out").glob("*.ipynb"))


def test_limits_the_wait_for_workers(
    notebook: Write, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given a cluster without workers, or no cluster, then a batch fails after its limit."""
    monkeypatch.setenv("TOOLKIT_WORKER_WAIT_S", "0")
    path = notebook("x: int = 1")
    with (
        DaskCluster(workers=0) as cluster,
        pytest.raises(ServiceError, match="none joined in 0 s"),
    ):
        run_batch(path, {"x": [1]}, dask=cluster.address)
    assert "has no worker; notebooks wait up to 0 s" in capsys.readouterr().err
    monkeypatch.setenv("TOOLKIT_SCHEDULER_WAIT_S", "0")
    with pytest.raises(ServiceError, match=r"scheduler at tcp://127\.0\.0\.1:9 does not"):
        run_batch(path, {"x": [1]}, dask="127.0.0.1:9")


def test_a_worker_rejects_a_notebook_of_another_version() -> None:
    """Given a batch of another version, then a worker rejects its notebook in one line."""
    request = RowRequest(
        version="9.9.9", batch_id="b", notebook="{}", parameters={}, name="n", came_from="n",
        kernel="python3", preload=(), timeout=None, folder=os.getcwd(), environment={}, fork=True,
    )  # fmt: skip
    refusal = json.loads(run_row(request.to_json()))["refusal"]
    assert "has version" in refusal
    assert "9.9.9" in refusal
    assert "\n" not in refusal
