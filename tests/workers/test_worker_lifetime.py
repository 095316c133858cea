"""Worker processes: prepared, kept and ended, with values that travel to them."""

import functools
import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.slow_capability import build_nap_workflow, load_slow_registry
from tests.support.timing import PATIENCE_S, wait_until, wait_until_async
from tests.support.worker_capability import load_work_registry
from tests.support.worker_functions import double
from toolkit import Client
from toolkit.contract.workflows import WorkflowCreate
from toolkit.engine.request_context import RequestContext
from toolkit.engine.transport import worker_pool
from toolkit.local import open_engine
from toolkit.plugins import run_in_process
from toolkit.settings import Settings
from toolkit.workers.process import WorkerProcess
from toolkit.workers.serialization import NotSerializableError, copy_value, get_function_name

ROOT = Path(__file__).parents[2]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """An engine with one worker."""
    settings = Settings(data_dir=tmp_path / "data", sandbox=True, cpu_workers=1)
    with Client.local(settings=settings, registry=load_work_registry()) as client:
        yield client


def wait_until_gone(pid: int) -> None:
    """Wait until a process has ended."""
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), f"{pid} is gone")


def test_a_cancelled_runaway_makes_room(client: Client, tmp_path: Path) -> None:
    """Given a runaway on the only worker, when it is cancelled, then the next run is served."""
    run = client.runs.create("test.work", {"task": "run_away", "args": [str(tmp_path / "pid")]})
    file = tmp_path / "pid"
    wait_until(lambda: file.exists() and file.read_text())
    run.cancel()
    after = client.runs.create("test.work", {"task": "double", "args": [4]}).wait(progress=False)
    assert after.output == {"result": 8}
    wait_until_gone(int(file.read_text()))


def test_a_deadline_ends_the_process_of_a_run(client: Client, tmp_path: Path) -> None:
    """Given a run with a deadline, then its process is ended at the deadline."""
    work = {"task": "run_away", "args": [str(tmp_path / "pid")]}
    run = client.runs.create("test.work", work, deadline_s=0.5).wait(progress=False, check=False)
    assert (run.status, run.error.code) == ("failed", "PROVIDER_TIMEOUT")
    if (tmp_path / "pid").exists():
        wait_until_gone(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("die", "The worker process that ran `die` died: it was terminated by SIGKILL."),
        ("answer_oddly", "The result of a worker process contains a set: only"),
        ("no such task", "`run_task.<locals>.<lambda>` cannot run in a worker process, as it"),
    ],
)
def test_reports_a_failed_worker_process(client: Client, task: str, message: str) -> None:
    """Given work whose process dies or cannot be sent, then the error of the run says so."""
    run = client.runs.create("test.work", {"task": task}).wait(progress=False, check=False)
    assert run.error.code == "INTERNAL"
    assert run.error.message.startswith(message)


SCRIPT = """
import os, sys
from pathlib import Path
print("the script runs", flush=True)
from tests.support.timing import wait_until
from tests.support.worker_capability import load_work_registry
from toolkit import Client
client = Client.local(sys.argv[1], sandbox=True, registry=load_work_registry())
run = client.runs.create("test.work", {"task": "double", "args": [4]}).wait(progress=False)
print(run.output["result"], flush=True)
client.runs.create("test.work", {"task": "run_away", "args": [sys.argv[2]]})
wait_until(lambda: Path(sys.argv[2]).exists() and Path(sys.argv[2]).read_text())
"""


@pytest.mark.parametrize(
    ("last_line", "status"), [("", 0), ("os.kill(os.getpid(), 9)", -signal.SIGKILL)]
)
def test_a_program_s_end_is_its_workers_end(last_line: str, status: int, tmp_path: Path) -> None:
    """Given a script with a runaway, when it ends or is killed, then no worker process is left."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT + last_line, encoding="utf-8")
    program = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "data"), str(tmp_path / "pid")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert (program.returncode, program.stderr) == (status, "")
    assert program.stdout == "the script runs\n8\n"
    wait_until_gone(int((tmp_path / "pid").read_text()))


# Runs in a process of its own, because other tests keep their worker processes as children.
FRESH_KERNEL = """
import sys, time
from pathlib import Path
from toolkit import Client

def list_children():
    tasks = Path("/proc/self/task").glob("*/children")
    return {pid for task in tasks for pid in task.read_text().split()}

def has_loaded(pid):
    return "PIL/_imaging" in Path(f"/proc/{pid}/maps").read_text()

deadline = time.monotonic() + float(sys.argv[2])
with Client.local(sys.argv[1], sandbox=True) as client:
    while not any(map(has_loaded, before := list_children())):
        assert time.monotonic() < deadline, "no worker process loads what draws cards"
    client.runs.create("composition.layout", {"title": "Tea"}).wait(progress=False)
    assert list_children() == before, "the card was drawn by another process"
"""


def test_a_worker_is_ready_before_the_first_card(tmp_path: Path) -> None:
    """Given an engine that was just opened, then a worker can draw a card."""
    process = subprocess.run(
        [sys.executable, "-c", FRESH_KERNEL, str(tmp_path), str(PATIENCE_S)],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
    )
    assert process.returncode == 0, process.stderr


async def test_a_workflow_starts_the_worker_of_its_card(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a workflow whose card comes last, when it is accepted, then a worker is started."""
    workers: list[WorkerProcess] = []

    def start_worker(memory_bytes: int) -> WorkerProcess:
        workers.append(WorkerProcess(memory_bytes))
        return workers[-1]

    monkeypatch.setattr(worker_pool, "WorkerProcess", start_worker)
    engine = await open_engine(settings, registry=load_slow_registry())
    account, _ = await engine.accounts.open_local_account()
    context = RequestContext(account.id)
    flow = build_nap_workflow(1, 60)
    flow.add("card", "composition.layout", title="Tea", depends_on=["n0"])
    workflow = await engine.workflows.create(context, WorkflowCreate.model_validate(flow.to_dict()))
    await wait_until_async(lambda: workers and workers[0].pid)
    assert {node.status for node in workflow.nodes} <= {"pending", "queued", "running"}
    await engine.close(0)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.binary()

PLAIN = st.recursive(
    SCALARS | st.text(st.characters()),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(st.characters(), max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)


@settings(max_examples=60)
@example(["\ud800", math.inf, 10**4000])
@given(value=PLAIN)
def test_plain_values_arrive_unchanged(value: Any) -> None:
    """Given any plain value, then it arrives equal, and each part keeps its type."""
    arrived = copy_value(value, "argument")
    assert arrived == value
    assert repr(arrived) == repr(value)


NESTED: list[Any] = functools.reduce(lambda inner, _: [inner], range(5000), [])


class Text(str):
    """A subclass, whose type would be lost."""


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (object(), "contains a object"),
        ([{"a": {1}}], "contains a set"),
        ({1: "a"}, "a key of type int"),
        (Text("a"), "contains a Text"),
        (bytearray(b"a"), "contains a bytearray"),
        pytest.param(10**5000, "cannot be sent", id="long"),
        pytest.param(NESTED, "nested too deeply", id="deep"),
    ],
)
def test_names_a_value_that_is_not_plain(value: object, message: str) -> None:
    """Given any other value, then the error names its type in one line."""
    with pytest.raises(NotSerializableError, match=message) as caught:
        copy_value(value, "argument")
    assert "\n" not in str(caught.value)


def create_function(module: str, name: str) -> Any:
    """Create a function that claims to be another function of a module."""

    def work() -> None: ...

    work.__module__, work.__qualname__ = module, name
    return work


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: 3, "it has no name in"),
        (create_function("__main__", "work"), "of a script or notebook"),
        (create_function(double.__module__, "double"), "refers to another object"),
        (functools.partial(double, 3), "A partial cannot run"),
        ([].append, "refers to another object|cannot run"),
        (json.JSONDecoder().decode, "A method cannot run"),
        (dict, "A type cannot run"),
    ],
)
def test_rejects_functions_without_a_name(function: Any, message: str) -> None:
    """Given a function that another process cannot find, then the error says so in one line."""
    with pytest.raises(NotSerializableError, match=message) as caught:
        next(run_in_process(function))
    assert "\n" not in str(caught.value)


def test_functions_of_modules_have_names() -> None:
    """Given a function of a module, also a built-in function, then it is found by both names."""
    assert get_function_name(double) == ("tests.support.worker_functions", "double")
    assert get_function_name(math.sqrt) == ("math", "sqrt")


def test_a_step_runs_without_an_engine() -> None:
    """Given a step without an engine, then it runs in place, with the same checks of its values."""
    step: Any = next(run_in_process(divmod, 7, 2))
    assert step.run() == (3, 1)
