"""Every route there is, read from the table of operations, and how each is called.

What tests of tenancy, keys and pages try follows from this table, so that a new route is tried
without being added anywhere. Where one has to be told how, a test fails and says what to add.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
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
# The kind of the ids below a path; capabilities have names instead.
ID_PREFIXES: dict[str, Prefix] = {
    one.resource.path: one.resource.prefix for one in OPERATIONS if one.resource.prefix is not None
}
# What is below these is the same for everybody, and named rather than numbered.
PUBLIC = {"/v1/capabilities/{id}"}
# Bodies of the posts that are not in POSTS, as what they answer is never replayed.
KEYED: dict[str, Any] = {
    "/v1/account": {"email": "grace@example.org"},
    "/v1/account/keys": {"scopes": ["admin"]},  # no key hands out what it lacks
    "/v1/account/keys/{id}/rotate": {},
}
UNKNOWN = "01m7xrhddbvq3n2zjx4fe01326"


@dataclass(frozen=True)
class Route:
    """One operation of the table, and what the document says of it."""

    operation: ApiOperation[Any, Any]

    @property
    def method(self) -> str:
        """Its method."""
        return self.operation.method

    @property
    def path(self) -> str:
        """Its path."""
        return self.operation.path

    @property
    def name(self) -> str:
        """Its operation id."""
        return self.operation.id

    @property
    def told(self) -> dict[str, Any]:
        """Its description in the document."""
        return dict(DOCUMENT["paths"][self.path][self.method.lower()])

    @property
    def prefix(self) -> Prefix | None:
        """The kind of the id in its path, if there is one."""
        return self.operation.resource.prefix if "{" in self.path else None

    @property
    def paged(self) -> bool:
        """Tell whether it is a list that is read page by page."""
        query = self.operation.query
        return query is not None and issubclass(query, PageQuery)

    @property
    def streamed(self) -> bool:
        """Tell whether it also answers with a stream."""
        return self.operation.form == "events"

    def at(self, resource_id: str) -> str:
        """Its path with an id in it."""
        return self.path.replace("{id}", resource_id)


ROUTES = [Route(operation) for operation in OPERATIONS]
KEYED_ROUTES = [route for route in ROUTES if route.told["security"]]
OWNED_ROUTES = [route for route in ROUTES if "{" in route.path and route.path not in PUBLIC]
LISTS = [route for route in ROUTES if route.paged]


def name_parameters(routes: list[Route]) -> list[Any]:
    """Parameters of a test, each with its operation id as its name."""
    return [pytest.param(route, id=route.name) for route in routes]


def build_post_body(path: str) -> Any:
    """The body of a post to a path, with names for what has to be made before."""
    shapes = {_shape(known): body for known, body in {**POSTS, **KEYED}.items()}
    if _shape(path) not in shapes:
        raise AssertionError(f"POST {path}: add its body to POSTS of test_idempotency.py")
    return shapes[_shape(path)]


def _shape(path: str) -> str:
    return "/".join("{}" if part.startswith("{") else part for part in path.split("/"))


async def options(wire: Wire, route: Route) -> dict[str, Any]:
    """Build the options of a request to a route: its body, if it has one."""
    if route.method != "POST":
        return {}
    _, given = await prepare_post(wire, route.path, build_post_body(route.path))
    return given


async def create_resource(wire: Wire, prefix: Prefix) -> dict[str, Any]:
    """A new resource of a kind: it is posted to its collection."""
    collection = {kind: path for path, kind in ID_PREFIXES.items()}[prefix]
    path, given = await prepare_post(wire, collection, build_post_body(collection))
    given.pop("headers", None)
    answer = await wire.send("POST", path, **make_distinct(given))
    assert answer.status_code in (201, 202), answer.text
    return dict(answer.json())


_made = iter(range(10**9))


def make_distinct(given: dict[str, Any]) -> dict[str, Any]:
    """The same request with a name of its own, where names must differ."""
    body = given.get("json")
    if isinstance(body, dict) and "name" in body and "target" not in body:
        return {"json": {**body, "name": f"{body['name']}-{next(_made)}"}}
    return given


def find_body_ids() -> Iterator[tuple[Route, tuple[str, ...], Prefix]]:
    """Every member of a request body that is an id: the route, where it stands, and its kind."""
    for route in ROUTES:
        content = route.told.get("requestBody", {}).get("content", {})
        if "application/json" in content:
            for where in _members(content["application/json"]["schema"]):
                if where[-1].endswith("_id") and where[-1] != "node_id":  # one of a graph's own
                    word = where[-1].removesuffix("_id").upper()
                    if word not in Prefix.__members__:
                        raise AssertionError(f"{route.name}: no prefix is known for {where[-1]}")
                    yield route, where, Prefix[word]


def _members(schema: dict[str, Any], at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Where the members of a body stand; `0` is the first of a list."""
    if "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    for one in (*schema.get("anyOf", ()), *schema.get("allOf", ())):
        yield from _members(one, at)
    if "items" in schema:
        yield from _members(schema["items"], (*at, "0"))
    for name, member in schema.get("properties", {}).items():
        yield (*at, name)
        yield from _members(member, (*at, name))


# Members of bodies that may be left out, and hold others.
OPTIONAL_MEMBERS: dict[str, Any] = {
    "plan": {"nodes": [{"id": "a", "capability": "research.gather", "input": {"topic": "Tea"}}]}
}


def replace_member(body: dict[str, Any], where: tuple[str, ...], value: str) -> dict[str, Any]:
    """A body in which one member is another."""
    changed = deepcopy(body)
    inner: Any = changed
    for name in where[:-1]:
        if name.isdigit():
            inner = inner[int(name)]
        else:
            inner = inner.setdefault(name, deepcopy(OPTIONAL_MEMBERS.get(name, {})))
    inner[where[-1]] = value
    return changed


def strip_request_ids(answer: httpx.Response, sent: str) -> tuple[int, bytes, list[str]]:
    """An answer without what differs by request: its id, and the id that was asked for."""
    content = answer.content.replace(answer.headers["x-request-id"].encode(), b"<request>")
    # Ids that are sent encoded are answered as they were meant.
    for spelling in {sent, str(httpx.URL(f"http://x/{sent}").path)[1:]}:
        content = content.replace(spelling.encode(), b"<id>")
    length = {"content-length"}
    return answer.status_code, content, sorted(set(answer.headers) - length)
