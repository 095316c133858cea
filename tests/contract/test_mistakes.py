"""Mistakes of new users: each raises an error at once that says what to write."""

import datetime
import pickle
from typing import Any

import pandas as pd
import pytest

from tests.contract.conftest import submit_chain
from tests.support.timing import PATIENCE_S
from toolkit import Client, RequestError, WorkError, Workflow
from toolkit.sandbox import Fault, Faults

pytestmark = pytest.mark.sqlite("other tests have its statements")

LINE = {"objective": "One line on tides"}


def test_the_error_of_a_workflow_ends_with_its_retry(client: Client, faults: Faults) -> None:
    """Given a workflow that fails, then its error has the work, and ends with the retry call."""
    faults.fail("openai", status=400, times=1)
    with pytest.raises(WorkError) as error:
        submit_chain(client).wait(PATIENCE_S)
    work = error.value.work
    assert (work.status, work["first"].status) == ("failed", "failed")
    last_line = str(error.value).splitlines()[-1].strip()
    assert last_line == error.value.next_call
    assert eval(last_line, {"client": client}).status == "completed"
    assert pickle.loads(pickle.dumps(error.value)).work is None


def test_the_error_of_a_run_ends_with_the_call_that_reads_it(
    client: Client, faults: Faults
) -> None:
    """Given a run that fails, then its error has the run, and ends with the call that reads it."""
    faults.fail("openai", status=400, times=1)
    with pytest.raises(WorkError) as error:
        client.runs.create("llm.generate", LINE, provider="openai").wait(PATIENCE_S)
    last_line = str(error.value).splitlines()[-1].strip()
    assert eval(last_line, {"client": client}).id == error.value.work.id


def test_rejects_a_node_as_the_value_of_a_field() -> None:
    """Given a node, or a list of nodes, in an input, then the error names `depends_on`."""
    flow = Workflow("line")
    node = flow.add("first", "llm.generate", LINE)
    for value in (node, [node]):
        with pytest.raises(RequestError, match=r"depends_on=\['first'\]"):
            flow.add("b", "llm.generate", objective="Go on", context=value)
    assert [fields["id"] for fields in flow.nodes] == ["first"]


@pytest.mark.parametrize("value", [datetime.date(2026, 1, 1), {1}, b"x", object()])
def test_names_a_value_that_json_cannot_hold(client: Client, value: object) -> None:
    """Given a value of another type in an input, then the error names its place and type."""
    with pytest.raises(TypeError, match=rf"input\.list\.1`? is a {type(value).__name__}"):
        client.runs.create("llm.generate", {**LINE, "list": [1, value]})
    with pytest.raises(TypeError, match=rf"b\.list\.1`? is a {type(value).__name__}"):
        Workflow("w").add("b", "llm.generate", LINE, list=[1, value])


def test_an_input_is_a_mapping(client: Client) -> None:
    """Given a text as the input of a run or a node, then the error states the form of an input."""
    text: Any = "One line on tides"
    with pytest.raises(TypeError, match="a mapping of fields"):
        client.runs.create("llm.generate", text)
    with pytest.raises(TypeError, match="a mapping of fields"):
        Workflow("w").add("b", "llm.generate", text)


def test_a_run_under_way_has_no_output(client: Client, faults: Faults) -> None:
    """Given a run that is under way, then its output raises an error that names `wait()`."""
    faults.add(Fault("openai", delay_ms=500))
    run = client.runs.create("llm.generate", LINE, provider="openai")
    with pytest.raises(RequestError, match=r"^CONFLICT:.*\.wait\(\)"):
        _ = run.output["text"]
    assert run.wait(PATIENCE_S).output["text"]


@pytest.mark.parametrize(
    "rows",
    [["spring", "neap"], ("spring", "neap"), pd.Series(["spring", "neap"], index=["a", "b"])],
    ids=["list", "tuple", "series"],
)
def test_maps_texts_as_rows(client: Client, rows: Any) -> None:
    """Given texts, then each is a row whose column is `text`."""
    frame = client.map("llm.generate", rows, objective="One line on a {text} tide")
    assert list(frame["status"]) == ["completed"] * 2
    assert list(frame.index) == (["a", "b"] if isinstance(rows, pd.Series) else [0, 1])


@pytest.mark.parametrize("rows", [pd.DataFrame(), pd.DataFrame({"tide": []}), []])
def test_maps_no_rows_to_no_results(client: Client, rows: Any) -> None:
    """Given a table without rows, then the results are a table without rows."""
    frame = client.map("llm.generate", rows, objective="One line on a {tide} tide")
    assert len(frame) == 0
    assert "status" in frame.columns


@pytest.mark.parametrize("rows", [3, "spring", [3], {"tide": "spring"}])
def test_rejects_invalid_rows(client: Client, rows: Any) -> None:
    """Given values that are no rows, then the error states the forms of rows."""
    with pytest.raises(TypeError, match="a DataFrame, a list of mappings"):
        client.map("llm.generate", rows, objective="One line on tides")


def test_a_wrong_argument_names_the_right_call(client: Client) -> None:
    """Given arguments that a call does not take, then the error names the call that takes them."""
    create: Any = client.tasks.create
    compare: Any = client.compare
    with pytest.raises(TypeError, match=r"plan_only.*plans\.create"):
        create("Facts about tea", plan_only=True)
    with pytest.raises(TypeError, match="two pieces of work"):
        compare("run_1", "run_2", "run_3")
