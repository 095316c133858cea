"""Functions of the caller's process as nodes: `wf.add("clean", clean, depends_on=[…])`."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.conftest import Server
from tests.support.embedded import get_thread, with_key
from tests.support.process_kill import kill_engine
from tests.support.timing import PATIENCE_S, wait_until
from toolkit import AsyncClient, Client, Workflow
from toolkit.contract.errors import ErrorCode, RequestError, WorkError
from toolkit.functions.table import MAX_RECENT
from toolkit.settings import Settings

FRAME = pd.DataFrame({"text": ["tea", None, "salt"], "share": [0.1 + 0.2, 1.0, np.nan]})


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client with its own engine, and simulated vendors."""
    with Client.local(tmp_path_factory.mktemp("data"), sandbox=True) as client:
        yield client


def _submit(client: Client, wf: Workflow) -> Any:
    return client.workflows.submit(wf).wait(progress=False, check=False)


def _run(client: Client, function: Callable[..., object], **options: Any) -> Any:
    """Run a workflow of one function, and return its node."""
    wf = Workflow("one")
    wf.add("one", function, **options)
    return _submit(client, wf)["one"]


def test_passes_results_to_later_nodes(client: Client) -> None:
    """Given functions and a capability, then each gets the results of earlier nodes."""
    wf = Workflow("mixed", max_cost_usd=1.0)
    raw = wf.add("raw-rows", lambda: FRAME)
    clean = wf.add(
        "clean", lambda raw_rows, limit: raw_rows.dropna()[:limit], depends_on=[raw], limit=5
    )
    count = wf.add(
        "count", lambda clean: {"n": len(clean), "sum": clean["share"].sum()}, clean=clean
    )

    async def describe(count: dict[str, int]) -> str:
        await asyncio.to_thread(str)
        return f"There are {count['n']} rows."

    text = wf.add("text", describe, depends_on=[count])
    copy = wf.add("copy", "llm.generate", objective="Say it better", depends_on=[text])
    wf.add(
        "all", lambda parts, **extra: [len(parts), *extra], parts=[text, copy], depends_on=[count]
    )

    run = _submit(client, wf)

    assert run.status == "completed"
    pd.testing.assert_frame_equal(run["raw-rows"].value, FRAME)
    pd.testing.assert_frame_equal(run["clean"].value, FRAME.dropna())
    assert run["count"].value == {"n": 1, "sum": 0.1 + 0.2}
    assert run["count"].output["value"] == run["count"].value
    assert run["text"].text == "There are 1 rows."
    assert run["all"].value == [2, "count"]
    assert client.workflows.get(run.id)["clean"].depends_on == ["raw-rows"]
    job = client.jobs.get(run["copy"].job_id)
    assert job.input["from_artifacts"] == {"text": run["text"].artifact_id}


def test_a_function_costs_nothing_and_needs_no_provider(client: Client) -> None:
    """Given a function, then its node and events are those of any node, at no cost."""
    wf = Workflow("free", provider="openai", max_cost_usd=0.0)
    wf.add("one", lambda: b"\x89PNG\r\n\x1a\n")

    run = _submit(client, wf)

    node = run["one"]
    assert (run.status, node.cost_usd, node.provider) == ("completed", 0, None)
    assert node.artifact.media_type == "image/png"
    assert [event.type for event in client.workflows.events(run.id)] == [
        "workflow.queued", "workflow.running", "node.queued", "node.running", "node.completed",
        "workflow.completed",
    ]  # fmt: skip


def test_stores_no_code(tmp_path: Path) -> None:
    """Given a function that ran, then no file of the data directory contains its code."""

    def keep_secret() -> int:
        canary_of_the_code = 1
        return canary_of_the_code + 1

    with Client.local(tmp_path, sandbox=True) as client:
        assert _run(client, keep_secret, cache=True).value == 2

    for file in tmp_path.rglob("*"):
        assert not file.is_file() or b"canary_of_the_code" not in file.read_bytes()


def test_runs_functions_concurrently_in_threads(client: Client) -> None:
    """Given functions that wait for each other, then each runs in its own thread."""
    meeting = threading.Barrier(3, timeout=PATIENCE_S)

    def meet() -> str:
        meeting.wait()
        return threading.current_thread().name

    wf = Workflow("three")
    for i in range(3):
        wf.add(f"n{i}", meet)
    run = _submit(client, wf)

    assert run.status == "completed"
    assert "toolkit-engine" not in {run[f"n{i}"].value for i in range(3)}


def test_functions_may_wait_for_their_own_runs(tmp_path: Path) -> None:
    """Given one job at a time, when many functions wait for runs, then all of them complete."""
    settings = Settings(max_concurrent_jobs=1)
    with Client.local(tmp_path, sandbox=True, settings=settings) as client:

        def ask(n: int) -> str:
            run = client.runs.create("llm.generate", {"objective": f"Line {n}"})
            return str(run.wait(progress=False).text)

        wf = Workflow("asking")
        for n in range(3):
            wf.add(f"n{n}", ask, n=n)
        workflow = _submit(client, wf)

        assert workflow.status == "completed"
        assert len({node.job_id for node in workflow.nodes}) == 3


def test_an_error_names_the_function_and_its_lines(client: Client) -> None:
    """Given a function that raises, then the error names its lines but no key, and others skip."""

    def read(row: str) -> int:
        return int(row)

    def convert() -> int:
        return read("sk-0123456789abcdef")

    wf = Workflow("wrong")
    wrong = wf.add("wrong", convert)
    wf.add("after", lambda wrong: wrong, depends_on=[wrong])
    run = _submit(client, wf)

    error = run["wrong"].error
    assert (run.status, error.code) == ("failed", "FUNCTION_FAILED")
    assert error.message.startswith("`convert` raised ValueError: invalid literal for int()")
    assert "sk-0123" not in error.model_dump_json()
    assert [(detail.path.split(",")[0], detail.message) for detail in error.details] == [
        ("convert", 'return read("[key]")'), ("read", "return int(row)"),
    ]  # fmt: skip
    assert run["after"].error.code == "UPSTREAM_FAILED"
    with pytest.raises(WorkError, match="convert"):
        client.workflows.get(run.id).wait(progress=False)


def test_retries_a_function(client: Client) -> None:
    """Given a function that fails once, then a retry of its node completes."""
    calls: list[int] = []

    def fail_once() -> int:
        calls.append(1)
        if len(calls) == 1:
            raise ConnectionError("away")
        return len(calls)

    wf = Workflow("again", max_retries=1)
    wf.add("one", fail_once)
    node = _submit(client, wf)["one"]

    assert (node.status, node.retry_count, node.value) == ("completed", 1, 2)


@pytest.mark.parametrize("value", [object(), {"a": object()}, lambda: 1, pd.Series([1])])
def test_rejects_a_result_of_an_unknown_type(client: Client, value: Any) -> None:
    """Given a result that is no text, bytes, JSON or table, then the node fails and says so."""
    error = _run(client, lambda: value).error

    assert error.code == "INVALID_OUTPUT"
    assert "return text, bytes, a table or a JSON value" in error.message


def test_caches_by_code_values_and_arguments(client: Client) -> None:
    """Given another code, value or argument, then the cached result of a function is not reused."""

    def make(name: str, factor: int):
        def scale(n: int) -> int:
            return n * factor

        return scale

    def run(function: Any, n: int) -> tuple[int, bool]:
        node = _run(client, function, cache=True, n=n)
        return node.value, bool(node.cached_from)

    assert run(make("a", 2), 3) == (6, False)
    assert run(make("b", 2), 3) == (6, True)
    assert run(make("a", 5), 3) == (15, False)
    assert run(make("a", 2), 4) == (8, False)
    assert run(lambda n: n * 2, 3) == (6, False)


def test_caches_by_the_globals_at_the_time_of_the_call(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a global that changes after a function was added, then the old result is not reused."""
    wf = Workflow("by global")
    wf.add("one", lambda: FRAME.shape[0], cache=True)
    assert _submit(client, wf)["one"].value == 3
    monkeypatch.setitem(globals(), "FRAME", FRAME[:1])

    assert _submit(client, wf)["one"].value == 1


def test_cancels_running_functions(client: Client) -> None:
    """Given running functions, when the workflow is cancelled, then it ends at once."""
    start, cancel, release = threading.Event(), threading.Event(), threading.Event()

    async def wait_long() -> None:
        start.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancel.set()
            raise

    wf = Workflow("long")
    wf.add("async", wait_long)
    wf.add("blocked", lambda: release.wait(PATIENCE_S))
    run = client.workflows.submit(wf)
    assert start.wait(PATIENCE_S)
    try:
        run = run.cancel()
        assert (run.status, run["blocked"].status) == ("cancelled", "cancelled")
        assert cancel.wait(PATIENCE_S)
    finally:
        release.set()


def test_limits_a_function_to_its_deadline(client: Client) -> None:
    """Given a function that takes longer than its deadline, then the node fails at once."""
    release = threading.Event()
    node = _run(client, lambda: release.wait(PATIENCE_S), options={"deadline_s": 0.05})
    release.set()

    assert node.error.code == "PROVIDER_TIMEOUT"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "`clean` has no value for `table`"),
        ({"tabel": 1}, "has no parameter `tabel`: did you mean `table`?"),
        ({"table": FRAME}, "`table` is a DataFrame, which is not JSON"),
    ],
)
def test_rejects_unfitting_arguments(arguments: dict[str, object], message: str) -> None:
    """Given arguments that a function does not take, then `add` names them and the solution."""

    def clean(table: object, limit: int = 1) -> object:
        return table, limit

    with pytest.raises(RequestError, match="Node `clean`") as caught:
        Workflow("w").add("clean", clean, **arguments)  # type: ignore[arg-type]
    assert caught.value.code is ErrorCode.INVALID_WORKFLOW
    assert message in str(caught.value)


def test_uses_defaults_for_a_failed_optional_node(client: Client) -> None:
    """Given an optional node that failed, then a later function gets its default, or None."""
    wf = Workflow("optional")
    lost = wf.add("lost", lambda: 1 / 0, optional=True)
    wf.add("next", lambda lost, text="default": [lost, text], lost=lost, text=lost)
    run = _submit(client, wf)

    assert (run.status, run["next"].value) == ("completed", [None, "default"])


def test_holds_functions_only_while_they_may_be_called(client: Client) -> None:
    """Given many functions without another owner, then each is called, and few of them stay."""
    release = threading.Event()

    def build() -> tuple[Workflow, list[Any]]:
        wf, values = Workflow("held"), [FRAME.copy() for _ in range(100)]
        first = wf.add("first", lambda: release.wait(PATIENCE_S))
        for n, value in enumerate(values):
            wf.add(f"n{n}", lambda first, n=n, value=value: n, depends_on=[first])
        return wf, [weakref.ref(value) for value in values]

    wf, values = build()
    run = client.workflows.submit(wf)
    del wf
    gc.collect()
    release.set()

    assert run.wait(progress=False, check=False).status == "completed"
    gc.collect()
    wait_until(lambda: sum(value() is not None for value in values) <= MAX_RECENT)


def test_a_server_calls_no_functions(server: Server) -> None:
    """Given a server, then both its client and the server itself reject functions."""
    wf = Workflow("served")
    wf.add("one", lambda: 1)
    with Client(server.url, server.sign_up()) as remote:
        with pytest.raises(RequestError, match=r"submit the workflow to Client\.local") as caught:
            remote.workflows.submit(wf)
        assert caught.value.code is ErrorCode.FUNCTION_UNAVAILABLE
        with pytest.raises(RequestError, match="cannot call functions of its clients") as caught:
            remote.workflows.create(wf.to_dict())
        assert caught.value.code is ErrorCode.FUNCTION_UNAVAILABLE
        with pytest.raises(RequestError):
            remote.functions.register(len)


def test_another_account_cannot_call_functions(client: Client) -> None:
    """Given a function that was submitted, then a workflow of another account cannot call it."""
    wf = Workflow("own")
    wf.add("one", lambda: 1)
    assert _submit(client, wf).status == "completed"

    stranger = with_key(client, client.account.create("ada@example.org").api_key)
    with pytest.raises(RequestError) as caught:
        stranger.workflows.create(wf.to_dict())
    assert caught.value.code is ErrorCode.FUNCTION_UNAVAILABLE


def test_a_fork_calls_a_function_with_new_arguments(client: Client) -> None:
    """Given a workflow, then a fork calls a function again with new arguments."""
    wf = Workflow("forked")
    base = wf.add("base", lambda: 2)
    wf.add("scaled", lambda base, factor: base * factor, depends_on=[base], factor=3)
    run = _submit(client, wf)
    fork = run.fork("scaled", {"scaled": {"arguments": {"factor": 5}}}).wait(progress=False)

    assert (run["scaled"].value, fork["scaled"].value) == (6, 10)
    assert fork["base"].job_id == run["base"].job_id


def test_an_error_in_a_library_names_the_callers_line(client: Client) -> None:
    """Given a library that raises, then the error has the caller's line and the last line."""
    places = [detail.path for detail in _run(client, lambda: FRAME["nope"]).error.details]

    assert len(places) == 2
    assert "test_function_nodes.py" in places[0]


def test_the_capability_of_functions_is_internal(client: Client) -> None:
    """Given the capability of functions, then it is not listed and cannot be run directly."""
    assert "function.call" not in [capability.id for capability in client.capabilities.list()]
    for name in ("function.call", "function.call@1"):
        with pytest.raises(RequestError) as caught:
            client.runs.create(name, {"function": "len", "arguments": {}})
        assert caught.value.code is ErrorCode.NOT_FOUND


def _submit_and_die(folder: Path, function: Callable[[], object]) -> str:
    """Submit a chain of two functions, and kill the engine while the second function runs."""
    start, release = threading.Event(), threading.Event()

    def second(first: int) -> int:
        start.set()
        release.wait(PATIENCE_S)
        return first

    client = Client.local(folder, sandbox=True)
    wf = Workflow("resumed")
    first = wf.add("first", function)
    wf.add("second", second, depends_on=[first])
    run = client.workflows.submit(wf)
    assert start.wait(PATIENCE_S)
    wait_until(lambda: run.refresh()["first"].status == "completed")  # so that it is stored
    thread = get_thread(client)
    thread.call(kill_engine(thread.engine))
    release.set()
    return run.id


def test_a_workflow_waits_for_the_function_of_a_dead_process(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Given a dead kernel, then its workflow continues once the function is registered again."""
    calls: list[int] = []
    id = _submit_and_die(tmp_path, lambda: calls.append(1) or 20)

    with Client.local(tmp_path, sandbox=True) as client:
        run = client.workflows.get(id)
        wait_until(lambda: run.refresh().status_detail == "waiting_function")
        assert "client.functions.register(second)" in caplog.text

        @client.functions.register
        def second(first: int) -> int:
            return first + 1

        assert "second" in client.functions
        run = run.wait(progress=False)
        assert (run.status, run["second"].value, len(calls)) == ("completed", 21, 1)
        assert run.status_detail is None


def test_a_workflow_that_waits_for_a_function_can_be_cancelled(tmp_path: Path) -> None:
    """Given a workflow that waits for a missing function, then it can be cancelled."""
    id = _submit_and_die(tmp_path, lambda: 1)
    with Client.local(tmp_path, sandbox=True) as client:
        assert client.workflows.cancel(id).status == "cancelled"


def test_a_retry_calls_the_corrected_function(client: Client) -> None:
    """Given a failed node, when a new version is registered, then a retry calls that version."""

    def make(n: int):
        def halve() -> float:
            return 1 / n

        return halve

    wf = Workflow("mended")
    wf.add("half", make(0))
    failed = _submit(client, wf)
    assert failed.status == "failed"
    client.functions.register(make(2))

    assert failed.retry().wait(progress=False)["half"].value == 0.5


async def test_async_client_runs_functions(tmp_path: Path) -> None:
    """Given an async client, then functions can be nodes."""
    async with AsyncClient.local(tmp_path, sandbox=True) as client:
        wf = Workflow("async")
        wf.add("one", lambda n: n + 1, n=1)
        run = await (await client.workflows.submit(wf)).wait(progress=False)
        assert await run["one"].value == 2
