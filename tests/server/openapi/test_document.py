"""The OpenAPI document: whole, true to the routes, and the one that is checked in."""

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
    """Resolve a reference, or return the thing itself."""
    if "$ref" not in part:
        return part
    found: Any = DOCUMENT
    for name in part["$ref"].removeprefix("#/").split("/"):
        found = found[name]
    return dict(found)


def answers(route: Route) -> dict[str, dict[str, Any]]:
    """List the answers of a route, by status."""
    return {status: resolve_reference(told) for status, told in route.told["responses"].items()}


def conforms(value: object, schema: dict[str, Any]) -> None:
    """Hold a value to a schema of the document."""
    whole = {**schema, "components": DOCUMENT["components"]}
    jsonschema.Draft202012Validator(whole).validate(value)


async def test_it_is_served(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a server, then its document is there without a key: to make it would hold the loop."""
    monkeypatch.setattr(document, "build_openapi", lambda: pytest.fail("it is made"))
    answer = await wire.http.get("/openapi.json")
    assert answer.json() == DOCUMENT
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"]
    assert DOCUMENT["openapi"].startswith("3.1")
    assert (await wire.http.head("/openapi.json")).status_code == 200
    assert (await wire.http.post("/openapi.json")).status_code == 405


def test_it_is_valid() -> None:
    """Given the document, then it is OpenAPI 3.1."""
    OpenAPIV31SpecValidator(DOCUMENT).validate()


@pytest.mark.parametrize(
    ("schema", "body"),
    [("WorkflowCreate", {"name": "w", "nodes": []}), ("PlanGiven", {"nodes": []})],
)
async def test_a_graph_without_nodes_is_refused_by_the_schema(
    wire: Wire, schema: str, body: dict[str, Any]
) -> None:
    """Given the document as it is served, then a graph without nodes does not fit its schema."""
    served = (await wire.http.get("/openapi.json")).json()
    whole = {**served, "$ref": f"#/components/schemas/{schema}"}
    node = {"id": "a", "capability": "research.gather"}
    jsonschema.Draft202012Validator(whole).validate({**body, "nodes": [node]})
    with pytest.raises(jsonschema.ValidationError, match="non-empty"):
        jsonschema.Draft202012Validator(whole).validate(body)


def test_the_one_checked_in_is_current() -> None:
    """Given what is kept, for readers and to be served, then it is what the routes say."""
    for file in (script.KEPT, script.SERVED):
        kept = json.loads(Path(file).read_text(encoding="utf-8"))
        assert kept == DOCUMENT, "run `python -m scripts.openapi`"


def test_the_script_says_what_is_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given a document that is not there or old, then --check refuses it."""
    monkeypatch.setattr(script, "KEPT", tmp_path / "openapi.json")
    monkeypatch.setattr(script, "SERVED", tmp_path / "served.json")
    monkeypatch.setattr("sys.argv", ["openapi.py", "--check"])
    assert script.main() == 1
    assert "scripts/fix" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["openapi.py"])
    assert script.main() == 0
    monkeypatch.setattr("sys.argv", ["openapi.py", "--check"])
    assert script.main() == 0


def test_every_tag_is_described() -> None:
    """Given the tags of the routes, then each has a line that says what it is."""
    described = {tag["name"] for tag in DOCUMENT["tags"] if tag["description"].endswith(".")}
    used = {tag for route in ROUTES for tag in route.told.get("tags", ["none"])}
    assert used == described, "describe its resource in toolkit/contract/operations"


@pytest.mark.parametrize("route", name_parameters(ROUTES))
def test_operation_ids_are_area_and_verb(route: Route) -> None:
    """Given a route, then its operation id follows from its path and method."""
    head, _, tail = route.path.removeprefix("/v1/").partition("{id}")
    area = head.strip("/").replace("/", "_")
    verb = tail.strip("/").replace("/", "_")
    if not verb:
        below = "{id}" in route.path
        listed = any(isinstance(_data(told).get("items"), list) for told in answers(route).values())
        read = "read" if below or not listed else "list"
        verb = {"GET": read, "POST": "create", "DELETE": "delete"}[route.method]
    wanted = {f"{area}_{verb}"}
    wanted |= {f"{area}_{verb}_{more}" for more in ("create", "list", "delete")} if tail else set()
    assert route.name in wanted, f"name it {min(wanted)}"


def _data(told: dict[str, Any]) -> dict[str, Any]:
    content = told.get("content", {}).get("application/json", {})
    data = content.get("example", {}).get("data", {})
    return data if isinstance(data, dict) else {}


@pytest.mark.parametrize("route", name_parameters(ROUTES))
def test_every_answer_is_described(route: Route) -> None:
    """Given a route, then each status that can come has its schema, example and headers."""
    told = answers(route)
    statuses = set(told)
    assert any(status.startswith("2") for status in statuses)
    assert {"400", "500"} <= statuses
    assert ({"401", "403"} <= statuses) == (route in KEYED_ROUTES)
    assert ("404" in statuses) >= ("{" in route.path)
    assert ("415" in statuses) == ("requestBody" in route.told)
    for status, answer in told.items():
        assert resolve_reference(answer["headers"]["X-Request-Id"])["required"]
        assert ("Retry-After" in answer["headers"]) == (status in ("429", "503"))
        assert ("WWW-Authenticate" in answer["headers"]) == (status == "401")
        if int(status) >= 400:
            for name in answer["description"].split(", "):
                assert status == "416" or ErrorCode[name].http_status == int(status)
        if status == "307":
            assert resolve_reference(answer["headers"]["Location"])["required"]
            continue  # it leads elsewhere, and has no body
        content = answer["content"].get("application/json", {})
        if content.get("schema"):
            hint = f"{route.name} {status}: add an example to scripts/openapi_document/examples.py"
            assert "example" in content, hint
            conforms(content["example"], content["schema"])


@pytest.mark.parametrize("route", name_parameters([r for r in ROUTES if "requestBody" in r.told]))
def test_every_body_is_described(route: Route) -> None:
    """Given a route that takes a body, then it has a schema, and an example that fits it."""
    assert route.told["requestBody"]["required"] is not route.operation.may_omit_body
    for kind, content in route.told["requestBody"]["content"].items():
        if kind == "application/json":
            hint = f"{route.name}: add an example to scripts/openapi_document/examples.py"
            assert "example" in content, hint
            conforms(content["example"], content["schema"])


@pytest.mark.parametrize("route", name_parameters(ROUTES))
def test_every_parameter_has_its_type(route: Route) -> None:
    """Given the parameters of a route, then each is described, and numbers and ids have a form."""
    known = {"limit": "integer", "after": "integer", "wait": "integer", "cursor": "string"}
    given = [resolve_reference(one) for one in route.told.get("parameters", ())]
    for one in given:
        assert one["description"]
        assert known.get(one["name"], one["schema"]["type"]) == one["schema"]["type"]
        if one["schema"]["type"] == "integer":
            assert one["schema"]["minimum"] <= one["schema"]["default"] <= one["schema"]["maximum"]
        if one["in"] == "path":
            hint = f"{route.path}: give its resource a prefix in toolkit/contract/operations"
            assert re.compile(one["schema"].get("pattern", "")).pattern, hint
    keyed = "Idempotency-Key" in {one["name"] for one in given}
    assert keyed == ("422" in answers(route))


def test_examples_are_all_used() -> None:
    """Given the examples, then each is of a schema that the document has."""
    wrapped = {name.rstrip("_").rpartition("Envelope_")[2] for name in SCHEMAS}
    assert set(EXAMPLES) <= set(SCHEMAS) | wrapped


def test_every_reference_leads_somewhere() -> None:
    """Given all references, then what they name is there."""
    for name in set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(DOCUMENT))):
        assert resolve_reference({"$ref": name})
