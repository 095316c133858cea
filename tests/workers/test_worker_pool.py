"""The pool of worker processes: fair turns, deadlines, replacement of dead workers, clean end."""

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
    """A pool of one worker with a long deadline."""
    pool = WorkerPool(1, PATIENCE_S, None)
    yield pool
    await pool.aclose()


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A named pipe, from which `wait_for` reads until the test writes to it."""
    os.mkfifo(tmp_path / "gate")
    return tmp_path / "gate"


async def do(pool: WorkerPool, function: Any, *args: object, account: str = "a") -> Any:
    """Have a worker call a function."""
    return await pool.dispatch(RunInProcess(function, args), account)


async def test_starts_one_worker_and_keeps_it(pool: WorkerPool) -> None:
    """Given no work, then there is no process; given some, then the same process does all of it."""
    assert pool.pids == []
    first = await do(pool, os.getpid)
    assert first != os.getpid()
    assert await do(pool, os.getpid) == first
    assert pool.pids == [first]


async def test_prepares_a_worker(pool: WorkerPool) -> None:
    """Given functions that are announced twice, then one process has loaded their modules."""
    pool.prepare([])
    assert not pool.pids
    for _ in range(2):
        pool.prepare([measure_mp3_ms])
    assert await do(pool, worker_functions.has_loaded, measure_mp3_ms.__module__)
    assert pool.pids == [await do(pool, os.getpid)]


async def test_a_pool_may_be_closed_while_it_prepares(pool: WorkerPool) -> None:
    """Given a pool that is closed while it prepares a worker, then no process is left."""
    pool.prepare([measure_mp3_ms])
    await pool.aclose()
    await wait_until_async(lambda: not pool.pids)


async def test_a_worker_has_lower_priority_than_its_parent(pool: WorkerPool) -> None:
    """Given too few cores, then the process that answers requests runs first."""
    assert await do(pool, os.nice, 0) == min(19, os.nice(0) + 10)


async def test_a_runaway_is_ended_at_its_deadline(tmp_path: Path) -> None:
    """Given a runaway, then it fails at its deadline with a hint, and its process is gone."""
    pool = WorkerPool(1, 0.5, None)
    with pytest.raises(ProviderError, match=r"0\.5 s of `cpu_timeout_s`") as caught:
        await do(pool, worker_functions.run_away, str(tmp_path / "pid"))
    assert (caught.value.code, caught.value.retryable) == (ErrorCode.PROVIDER_TIMEOUT, False)
    assert pool.pids == []
    await pool.aclose()


async def test_interrupts_a_step_at_its_own_deadline_and_keeps_its_worker(
    pool: WorkerPool,
) -> None:
    """Given a step of Python code with a short deadline, then its worker serves the next step."""
    first = await do(pool, os.getpid)
    step = RunInProcess(worker_functions.spin, timeout_s=0.2)
    with pytest.raises(ProviderError) as caught:
        await pool.dispatch(step, "a")
    assert caught.value.code is ErrorCode.PROVIDER_TIMEOUT
    await wait_until_async(lambda: pool.pids)
    assert pool.pids == [await do(pool, os.getpid)]
    assert first in pool.pids


async def test_an_interrupt_leaves_no_half_loaded_module(pool: WorkerPool, tmp_path: Path) -> None:
    """Given a step that is interrupted amid an import, then a later step has the whole module."""
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


async def test_a_deadline_counts_the_time_on_a_core(pool: WorkerPool, gate: Path) -> None:
    """Given a step that gets no core until its deadline is over, then it is not interrupted."""
    step = RunInProcess(worker_functions.wait_for, (str(gate),), timeout_s=0.1)
    answer = asyncio.ensure_future(pool.dispatch(step, "a"))
    await asyncio.wait([answer], timeout=0.3)
    assert not answer.done()
    await asyncio.to_thread(gate.write_bytes, b"open")
    await answer


async def test_replaces_a_worker_that_dies(pool: WorkerPool) -> None:
    """Given a worker that dies, then its step fails as retryable, and a new worker serves."""
    with pytest.raises(ProviderError, match="`die` died: it was terminated by SIGKILL") as caught:
        await do(pool, worker_functions.die)
    assert (caught.value.code, caught.value.retryable) == (ErrorCode.INTERNAL, True)
    first = await do(pool, os.getpid)
    os.kill(first, signal.SIGKILL)
    # Wait for its end without reaping it, so that the pool finds a dead worker.
    await asyncio.to_thread(os.waitid, os.P_PID, first, os.WEXITED | os.WNOWAIT)
    assert await do(pool, os.getpid) != first


def write_to_stdin(pid: int) -> None:
    """Write to the pipe that carries a worker's requests, which may raise a late signal."""
    Path(f"/proc/{pid}/fd/0").write_bytes(b"more")


def terminate(pid: int) -> None:
    """Send the signal by which a service manager stops each process."""
    os.kill(pid, signal.SIGTERM)


@pytest.mark.parametrize("disturb", [write_to_stdin, terminate])
async def test_a_signal_ends_no_work(gate: Path, disturb: Callable[[int], None]) -> None:
    """Given a worker at work, then neither SIGTERM nor data in its pipe ends the work."""
    worker = WorkerProcess(0)
    call = (worker_functions.__name__, "wait_for", [str(gate)], PATIENCE_S)
    answer = asyncio.create_task(asyncio.to_thread(worker.call_function, *call))
    with await asyncio.to_thread(gate.open, "wb") as pipe:  # opens when the worker reads
        assert worker.pid is not None
        disturb(worker.pid)
        pipe.write(b"open")
    assert await answer == {"value": None}
    worker.kill()
    worker.join()


async def test_accounts_take_turns(pool: WorkerPool, gate: Path, tmp_path: Path) -> None:
    """Given a full pool and many steps of one account, then another account's step runs second."""
    order: list[str] = []

    async def run_step(account: str) -> None:
        await do(pool, worker_functions.double, 4, account=account)
        order.append(account)

    second_gate = tmp_path / "second"
    os.mkfifo(second_gate)
    first, second = [
        asyncio.create_task(do(pool, worker_functions.wait_for, str(path), account=name))
        for name, path in (("a", gate), ("c", second_gate))
    ]
    await yield_turns()
    steps = [asyncio.create_task(run_step("a")) for _ in range(8)]
    await yield_turns()
    steps.append(asyncio.create_task(run_step("b")))
    await yield_turns()
    await asyncio.to_thread(gate.write_bytes, b"open")
    await asyncio.gather(first, *steps)
    assert order.index("b") == 1
    await asyncio.to_thread(second_gate.write_bytes, b"open")
    await second


async def test_full_pool_of_one_account_does_not_delay_another(
    pool: WorkerPool, gate: Path
) -> None:
    """Given an account whose endless steps fill the pool, then another account takes its turn."""
    endless = [
        asyncio.create_task(do(pool, worker_functions.wait_for, str(gate))) for _ in range(3)
    ]
    await yield_turns()
    async with asyncio.timeout(PATIENCE_S / 4):
        assert await do(pool, worker_functions.double, 4, account="b") == 8
    for task in endless:
        task.cancel()
    await asyncio.wait(endless)


async def test_reports_the_time_that_a_step_waits_for_a_slot(pool: WorkerPool, gate: Path) -> None:
    """Given a full pool, then a step reports its wait when it starts or is cancelled."""
    waits: list[float] = []
    step = RunInProcess(worker_functions.wait_for, (str(gate),))
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


async def test_close_ends_running_work(pool: WorkerPool, tmp_path: Path) -> None:
    """Given a pool that is closed in mid-work, then the process is gone and the work fails."""
    task = asyncio.create_task(do(pool, worker_functions.run_away, str(tmp_path / "pid")))
    file = tmp_path / "pid"
    await wait_until_async(lambda: file.exists() and file.read_text())
    await pool.aclose()
    with pytest.raises(ProviderError, match="SIGKILL"):
        await task
    assert not Path(f"/proc/{file.read_text()}").exists()


async def test_prints_of_a_function_do_not_disturb_messages(pool: WorkerPool) -> None:
    """Given a function that uses stdout and stdin, then its answer and later answers arrive."""
    assert await do(pool, worker_functions.chatter) == ""
    assert await do(pool, worker_functions.double, 4) == 8


async def test_no_secret_is_in_a_worker_s_environment(
    pool: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given keys and settings in the environment, then a worker process has none of them."""
    for name in ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "TOOLKIT_ALLOW_ENV", "PGPASSWORD"):
        monkeypatch.setenv(name, "sk-test-none-of-theirs")
    names = await do(pool, worker_functions.environment)
    assert "PATH" in names
    assert not [n for n in names if "KEY" in n or "PASS" in n or n.startswith("TOOLKIT")]


async def test_limits_the_memory_of_a_worker() -> None:
    """Given work that exceeds the memory limit, then its error names the setting."""
    pool = WorkerPool(1, PATIENCE_S, 256 * 1024**2)
    with pytest.raises(ProviderError, match="cpu_memory_bytes") as caught:
        await do(pool, worker_functions.use_memory, 1024**3)
    assert caught.value.retryable is False
    assert await do(pool, worker_functions.use_memory, 1024) == 1024
    await pool.aclose()


async def test_errors_arrive_with_their_traceback(pool: WorkerPool) -> None:
    """Given a function that raises, then the nearest built-in error arrives, with its traceback."""
    with pytest.raises(ValueError, match="not like this") as caught:
        await do(pool, worker_functions.refuse)
    assert "RefusedError" in caught.value.__notes__[0]
    with pytest.raises(RuntimeError, match="gone"):
        await do(pool, worker_functions.leave)
    with pytest.raises(NotSerializableError, match="argument of a worker process contains"):
        await do(pool, worker_functions.double, {3})
    assert await do(pool, worker_functions.double, 4) == 8
