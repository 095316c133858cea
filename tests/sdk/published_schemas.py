"""Checks of answers by the SDKs' types, and by facts of the vendors' documents."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import httpx
import jsonschema
from pydantic import BaseModel, TypeAdapter

FACTS = Path(__file__).parent.parent / "vendors/facts"
RUNPOD = json.loads((FACTS / "runpod.json").read_text("utf-8"))["schemas"]
Check = Callable[[httpx.Response], None]


def find_unknown_members(value: object) -> Iterator[str]:
    """Find the members that a generated model does not define, at any depth."""
    if isinstance(value, BaseModel):
        yield from value.model_extra or ()
        for name in type(value).model_fields:
            yield from find_unknown_members(getattr(value, name))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from find_unknown_members(item)


def read_as(kind: Any, text: str | bytes, extra: frozenset[str] = frozenset()) -> None:
    """Read JSON strictly as a type, or as the type of a name: no member is wrong or unknown."""
    published = resolve_name(kind) if isinstance(kind, str) else kind
    value = TypeAdapter(published).validate_json(text, strict=True)
    assert set(find_unknown_members(value)) <= extra


def of(kind: Any, *extra: str) -> Check:
    """Return a check that reads a whole answer as a type."""
    return lambda answer: read_as(kind, answer.content, frozenset(extra))


def each_item(member: str, kind: Any, *required: str) -> Check:
    """Return a check that reads each_item item of a list, which has the required members, too."""

    def check(answer: httpx.Response) -> None:
        body = answer.json()
        items = body[member] if member else body
        assert items
        for item in items:
            read_as(kind, json.dumps(item))
            assert set(required) <= set(item)

    return check


def events(kind: Any) -> Check:
    """Return a check that reads each event of a stream as a type."""

    def check(answer: httpx.Response) -> None:
        lines = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
        lines = [line for line in lines if line != "[DONE]"]
        assert len(lines) > 2
        for line in lines:
            read_as(kind, line)

    return check


def schema(name: str, member: str = "") -> Check:
    """Return a check against RunPod's document."""

    def check(answer: httpx.Response) -> None:
        body = answer.json()
        for item in body[member] if member else [body]:
            jsonschema.Draft202012Validator(RUNPOD[name]).validate(item)
        media_type = "problem+json" if name == "ErrorResponse" else "json"
        assert answer.headers["content-type"] == f"application/{media_type}"

    return check


def nothing(answer: httpx.Response) -> None:
    """Check that there is no body."""
    assert answer.content == b""


def converse_output(answer: httpx.Response) -> None:
    """Check an answer by botocore's own model of Converse."""
    from botocore.session import Session
    from botocore.validate import ParamValidator

    model = Session().get_service_model("bedrock-runtime").operation_model("Converse")
    shape = model.output_shape
    report = ParamValidator().validate(answer.json(), shape)
    assert not report.has_errors(), report.generate_report()
    assert set(shape.required_members) <= set(answer.json()) <= set(shape.members)


# Errors common to all operations of AWS, which botocore's model leaves out, with their status.
COMMON = {
    "UnrecognizedClientException": 403,
    "InvalidSignatureException": 403,
    "ServiceQuotaExceededException": 400,
    "SerializationException": 400,
}


def converse_error(answer: httpx.Response) -> None:
    """Check that botocore's model has the error, with this status."""
    from botocore.session import Session

    model = Session().get_service_model("bedrock-runtime").operation_model("Converse")
    statuses = {s.name: s.metadata["error"]["httpStatusCode"] for s in model.error_shapes}
    name = answer.headers["x-amzn-errortype"]
    assert answer.status_code == {**COMMON, **statuses}[name]
    assert isinstance(answer.json()["message"], str)


def openai_error(answer: httpx.Response) -> None:
    """Check an error by the SDK's own type."""
    from openai.types.shared import ErrorObject

    assert set(answer.json()) == {"error"}
    read_as(ErrorObject, json.dumps(answer.json()["error"]))


ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def anthropic_error(answer: httpx.Response) -> None:
    """Check an error by the SDK's own type, and by the documented type of its status."""
    from anthropic.types import ErrorResponse

    read_as(ErrorResponse, answer.content)
    body = answer.json()
    assert answer.headers["request-id"] == body["request_id"]
    assert body["error"]["type"] == ANTHROPIC_TYPES.get(answer.status_code, "api_error")


GOOGLE_CODES = {
    400: "INVALID_ARGUMENT",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}


def google_error(answer: httpx.Response) -> None:
    """Check an error by the canonical codes of Google's APIs."""
    error = answer.json()["error"]
    assert {"code", "message", "status"} <= set(error) <= {"code", "message", "status", "details"}
    assert error["code"] == answer.status_code
    assert error["status"] == GOOGLE_CODES[answer.status_code]


def elevenlabs_error(answer: httpx.Response) -> None:
    """Check an error by the shapes that the vendor documents."""
    from elevenlabs import HttpValidationError

    if answer.status_code == 422:
        read_as(HttpValidationError, answer.content)
    else:
        detail = answer.json()["detail"]
        assert {"status", "message"} == set(detail)
        assert all(isinstance(value, str) for value in detail.values())


def minimax_error(answer: httpx.Response) -> None:
    """Check that a failure has HTTP 200, an error number and a text."""
    base = answer.json()["base_resp"]
    assert set(base) == {"status_code", "status_msg"}
    assert isinstance(base["status_code"], int)
    assert base["status_code"] != 0


def minimax_ok(*required: str) -> Check:
    """Return a check that a success has no error number, and the documented members."""

    def check(answer: httpx.Response) -> None:
        assert answer.json()["base_resp"]["status_code"] == 0
        assert set(required) <= set(answer.json())

    return check


def google_models(answer: httpx.Response) -> None:
    """Check a list of models by the SDK's own parser."""
    from google.genai.models import _Model_from_mldev
    from google.genai.types import Model

    assert answer.json()["models"]
    for row in answer.json()["models"]:
        read = _Model_from_mldev(row)
        read.pop("tuned_model_info")  # the SDK puts the whole row there
        Model.model_validate(read)


JOB_STATES = {"IN_QUEUE", "IN_PROGRESS", "RUNNING", "COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT"}


def job(answer: httpx.Response) -> None:
    """Check a job, and the output of a public endpoint."""
    body = answer.json()
    members = {"id", "status", "delayTime", "executionTime", "workerId", "output", "error"}
    assert {"id", "status"} <= set(body) <= members
    assert body["status"] in JOB_STATES
    if body["status"] == "COMPLETED":
        assert set(body["output"]) == {"image_url", "cost"}
        assert httpx.URL(body["output"]["image_url"]).scheme in ("http", "https")


def plain_error(answer: httpx.Response) -> None:
    """Check that the job API reports an error as a text."""
    assert isinstance(answer.json()["error"], str)
