"""Comparison of answers with what vendors publish: the SDKs' types, and facts of documents."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema
from pydantic import BaseModel, TypeAdapter

FACTS = Path(__file__).parent.parent / "vendors/facts"
RUNPOD = json.loads((FACTS / "runpod.json").read_text("utf-8"))["schemas"]
Check = Callable[[httpx.Response], None]


def unknown(value: object) -> Iterator[str]:
    """Members that a generated model does not know, at any depth."""
    if isinstance(value, BaseModel):
        yield from value.model_extra or ()
        for name in type(value).model_fields:
            yield from unknown(getattr(value, name))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from unknown(item)


def read_as(kind: Any, text: str | bytes, known: frozenset[str] = frozenset()) -> None:
    """Read JSON strictly as a type: nothing may be missing, of another type, or unknown."""
    value = TypeAdapter(kind).validate_json(text, strict=True)
    assert set(unknown(value)) <= known


def of(kind: Any, *known: str) -> Check:
    """A check that reads a whole answer as a type."""
    return lambda answer: read_as(kind, answer.content, frozenset(known))


def each(member: str, kind: Any, *needed: str) -> Check:
    """A check that reads each item of a list as a type, with members that it needs beside."""

    def check(answer: httpx.Response) -> None:
        said = answer.json()
        items = said[member] if member else said
        assert items
        for item in items:
            read_as(kind, json.dumps(item))
            assert set(needed) <= set(item)

    return check


def events(kind: Any) -> Check:
    """A check that reads each event of a stream as a type."""

    def check(answer: httpx.Response) -> None:
        lines = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
        lines = [line for line in lines if line != "[DONE]"]
        assert len(lines) > 2
        for line in lines:
            read_as(kind, line)

    return check


def schema(name: str, member: str = "") -> Check:
    """A check against the facts of RunPod's document."""

    def check(answer: httpx.Response) -> None:
        said = answer.json()
        for item in said[member] if member else [said]:
            jsonschema.Draft202012Validator(RUNPOD[name]).validate(item)
        problem = "application/problem+json"
        wanted = problem if name == "ErrorResponse" else "application/json"
        assert answer.headers["content-type"] == wanted

    return check


def nothing(answer: httpx.Response) -> None:
    """A check that there is no body."""
    assert answer.content == b""


def converse_output(answer: httpx.Response) -> None:
    """A check by botocore's own model of what Converse answers."""
    from botocore.session import Session
    from botocore.validate import ParamValidator

    model = Session().get_service_model("bedrock-runtime").operation_model("Converse")
    shape = model.output_shape
    found = ParamValidator().validate(answer.json(), shape)
    assert not found.has_errors(), found.generate_report()
    assert set(shape.required_members) <= set(answer.json()) <= set(shape.members)


# Errors that no operation of AWS models, as every one may have them, with their status.
COMMON = {
    "UnrecognizedClientException": 403,
    "InvalidSignatureException": 403,
    "ServiceQuotaExceededException": 400,
    "SerializationException": 400,
}


def converse_error(answer: httpx.Response) -> None:
    """A check by botocore's own model: a known error, of its status, with what it requires."""
    from botocore.session import Session

    model = Session().get_service_model("bedrock-runtime").operation_model("Converse")
    statuses = {s.name: s.metadata["error"]["httpStatusCode"] for s in model.error_shapes}
    name = answer.headers["x-amzn-errortype"]
    assert answer.status_code == {**COMMON, **statuses}[name]
    assert isinstance(answer.json()["message"], str)


def openai_error(answer: httpx.Response) -> None:
    """A check by the SDK's own type of an error."""
    from openai.types.shared import ErrorObject

    assert set(answer.json()) == {"error"}
    read_as(ErrorObject, json.dumps(answer.json()["error"]))


def anthropic_error(answer: httpx.Response) -> None:
    """A check by the SDK's own type of an error."""
    from anthropic.types import ErrorResponse

    read_as(ErrorResponse, answer.content)
    assert answer.headers["request-id"] == answer.json()["request_id"]


def google_error(answer: httpx.Response) -> None:
    """A check by the canonical codes of Google's APIs."""
    from google.rpc import code_pb2

    error = answer.json()["error"]
    assert {"code", "message", "status"} <= set(error) <= {"code", "message", "status", "details"}
    assert error["code"] == answer.status_code
    assert error["status"] in code_pb2.Code.DESCRIPTOR.values_by_name


def elevenlabs_error(answer: httpx.Response) -> None:
    """A check by the shapes that the vendor's errors have."""
    from elevenlabs import HttpValidationError

    if answer.status_code == 422:
        read_as(HttpValidationError, answer.content)
    else:
        detail = answer.json()["detail"]
        assert {"status", "message"} == set(detail)
        assert all(isinstance(value, str) for value in detail.values())


def minimax_error(answer: httpx.Response) -> None:
    """A check that a failure says so with HTTP 200, by a number and words."""
    base = answer.json()["base_resp"]
    assert set(base) == {"status_code", "status_msg"}
    assert isinstance(base["status_code"], int)
    assert base["status_code"] != 0


def minimax_ok(*needed: str) -> Check:
    """A check that a success has no code, and the members that its page shows."""

    def check(answer: httpx.Response) -> None:
        assert answer.json()["base_resp"]["status_code"] == 0
        assert set(needed) <= set(answer.json())

    return check


def google_models(answer: httpx.Response) -> None:
    """A check by the SDK's own reading of the wire."""
    from google.genai.models import _Model_from_mldev
    from google.genai.types import Model

    assert answer.json()["models"]
    for row in answer.json()["models"]:
        read = _Model_from_mldev(row)
        read.pop("tuned_model_info")  # the SDK puts the whole row there, and drops what is left
        Model.model_validate(read)


JOB_STATES = {"IN_QUEUE", "IN_PROGRESS", "RUNNING", "COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT"}


def job(answer: httpx.Response) -> None:
    """A check of a job, and of what a public endpoint's has in the end."""
    said = answer.json()
    known = {"id", "status", "delayTime", "executionTime", "workerId", "output", "error"}
    assert {"id", "status"} <= set(said) <= known
    assert said["status"] in JOB_STATES
    if said["status"] == "COMPLETED":
        assert set(said["output"]) == {"image_url", "cost"}
        assert httpx.URL(said["output"]["image_url"]).scheme in ("http", "https")


def plain_error(answer: httpx.Response) -> None:
    """A check that the job API says what is wrong in one word."""
    assert isinstance(answer.json()["error"], str)
