"""The embedded engine: in a running loop, twice on one directory, interrupted and resumed."""

import asyncio
import gc
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.support.embedded import get_thread, make_transport
from tests.support.slow_capability import load_slow_registry
from tests.support.timing import PATIENCE_S, wait_until, wait_until_async
from toolkit import (
    AsyncClient,
    Client,
    Run,
    ServiceError,
    ServiceTimeoutError,
    ToolkitError,
    WorkError,
    Workflow,
)
from toolkit.capabilities import load_capabilities
from toolkit.settings import Settings


async def test_sync_calls_work_inside_a_running_loop(settings: Settings) -> None:
    """Given a running loop, as in Jupyter, then sync calls work."""
    assert asyncio.get_running_loop().is_running()
    with Client.local(settings=settings) as client:
        assert client.runs.create("research.gather", {"topic": "Tea"}).wait().status == "completed"


async def test_async_client_runs_a_workflow(settings: Settings) -> None:
    """Given AsyncClient, then a workflow is submitted and awaited."""
    async with AsyncClient.local(settings=settings) as client:
        wf = Workflow("w")
        wf.add("facts", "research.gather", topic="Tea")
        submitted = await client.workflows.submit(wf)
        assert (await submitted.wait()).status == "completed"
        assert await client.capabilities.list().count() == len(load_capabilities())


def test_wait_is_the_same_without_progress(settings: Settings) -> None:
    """Given runs that end, fail or continue, then waiting without progress has the same result."""
    with Client.local(settings=settings, registry=load_slow_registry()) as client:
        for progress in (False, "lines"):
            run = client.runs.create("test.nap", {"seconds": 0.01}).wait(progress=progress)
            assert run.record == client.runs.get(run.id).record
            assert run.output == {"seconds": 0.01}
            failing = client.runs.create("test.nap", {"seconds": 0, "fails": True})
            with pytest.raises(WorkError, match="Woken too early"):
                failing.wait(progress=progress)
            lasting = client.runs.create("test.nap", {"seconds": 60})
            with pytest.raises(ServiceTimeoutError):
                lasting.wait(0.01, progress=progress)
            assert lasting.cancel().wait(progress=progress, check=False).status == "cancelled"


@pytest.mark.parametrize("name", ["nothing", "too_large", "large", "small"])
def test_uploads_are_the_same_without_http(name: str, tmp_path: Path) -> None:
    """Given files of any size, then an upload has the same result with and without HTTP."""
    sizes = {"nothing": 0, "too_large": 1_000_001, "large": 1_000_000, "small": 10}
    content = bytes(sizes[name])
    (tmp_path / "file").write_bytes(content)
    settings = Settings(data_dir=tmp_path / "data", sandbox=True, upload_limit_bytes=1_000_000)
    with Client.local(settings=settings) as client:
        assert client.access.api_key is not None
        key = client.access.api_key.get_secret_value()
        over_http = Client("http://engine.invalid", key, transport=make_transport(client))
        outcomes = [
            upload_and_describe(caller, source)
            for caller in (client, over_http)
            for source in (content, tmp_path / "file")
        ]
        over_http.close()
    assert outcomes == outcomes[:1] * 4


def upload_and_describe(client: Client, source: bytes | Path) -> object:
    """Return the artifact of an upload with its bytes, or the error that rejected it."""
    try:
        artifact = client.artifacts.upload(source)
    except ToolkitError as error:
        return type(error), error.code, error.message, error.details
    return artifact.sha256, artifact.media_type, artifact.content()


def chain(nodes: int) -> Workflow:
    """Build a chain of texts."""
    wf = Workflow("chain")
    last = wf.add("n0", "llm.generate", objective="Line 0 on tea")
    for i in range(1, nodes):
        last = wf.add(f"n{i}", "llm.generate", objective=f"Line {i} on tea", depends_on=[last])
    return wf


def test_two_engines_share_a_directory_without_repeating_work(settings: Settings) -> None:
    """Given two engines on a directory, then both can follow the work, and it is done once."""
    with Client.local(settings=settings) as first, Client.local(settings=settings) as second:
        submitted = [first.workflows.submit(chain(5)), second.workflows.submit(chain(5))]
        for submission, client in zip(submitted, (second, first), strict=True):
            workflow = client.workflows.get(submission.id).wait()
            assert workflow.status == "completed"
            jobs = [first.jobs.get(node.job_id or "").record for node in workflow.nodes]
            assert [len(job.attempts) for job in jobs] == [1] * 5


def test_import_loads_no_heavy_package() -> None:
    """Given `import toolkit`, then it loads no heavy package, and all its names exist."""
    code = (
        "import sys, toolkit; heavy = {'pandas', 'fastapi', 'sqlalchemy', 'pydantic'};"
        "assert not heavy & set(sys.modules); [getattr(toolkit, n) for n in toolkit.__all__]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_reports_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    """Given a file in place of the directory, then the error is a `ServiceError`."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(ServiceError) as refused:
        Client.local(tmp_path / "file" / "data", sandbox=True)
    assert refused.value.code.name == "UNAVAILABLE"


class HeldWork:
    """Work that continues until it is cancelled."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.cancelled = threading.Event()

    async def hold(self) -> None:
        """Wait until cancelled."""
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


@pytest.mark.usefixtures("heed_interrupts")
def test_interrupt_cancels_the_call(tmp_path: Path) -> None:
    """Given a thread that waits for a call, when it is interrupted, then the call is cancelled."""
    work, main = HeldWork(), threading.get_ident()

    def interrupt() -> None:
        work.begun.wait(PATIENCE_S)
        signal.pthread_kill(main, signal.SIGINT)

    with Client.local(tmp_path, sandbox=True) as client:
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            get_thread(client).call(work.hold())
        assert work.cancelled.wait(PATIENCE_S)


async def test_cancelled_task_cancels_the_call(tmp_path: Path) -> None:
    """Given a task that waits for a call, when it is cancelled, then the call is cancelled."""
    work = HeldWork()
    with Client.local(tmp_path, sandbox=True) as client:
        task = asyncio.ensure_future(get_thread(client).await_call(work.hold()))
        await wait_until_async(work.begun.is_set)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert work.cancelled.wait(PATIENCE_S)


def test_abandoned_stream_ends_silently(tmp_path: Path) -> None:
    """Given a stream that is not read to its end, when its engine closes, then no log appears."""
    with Client.local(tmp_path, sandbox=True) as client:
        run = client.runs.create("llm.generate", {"objective": "A verse on tides"}, stream=True)
        pieces = run.stream()
        next(pieces)
    del pieces  # makes Python close the stream
    gc.collect()


def complete_run(folder: Path) -> Run:
    """Create a run by a client without a name."""
    return Client.local(folder, sandbox=True).runs.create(
        "llm.generate", {"objective": "A verse on tides"}
    )


def test_handle_keeps_its_engine_open(tmp_path: Path) -> None:
    """Given a run of a client that is out of scope, then it can be awaited, read and streamed."""
    run = complete_run(tmp_path)
    gc.collect()
    assert run.wait(PATIENCE_S).status == "completed"
    assert run.output["text"]
    assert run.events()[-1].terminal


def test_resource_keeps_its_engine_open(tmp_path: Path) -> None:
    """Given a resource of a client without a name, then it creates and lists."""
    runs = Client.local(tmp_path, sandbox=True).runs
    gc.collect()
    created = runs.create("llm.generate", {"objective": "A verse on tides"}).wait(PATIENCE_S)
    assert [run.id for run in runs.list()] == [created.id]


def test_page_keeps_its_engine_open(tmp_path: Path) -> None:
    """Given records of a list whose client is out of scope, then each handle still works."""
    complete_run(tmp_path).wait(PATIENCE_S)
    (run,) = Client.local(tmp_path, sandbox=True).runs.list()
    gc.collect()
    assert run.events()[-1].terminal


def test_engine_closes_with_its_last_handle(tmp_path: Path) -> None:
    """Given no more clients and handles, then the engine is closed and its thread ends."""
    run = complete_run(tmp_path)
    run.wait(PATIENCE_S)
    engines = [t for t in threading.enumerate() if t.name == "toolkit-engine"]
    assert engines
    del run
    gc.collect()
    wait_until(lambda: not any(thread.is_alive() for thread in engines), "the engine's end")
