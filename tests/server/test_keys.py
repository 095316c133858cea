"""Scopes on every route, and keys that are not replayed."""

import re

import pytest

from tests.server.conftest import Wire
from toolkit.server import create_app

NOBODYS = "01m7xrhddbvq3n2zjx4fe01326"
OPEN = {("post", "/v1/account"), ("get", "/v1/health")}


def routes() -> list[tuple[str, str]]:
    """Every method and path that needs a key."""
    app = create_app(None)  # type: ignore[arg-type]  # only its routes are looked at
    found = {
        (method, path)
        for path, operations in app.openapi()["paths"].items()
        for method in operations
    }
    return sorted(found - OPEN)


def needed(method: str, path: str) -> str:
    """The scope that a route asks for."""
    if path.startswith("/v1/account/keys"):
        return "admin"
    reads = method == "get" or path == "/v1/route"  # which spends nothing and keeps nothing
    return "read" if reads else "write"


async def test_every_route_asks_for_its_scope(wire: Wire) -> None:
    """Given keys with each scope, then a route is 403 without the one it needs, never with it."""
    made = {
        scope: await wire.send("POST", "/v1/account/keys", json={"scopes": [scope]})
        for scope in ("read", "write", "admin")
    }
    wrong = []
    for method, path in routes():
        for scope, key in made.items():
            headers = {"Authorization": f"Bearer {key.json()['data']['api_key']}"}
            target = re.sub(r"\{\w+\}", f"x_{NOBODYS}", path)
            answer = await wire.send(method.upper(), target, headers=headers)
            if (answer.status_code == 403) is (scope == needed(method, path)):
                wrong.append((method, path, scope, answer.status_code))
    assert not wrong


@pytest.mark.parametrize("path", ["/v1/account/keys", "/v1/account/keys/{id}/rotate"])
async def test_keys_are_not_replayed(wire: Wire, path: str) -> None:
    """Given an idempotency key, then no answer with a key in it is kept."""
    made = await wire.send("POST", "/v1/account/keys", json={})
    target = path.replace("{id}", made.json()["id"])
    headers = {"Idempotency-Key": "once"}
    first = await wire.send("POST", target, json={}, headers=headers)
    again = await wire.send("POST", target, json={}, headers=headers)
    assert first.status_code == 201
    assert "idempotency-replayed" not in again.headers
    assert (await wire.rows())["idempotency"] == 0


async def test_the_key_of_another_account_is_nowhere(wire: Wire) -> None:
    """Given someone else's key, then it is read, rotated and revoked like one that is not there."""
    other = await wire.sign_up("bob@example.org")
    mine = (await wire.send("GET", "/v1/account/keys")).json()["data"]["items"][0]["id"]
    for method, path, body in (
        ("GET", f"/v1/account/keys/{mine}", None),
        ("DELETE", f"/v1/account/keys/{mine}", None),
        ("POST", f"/v1/account/keys/{mine}/rotate", {}),
    ):
        answer = await wire.send(method, path, json=body, headers=other)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "NOT_FOUND")
