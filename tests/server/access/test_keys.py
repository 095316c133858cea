"""The key and the scope that each route needs, by the route table."""

from typing import Any

import pytest

from tests.server.conftest import ON_ITS_LOOP, Wire, connect_caller
from tests.server.route_table import (
    KEYED_ROUTES,
    ROUTES,
    UNKNOWN,
    Route,
    build_post_body,
    name_parameters,
    strip_request_ids,
)
from toolkit.contract.ids import new_id

OPEN = {"account_create", "health_read"}
ADMIN = "/v1/account/keys"
SHARED = "/v1/providers/connections/{id}/share"
# Posts that change nothing.
READING = {"route_create"}


def scope_of(route: Route) -> str:
    """Return the scope that a route needs."""
    if route.path.startswith(ADMIN) or route.path == SHARED:
        return "admin"
    return "read" if route.method == "GET" or route.name in READING else "write"


def request(route: Route) -> tuple[str, dict[str, Any]]:
    """Build a request to a route, with an unknown id if it has an id."""
    path = route.at(new_id(route.prefix)) if route.prefix else route.at(UNKNOWN)
    body = build_post_body(route.path) if route.method == "POST" else None
    if body == "a file":
        return path, {"files": {"file": ("a.txt", b"tea")}}
    return path, {} if body is None else {"json": body}


def test_two_routes_need_no_key() -> None:
    """Given the routes, then two need no key, and the document says so."""
    assert {route.name for route in ROUTES if not route.told["security"]} == OPEN


@pytest.mark.parametrize("route", name_parameters(KEYED_ROUTES))
@ON_ITS_LOOP
async def test_rejects_a_request_without_a_valid_key(shared_wire: Wire, route: Route) -> None:
    """Given no key, or a malformed, unknown or revoked key, then all get the same 401."""
    record = await shared_wire.send("POST", ADMIN, json={"scopes": ["read", "write", "admin"]})
    await shared_wire.send("DELETE", f"{ADMIN}/{record.json()['id']}")
    revoked = f"Bearer {record.json()['data']['api_key']}"
    unknown = "Bearer sk_live_" + "a" * 43
    credentials = [None, "Bearer x", "Basic YTpi", unknown, revoked, unknown[:-1], revoked + "x"]
    path, content = request(route)
    answers = []
    for value in credentials:
        for headers in ({}, {"Idempotency-Key": "once"}):
            keyed = headers if value is None else {**headers, "Authorization": value}
            answer = await shared_wire.http.request(route.method, path, headers=keyed, **content)
            assert answer.status_code == 401, answer.text
            assert answer.headers["WWW-Authenticate"] == "Bearer"
            answers.append(strip_request_ids(answer, path))
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.parametrize("route", name_parameters(KEYED_ROUTES))
@ON_ITS_LOOP
async def test_rejects_a_key_without_the_scope(shared_wire: Wire, route: Route) -> None:
    """Given a key with every other scope, then 403; with the scope alone, the key is accepted."""
    await connect_caller(shared_wire)
    needed = scope_of(route)
    path, content = request(route)
    other_scopes = [scope for scope in ("read", "write", "admin") if scope != needed]
    for scopes, is_accepted in ((other_scopes, False), ([needed], True)):
        record = await shared_wire.send("POST", ADMIN, json={"scopes": scopes})
        key = {"Authorization": f"Bearer {record.json()['data']['api_key']}"}
        answer = await shared_wire.http.request(route.method, path, headers=key, **content)
        if is_accepted:
            hint = f"{route.name} needs no `{needed}`: is it a post that changes nothing?"
            assert answer.status_code not in (401, 403), hint
        else:
            error = answer.json()["error"]
            assert (answer.status_code, error["code"]) == (403, "FORBIDDEN")
            assert f"scope `{needed}`" in error["message"]


@pytest.mark.parametrize("route", name_parameters([r for r in KEYED_ROUTES if r.method == "POST"]))
async def test_replays_no_answer_to_a_key_without_the_scope(wire: Wire, route: Route) -> None:
    """Given an Idempotency-Key, then a key without the scope gets no stored answer."""
    record = await wire.send("POST", ADMIN, json={"scopes": ["read"]})
    key = {"Authorization": f"Bearer {record.json()['data']['api_key']}", "Idempotency-Key": "once"}
    path, content = request(route)
    await wire.send("POST", path, headers={"Idempotency-Key": "once"}, **content)
    answer = await wire.http.post(path, headers=key, **content)
    if scope_of(route) != "read":
        assert answer.status_code == 403, f"{route.name}: {answer.text}"


@pytest.mark.parametrize("path", [ADMIN, ADMIN + "/{id}/rotate"])
async def test_does_not_replay_an_api_key(wire: Wire, path: str) -> None:
    """Given an idempotency key, then no answer with an API key is stored."""
    record = await wire.send("POST", ADMIN, json={})
    target = path.replace("{id}", record.json()["id"])
    headers = {"Idempotency-Key": "once"}
    first = await wire.send("POST", target, json={}, headers=headers)
    again = await wire.send("POST", target, json={}, headers=headers)
    assert first.status_code == 201
    assert "idempotency-replayed" not in again.headers
    assert (await wire.rows())["idempotency"] == 0
