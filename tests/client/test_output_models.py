"""Answers as instances of a pydantic model."""

from datetime import date
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, field_validator

from toolkit import AsyncClient, Client, Workflow
from toolkit.contract.errors import RequestError, WorkError


class Place(BaseModel):
    """A place."""

    town: str = Field(min_length=1)
    postcode: str | None = None


class Label(BaseModel):
    """A label with nested models."""

    label: Literal["tea", "salt"]
    score: float = Field(ge=0, le=1)
    place: Place
    places: list[Place] = []
    seen_on: date


class Coded(BaseModel):
    """A code with a pattern."""

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


def test_run_has_an_instance_of_its_model(client: Client) -> None:
    """Given nested models, then the schema is strict, and the run has an instance of the model."""
    run = client.runs.create("llm.generate", {"objective": "Label tea"}, output_model=Label).wait()

    schema = run.input["output_schema"]
    place = schema["properties"]["place"]
    assert "$ref" not in str(schema)
    assert schema["additionalProperties"] is place["additionalProperties"] is False
    assert place["required"] == ["town", "postcode"]
    assert isinstance(run.parsed, Label)
    assert run.parsed.label == run.output["json"]["label"]
    assert isinstance(run.parsed.place, Place)


def test_enforces_patterns(client: Client) -> None:
    """Given a pattern, then the schema and its description have it, and other texts fail."""
    run = client.runs.create("llm.generate", {"objective": "Tea"}, output_model=Coded)

    code = run.input["output_schema"]["properties"]["code"]
    assert code["pattern"] == r"^\d+$"
    assert r"^\d+$" in code["description"]
    with pytest.raises(WorkError, match="`code` breaks the rule `pattern`"):
        run.wait()


async def test_async_run_has_an_instance_of_its_model(tmp_path: Path) -> None:
    """Given the async client, then its run has an instance of the model."""
    async with AsyncClient.local(tmp_path, sandbox=True) as client:
        run = await client.runs.create("llm.generate", {"objective": "Tea"}, output_model=Place)
        assert (await run).parsed.town


def test_reads_an_earlier_run_as_a_model(client: Client) -> None:
    """Given the id of a completed run, then its answer can be read as a model."""
    run = client.runs.create("llm.generate", {"objective": "Tea"}, output_model=Place)
    with pytest.raises(RequestError, match=r"\.wait\(\)"):
        _ = run.parsed

    run.wait()
    assert client.runs.get(run.id).parse(Place) == run.parsed


def test_node_takes_a_model(client: Client) -> None:
    """Given a model for a node, then the answer of its job fits it."""
    wf = Workflow("labels")
    wf.add("label", "llm.generate", objective="Label tea", output_model=Place)
    workflow = client.workflows.submit(wf).wait()
    assert workflow.job("label").parse(Place).town


def test_reports_answers_that_a_validator_rejects(client: Client) -> None:
    """Given an answer that a validator rejects, then the error names run, model and field."""
    run = client.runs.create("llm.generate", {"objective": "Tea"}, output_model=Doubtful).wait()

    with pytest.raises(WorkError) as refused:
        _ = run.parsed

    assert refused.value.code.name == "INVALID_OUTPUT"
    for part in (run.id, "Doubtful", "label", "is never right"):
        assert part in refused.value.message


@pytest.mark.parametrize(
    ("model", "fields", "kind", "words"),
    [
        (Tree, {}, RequestError, "refers to itself"),
        (Place, {"output_schema": {"type": "object"}}, RequestError, "not both"),
        (dict, {}, TypeError, "pydantic model"),
    ],
)
def test_rejects_models_before_a_request(
    client: Client, model: Any, fields: dict[str, object], kind: type[Exception], words: str
) -> None:
    """Given a recursive model, two schemas, or no model, then no request is sent."""
    with pytest.raises(kind, match=words):
        client.runs.create("llm.generate", {"objective": "x", **fields}, output_model=model)
