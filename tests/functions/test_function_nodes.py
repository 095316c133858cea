"""A function of the caller's process is a node: `wf.add("clean", clean, depends_on=[…])`."""

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
    """A client of its own engine, with simulated vendors."""
    with Client.local(tmp_path_factory.mktemp("data"), sandbox=True) as made:
        yield made


def _submit(client: Client, wf: Workflow) -> Any:
    return client.workflows.submit(wf).wait(progress=False, check=False)


def _run(client: Client, function: Callable[..., object], **more: Any) -> Any:
    """Run a workflow of one function, and return its node."""
    wf = Workflow("one")
    wf.add("one", function, **more)
    return _submit(client, wf)["one"]


def test_results_pass_from_node_to_node(client: Client) -> None:
    """Given functions and a capability, then each takes what the nodes before it returned."""
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

    told = wf.add("told", describe, depends_on=[count])
    copy = wf.add("copy", "llm.generate", objective="Say it better", depends_on=[told])
    wf.add("all", lambda parts, **rest: [len(parts), *rest], parts=[told, copy], depends_on=[count])

    done = _submit(client, wf)

    assert done.status == "completed"
    pd.testing.assert_frame_equal(done["raw-rows"].value, FRAME)
    pd.testing.assert_frame_equal(done["clean"].value, FRAME.dropna())
    assert done["count"].value == {"n": 1, "sum": 0.1 + 0.2}
    assert done["count"].output["value"] == done["count"].value
    assert done["told"].text == "There are 1 rows."
    assert done["all"].value == [2, "count"]
    assert client.workflows.get(done.id)["clean"].depends_on == ["raw-rows"]
    job = client.jobs.get(done["copy"].job_id)
    assert job.input["from_artifacts"] == {"told": done["told"].artifact_id}


def test_a_function_costs_nothing_and_asks_no_provider(client: Client) -> None:
    """Given a function, then its node and its events are as another's, at no cost."""
    wf = Workflow("free", provider="openai", max_cost_usd=0.0)
    wf.add("one", lambda: b"\x89PNG\r\n\x1a\n")

    done = _submit(client, wf)

    node = done["one"]
    assert (done.status, node.cost_usd, node.provider) == ("completed", 0, None)
    assert node.artifact.media_type == "image/png"
    assert [event.type for event in client.workflows.events(done.id)] == [
        "workflow.queued", "workflow.running", "node.queued", "node.running", "node.completed",
        "workflow.completed",
    ]  # fmt: skip


def test_code_is_no_part_of_any_record(tmp_path: Path) -> None:
    """Given a function that ran, then no file of the data directory holds a word of its code."""

    def keep_secret() -> int:
        canary_of_the_code = 1
        return canary_of_the_code + 1

    with Client.local(tmp_path, sandbox=True) as client:
        assert _run(client, keep_secret, cache=True).value == 2

    for file in tmp_path.rglob("*"):
        assert not file.is_file() or b"canary_of_the_code" not in file.read_bytes()


def test_it_runs_in_a_thread_beside_others(client: Client) -> None:
    """Given functions that wait for each other, then they run at once, off the engine's thread."""
    meeting = threading.Barrier(3, timeout=PATIENCE_S)

    def meet() -> str:
        meeting.wait()
        return threading.current_thread().name

    wf = Workflow("three")
    for i in range(3):
        wf.add(f"n{i}", meet)
    done = _submit(client, wf)

    assert done.status == "completed"
    assert "toolkit-engine" not in {str(node.value) for node in map(done.__getitem__, ["n0", "n1"])}


def test_functions_may_wait_for_runs_of_their_own(tmp_path: Path) -> None:
    """Given one job at a time, when many functions ask for runs, then none waits for ever."""
    settings = Settings(max_concurrent_jobs=1)
    with Client.local(tmp_path, sandbox=True, settings=settings) as client:

        def ask(n: int) -> str:
            run = client.runs.create("llm.generate", {"objective": f"Line {n}"})
            return str(run.wait(progress=False).text)

        wf = Workflow("asking")
        for n in range(3):
            wf.add(f"n{n}", ask, n=n)
        done = _submit(client, wf)

        assert done.status == "completed"
        assert len({node.job_id for node in done.nodes}) == 3


def test_an_error_is_told_with_where_it_came_from(client: Client) -> None:
    """Given a function that raises, then the error names it, its line, and no key; others skip."""

    def read(row: str) -> int:
        return int(row)

    def convert() -> int:
        return read("sk-0123456789abcdef")

    wf = Workflow("wrong")
    wrong = wf.add("wrong", convert)
    wf.add("after", lambda wrong: wrong, depends_on=[wrong])
    done = _submit(client, wf)

    error = done["wrong"].error
    assert (done.status, error.code) == ("failed", "FUNCTION_FAILED")
    assert error.message.startswith("`convert` raised ValueError: invalid literal for int()")
    assert "sk-0123" not in error.model_dump_json()
    assert [(one.path.split(",")[0], one.message) for one in error.details] == [
        ("convert", 'return read("[key]")'), ("read", "return int(row)"),
    ]  # fmt: skip
    assert done["after"].error.code == "UPSTREAM_FAILED"
    with pytest.raises(WorkError, match="convert"):
        client.workflows.get(done.id).wait(progress=False)


def test_a_function_is_retried_as_often_as_the_workflow_says(client: Client) -> None:
    """Given a function that fails once, then a node retry mends it."""
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
def test_a_result_that_nothing_can_hold_fails_with_the_reason(client: Client, value: Any) -> None:
    """Given a result that is no text, bytes, JSON or table, then the node fails and says so."""
    error = _run(client, lambda: value).error

    assert error.code == "INVALID_OUTPUT"
    assert "return text, bytes, a table or a JSON value" in error.message


def test_the_cache_goes_by_code_values_and_arguments(client: Client) -> None:
    """Given equal functions, then one is called; where code, a value or an input differs, both."""
    calls: list[str] = []

    def make(name: str, factor: int):
        def scale(n: int) -> int:
            return n * factor

        return scale

    def run(function: Any, n: int) -> Any:
        node = _run(client, function, cache=True, n=n)
        calls.append(node.cached_from or "")
        return node.value

    assert [run(make("a", 2), 3), run(make("b", 2), 3)] == [6, 6]
    assert [bool(one) for one in calls] == [False, True]
    assert [run(make("a", 5), 3), run(make("a", 2), 4), run(lambda n: n * 2, 3)] == [15, 8, 6]
    assert [bool(one) for one in calls[2:]] == [False, False, False]


def test_the_cache_sees_globals_as_they_are_when_it_is_called(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a global that changes after a function was added, then its old result is no answer."""
    wf = Workflow("by global")
    wf.add("one", lambda: FRAME.shape[0], cache=True)
    assert _submit(client, wf)["one"].value == 3
    monkeypatch.setitem(globals(), "FRAME", FRAME[:1])

    assert _submit(client, wf)["one"].value == 1


def test_cancelling_ends_the_node_and_tells_an_async_function(client: Client) -> None:
    """Given functions under way, when the workflow is cancelled, then it ends at once."""
    begun, told, release = threading.Event(), threading.Event(), threading.Event()

    async def wait_long() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            told.set()
            raise

    def block() -> None:
        release.wait(PATIENCE_S)

    wf = Workflow("long")
    wf.add("async", wait_long)
    wf.add("blocked", block)
    run = client.workflows.submit(wf)
    assert begun.wait(PATIENCE_S)
    try:
        done = run.cancel()
        assert (done.status, done["blocked"].status) == ("cancelled", "cancelled")
        assert told.wait(PATIENCE_S)
    finally:
        release.set()


def test_a_deadline_holds_for_a_function(client: Client) -> None:
    """Given a function that takes longer than its deadline, then the node fails without it."""
    release = threading.Event()
    node = _run(client, lambda: release.wait(PATIENCE_S), options={"deadline_s": 0.05})
    release.set()

    assert node.error.code == "PROVIDER_TIMEOUT"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "`clean` has no value for `table`"),
        ({"tabel": 1}, "has no parameter `tabel`: did you mean `table`?"),
        ({"table": FRAME}, "`table` is a DataFrame, which is not JSON"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_as_the_node_is_added(
    given: dict[str, object], told: str
) -> None:
    """Given arguments that a function does not take, then `add` says which, and what would do."""

    def clean(table: object, limit: int = 1) -> object:
        return table, limit

    with pytest.raises(RequestError, match="Node `clean`") as caught:
        Workflow("w").add("clean", clean, **given)  # type: ignore[arg-type]
    assert caught.value.code is ErrorCode.INVALID_WORKFLOW
    assert told in str(caught.value)


def test_an_optional_node_that_failed_leaves_its_parameter_out(client: Client) -> None:
    """Given a function of an optional node that failed, then it is called with its default."""
    wf = Workflow("optional")
    lost = wf.add("lost", lambda: 1 / 0, optional=True)
    wf.add("kept", lambda lost, more="default": [lost, more], lost=lost, more=lost)
    done = _submit(client, wf)

    assert (done.status, done["kept"].value) == ("completed", [None, "default"])


def test_functions_are_held_while_they_may_be_called_and_no_longer(client: Client) -> None:
    """Given many functions that nobody else holds, then each is called, and few of them stay."""
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


def test_a_server_calls_no_functions(server: Server, tmp_path: Path) -> None:
    """Given a client of a server, then functions are refused there, and by the server itself."""
    wf = Workflow("served")
    wf.add("one", lambda: 1)
    with Client(server.url) as nobody:
        key = nobody.account.create("ada@example.org").api_key
    with Client(server.url, key) as served:
        with pytest.raises(RequestError, match=r"submit the workflow to Client\.local") as caught:
            served.workflows.submit(wf)
        assert caught.value.code is ErrorCode.FUNCTION_UNAVAILABLE
        with pytest.raises(RequestError, match="cannot call functions of its clients") as refused:
            served.workflows.create(wf.to_dict())
        assert refused.value.code is ErrorCode.FUNCTION_UNAVAILABLE
        with pytest.raises(RequestError):
            served.functions.register(len)


def test_another_account_calls_none_of_this_process(client: Client) -> None:
    """Given a function that was submitted, then work of another account is refused it."""
    wf = Workflow("own")
    wf.add("one", lambda: 1)
    assert _submit(client, wf).status == "completed"

    other = with_key(client, client.account.create("ada@example.org").api_key)
    with pytest.raises(RequestError) as caught:
        other.workflows.create(wf.to_dict())
    assert caught.value.code is ErrorCode.FUNCTION_UNAVAILABLE


def test_a_fork_calls_a_function_with_other_arguments(client: Client) -> None:
    """Given a workflow, then a fork runs a function again with what is given anew."""
    wf = Workflow("forked")
    base = wf.add("base", lambda: 2)
    wf.add("scaled", lambda base, factor: base * factor, depends_on=[base], factor=3)
    done = _submit(client, wf)
    again = done.fork("scaled", {"scaled": {"arguments": {"factor": 5}}}).wait(progress=False)

    assert (done["scaled"].value, again["scaled"].value) == (6, 10)
    assert again["base"].job_id == done["base"].job_id


def test_the_places_of_an_error_are_the_callers_own(client: Client) -> None:
    """Given a library that raises deep within, then the caller's line is shown, and the last."""
    places = [one.path for one in _run(client, lambda: FRAME["nope"]).error.details]

    assert len(places) == 2
    assert "test_function_nodes.py" in places[0]


def test_a_function_is_a_node_and_nothing_else(client: Client) -> None:
    """Given the capability of functions, then it is not listed, nor run, nor planned with."""
    assert "function.call" not in [one.id for one in client.capabilities.list()]
    for name in ("function.call", "function.call@1"):
        with pytest.raises(RequestError) as caught:
            client.runs.create(name, {"function": "len", "arguments": {}})
        assert caught.value.code is ErrorCode.NOT_FOUND


def _submit_and_die(folder: Path, functions: dict[str, Any]) -> str:
    """Submit a chain of two functions, the second of which is under way as its process ends."""
    begun, release = threading.Event(), threading.Event()

    def second(first: int) -> int:
        begun.set()
        release.wait(PATIENCE_S)
        return first

    doomed = Client.local(folder, sandbox=True)
    wf = Workflow("resumed")
    first = wf.add("first", functions["first"])
    wf.add("second", second, depends_on=[first])
    run = doomed.workflows.submit(wf)
    assert begun.wait(PATIENCE_S)
    wait_until(lambda: run.refresh()["first"].status == "completed")  # it is stored by then
    thread = get_thread(doomed)
    thread.call(kill_engine(thread.engine))
    release.set()
    return run.id


def test_a_workflow_waits_for_a_function_that_died_with_its_process(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Given a dead kernel, then the next says what is missing, and goes on once it is there."""
    calls: list[int] = []
    id = _submit_and_die(tmp_path, {"first": lambda: calls.append(1) or 20})

    with Client.local(tmp_path, sandbox=True) as client:
        run = client.workflows.get(id)
        wait_until(lambda: run.refresh().status_detail == "waiting_function")
        assert "client.functions.register(second)" in caplog.text

        @client.functions.register
        def second(first: int) -> int:
            return first + 1

        assert "second" in client.functions
        done = run.wait(progress=False)
        assert (done.status, done["second"].value, len(calls)) == ("completed", 21, 1)
        assert done.status_detail is None


def test_a_waiting_workflow_can_be_cancelled(tmp_path: Path) -> None:
    """Given a workflow whose function is gone, then it can be cancelled without it."""
    id = _submit_and_die(tmp_path, {"first": lambda: 1})
    with Client.local(tmp_path, sandbox=True) as client:
        assert client.workflows.cancel(id).status == "cancelled"


def test_a_corrected_function_takes_the_place_of_the_one_that_failed(client: Client) -> None:
    """Given a node that failed, when its function is registered anew, then a retry calls that."""

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


async def test_an_async_client_has_them_too(tmp_path: Path) -> None:
    """Given an async client, then functions are nodes there, too."""
    async with AsyncClient.local(tmp_path, sandbox=True) as client:
        wf = Workflow("async")
        wf.add("one", lambda n: n + 1, n=1)
        done = await (await client.workflows.submit(wf)).wait(progress=False)
        assert await done["one"].value == 2
