"""The embedded engine: in a running loop, twice on one directory, left and taken up again."""

import asyncio
import gc
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.support.embedded import get_thread, make_transport
from tests.support.slow_capability import build_nap_workflow, load_slow_registry
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


async def test_plain_calls_work_inside_a_running_loop(settings: Settings) -> None:
    """Given Jupyter's situation, a loop that runs, then sync calls work all the same."""
    assert asyncio.get_running_loop().is_running()
    with Client.local(settings=settings) as client:
        assert client.runs.create("research.gather", {"topic": "Tea"}).wait().status == "completed"


async def test_the_async_client_offers_the_same(settings: Settings) -> None:
    """Given AsyncClient, then a workflow is submitted and awaited."""
    async with AsyncClient.local(settings=settings) as client:
        wf = Workflow("w")
        wf.add("facts", "research.gather", topic="Tea")
        submitted = await client.workflows.submit(wf)
        assert (await submitted.wait()).status == "completed"
        assert await client.capabilities.list().count() == len(load_capabilities())


def test_who_does_not_look_waits_alike(settings: Settings) -> None:
    """Given runs that end, fail or go on, then a wait without progress ends as one with it."""
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
def test_files_go_in_as_over_http(name: str, tmp_path: Path) -> None:
    """Given files of any size, then what comes of an upload is the same without HTTP as with it."""
    sizes = {"nothing": 0, "too_large": 1_000_001, "large": 1_000_000, "small": 10}
    content = bytes(sizes[name])
    (tmp_path / "file").write_bytes(content)
    settings = Settings(data_dir=tmp_path / "data", sandbox=True, upload_limit_bytes=1_000_000)
    with Client.local(settings=settings) as client:
        assert client.access.api_key is not None
        key = client.access.api_key.get_secret_value()
        over_http = Client("http://engine.invalid", key, transport=make_transport(client))
        told = [
            tell_outcome(asked, source)
            for asked in (client, over_http)
            for source in (content, tmp_path / "file")
        ]
        over_http.close()
    assert told == told[:1] * 4


def tell_outcome(client: Client, source: bytes | Path) -> object:
    """What comes of an upload: the artifact's bytes, piece by piece, or how it was refused."""
    try:
        kept = client.artifacts.upload(source)
    except ToolkitError as error:
        return type(error), error.code, error.message, error.details
    return kept.sha256, kept.media_type, kept.content()


def chain(nodes: int) -> Workflow:
    """Texts in a row."""
    wf = Workflow("chain")
    last = wf.add("n0", "llm.generate", objective="Line 0 on tea")
    for i in range(1, nodes):
        last = wf.add(f"n{i}", "llm.generate", objective=f"Line {i} on tea", depends_on=[last])
    return wf


def test_a_new_kernel_finds_what_was_running(settings: Settings) -> None:
    """Given a workflow left in the middle, when a new engine opens, then it goes on to its end."""
    first = Client.local(settings=settings)
    workflow_id = first.workflows.submit(chain(30)).id
    first.close()
    with Client.local(settings=settings) as second:
        done = second.workflows.get(workflow_id).wait()
        assert done.status == "completed"
        jobs = [second.jobs.get(node.job_id or "").record for node in done.nodes]
        assert all(len(job.attempts) <= 2 for job in jobs)
        assert sum(len(job.attempts) == 2 for job in jobs) <= 1


def test_two_engines_on_one_directory_share_and_do_not_repeat(settings: Settings) -> None:
    """Given two engines on a directory, then either can follow the work, and it is done once."""
    with Client.local(settings=settings) as one, Client.local(settings=settings) as two:
        submitted = [one.workflows.submit(chain(5)), two.workflows.submit(chain(5))]
        for mine, other in zip(submitted, (two, one), strict=True):
            done = other.workflows.get(mine.id).wait()
            assert done.status == "completed"
            jobs = [one.jobs.get(node.job_id or "").record for node in done.nodes]
            assert [len(job.attempts) for job in jobs] == [1] * 5


def test_a_cancel_reaches_the_engine_that_works(settings: Settings) -> None:
    """Given work in one engine, when it is cancelled through another, then it ends."""
    plugins = load_slow_registry()
    with (
        Client.local(settings=settings, registry=plugins) as one,
        Client.local(settings=settings, registry=plugins) as two,
    ):
        workflow_id = one.workflows.submit(build_nap_workflow(2, seconds=30)).id
        two.workflows.get(workflow_id).cancel()
        done = one.workflows.get(workflow_id).wait(timeout=20, check=False)
        assert done.status == "cancelled"


def test_importing_is_light() -> None:
    """Given `import toolkit`, then nothing heavy comes with it, and its names are all there."""
    code = (
        "import sys, toolkit; heavy = {'pandas', 'fastapi', 'sqlalchemy', 'pydantic'};"
        "assert not heavy & set(sys.modules); [getattr(toolkit, n) for n in toolkit.__all__]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_directory_that_cannot_be_made_is_said_in_one_line(tmp_path: Path) -> None:
    """Given a file where the directory should be, then the error is one of ours."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(ServiceError) as refused:
        Client.local(tmp_path / "file" / "data", sandbox=True)
    assert refused.value.code.name == "UNAVAILABLE"


class HeldWork:
    """Work that goes on until it is cancelled."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.cancelled = threading.Event()

    async def hold(self) -> None:
        """Hold on."""
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


@pytest.mark.usefixtures("heed_interrupts")
def test_an_interrupt_cancels_the_call(tmp_path: Path) -> None:
    """Given a thread that waits for the engine, when it is interrupted, then so is the call."""
    work, main = HeldWork(), threading.get_ident()

    def interrupt() -> None:
        work.begun.wait(PATIENCE_S)
        signal.pthread_kill(main, signal.SIGINT)

    with Client.local(tmp_path, sandbox=True) as client:
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            get_thread(client).call(work.hold())
        assert work.cancelled.wait(PATIENCE_S)


async def test_a_cancelled_task_cancels_the_call(tmp_path: Path) -> None:
    """Given a task that waits for the engine, when it is cancelled, then so is the call."""
    work = HeldWork()
    with Client.local(tmp_path, sandbox=True) as client:
        task = asyncio.ensure_future(get_thread(client).await_call(work.hold()))
        await wait_until_async(work.begun.is_set)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert work.cancelled.wait(PATIENCE_S)


def test_a_stream_that_is_left_lying_ends_in_silence(tmp_path: Path) -> None:
    """Given a stream that nobody reads on, when its engine has closed, then no fault is told."""
    with Client.local(tmp_path, sandbox=True) as client:
        run = client.runs.create("llm.generate", {"objective": "A verse on tides"}, stream=True)
        pieces = run.stream()
        next(pieces)
    del pieces  # which has Python close it
    gc.collect()


def complete_run(folder: Path) -> Run:
    """Start a run by a client that has no name."""
    return Client.local(folder, sandbox=True).runs.create(
        "llm.generate", {"objective": "A verse on tides"}
    )


def test_a_handle_keeps_its_engine(tmp_path: Path) -> None:
    """Given a run of a client that is out of scope, then it is waited for, read and streamed."""
    run = complete_run(tmp_path)
    gc.collect()
    assert run.wait(PATIENCE_S).status == "completed"
    assert run.output["text"]
    assert run.events()[-1].terminal


def test_a_resource_keeps_its_engine(tmp_path: Path) -> None:
    """Given a resource of a client without a name, then it creates and lists."""
    runs = Client.local(tmp_path, sandbox=True).runs
    gc.collect()
    made = runs.create("llm.generate", {"objective": "A verse on tides"}).wait(PATIENCE_S)
    assert [run.id for run in runs.list()] == [made.id]


def test_a_page_keeps_its_engine(tmp_path: Path) -> None:
    """Given records of a list whose client is out of scope, then each is still a handle."""
    complete_run(tmp_path).wait(PATIENCE_S)
    (run,) = Client.local(tmp_path, sandbox=True).runs.list()
    gc.collect()
    assert run.events()[-1].terminal


def test_the_engine_closes_with_the_last_of_its_handles(tmp_path: Path) -> None:
    """Given no client and no handle any more, then the engine is closed and its thread ends."""
    run = complete_run(tmp_path)
    run.wait(PATIENCE_S)
    engines = [t for t in threading.enumerate() if t.name == "toolkit-engine"]
    assert engines
    del run
    gc.collect()
    wait_until(lambda: not any(thread.is_alive() for thread in engines), "the engine's end")
