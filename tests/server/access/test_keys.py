"""Who is let in: on every route, by the route table."""

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
    """The scope that a route asks for."""
    if route.path.startswith(ADMIN) or route.path == SHARED:
        return "admin"
    return "read" if route.method == "GET" or route.name in READING else "write"


def request(route: Route) -> tuple[str, dict[str, Any]]:
    """A request whose id, if it has one, nobody has."""
    path = route.at(new_id(route.prefix)) if route.prefix else route.at(UNKNOWN)
    body = build_post_body(route.path) if route.method == "POST" else None
    if body == "a file":
        return path, {"files": {"file": ("a.txt", b"tea")}}
    return path, {} if body is None else {"json": body}


def test_what_is_open_to_all() -> None:
    """Given the routes, then two are open without a key, and every other says so."""
    assert {route.name for route in ROUTES if not route.told["security"]} == OPEN


@pytest.mark.parametrize("route", name_parameters(KEYED_ROUTES))
@ON_ITS_LOOP
async def test_without_a_key(shared_wire: Wire, route: Route) -> None:
    """Given no key, or one malformed, unknown or revoked, then 401 and the same bytes for all."""
    made = await shared_wire.send("POST", ADMIN, json={"scopes": ["read", "write", "admin"]})
    await shared_wire.send("DELETE", f"{ADMIN}/{made.json()['id']}")
    revoked = f"Bearer {made.json()['data']['api_key']}"
    unknown = "Bearer sk_live_" + "a" * 43
    sent = [None, "Bearer x", "Basic YTpi", unknown, revoked, unknown[:-1], revoked + "x"]
    path, given = request(route)
    answers = []
    for value in sent:
        for headers in ({}, {"Idempotency-Key": "once"}):
            keyed = headers if value is None else {**headers, "Authorization": value}
            answer = await shared_wire.http.request(route.method, path, headers=keyed, **given)
            assert answer.status_code == 401, answer.text
            assert answer.headers["WWW-Authenticate"] == "Bearer"
            answers.append(strip_request_ids(answer, path))
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.parametrize("route", name_parameters(KEYED_ROUTES))
@ON_ITS_LOOP
async def test_a_key_without_the_scope(shared_wire: Wire, route: Route) -> None:
    """Given a key with all scopes but the one, then 403; with the one alone, it is let in."""
    await connect_caller(shared_wire)
    needed = scope_of(route)
    path, given = request(route)
    others = [scope for scope in ("read", "write", "admin") if scope != needed]
    for scopes, let_in in ((others, False), ([needed], True)):
        made = await shared_wire.send("POST", ADMIN, json={"scopes": scopes})
        key = {"Authorization": f"Bearer {made.json()['data']['api_key']}"}
        answer = await shared_wire.http.request(route.method, path, headers=key, **given)
        if let_in:
            hint = f"{route.name} does not ask for `{needed}`: is it a post that changes nothing?"
            assert answer.status_code not in (401, 403), hint
        else:
            error = answer.json()["error"]
            assert (answer.status_code, error["code"]) == (403, "FORBIDDEN")
            assert f"scope `{needed}`" in error["message"]


@pytest.mark.parametrize("route", name_parameters([r for r in KEYED_ROUTES if r.method == "POST"]))
async def test_a_kept_answer_is_not_for_every_key(wire: Wire, route: Route) -> None:
    """Given an Idempotency-Key, then a key that lacks the scope is refused with it as without."""
    made = await wire.send("POST", ADMIN, json={"scopes": ["read"]})
    key = {"Authorization": f"Bearer {made.json()['data']['api_key']}", "Idempotency-Key": "once"}
    path, given = request(route)
    await wire.send("POST", path, headers={"Idempotency-Key": "once"}, **given)
    answer = await wire.http.post(path, headers=key, **given)
    if scope_of(route) != "read":
        assert answer.status_code == 403, f"{route.name}: {answer.text}"


@pytest.mark.parametrize("path", [ADMIN, ADMIN + "/{id}/rotate"])
async def test_keys_are_not_replayed(wire: Wire, path: str) -> None:
    """Given an idempotency key, then no answer with a key in it is kept."""
    made = await wire.send("POST", ADMIN, json={})
    target = path.replace("{id}", made.json()["id"])
    headers = {"Idempotency-Key": "once"}
    first = await wire.send("POST", target, json={}, headers=headers)
    again = await wire.send("POST", target, json={}, headers=headers)
    assert first.status_code == 201
    assert "idempotency-replayed" not in again.headers
    assert (await wire.rows())["idempotency"] == 0
