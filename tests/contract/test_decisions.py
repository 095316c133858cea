"""Decisions on choices that the specification leaves open: envelopes of responses, status codes.

Expectations are literals from the decisions, and requests are raw HTTP.
"""

import re
from typing import Any

import httpx
import pytest

from tests.contract.raw_http import POINTER, UNKNOWN_ULID, Json, RawCaller, build_run_body
from tests.contract.specification.sections import section

# 26 characters of a ULID in lower case: Crockford's alphabet has no i, l, o and u.
ULID = r"[0-7][0-9abcdefghjkmnpqrstvwxyz]{25}"
PREFIXES = "prv|run|ep|tpl|sto|tsk|wfl|acc|key|job|cmp|art|pln|agt|evt|req"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
NODE = {"id": "a", "capability": "research.gather", "input": {"topic": "Tea"}}

# Each collection with a valid body, the status of the response and the prefix of its ids.
COLLECTIONS: dict[str, tuple[Json, int, str]] = {
    "/v1/account/keys": ({}, 201, "key_"),
    "/v1/providers/connections": (POINTER, 201, "prv_"),
    "/v1/endpoints": ({}, 201, "ep_"),
    "/v1/compute": ({"name": "easel", "gpu_type": "NVIDIA A40"}, 201, "cmp_"),
    "/v1/storage": ({"name": "weights", "size_gb": 20}, 201, "sto_"),
    "/v1/templates": ({"name": "worker", "image": "example/worker:1"}, 201, "tpl_"),
    "/v1/agents": ({"name": "card-maker", "objective": "A card about tea"}, 201, "agt_"),
    "/v1/runs": (build_run_body("research.gather", {"topic": "Tea"}), 202, "run_"),
    "/v1/workflows": ({"name": "w", "nodes": [NODE]}, 202, "wfl_"),
    "/v1/tasks": ({"objective": "A short text about tea"}, 202, "tsk_"),
    "/v1/plans": ({"objective": "A short text about tea"}, 202, "pln_"),
}
OTHERS = [
    "account", "providers", "capabilities", "capabilities/llm.generate", "jobs", "artifacts",
    "catalog/gpus", "catalog/models", "usage", "billing", "health",
]  # fmt: skip


def list_scalars(value: Any, name: str = "") -> list[tuple[str, Any]]:
    """List the scalars of a body, each with the name of its member."""
    if isinstance(value, dict):
        return [pair for key, inner in value.items() for pair in list_scalars(inner, key)]
    if isinstance(value, list):
        return [pair for inner in value for pair in list_scalars(inner, name)]
    return [(name, value)]


def check_envelope(response: httpx.Response) -> Json:
    """Check that a body is an envelope as decided, and return it."""
    request_id = response.headers["X-Request-Id"]
    assert re.fullmatch(f"req_{ULID}", request_id)
    body = response.json()
    if response.status_code >= 400:
        assert set(body) == {"error"}
        error = body["error"]
        assert {"code", "message", "request_id"} <= set(error)
        assert set(error) <= {"code", "message", "request_id", "details"}
        assert re.fullmatch(r"[A-Z]+(_[A-Z]+)*", error["code"])
        assert error["request_id"] == request_id
        assert error["message"].endswith(".")
        assert "\n" not in error["message"]
        assert all(set(detail) == {"path", "message"} for detail in error.get("details", []))
        return dict(body)
    assert {"data"} <= set(body) <= {"id", "status", "data", "error"}
    data = body["data"]
    for member in ("id", "status"):
        assert body.get(member) == data.get(member)
    if "items" in data:
        assert set(data) == {"items", "count", "total", "next_cursor"}
        assert data["count"] == len(data["items"])
    for name, value in list_scalars(data):
        if name.endswith("_at") and value is not None:
            assert re.fullmatch(TIME, value), (name, value)
        if name.endswith("_usd") and value is not None:
            assert type(value) in (int, float), (name, value)
        if re.fullmatch(r"id|(?!vendor_).*_id", name):  # vendors choose the form of their own ids
            ours = isinstance(value, str) and re.match(f"({PREFIXES})_", value)
            assert not ours or re.fullmatch(f"({PREFIXES})_{ULID}", value), (name, value)
    return dict(body)


@section("Resources and their fields > Response envelope")
@section("Resources and their fields > Id prefixes")
@section("Endpoints > Other areas")
@pytest.mark.parametrize("path", COLLECTIONS)
def test_each_response_of_a_collection_is_an_envelope(caller: RawCaller, path: str) -> None:
    """Given a collection, then each response is an envelope with ids, times and money."""
    body, status, prefix = COLLECTIONS[path]
    response = caller.send("POST", path, body)
    assert response.status_code == status, response.text
    resource = check_envelope(response)
    assert re.fullmatch(prefix + ULID, resource["id"])
    items = check_envelope(caller.send("GET", path))["data"]["items"]
    assert items[0]["id"] == resource["id"]  # newest first
    record = check_envelope(caller.send("GET", f"{path}/{resource['id']}"))
    assert record["id"] == resource["id"]
    unknown = caller.send("GET", f"{path}/{prefix}{UNKNOWN_ULID}")
    assert unknown.status_code == 404
    assert check_envelope(unknown)["error"]["code"] == "NOT_FOUND"
    invalid = caller.send("POST", path, {"surprise": 1})
    assert invalid.status_code == 400
    details = check_envelope(invalid)["error"]["details"]
    assert "surprise" in [detail["path"] for detail in details]


@section("Endpoints > Other areas")
@pytest.mark.parametrize("path", OTHERS)
def test_a_read_only_response_is_an_envelope(caller: RawCaller, path: str) -> None:
    """Given a read-only path, then its response is an envelope, and other methods respond 405."""
    assert check_envelope(caller.send("GET", f"/v1/{path}"))
    response = caller.send("PUT", f"/v1/{path}")
    assert response.status_code == 405
    assert check_envelope(response)["error"]["code"] == "METHOD_NOT_ALLOWED"


@pytest.mark.parametrize(
    "path", ["/v1/endpoints", "/v1/storage", "/v1/templates", "/v1/compute", "/v1/agents"]
)
def test_a_delete_responds_with_the_last_state(caller: RawCaller, path: str) -> None:
    """Given a deleted resource, then 200 with its last state and `deleted: true`."""
    resource = caller.create(path, COLLECTIONS[path][0] | {"name": "short-lived"})
    response = caller.send("DELETE", f"{path}/{resource['id']}")
    assert response.status_code == 200
    assert check_envelope(response)["data"]["deleted"] is True


@pytest.mark.parametrize("area", ["runs", "workflows", "tasks"])
def test_a_cancel_after_the_end_changes_nothing(caller: RawCaller, area: str) -> None:
    """Given completed work, then a cancel responds with 200 and the same record."""
    work = caller.create(f"/v1/{area}", COLLECTIONS[f"/v1/{area}"][0])
    record = caller.poll(f"/v1/{area}/{work['id']}", "completed", "failed")
    response = caller.send("POST", f"/v1/{area}/{work['id']}/cancel")
    assert response.status_code == 200
    assert check_envelope(response) == record
