"""Every route, read from the table of operations, and a request to each.

Tests of tenancy, keys and pages are parametrised by this table, so that they cover a new route. A
test fails with a hint if the table lacks the body of a new route.
"""

import itertools
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import httpx
import pytest

from scripts.openapi_document.document import build_openapi
from tests.server.conftest import Wire
from tests.server.middleware.test_idempotency import POSTS, prepare_post
from toolkit.contract.ids import Prefix
from toolkit.contract.operations.definitions import ApiOperation
from toolkit.contract.operations.queries import PageQuery
from toolkit.contract.operations.table import OPERATIONS

DOCUMENT: dict[str, Any] = build_openapi()
# The prefix of the ids below a path; capabilities have names instead.
ID_PREFIXES: dict[str, Prefix] = {
    operation.resource.path: operation.resource.prefix
    for operation in OPERATIONS
    if operation.resource.prefix is not None
}
# Records below these paths are public, and named instead of numbered.
PUBLIC = {"/v1/capabilities/{id}"}
# Bodies of the posts that are not in POSTS, because their answers are never replayed.
KEYED: dict[str, Any] = {
    "/v1/account": {"email": "grace@example.org"},
    "/v1/account/keys": {"scopes": ["admin"]},  # a key grants only scopes that it has
    "/v1/account/keys/{id}/rotate": {},
}
UNKNOWN = "01m7xrhddbvq3n2zjx4fe01326"


class Route:
    """An operation of the table.

    Attributes:
        told: description of the operation in the OpenAPI document.
        prefix: prefix of the id in its path, or None.
        streamed: True if it also answers with a stream of events.
    """

    def __init__(self, operation: ApiOperation[Any, Any]) -> None:
        self.operation = operation
        self.method, self.path, self.name = operation.method, operation.path, operation.id
        self.told: dict[str, Any] = DOCUMENT["paths"][self.path][self.method.lower()]
        self.prefix = operation.resource.prefix if "{" in self.path else None
        self.streamed = operation.form == "events"

    def at(self, resource_id: str) -> str:
        """Return the path with an id in it."""
        return self.path.replace("{id}", resource_id)


ROUTES = [Route(operation) for operation in OPERATIONS]
KEYED_ROUTES = [route for route in ROUTES if route.told["security"]]
OWNED_ROUTES = [route for route in ROUTES if "{" in route.path and route.path not in PUBLIC]
LISTS = [route for route in ROUTES if issubclass(route.operation.query or object, PageQuery)]


def name_parameters(routes: list[Route]) -> list[Any]:
    """Return parameters of a test, each named by its operation id."""
    return [pytest.param(route, id=route.name) for route in routes]


def build_post_body(path: str) -> Any:
    """Return the body of a post to a path, with placeholders for the ids of other resources."""
    shapes = {_shape(shape_path): body for shape_path, body in {**POSTS, **KEYED}.items()}
    assert _shape(path) in shapes, f"POST {path}: add its body to POSTS of test_idempotency.py"
    return shapes[_shape(path)]


def _shape(path: str) -> str:
    return "/".join("{}" if part.startswith("{") else part for part in path.split("/"))


async def options(wire: Wire, route: Route) -> dict[str, Any]:
    """Build the options of a request to a route: its body, if it has one."""
    if route.method != "POST":
        return {}
    _, request = await prepare_post(wire, route.path, build_post_body(route.path))
    return request


async def create_resource(wire: Wire, prefix: Prefix) -> dict[str, Any]:
    """Create a resource of a kind, with a name of its own if names must differ."""
    collection = {kind: path for path, kind in ID_PREFIXES.items()}[prefix]
    path, request = await prepare_post(wire, collection, build_post_body(collection))
    request.pop("headers", None)
    body = request.get("json", {})
    if "name" in body and "target" not in body:
        body["name"] = f"{body['name']}-{next(_numbers)}"
    answer = await wire.send("POST", path, **request)
    assert answer.status_code in (201, 202), answer.text
    return dict(answer.json())


_numbers = itertools.count()


def find_body_ids() -> Iterator[tuple[Route, tuple[str, ...], Prefix]]:
    """Yield each member of a request body that is an id: its route, its path and its prefix."""
    for route in ROUTES:
        content = route.told.get("requestBody", {}).get("content", {})
        if "application/json" in content:
            for path in _members(content["application/json"]["schema"]):
                if path[-1].endswith("_id") and path[-1] != "node_id":  # an id within the graph
                    word = path[-1].removesuffix("_id").upper()
                    hint = f"{route.name}: no prefix is known for {path[-1]}"
                    assert word in Prefix.__members__, hint
                    yield route, path, Prefix[word]


def _members(schema: dict[str, Any], at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of all members of a body; `0` is the first item of a list."""
    if "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    for part in (*schema.get("anyOf", ()), *schema.get("allOf", ())):
        yield from _members(part, at)
    if "items" in schema:
        yield from _members(schema["items"], (*at, "0"))
    for name, member in schema.get("properties", {}).items():
        yield (*at, name)
        yield from _members(member, (*at, name))


# Optional members of bodies that hold other members.
OPTIONAL_MEMBERS: dict[str, Any] = {
    "plan": {"nodes": [{"id": "a", "capability": "research.gather", "input": {"topic": "Tea"}}]}
}


def replace_member(body: dict[str, Any], path: tuple[str, ...], value: str) -> dict[str, Any]:
    """Return a copy of a body with another value at a path."""
    changed = deepcopy(body)
    inner: Any = changed
    for name in path[:-1]:
        if name.isdigit():
            inner = inner[int(name)]
        else:
            inner = inner.setdefault(name, deepcopy(OPTIONAL_MEMBERS.get(name, {})))
    inner[path[-1]] = value
    return changed


def strip_request_ids(answer: httpx.Response, sent: str) -> tuple[int, bytes, list[str]]:
    """Return an answer without the parts that differ by request: its id and the requested id."""
    content = answer.content.replace(answer.headers["x-request-id"].encode(), b"<request>")
    # An encoded id is decoded in the answer.
    for spelling in {sent, str(httpx.URL(f"http://x/{sent}").path)[1:]}:
        content = content.replace(spelling.encode(), b"<id>")
    length = {"content-length"}
    return answer.status_code, content, sorted(set(answer.headers) - length)
