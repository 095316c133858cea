"""The OpenAPI document: complete, consistent with the routes, and equal to the stored copy."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from scripts import openapi as script
from scripts.openapi_document import document
from scripts.openapi_document.examples import EXAMPLES
from tests.server.conftest import Wire
from tests.server.route_table import DOCUMENT, KEYED_ROUTES, ROUTES, Route, name_parameters
from toolkit.contract.errors import ErrorCode

SCHEMAS = DOCUMENT["components"]["schemas"]


def resolve_reference(part: dict[str, Any]) -> dict[str, Any]:
    """Return the target of a reference, or the part itself."""
    if "$ref" not in part:
        return part
    target: Any = DOCUMENT
    for name in part["$ref"].removeprefix("#/").split("/"):
        target = target[name]
    return dict(target)


def list_answers(route: Route) -> dict[str, dict[str, Any]]:
    """Return the answers of a route, by status."""
    responses = route.told["responses"]
    return {status: resolve_reference(response) for status, response in responses.items()}


def validate(value: object, schema: dict[str, Any]) -> None:
    """Check that a value conforms to a schema of the document."""
    complete = {**schema, "components": DOCUMENT["components"]}
    jsonschema.Draft202012Validator(complete).validate(value)


async def test_serves_the_document(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a server, then it serves the document without a key, and without building it."""
    monkeypatch.setattr(document, "build_openapi", lambda: pytest.fail("it is built"))
    answer = await wire.http.get("/openapi.json")
    assert answer.json() == DOCUMENT
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"]
    assert DOCUMENT["openapi"].startswith("3.1")
    assert (await wire.http.head("/openapi.json")).status_code == 200
    assert (await wire.http.post("/openapi.json")).status_code == 405


def test_document_is_valid() -> None:
    """Given the document, then it is OpenAPI 3.1, and each reference has a target."""
    OpenAPIV31SpecValidator(DOCUMENT).validate()


@pytest.mark.parametrize(
    ("schema", "body"),
    [("WorkflowCreate", {"name": "w", "nodes": []}), ("PlanGiven", {"nodes": []})],
)
def test_schema_rejects_a_graph_without_nodes(schema: str, body: dict[str, Any]) -> None:
    """Given a graph without nodes, then its schema rejects the graph."""
    reference = {"$ref": f"#/components/schemas/{schema}"}
    validate({**body, "nodes": [{"id": "a", "capability": "research.gather"}]}, reference)
    with pytest.raises(jsonschema.ValidationError, match="non-empty"):
        validate(body, reference)


def test_stored_document_is_current() -> None:
    """Given the stored documents, then they equal the document of the routes."""
    for file in (script.KEPT, script.SERVED):
        content = json.loads(Path(file).read_text(encoding="utf-8"))
        assert content == DOCUMENT, "run `python -m scripts.openapi`"


def test_every_tag_is_described() -> None:
    """Given the tags of the routes, then each has a description."""
    described = {tag["name"] for tag in DOCUMENT["tags"] if tag["description"].endswith(".")}
    tags = {tag for route in ROUTES for tag in route.told.get("tags", ["none"])}
    assert tags == described, "describe its resource in toolkit/contract/operations"


@pytest.mark.parametrize("route", name_parameters(ROUTES))
def test_every_answer_is_described(route: Route) -> None:
    """Given a route, then each possible status has its schema, example and headers."""
    answers = list_answers(route)
    statuses = set(answers)
    assert any(status.startswith("2") for status in statuses)
    assert {"400", "500"} <= statuses
    assert ({"401", "403"} <= statuses) == (route in KEYED_ROUTES)
    assert ("404" in statuses) >= ("{" in route.path)
    assert ("415" in statuses) == ("requestBody" in route.told)
    for status, answer in answers.items():
        assert resolve_reference(answer["headers"]["X-Request-Id"])["required"]
        assert ("Retry-After" in answer["headers"]) == (status in ("429", "503"))
        assert ("WWW-Authenticate" in answer["headers"]) == (status == "401")
        if int(status) >= 400:
            for name in answer["description"].split(", "):
                assert status == "416" or ErrorCode[name].http_status == int(status)
        if status == "307":  # a redirect has no body
            assert resolve_reference(answer["headers"]["Location"])["required"]
            continue
        content = answer["content"].get("application/json", {})
        if content.get("schema"):
            hint = f"{route.name} {status}: add an example to scripts/openapi_document/examples.py"
            assert "example" in content, hint
            validate(content["example"], content["schema"])


@pytest.mark.parametrize("route", name_parameters([r for r in ROUTES if "requestBody" in r.told]))
def test_every_body_is_described(route: Route) -> None:
    """Given a route with a body, then it has a schema, and an example that conforms to it."""
    assert route.told["requestBody"]["required"] is not route.operation.may_omit_body
    for kind, content in route.told["requestBody"]["content"].items():
        if kind == "application/json":
            hint = f"{route.name}: add an example to scripts/openapi_document/examples.py"
            assert "example" in content, hint
            validate(content["example"], content["schema"])


@pytest.mark.parametrize("route", name_parameters(ROUTES))
def test_every_parameter_is_described(route: Route) -> None:
    """Given the parameters of a route, then each has a description and a type with limits."""
    types = {"limit": "integer", "after": "integer", "wait": "integer", "cursor": "string"}
    parameters = [resolve_reference(parameter) for parameter in route.told.get("parameters", ())]
    for parameter in parameters:
        assert parameter["description"]
        assert (
            types.get(parameter["name"], parameter["schema"]["type"]) == parameter["schema"]["type"]
        )
        if parameter["schema"]["type"] == "integer":
            assert (
                parameter["schema"]["minimum"]
                <= parameter["schema"]["default"]
                <= parameter["schema"]["maximum"]
            )
        if parameter["in"] == "path":
            hint = f"{route.path}: give its resource a prefix in toolkit/contract/operations"
            assert re.compile(parameter["schema"].get("pattern", "")).pattern, hint
    keyed = "Idempotency-Key" in {parameter["name"] for parameter in parameters}
    assert keyed == ("422" in list_answers(route))


def test_every_example_is_used() -> None:
    """Given the examples, then the document has the schema of each."""
    wrapped = {name.rstrip("_").rpartition("Envelope_")[2] for name in SCHEMAS}
    assert set(EXAMPLES) <= set(SCHEMAS) | wrapped
