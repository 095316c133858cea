"""CPU steps on a Dask cluster of processes: retried, cancelled, rejected, and without secrets."""

import asyncio
import base64
import logging
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support import worker_functions
from tests.support.dask_cluster import DaskCluster, start_worker
from tests.support.embedded import with_key
from tests.support.network_link import RecordingLink
from tests.support.timing import PATIENCE_S, wait_until, wait_until_async
from tests.support.worker_capability import WORK, load_work_registry
from toolkit import Client, Workflow
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.engine import Registry
from toolkit.engine.transport.dask_client import make_security
from toolkit.engine.transport.dask_connection import DaskConnection
from toolkit.engine.transport.dask_executor import DaskExecutor
from toolkit.engine.transport.driver import NO_HOOKS, Driver
from toolkit.engine.transport.worker_pool import WorkerPool
from toolkit.plugins import ProviderError, RunInProcess, run_in_process
from toolkit.sandbox import SANDBOX_KEYS
from toolkit.settings import Settings
from toolkit.workers.serialization import NotSerializableError

pytest.importorskip("distributed")
GIB = 1024**3


def make_executor(
    address: str,
    timeout_s: float = PATIENCE_S,
    *,
    scheduler_wait_s: float = PATIENCE_S,
    worker_wait_s: float = PATIENCE_S,
) -> DaskExecutor:
    """Make an executor whose limits of time are long by default."""
    connection = DaskConnection(address, make_security(address, None), scheduler_wait_s)
    local = WorkerPool(1, PATIENCE_S, None)
    return DaskExecutor(connection, local, timeout_s, None, worker_wait_s)


@pytest.fixture
async def executor(cluster: DaskCluster) -> AsyncIterator[DaskExecutor]:
    """An executor on the cluster."""
    executor = make_executor(cluster.address)
    yield executor
    await executor.aclose()


async def call(executor: DaskExecutor, function: Any, *args: object, **options: Any) -> Any:
    """Call a function on the cluster."""
    return await executor.dispatch(RunInProcess(function, args), "a", **options)


async def wait_for_text(path: Path) -> str:
    """Wait until a file has content, and return it."""
    await wait_until_async(lambda: path.exists() and path.read_text(), str(path))
    return path.read_text()


async def test_steps_run_on_the_cluster(executor: DaskExecutor) -> None:
    """Given steps, then they run in worker processes, with results and errors as locally."""
    assert await call(executor, worker_functions.double, 4) == 8
    parents = [call(executor, worker_functions.find_parent) for _ in range(8)]
    assert os.getpid() not in await asyncio.gather(*parents)
    content = bytes(300_000)
    assert await call(executor, base64.b64encode, content) == base64.b64encode(content)
    with pytest.raises(ValueError, match="not like this") as caught:
        await call(executor, worker_functions.refuse)
    assert "RefusedError" in caught.value.__notes__[0]
    with pytest.raises(NotSerializableError, match="argument of a worker process contains"):
        await call(executor, worker_functions.double, {3})
    with pytest.raises(NotSerializableError, match="result of a worker process contains"):
        await call(executor, worker_functions.answer_oddly)
    with pytest.raises(ProviderError, match="`die` died: it was terminated by SIGKILL"):
        await call(executor, worker_functions.die)
    local = RunInProcess(worker_functions.find_parent, here=True)
    assert await executor.dispatch(local, "a") == os.getpid()


async def test_ends_a_step_at_its_deadline_or_at_close(
    cluster: DaskCluster, tmp_path: Path
) -> None:
    """Given a step that never returns, then its deadline ends it, and so does closing."""
    hasty = make_executor(cluster.address, timeout_s=0.5)
    with pytest.raises(ProviderError, match=r"0\.5 s of `cpu_timeout_s`") as caught:
        await call(hasty, worker_functions.run_away, str(tmp_path / "first"))
    assert caught.value.code is ErrorCode.PROVIDER_TIMEOUT
    await hasty.aclose()
    patient = make_executor(cluster.address)
    task = asyncio.create_task(call(patient, worker_functions.run_away, str(tmp_path / "second")))
    pid = int(await wait_for_text(tmp_path / "second"))
    await patient.aclose()
    with pytest.raises(ProviderError, match="the engine was closed"):
        await task
    await wait_until_async(lambda: not Path(f"/proc/{pid}").exists(), "the process is gone")


async def test_repeats_a_step_after_a_restart_of_the_cluster(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Given a cluster that is killed and restarted, then the step runs there again.

    The log has one warning about it, and no traceback of Dask.
    """
    logging.getLogger("distributed.client").addHandler(caplog.handler)
    os.mkfifo(tmp_path / "gate")
    first = DaskCluster(workers=1).wait_until_ready()
    executor = make_executor(first.address)
    args = (str(tmp_path / "begun"), str(tmp_path / "gate"))
    task = asyncio.create_task(call(executor, worker_functions.begin_and_wait, *args))
    await wait_for_text(tmp_path / "begun")
    first.kill()
    (tmp_path / "begun").unlink()
    with DaskCluster(first.port, workers=1):
        await wait_for_text(tmp_path / "begun")
        await asyncio.to_thread((tmp_path / "gate").write_bytes, b"open")
        assert await task == "through"
        await executor.aclose()
    logging.getLogger("distributed.client").removeHandler(caplog.handler)
    (warning,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert warning.name == "toolkit.engine.transport.dask_connection"
    assert "does not answer: steps wait for it, up to" in warning.getMessage()


async def test_repeats_a_step_after_a_cut_connection(cluster: DaskCluster, tmp_path: Path) -> None:
    """Given a connection that is cut during a step, then it is cancelled and submitted again."""
    os.mkfifo(tmp_path / "gate")
    with RecordingLink(cluster.port) as proxy:
        executor = make_executor(f"tcp://127.0.0.1:{proxy.port}")
        args = (str(tmp_path / "begun"), str(tmp_path / "gate"))
        task = asyncio.create_task(call(executor, worker_functions.begin_and_wait, *args))
        first = int(await wait_for_text(tmp_path / "begun"))
        (tmp_path / "begun").unlink()
        proxy.drop()
        second = int(await wait_for_text(tmp_path / "begun"))
        assert first != second
        await wait_until_async(lambda: not Path(f"/proc/{first}").exists(), "it runs once")
        await asyncio.to_thread((tmp_path / "gate").write_bytes, b"open")
        assert await task == "through"
        await executor.aclose()


async def test_reports_the_address_of_a_scheduler_that_is_down() -> None:
    """Given no scheduler, then a step fails after the waiting time, and names the address."""
    executor = make_executor("tcp://127.0.0.1:9", scheduler_wait_s=0.0)
    with pytest.raises(
        ProviderError, match=r"scheduler at tcp://127\.0\.0\.1:9 does not"
    ) as caught:
        await call(executor, worker_functions.double, 4)
    assert caught.value.retryable
    await executor.aclose()


def test_chooses_a_worker_by_its_resources(
    cluster: DaskCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Given a capability that needs a GPU, then its step waits for a worker with a free GPU."""
    needy = replace(WORK, id="test.gpu", resources={"GPU": 1})
    registry = Registry.load(extra=[WORK, needy])
    with Client.local(
        tmp_path, sandbox=True, registry=registry, dispatch=cluster.dispatch
    ) as client:
        step = {"task": "find_parent"}
        waiting = client.runs.create("test.gpu", step)
        passing = client.runs.create("test.work", step).wait()
        wait_until(lambda: waiting.refresh().record.status_detail == "waiting_worker")
        assert "No worker of the Dask cluster" in caplog.text
        assert caplog.text.count("offers GPU=1: steps wait for such a worker") == 1
        with start_worker(cluster.address, "--resources", "GPU=1") as worker:
            assert waiting.wait().output["result"] == worker.pid
        assert passing.output["result"] != worker.pid


def test_chooses_a_worker_by_its_memory(cluster: DaskCluster, tmp_path: Path) -> None:
    """Given a step that needs more memory than the default, then a worker with it runs the step."""
    needy = replace(WORK, id="test.memory", resources={"memory": 2 * GIB})
    registry = Registry.load(extra=[WORK, needy])
    settings = Settings(dispatch=cluster.dispatch, cpu_memory_bytes=GIB // 2)
    use = {"task": "use_memory", "args": [GIB]}
    with (
        Client.local(tmp_path, sandbox=True, registry=registry, settings=settings) as client,
        start_worker(cluster.address, "--resources", f"memory={GIB}") as small,
    ):
        error = client.runs.create("test.work", use).wait(check=False).record.error
        assert error is not None
        assert "cpu_memory_bytes" in error.message
        waiting = client.runs.create("test.memory", {"task": "find_parent"})
        wait_until(lambda: waiting.refresh().record.status_detail == "waiting_worker")
        with start_worker(cluster.address, "--resources", f"memory={4 * GIB}") as large:
            assert waiting.wait().output["result"] == large.pid != small.pid
            assert client.runs.create("test.memory", use).wait().output["result"] == GIB


async def test_fails_a_step_without_a_suitable_worker(cluster: DaskCluster) -> None:
    """Given a resource that no worker has, then a step fails, and blocks no other steps."""
    waits: list[str | None] = []
    executor = make_executor(cluster.address, worker_wait_s=0.0)
    step = RunInProcess(worker_functions.double, (4,))
    with pytest.raises(ProviderError, match=r"offers FPGA=2, after 0 s") as caught:
        await executor.dispatch(step, "a", {"FPGA": 2}, waits.append)
    assert caught.value.code is ErrorCode.UNAVAILABLE
    assert not caught.value.retryable
    assert waits == ["waiting_worker", None]
    patient = make_executor(cluster.address)
    tasks = [
        asyncio.create_task(patient.dispatch(step, "a", {"FPGA": 2}, waits.append))
        for _ in range(20)
    ]
    await wait_until_async(lambda: waits.count("waiting_worker") > 20)
    assert await patient.dispatch(step, "a") == 8
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    await patient.aclose()
    await executor.aclose()


async def test_rejects_a_worker_of_another_version(
    executor: DaskExecutor, cluster: DaskCluster, tmp_path: Path
) -> None:
    """Given a worker with another version, then its steps fail with a message of one line."""
    folder = tmp_path / "capability_toolkit-9.9.9.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: capability-toolkit\nVersion: 9.9.9\n"
    )
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[3])])
    with (
        start_worker(cluster.address, "--resources", "OTHER=1", environment={"PYTHONPATH": path}),
        pytest.raises(ProviderError, match=r"has version 9\.9\.9 of the toolkit") as caught,
    ):
        await call(executor, worker_functions.double, 4, resources={"OTHER": 1})
    assert "\n" not in caught.value.message
    assert not caught.value.retryable


def test_sends_no_secret_to_a_worker(
    cluster: DaskCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given an engine with keys, then no data to or from a worker has a key."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-of-the-environment")
    wf = Workflow("card")
    picture = wf.add("picture", "image.generate", prompt="A lighthouse")
    wf.add("card", "composition.layout", title="Tides", depends_on=[picture])
    with RecordingLink(cluster.port) as proxy:
        dispatch = f"dask://127.0.0.1:{proxy.port}"
        with Client.local(tmp_path, sandbox=True, dispatch=dispatch) as client:
            key = client.api_keys.create(name="mine", scopes=["read", "write"]).api_key
            with with_key(client, key) as caller:
                assert caller.workflows.submit(wf).wait().status == "completed"
        passed = bytes(proxy.recorded)
    assert b"read_picture" in passed
    assert b"draw_card" in passed
    secrets = [key, "sk-test-of-the-environment", *SANDBOX_KEYS.values()]
    assert not [secret for secret in secrets if secret.encode() in passed]


async def test_runs_steps_of_vendors_on_no_worker(executor: DaskExecutor) -> None:
    """Given a flow of a vendor, which has a secret, then its steps run on no worker."""
    driver = Driver(lambda: httpx.MockTransport(lambda _: httpx.Response(200)), executor, 1_000)
    step = run_in_process(worker_functions.find_parent)
    assert await driver.run(step, NO_HOOKS, via="openai") == os.getpid()
    step = run_in_process(worker_functions.find_parent)
    assert await driver.run(step, NO_HOOKS) != os.getpid()
    await driver.aclose()


def test_retries_and_cancels_steps_of_a_client(cluster: DaskCluster, tmp_path: Path) -> None:
    """Given a client with a cluster, then lost steps run again, and cancelled steps end."""
    with Client.local(
        tmp_path, sandbox=True, registry=load_work_registry(), dispatch=cluster.dispatch
    ) as client:
        step = {"task": "lose_worker_once", "args": [str(tmp_path / "marker")]}
        assert client.runs.create("test.work", step).wait().status == "completed"
        pid_file = tmp_path / "pid"
        running = client.runs.create("test.work", {"task": "run_away", "args": [str(pid_file)]})
        pid = asyncio.run(wait_for_text(pid_file))
        running.cancel()
        wait_until(lambda: not Path(f"/proc/{pid}").exists())


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:8786", "dask://127.0.0.1", "dask://a:b", "dask://a:99999"]
)
def test_rejects_a_wrong_address(tmp_path: Path, address: str) -> None:
    """Given a text that is not the address of a Dask scheduler, then no engine opens."""
    with pytest.raises(RequestError) as caught:
        Client.local(tmp_path, sandbox=True, dispatch=address)
    assert caught.value.details[0].path == "dispatch"
    assert Settings(dispatch="dask://[::1]:8786").dispatch == "dask://[::1]:8786"
