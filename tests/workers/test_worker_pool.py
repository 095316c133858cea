"""The pool of worker processes: in turns, with an end, replaced when one dies, gone at the end."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import worker_functions
from tests.support.timing import PATIENCE_S, Watch, wait_until_async, yield_turns
from toolkit.contract.errors import ErrorCode
from toolkit.engine.transport.worker_pool import WorkerPool
from toolkit.media.sounds import measure_mp3_ms
from toolkit.plugins import ProviderError, RunInProcess
from toolkit.workers.process import WorkerProcess
from toolkit.workers.serialization import NotSerializableError


@pytest.fixture
async def pool() -> AsyncIterator[WorkerPool]:
    """One worker, and all the time that there is."""
    made = WorkerPool(1, PATIENCE_S, None)
    yield made
    await made.aclose()


async def do(pool: WorkerPool, function: Any, *args: object, account: str = "a") -> Any:
    """Have a function called."""
    return await pool.dispatch(RunInProcess(function, args), account)


async def is_there(path: Path) -> str:
    """Wait until a file has something in it."""
    await wait_until_async(lambda: path.exists() and path.read_text())
    return path.read_text()


async def test_a_worker_is_kept(pool: WorkerPool) -> None:
    """Given no work, there is no process; given some, one that does it all."""
    assert pool.pids == []
    first = await do(pool, os.getpid)
    assert first != os.getpid()
    assert await do(pool, os.getpid) == first
    assert pool.pids == [first]


async def test_a_worker_can_be_there_before_it_is_needed(pool: WorkerPool) -> None:
    """Given functions that will be asked for, then one process has their modules by then."""
    pool.prepare([])
    assert not pool.pids
    for _ in range(2):
        pool.prepare([measure_mp3_ms])
    assert await do(pool, worker_functions.has_loaded, measure_mp3_ms.__module__)
    assert pool.pids == [await do(pool, os.getpid)]


async def test_a_pool_may_be_closed_while_it_prepares() -> None:
    """Given a pool that is closed at once, then nothing is left of what it prepared."""
    pool = WorkerPool(1, PATIENCE_S, None)
    pool.prepare([measure_mp3_ms])
    await pool.aclose()
    await wait_until_async(lambda: not pool.pids)


async def test_a_worker_goes_behind_its_parent(pool: WorkerPool) -> None:
    """Given too few cores, then whoever answers requests has them first."""
    assert await do(pool, os.nice, 0) == min(19, os.nice(0) + 10)


async def test_a_runaway_is_ended_at_its_deadline(tmp_path: Path) -> None:
    """Given work that takes too long, it fails with what to do, and its process is gone."""
    pool = WorkerPool(1, 0.5, None)
    with pytest.raises(ProviderError, match=r"0\.5 s of `cpu_timeout_s`") as caught:
        await do(pool, worker_functions.run_away, str(tmp_path / "pid"))
    assert (caught.value.code, caught.value.retryable) == (ErrorCode.PROVIDER_TIMEOUT, False)
    assert pool.pids == []
    await pool.aclose()


async def test_interrupts_a_step_at_its_own_deadline_and_keeps_its_worker(
    pool: WorkerPool,
) -> None:
    """Given a step of Python code with a short deadline, its worker serves the next step."""
    first = await do(pool, os.getpid)
    step = RunInProcess(worker_functions.spin, timeout_s=0.2)
    with pytest.raises(ProviderError) as caught:
        await pool.dispatch(step, "a")
    assert caught.value.code is ErrorCode.PROVIDER_TIMEOUT
    await wait_until_async(lambda: pool.pids)
    assert pool.pids == [await do(pool, os.getpid)]
    assert first in pool.pids


async def test_an_interrupt_leaves_no_half_of_a_module(pool: WorkerPool, tmp_path: Path) -> None:
    """Given a step that is interrupted amid an import, then the next one has the whole module."""
    package = tmp_path / "slow_package"
    package.mkdir()
    busy = "import slow_package.part, time\nwhile time.process_time() < {}:\n    pass\n"
    used_s = 0.5 + (await do(pool, time.process_time))
    (package / "__init__.py").write_text(busy.format(used_s), encoding="utf-8")
    (package / "part.py").write_text("import slow_package\nslow_package.helper = 1\n")
    args = (str(tmp_path), "slow_package", "helper")
    with pytest.raises(ProviderError) as caught:
        await pool.dispatch(RunInProcess(worker_functions.import_from, args, timeout_s=0.1), "a")
    assert caught.value.code is ErrorCode.PROVIDER_TIMEOUT
    assert await do(pool, worker_functions.import_from, *args)


async def test_a_deadline_counts_the_time_on_a_core(pool: WorkerPool, tmp_path: Path) -> None:
    """Given a step that gets no core until its deadline is over, then it is not ended."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    step = RunInProcess(worker_functions.wait_for, (str(gate),), timeout_s=0.1)
    answer = asyncio.ensure_future(pool.dispatch(step, "a"))
    await asyncio.wait([answer], timeout=0.3)
    assert not answer.done()
    await asyncio.to_thread(gate.write_bytes, b"open")
    await answer


async def test_a_worker_that_dies_is_replaced(pool: WorkerPool) -> None:
    """Given a worker that dies, its step fails and may be tried again; the next has a new one."""
    with pytest.raises(ProviderError, match="`die` died: it was terminated by SIGKILL") as caught:
        await do(pool, worker_functions.die)
    assert (caught.value.code, caught.value.retryable) == (ErrorCode.INTERNAL, True)
    first = await do(pool, os.getpid)
    os.kill(first, signal.SIGKILL)
    # It has ended, and nobody was told.
    await asyncio.to_thread(os.waitid, os.P_PID, first, os.WEXITED | os.WNOWAIT)
    assert await do(pool, os.getpid) != first  # nobody sees that one died while it was idle


def send_more(pid: int) -> None:
    """Write to the pipe that a worker is asked through: a kernel may tell of that too late."""
    Path(f"/proc/{pid}/fd/0").write_bytes(b"more")


def stop(pid: int) -> None:
    """Do to a worker what stopping a service does to each of its processes."""
    os.kill(pid, signal.SIGTERM)


@pytest.mark.parametrize("disturb", [send_more, stop])
async def test_a_signal_ends_no_work(tmp_path: Path, disturb: Callable[[int], None]) -> None:
    """Given a worker at work, then neither a signal to all processes nor one of a pipe ends it."""
    os.mkfifo(tmp_path / "gate")
    worker = WorkerProcess(0)
    asked = asyncio.create_task(
        asyncio.to_thread(
            worker.call_function,
            "tests.support.worker_functions",
            "wait_for",
            [str(tmp_path / "gate")],
            PATIENCE_S,
        )
    )
    with await asyncio.to_thread((tmp_path / "gate").open, "wb") as gate:  # it is at work
        assert worker.pid is not None
        disturb(worker.pid)
        gate.write(b"open")
    assert (await asked) == {"value": None}
    worker.kill()
    worker.join()


async def test_accounts_take_turns(pool: WorkerPool, tmp_path: Path) -> None:
    """Given a full pool and many steps of one account, another account's step is the second."""
    os.mkfifo(tmp_path / "gate")
    done: list[str] = []

    async def one(account: str, number: int) -> None:
        await do(pool, worker_functions.double, number, account=account)
        done.append(account)

    os.mkfifo(tmp_path / "other")
    gates = [
        asyncio.create_task(do(pool, worker_functions.wait_for, str(tmp_path / path), account=name))
        for name, path in (("a", "gate"), ("c", "other"))
    ]
    await yield_turns()
    many = [asyncio.create_task(one("a", number)) for number in range(8)]
    await yield_turns()
    many.append(asyncio.create_task(one("b", 0)))
    await yield_turns()
    await asyncio.to_thread((tmp_path / "gate").write_bytes, b"open")
    await asyncio.gather(gates[0], *many)
    assert done.index("b") == 1
    await asyncio.to_thread((tmp_path / "other").write_bytes, b"open")
    await gates[1]


async def test_full_pool_of_one_account_does_not_delay_another(
    pool: WorkerPool, tmp_path: Path
) -> None:
    """Given an account whose steps fill the pool and never end, another account is served."""
    os.mkfifo(tmp_path / "gate")
    endless = [
        asyncio.create_task(do(pool, worker_functions.wait_for, str(tmp_path / "gate")))
        for _ in range(3)
    ]
    await yield_turns()
    async with asyncio.timeout(PATIENCE_S / 4):
        assert await do(pool, worker_functions.double, 4, account="b") == 8
    for task in endless:
        task.cancel()
    await asyncio.wait(endless)


async def test_reports_the_time_that_a_step_waits_for_a_slot(
    pool: WorkerPool, tmp_path: Path
) -> None:
    """Given a full pool, a step reports its wait when it starts, or when it is cancelled."""
    os.mkfifo(tmp_path / "gate")
    waits: list[float] = []
    step = RunInProcess(worker_functions.wait_for, (str(tmp_path / "gate"),))
    tasks = [
        asyncio.create_task(pool.dispatch(step, "a", on_queued=waits.append)) for _ in range(2)
    ]
    watch = Watch()
    await wait_until_async(lambda: watch.measure_elapsed_s() > 0.05)
    assert len(waits) == 1
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert waits[0] < 0.05 <= waits[1]


async def test_close_ends_what_runs(tmp_path: Path) -> None:
    """Given a pool that is closed in the middle of work, its process is gone, the work fails."""
    pool = WorkerPool(1, PATIENCE_S, None)
    task = asyncio.create_task(do(pool, worker_functions.run_away, str(tmp_path / "pid")))
    pid = int(await is_there(tmp_path / "pid"))
    await pool.aclose()
    with pytest.raises(ProviderError, match="SIGKILL"):
        await task
    assert not Path(f"/proc/{pid}").exists()


async def test_what_work_prints_gets_in_no_message_s_way(pool: WorkerPool) -> None:
    """Given work that writes to stdout and reads stdin, its answer arrives, and the next one."""
    assert await do(pool, worker_functions.chatter) == ""
    assert await do(pool, worker_functions.double, 4) == 8


async def test_no_secret_is_in_a_worker_s_environment(
    pool: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given keys and settings in the environment, a worker has none of them, but can run."""
    for name in ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "TOOLKIT_ALLOW_ENV", "PGPASSWORD"):
        monkeypatch.setenv(name, "sk-test-none-of-theirs")
    names = await do(pool, worker_functions.environment)
    assert "PATH" in names
    assert not [n for n in names if "KEY" in n or "PASS" in n or n.startswith("TOOLKIT")]


async def test_memory_has_a_limit() -> None:
    """Given work that wants more memory than it may have, it fails and says so."""
    pool = WorkerPool(1, PATIENCE_S, 256 * 1024**2)
    with pytest.raises(ProviderError, match="cpu_memory_bytes") as caught:
        await do(pool, worker_functions.use_memory, 1024**3)
    assert caught.value.retryable is False
    assert await do(pool, worker_functions.use_memory, 1024) == 1024
    await pool.aclose()


async def test_errors_arrive(pool: WorkerPool) -> None:
    """Given work that raises, its error arrives as the nearest built-in one, with its traceback."""
    with pytest.raises(ValueError, match="not like this") as caught:
        await do(pool, worker_functions.refuse)
    assert "RefusedError" in caught.value.__notes__[0]
    with pytest.raises(RuntimeError, match="gone"):
        await do(pool, worker_functions.leave)
    with pytest.raises(NotSerializableError, match="result of a worker process contains a s"):
        await do(pool, worker_functions.answer_oddly)
    with pytest.raises(NotSerializableError, match="argument of a worker process contains"):
        await do(pool, worker_functions.double, {3})
    assert await do(pool, worker_functions.double, 4) == 8
