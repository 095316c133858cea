"""Mistakes of the first hour: each is told at once, in one line, with what to write instead."""

import datetime
import pickle
from typing import Any

import pandas as pd
import pytest

from tests.support.timing import PATIENCE_S
from toolkit import Client, RequestError, WorkError, Workflow
from toolkit.sandbox import Fault, Faults

pytestmark = pytest.mark.sqlite("other tests have its statements")

ASKED = {"objective": "One line on tides"}


def build_flow() -> Workflow:
    """Build a workflow of one node."""
    flow = Workflow("line")
    flow.add("text", "llm.generate", ASKED, options={"provider": "openai"})
    return flow


def test_work_that_failed_is_at_hand(client: Client, faults: Faults) -> None:
    """Given a workflow that fails, then the error has it, and ends with the call that retries."""
    faults.fail("openai", status=400, times=1)
    with pytest.raises(WorkError) as failed:
        client.workflows.submit(build_flow()).wait(PATIENCE_S)
    run = failed.value.work
    assert (run.status, run["text"].status) == ("failed", "failed")
    last = str(failed.value).splitlines()[-1].strip()
    assert last == failed.value.next_call
    assert eval(last, {"client": client}).status == "completed"
    assert pickle.loads(pickle.dumps(failed.value)).work is None


def test_a_run_that_failed_is_at_hand(client: Client, faults: Faults) -> None:
    """Given a run that fails, then the error has it, and ends with the call that reads it."""
    faults.fail("openai", status=400, times=1)
    with pytest.raises(WorkError) as failed:
        client.runs.create("llm.generate", ASKED, provider="openai").wait(PATIENCE_S)
    last = str(failed.value).splitlines()[-1].strip()
    assert eval(last, {"client": client}).id == failed.value.work.id


def test_a_node_is_no_value_of_a_field() -> None:
    """Given a node as a field of a capability's input, then that is refused before any submit."""
    flow = build_flow()
    for value in (
        flow.add("more", "llm.generate", ASKED),
        [flow.add("last", "llm.generate", ASKED)],
    ):
        with pytest.raises(RequestError, match=r"depends_on=\['(more|last)'\]"):
            flow.add("b", "llm.generate", objective="Go on", context=value)
    assert [node["id"] for node in flow.nodes] == ["text", "more", "last"]


@pytest.mark.parametrize("value", [datetime.date(2026, 1, 1), {1}, b"x", object()])
def test_a_value_that_json_cannot_hold_is_named(client: Client, value: object) -> None:
    """Given a value of another type in an input, then its place and its type are told."""
    with pytest.raises(TypeError, match=rf"input\.list\.1`? is a {type(value).__name__}"):
        client.runs.create("llm.generate", {**ASKED, "list": [1, value]})
    with pytest.raises(TypeError, match=rf"b\.list\.1`? is a {type(value).__name__}"):
        Workflow("w").add("b", "llm.generate", ASKED, list=[1, value])


def test_an_input_is_a_mapping(client: Client) -> None:
    """Given a text as the input of a run or a node, then the form of an input is told."""
    wrong: Any = "One line on tides"
    with pytest.raises(TypeError, match="a mapping of fields"):
        client.runs.create("llm.generate", wrong)
    with pytest.raises(TypeError, match="a mapping of fields"):
        Workflow("w").add("b", "llm.generate", wrong)


def test_an_output_is_there_once_it_is_over(client: Client, faults: Faults) -> None:
    """Given a run that is under way, then its output is refused; and there after the wait."""
    faults.add(Fault("openai", delay_ms=500))
    run = client.runs.create("llm.generate", ASKED, provider="openai")
    with pytest.raises(RequestError, match=r"\.wait\(\)") as refused:
        _ = run.output["text"]
    assert refused.value.code.name == "CONFLICT"
    assert run.wait(PATIENCE_S).output["text"]


@pytest.mark.parametrize(
    "rows",
    [["spring", "neap"], ("spring", "neap"), pd.Series(["spring", "neap"], index=["a", "b"])],
    ids=["list", "tuple", "series"],
)
def test_texts_are_rows(client: Client, rows: Any) -> None:
    """Given texts, then each is a row whose column is `text`."""
    frame = client.map("llm.generate", rows, objective="One line on a {text} tide")
    assert list(frame["status"]) == ["completed"] * 2
    assert list(frame.index) == (["a", "b"] if isinstance(rows, pd.Series) else [0, 1])


@pytest.mark.parametrize("rows", [pd.DataFrame(), pd.DataFrame({"tide": []}), []])
def test_no_rows_are_no_results(client: Client, rows: Any) -> None:
    """Given a table without rows, then the results are a table without rows."""
    frame = client.map("llm.generate", rows, objective="One line on a {tide} tide")
    assert len(frame) == 0
    assert "status" in frame.columns


@pytest.mark.parametrize("rows", [3, "spring", [3], {"tide": "spring"}])
def test_rows_that_are_none(client: Client, rows: Any) -> None:
    """Given what is no rows, then their form is told."""
    with pytest.raises(TypeError, match="a DataFrame, a list of mappings"):
        client.map("llm.generate", rows, objective="One line on tides")


def test_calls_that_are_meant_otherwise(client: Client) -> None:
    """Given arguments that a call does not take, then the call that takes them is told."""
    create: Any = client.tasks.create
    compare: Any = client.compare
    with pytest.raises(TypeError, match=r"plan_only.*plans\.create"):
        create("Facts about tea", plan_only=True)
    with pytest.raises(TypeError, match="two pieces of work"):
        compare("run_1", "run_2", "run_3")
