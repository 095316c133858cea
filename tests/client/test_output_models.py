"""Answers as instances of a pydantic model."""

from datetime import date
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, field_validator

from toolkit import AsyncClient, Client, Workflow
from toolkit.contract.errors import RequestError, WorkError


class Place(BaseModel):
    """Where somebody is."""

    town: str = Field(min_length=1)
    postcode: str | None = None


class Label(BaseModel):
    """A label with what it came from."""

    label: Literal["tea", "salt"]
    score: float = Field(ge=0, le=1)
    place: Place
    others: list[Place] = []
    seen_on: date


class Coded(BaseModel):
    """A code in a form of its own."""

    code: str = Field(pattern=r"^\d+$")


class Doubtful(BaseModel):
    """A label that no answer fits."""

    label: str

    @field_validator("label")
    @classmethod
    def _refuse(cls, value: str) -> str:
        raise ValueError("is never right")


class Tree(BaseModel):
    """A model that refers to itself."""

    children: list["Tree"]


def test_a_run_has_its_answer_as_an_instance_of_the_model(client: Client) -> None:
    """Given models within a model, then strict modes take the schema, and the answer is of it."""
    run = client.runs.create("llm.generate", {"objective": "Label tea"}, output_model=Label).wait()

    schema = run.input["output_schema"]
    place = schema["properties"]["place"]
    assert "$ref" not in str(schema)
    assert schema["additionalProperties"] is place["additionalProperties"] is False
    assert place["required"] == ["town", "postcode"]
    assert isinstance(run.parsed, Label)
    assert run.parsed.label == run.output["json"]["label"]
    assert isinstance(run.parsed.place, Place)


def test_a_pattern_is_sent_and_enforced(client: Client) -> None:
    """Given a pattern, then it is sent, told in words, and no other text completes the run."""
    run = client.runs.create("llm.generate", {"objective": "Tea"}, output_model=Coded)

    code = run.input["output_schema"]["properties"]["code"]
    assert code["pattern"] == r"^\d+$"
    assert r"^\d+$" in code["description"]
    with pytest.raises(WorkError, match="`code` breaks the rule `pattern`"):
        run.wait()


async def test_the_async_client_types_its_answer_too(tmp_path: Path) -> None:
    """Given the async client, then its runs are read as models too."""
    async with AsyncClient.local(tmp_path, sandbox=True) as client:
        run = await client.runs.create("llm.generate", {"objective": "Tea"}, output_model=Place)
        assert (await run).parsed.town


def test_an_answer_is_read_as_a_model_later_by_its_id(client: Client) -> None:
    """Given the id of a run, then its answer is read as a model, once it is there."""
    made = client.runs.create("llm.generate", {"objective": "Tea"}, output_model=Place)
    with pytest.raises(RequestError, match=r"\.wait\(\)"):
        _ = made.parsed

    made.wait()
    assert client.runs.get(made.id).parse(Place) == made.parsed


def test_a_node_takes_a_model(client: Client) -> None:
    """Given a model for a node, then the answer of its job fits it."""
    wf = Workflow("labels")
    wf.add("label", "llm.generate", objective="Label tea", output_model=Place)

    done = client.workflows.submit(wf).wait()

    assert done.job("label").parse(Place).town


def test_an_answer_that_the_model_refuses_says_where_and_why(client: Client) -> None:
    """Given an answer with the right form that the model refuses, then the error says all."""
    run = client.runs.create("llm.generate", {"objective": "Tea"}, output_model=Doubtful).wait()

    with pytest.raises(WorkError) as refused:
        _ = run.parsed

    assert refused.value.code.name == "INVALID_OUTPUT"
    for part in (run.id, "Doubtful", "label", "is never right"):
        assert part in refused.value.message


@pytest.mark.parametrize(
    ("model", "given", "kind", "words"),
    [
        (Tree, {}, RequestError, "refers to itself"),
        (Place, {"output_schema": {"type": "object"}}, RequestError, "not both"),
        (dict, {}, TypeError, "pydantic model"),
    ],
)
def test_what_cannot_be_sent_is_refused_before(
    client: Client, model: Any, given: dict[str, object], kind: type[Exception], words: str
) -> None:
    """Given a model that no schema can say, two schemas, or no model, then nothing is sent."""
    with pytest.raises(kind, match=words):
        client.runs.create("llm.generate", {"objective": "x", **given}, output_model=model)
